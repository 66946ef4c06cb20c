"""Tensor-product features for factored states, such as the lengths of several queues.

    K_j(x) = prod_i hat_{j_i}(x_i)        j = (j_1, ..., j_f),  one knot per factor

where hat_k is the tent over the k-th knot of factor i: 1 there, 0 at the neighbouring knots, flat
beyond the last. Every state has at most 2^factors non-zeros, and the rows of K sum to 1. The
features are base(x) K_j(x) times actions or heuristics, as in `partition.py`.

Knots lie where the demonstrations are (quantiles of the visits), so that resolution goes where the
expert goes. `ProductOfVisits` needs only the visits to each factor: in a world too large for counts
per state it is the base that remains.

Cost: O(pairs 2^factors).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, IntArray, assign, integer_array, real_array
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidCosts, InvalidWorld
from journeyman.features.base import Features
from journeyman.features.cells import hat_functions
from journeyman.features.partition import (
    BaseMeasure,
    ColumnBlend,
    blended,
    require_share,
    smoothed,
    visits_of,
    with_flat_share,
)
from journeyman.policy import Policy
from journeyman.world import World


class Knots(ABC):
    """Where the tents of each factor stand."""

    @abstractmethod
    def over(
        self, factors: FloatArray, visits: FloatArray | None, counts: IntArray
    ) -> list[FloatArray]:
        """For every factor its knots in ascending order, at most as many as `counts` allows.

        `factors` (states x factors) are the values, `visits` the demonstrated visits per state.
        """


@dataclass(frozen=True)
class EvenKnots(Knots):
    """Evenly spaced from the least to the largest value."""

    def over(
        self, factors: FloatArray, visits: FloatArray | None, counts: IntArray
    ) -> list[FloatArray]:
        return [
            np.unique(np.linspace(values.min(), values.max(), count))
            for values, count in zip(factors.T, counts, strict=True)
        ]


@dataclass(frozen=True)
class QuantileKnots(Knots):
    """Both ends, and in between quantiles of the visits mixed with a share of all states alike.

    Without demonstrations all states count alike.
    """

    flat_share: float = 0.5

    def __post_init__(self) -> None:
        require_share("flat_share", self.flat_share)

    def over(
        self, factors: FloatArray, visits: FloatArray | None, counts: IntArray
    ) -> list[FloatArray]:
        seen = np.ones(len(factors)) if visits is None else visits
        weights = with_flat_share(seen, self.flat_share)
        return [
            self._along(values, weights, int(count))
            for values, count in zip(factors.T, counts, strict=True)
        ]

    def _along(self, values: FloatArray, weights: FloatArray, count: int) -> FloatArray:
        ends = np.array([values.min(), values.max()])[:count]
        inside = (values > values.min()) & (values < values.max())
        visited = inside & (weights > 0)
        if count < 3 or not visited.any():
            return np.unique(ends)
        order = np.flatnonzero(visited)[np.argsort(values[visited], kind="stable")]
        reached = np.cumsum(weights[order])
        levels = np.arange(1, count - 1) / (count - 1) * reached[-1]
        return np.unique(np.concatenate([ends, values[order[np.searchsorted(reached, levels)]]]))


@dataclass(frozen=True, eq=False, init=False)
class GivenKnots(Knots):
    """One ascending list of knots per factor."""

    knots: tuple[FloatArray, ...]

    def __init__(self, knots: Sequence[ArrayLike]) -> None:
        checked = []
        for factor, values in enumerate(knots):
            name = f"knots of factor {factor}"
            ascending = real_array(name, values, ndim=1, refusal=InvalidCosts)
            if not ascending.size or (np.diff(ascending) <= 0).any():
                raise InvalidCosts(f"{name} are not ascending", "Sort them and leave out repeats")
            checked.append(ascending)
        assign(self, knots=tuple(checked))

    def over(
        self, factors: FloatArray, visits: FloatArray | None, counts: IntArray
    ) -> list[FloatArray]:
        if len(self.knots) != factors.shape[1]:
            raise InvalidCosts(
                f"knots for {len(self.knots)} factors, but states have {factors.shape[1]}",
                "Give one list of knots per factor",
            )
        return list(self.knots)


@dataclass(frozen=True)
class ProductOfVisits(BaseMeasure):
    """The product over factors of their smoothed visits, each with a share of flat measure.

        base(x) = prod_i ((1 - flat_share) smooth_i(x_i) + flat_share)

    where smooth_i are the visits per state around the value x_i, relative to their mean.
    """

    flat_share: float = 0.1
    discounted: bool = False

    def __post_init__(self) -> None:
        require_share("flat_share", self.flat_share)

    def over(self, blend: ColumnBlend) -> FloatArray:
        visits = blend.world.pairs.total(blend.demonstrated(self.discounted))
        parts = [
            with_flat_share(smoothed(axis, visits), self.flat_share) * visits.size
            for axis in blend.axes
        ]
        return np.asarray(np.prod(parts, axis=0))


def tensor(
    world: World,
    demos: Demonstrations | None = None,
    num_knots: int | Sequence[int] = 3,
    *,
    factors: ArrayLike | None = None,
    knots: Knots | None = None,
    base: BaseMeasure | None = None,
    heuristics: Sequence[Policy] | None = None,
) -> Features:
    """Products of tents over the factors of a state, times actions or heuristics; sparse.

    Args:
        demos: the expert's demonstrations, for knots and base measure.
        num_knots: at most so many per factor, one number for all or one for each.
        factors: (states x factors) values; the world's coordinates by default.
        knots: `QuantileKnots()` by default, `EvenKnots()` or `GivenKnots(...)`.
        base: as in `partition`, or `ProductOfVisits()`.
        heuristics: policies to blend instead of single actions.

    >>> from journeyman.gallery import grid
    >>> tensor(grid(8).world, num_knots=[3, 2])
    Features(24 sparse columns over 256 pairs)
    """
    values = _factors_of(world, factors)
    counts = knot_counts(num_knots, values.shape[1])
    visits = None if demos is None else world.pairs.total(visits_of(world, demos, 1.0))
    rule = QuantileKnots() if knots is None else knots
    places = rule.over(values, visits, counts)
    axes = [hat_functions(column, at) for column, at in zip(values.T, places, strict=True)]
    return blended(world, demos, axes, base=base, heuristics=heuristics)


def _factors_of(world: World, factors: ArrayLike | None) -> FloatArray:
    given = world.coordinates if factors is None else factors
    if given is None:
        raise InvalidWorld(
            "the world has no coordinates", "Give factors=, a (states x factors) array"
        )
    return real_array("factors", given, ndim=2, size=world.num_states, refusal=InvalidWorld)


def knot_counts(num_knots: int | Sequence[int], num_factors: int) -> IntArray:
    counts = integer_array("num_knots", np.atleast_1d(num_knots), refusal=InvalidCosts)
    if counts.size not in (1, num_factors):
        raise InvalidCosts(
            f"num_knots has {counts.size} entries for {num_factors} factors",
            "Give one number for all factors or one for each",
        )
    if (counts < 1).any():
        raise InvalidCosts(f"num_knots = {num_knots}", "Give at least one knot per factor")
    return np.broadcast_to(counts, (num_factors,))
