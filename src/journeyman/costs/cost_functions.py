"""Costs of a world too large to enumerate: a vectorised function of states and actions.

    psi(x, a) = (psi_1(x, a), ..., psi_n(x, a)),      lowest_i <= psi_i <= highest_i

What a matrix shows by itself has to be declared here: the range of every cost. It enters every
guarantee, so it is checked wherever a cost is evaluated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    assign,
    first_index,
    integer_array,
    real_array,
)
from journeyman.costs.declared_ranges import (
    ROUNDING,
    declared_ranges,
    out_of_range,
    returned_values,
)
from journeyman.costs.extreme_rows import extreme_rows, least_costs
from journeyman.errors import InvalidCosts

CostFunction: TypeAlias = Callable[[IntArray, IntArray], FloatArray]
"""Called with n states and n actions; returns (n x costs)."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CostFunctions:
    """Basis costs psi_1 .. psi_n by a function.

    Args:
        function: `function(states, actions)` with int64 arrays of length n gives (n x costs).
        names: one name per cost.
        lowest, highest: between which each cost lies, in every pair; one figure stands for all.
        largest: no pair has a larger sum of |psi_i|; by default as large as the ranges allow. Say
            it when costs exclude each other, such as indicators of disjoint sets.
        by_factor: of costs that depend on one factor of a state only (`MixedRadix`): the number of
            the cost -> (the factor, the cost of each of its values). Features of factored worlds
            have exact expectations of them; that they agree with `function` is checked in the
            pairs that are drawn for certificates, and otherwise taken on trust.

    >>> costs = CostFunctions(lambda x, a: np.column_stack([x % 2, a / 3]), ["odd", "effort"],
    ...                       lowest=0, highest=1)
    >>> costs.at([7, 2], [3, 0]).tolist(), costs.centre.tolist(), costs.largest
    ([[1.0, 1.0], [0.0, 0.0]], [0.5, 0.5], 2.0)
    """

    function: CostFunction
    names: tuple[str, ...]
    lowest: FloatArray
    highest: FloatArray
    largest: float
    by_factor: Mapping[int, tuple[int, FloatArray]]
    rewards: ClassVar[bool] = False
    """Functions give costs: lower is better."""

    def __init__(
        self,
        function: CostFunction,
        names: Sequence[str],
        *,
        lowest: ArrayLike,
        highest: ArrayLike,
        largest: float | None = None,
        by_factor: Mapping[int, tuple[int, ArrayLike]] | None = None,
    ) -> None:
        if not callable(function):
            raise InvalidCosts(
                f"function is a {type(function).__name__}",
                "Give a function of states and actions; a matrix goes into CostBasis",
            )
        given, low, high = declared_ranges(names, lowest, highest)
        most = float(np.maximum(np.abs(low), np.abs(high)).sum())
        assign(
            self, function=function, names=given, lowest=low, highest=high,
            largest=most if largest is None else _sum_bound(largest, low, high),
            by_factor=_tables(by_factor or {}, given, low, high),
        )  # fmt: skip

    @property
    def num_costs(self) -> int:
        return len(self.names)

    @property
    def centre(self) -> FloatArray:
        """The middle of each cost's range."""
        return np.asarray((self.lowest + self.highest) / 2)

    def extreme_rows(self, scale: FloatArray) -> FloatArray:
        """Rows as large as any row can be that `at` lets pass, times the `scale` of a class."""
        largest = self.largest * (1 + self.num_costs * ROUNDING)
        return extreme_rows(self.lowest, self.highest, largest, scale)

    def at(self, states: ArrayLike, actions: ArrayLike) -> FloatArray:
        """(pairs x costs) at given pairs; a value outside its declared range is refused."""
        x = integer_array("states", states, refusal=InvalidCosts)
        a = integer_array("actions", actions, refusal=InvalidCosts, size=x.size)
        values = returned_values(self.function(x, a), f"{x.size} pairs", x.size, self.num_costs)
        outside = out_of_range(values, self.lowest, self.highest)
        if outside.any():
            self._refuse(outside, x, a, values)
        self._require_small_sums(x, a, values)
        return np.clip(values, self.lowest, self.highest)

    def require_tables(self, digits: IntArray, states: IntArray, values: FloatArray) -> None:
        """Refuse tables by factor that contradict `values`, the costs in these states.

        `digits` holds the factors of the states, (states x factors).
        """
        for cost, (factor, table) in self.by_factor.items():
            told, found = table[digits[:, factor]], values[:, cost]
            size = max(abs(self.lowest[cost]), abs(self.highest[cost]))
            wrong = np.abs(told - found) > 2 * ROUNDING * size
            if wrong.any():
                row = int(np.argmax(wrong))
                raise InvalidCosts(
                    f"{self.names[cost]!r} is {found[row]} in state {states[row]}, by_factor says "
                    f"{told[row]} for value {digits[row, factor]} of factor {factor}",
                    "Mend the table, or leave out a cost that depends on more than one factor",
                )

    def _refuse(self, outside: BoolArray, x: IntArray, a: IntArray, values: FloatArray) -> None:
        row, which = (int(part[0]) for part in np.nonzero(outside))
        raise InvalidCosts(
            f"{self.names[which]!r} is {values[row, which]} in state {x[row]}, action {a[row]}, "
            f"declared between {self.lowest[which]} and {self.highest[which]}",
            "Mend the function, or declare the range it has",
        )

    def _require_small_sums(self, x: IntArray, a: IntArray, values: FloatArray) -> None:
        sums = np.abs(values).sum(axis=1)
        beyond = sums > self.largest * (1 + self.num_costs * ROUNDING)
        if beyond.any():
            row = int(np.argmax(beyond))
            raise InvalidCosts(
                f"the costs of state {x[row]}, action {a[row]} have absolute sum {sums[row]}, "
                f"declared is at most {self.largest}",
                "Mend the function, or declare the largest sum it has",
            )

    def __repr__(self) -> str:
        shown = [*self.names[:4], "…"] if self.num_costs > 4 else self.names
        return f"CostFunctions({self.num_costs} costs: {', '.join(shown)})"


