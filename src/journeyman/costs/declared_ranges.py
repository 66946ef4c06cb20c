"""Costs by a function: their names, the ranges they are declared to have, what is let pass."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import BoolArray, FloatArray, plain_array, real_array
from journeyman.errors import InvalidCosts

ROUNDING = 1e-12
"""Relative to the largest cost: values outside by less are brought back to the bound."""


def declared_ranges(
    names: Sequence[str], lowest: ArrayLike, highest: ArrayLike
) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
    """Names of costs with their least and greatest values, checked."""
    given = _distinct(names)
    low, high = (_bound(*part, len(given)) for part in (("lowest", lowest), ("highest", highest)))
    if (low > high).any():
        which = int(np.argmax(low > high))
        raise InvalidCosts(
            f"{given[which]!r} is declared between {low[which]} and {high[which]}",
            "Give its least value as lowest and its greatest as highest",
        )
    return given, low, high


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    given = tuple(str(name) for name in names)
    if isinstance(names, str) or not given or len(set(given)) < len(given):
        raise InvalidCosts(f"names = {names!r}", "Name each cost once, in a list")
    return given


def _bound(name: str, values: ArrayLike, count: int) -> FloatArray:
    """One figure per cost; a single one stands for all."""
    array = np.full(count, values) if np.ndim(values) == 0 else values
    return real_array(name, array, ndim=1, size=count, refusal=InvalidCosts)


def returned_values(found: Any, asked: str, rows: int, num_costs: int) -> FloatArray:
    """What a cost function has returned for so many rows, in words and in figures."""
    given = plain_array("what the cost function returns", found, InvalidCosts)
    if given.shape != (rows, num_costs):
        raise InvalidCosts(
            f"the cost function returns shape {given.shape} for {asked} and {num_costs} costs",
            f"Return an array of shape ({rows}, {num_costs})",
        )
    return given.astype(np.float64)


def out_of_range(values: FloatArray, lowest: FloatArray, highest: FloatArray) -> BoolArray:
    """Where a value (rows x costs) is outside its range by more than rounding, or no number."""
    slack = ROUNDING * np.maximum(np.abs(lowest), np.abs(highest))
    return ~((values >= lowest - slack) & (values <= highest + slack))