def _sum_bound(largest: float, low: FloatArray, high: FloatArray) -> float:
    figure = float(real_array("largest", [largest], ndim=1, refusal=InvalidCosts)[0])
    if figure < 0:
        raise InvalidCosts(f"largest = {figure}", "Give the largest sum of absolute costs")
    least = float(np.abs(least_costs(low, high)).sum())
    if figure < least:
        raise InvalidCosts(
            f"largest = {figure}, but between lowest and highest no sum is below {least}",
            "Give the largest sum of absolute costs",
        )
    return min(figure, float(np.maximum(np.abs(low), np.abs(high)).sum()))


def _tables(
    by_factor: Mapping[int, tuple[int, ArrayLike]],
    names: tuple[str, ...],
    low: FloatArray,
    high: FloatArray,
) -> dict[int, tuple[int, FloatArray]]:
    tables = {}
    for cost, (factor, values) in by_factor.items():
        if not (cost in range(len(names)) and factor >= 0):
            raise InvalidCosts(
                f"by_factor says that cost {cost!r} depends on factor {factor!r} only",
                f"Number the costs from 0 to {len(names) - 1} and the factors from 0",
            )
        table = real_array(f"by_factor[{cost}]", values, ndim=1, refusal=InvalidCosts)
        outside = (table < low[cost]) | (table > high[cost])
        if outside.any():
            where = first_index(outside)
            raise InvalidCosts(
                f"by_factor says that {names[cost]!r} is {table[where]} when factor {factor} is "
                f"{where}, declared between {low[cost]} and {high[cost]}",
                "Mend the table, or declare the range it has",
            )
        tables[int(cost)] = (int(factor), table)
    return tables
