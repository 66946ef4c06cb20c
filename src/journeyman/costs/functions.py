"""Costs by a function: of the states and actions of a large world, or of a simulator's steps.

    psi(x, a) = (psi_1(x, a), ..., psi_n(x, a)),      lowest_i <= psi_i <= highest_i

What a matrix shows by itself has to be declared here: the range of every cost. It enters every
guarantee, so it is checked wherever a cost is evaluated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    assign,
    first_index,
    integer_array,
    plain_array,
    real_array,
)
from journeyman.errors import InvalidCosts

CostFunction: TypeAlias = Callable[[IntArray, IntArray], FloatArray]
"""Called with n states and n actions; returns (n x costs)."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class CostFunctions:
    """Basis costs psi_1 .. psi_n by a function.

    Args:
        function: `function(states, actions)` with int64 arrays of length n gives (n x costs).
        names: one name per cost.
        lowest, highest: between which each cost lies, in every pair; one number stands for all.
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

    @property
    def largest_passed(self) -> float:
        """The largest sum of absolute costs that `at` lets pass."""
        return self.largest * (1 + self.num_costs * ROUNDING)

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
            stated, found = table[digits[:, factor]], values[:, cost]
            size = max(abs(self.lowest[cost]), abs(self.highest[cost]))
            wrong = np.abs(stated - found) > 2 * ROUNDING * size
            if wrong.any():
                row = int(np.argmax(wrong))
                raise InvalidCosts(
                    f"{self.names[cost]!r} is {found[row]} in state {states[row]}, by_factor says "
                    f"{stated[row]} for value {digits[row, factor]} of factor {factor}",
                    "Correct the table, or leave out a cost that depends on more than one factor",
                )

    def _refuse(self, outside: BoolArray, x: IntArray, a: IntArray, values: FloatArray) -> None:
        row, which = (int(part[0]) for part in np.nonzero(outside))
        raise InvalidCosts(
            f"{self.names[which]!r} is {values[row, which]} in state {x[row]}, action {a[row]}, "
            f"declared between {self.lowest[which]} and {self.highest[which]}",
            "Correct the function, or declare the range it has",
        )

    def _require_small_sums(self, x: IntArray, a: IntArray, values: FloatArray) -> None:
        sums = np.abs(values).sum(axis=1)
        beyond = sums > self.largest_passed
        if beyond.any():
            row = int(np.argmax(beyond))
            raise InvalidCosts(
                f"the costs of state {x[row]}, action {a[row]} have absolute sum {sums[row]}, "
                f"declared is at most {self.largest}",
                "Correct the function, or declare the largest sum it has",
            )

    def __repr__(self) -> str:
        shown = [*self.names[:4], "…"] if self.num_costs > 4 else self.names
        return f"CostFunctions({self.num_costs} costs: {', '.join(shown)})"


def _sum_bound(largest: float, low: FloatArray, high: FloatArray) -> float:
    total = float(real_array("largest", [largest], ndim=1, refusal=InvalidCosts)[0])
    if total < 0:
        raise InvalidCosts(f"largest = {total}", "Give the largest sum of absolute costs")
    least = float(np.abs(least_costs(low, high)).sum())
    if total < least:
        raise InvalidCosts(
            f"largest = {total}, but between lowest and highest no sum is below {least}",
            "Give the largest sum of absolute costs",
        )
    return min(total, float(np.maximum(np.abs(low), np.abs(high)).sum()))


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
                "Correct the table, or declare the range it has",
            )
        tables[int(cost)] = (int(factor), table)
    return tables


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
    """One number per cost; a single one stands for all."""
    array = np.full(count, values) if np.ndim(values) == 0 else values
    return real_array(name, array, ndim=1, size=count, refusal=InvalidCosts)


def returned_values(found: Any, asked: str, rows: int, num_costs: int) -> FloatArray:
    """What a cost function has returned for so many rows, checked."""
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


def extreme_rows(
    lowest: FloatArray, highest: FloatArray, largest: float, scale: FloatArray
) -> FloatArray:
    """Rows (rows x costs) whose scaled norms, plain and about their centre, bound those over

        Q = { psi : lowest <= psi <= highest, sum_i |psi_i| <= largest }

    Guarantees ask for max |scale psi| and max |scale (psi - c)| over Q, c the middle of each range,
    in the 1-, 2- and max-norm. The rows returned have at least these norms, and ranges as wide as
    those of Q: where costs exclude each other (`largest` small) that is much less than the corners
    of the box.

    *Why*. |psi_i| scale_i lies below size_i scale_i, and the sum of them below the optimum T of a
    knapsack, filled by scale. Filled in the order of size_i scale_i instead, T gives a row that
    majorises all of them, so no convex norm is larger (Hardy, Littlewood and Polya). Around c: a
    cost whose range does not hold zero is half a range away from c where it is least; any other is
    |c_i| + t_i away at most, where t_i <= |psi_i| and t_i <= min(-lowest_i, highest_i).

    *Tightness*: 1-norms and max-norms are attained in Q, 2-norms where all scales are equal, if
    every range begins or ends at zero, or every range is symmetric; else upper bounds.
    """
    if largest >= np.maximum(np.abs(lowest), np.abs(highest)).sum():
        return np.vstack([lowest, highest, _farther(lowest, highest)])
    least = least_costs(lowest, highest)
    room = max(0.0, largest - float(np.abs(least).sum()))
    reach = np.abs(least) + room
    low, high = np.maximum(lowest, -reach), np.minimum(highest, reach)
    single = np.vstack([_one_by_one(least, low), _one_by_one(least, high)])
    return np.unique(
        np.vstack([single, _largest_row(low, high, least, room, scale),
                   _farthest_row(low, high, least, room, scale)]), axis=0,
    )  # fmt: skip


def least_costs(lowest: FloatArray, highest: FloatArray) -> FloatArray:
    """Of every range the value that is closest to zero."""
    return np.asarray(np.clip(0.0, lowest, highest))


def _farther(low: FloatArray, high: FloatArray) -> FloatArray:
    """The end of every range that is farther from zero."""
    return np.where(np.abs(low) > np.abs(high), low, high)


def _one_by_one(least: FloatArray, ends: FloatArray) -> FloatArray:
    """Every cost by itself at its end, the others at their least."""
    rows = np.tile(least, (least.size, 1))
    np.fill_diagonal(rows, ends)
    return rows


def _largest_row(
    low: FloatArray, high: FloatArray, least: FloatArray, room: float, scale: FloatArray
) -> FloatArray:
    """With norms of at least max |scale psi|."""
    ends, rest = _farther(low, high), np.abs(least)
    added = filled(np.abs(ends) - rest, room, scale)
    total = float(scale @ (rest + added))
    sizes = scale * np.abs(ends)
    return np.asarray(np.sign(ends) * np.maximum(filled(sizes, total, sizes) / scale, rest))


def _farthest_row(
    low: FloatArray, high: FloatArray, least: FloatArray, room: float, scale: FloatArray
) -> FloatArray:
    """With norms of at least max |scale (psi - c)|."""
    centre, halves = (low + high) / 2, (high - low) / 2
    around_zero = (low < 0) & (high > 0)
    nearer = np.where(around_zero, np.minimum(-low, high), 0.0)
    added = filled(nearer, room, scale)
    total = float(scale @ np.where(around_zero, np.abs(centre) + added, 0.0))
    sizes = np.where(around_zero, scale * halves, 0.0)
    away = np.minimum(filled(sizes, total, sizes) / scale, halves)
    towards = np.where(centre < 0, 1.0, -1.0)
    return np.where(around_zero, centre + towards * away, least)


def filled(sizes: FloatArray, total: float, priority: FloatArray) -> FloatArray:
    """`total` poured into vessels of these sizes, those of high priority first.

    >>> filled(np.array([1.0, 2.0, 4.0]), 5.0, np.array([1.0, 3.0, 2.0])).tolist()
    [0.0, 2.0, 3.0]
    """
    order = np.argsort(-priority, kind="stable")
    sorted_sizes = sizes[order]
    before = np.cumsum(sorted_sizes) - sorted_sizes
    amounts = np.empty_like(sizes)
    amounts[order] = np.clip(total - before, 0.0, sorted_sizes)
    return amounts


StepFunction: TypeAlias = Callable[
    [NDArray[Any], NDArray[Any], NDArray[Any], FloatArray, NDArray[np.bool_]], Any
]
"""Called with n observations, actions, next observations, rewards and ends; returns (n x costs)."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class StepCosts:
    """Basis costs of what is seen in a step of a simulator; lower is better.

        psi(o, a, o', r, terminated),      lowest_i <= psi_i <= highest_i

    where o and o' are what was observed before and after, a the action, r the simulator's own
    reward. After an episode has terminated every further step costs `after_end`, by declaration: 0
    where nothing happens any more, 1 where a fall is a failure for good.

    Args:
        function: `function(observations, actions, next_observations, rewards, terminated)`, all
            with n rows, gives (n x costs).
        names: one name per cost.
        lowest, highest: between which each cost lies, in every step; one number stands for all.
        after_end: of every step after an episode has terminated; one number stands for all.

    >>> costs = StepCosts(lambda o, a, after, r, end: np.column_stack([abs(o[:, 0]), a]),
    ...                   ["off centre", "effort"], lowest=0, highest=[2.4, 1], after_end=[2.4, 0])
    >>> o = np.array([[0.5, 0.0], [-1.0, 3.0]])
    >>> costs.at(o, np.array([1, 0]), o, np.ones(2), np.zeros(2, bool)).tolist()
    [[0.5, 1.0], [1.0, 0.0]]
    """

    function: StepFunction
    names: tuple[str, ...]
    lowest: FloatArray
    highest: FloatArray
    after_end: FloatArray

    def __init__(
        self,
        function: StepFunction,
        names: Sequence[str],
        *,
        lowest: ArrayLike,
        highest: ArrayLike,
        after_end: ArrayLike = 0.0,
    ) -> None:
        if not callable(function):
            raise InvalidCosts(
                f"function is a {type(function).__name__}",
                "Give a function of (observations, actions, next_observations, rewards, "
                "terminated)",
            )
        given_names, low, high = declared_ranges(names, lowest, highest)
        count = len(given_names)
        given = np.full(count, after_end) if np.ndim(after_end) == 0 else after_end
        rest = real_array("after_end", given, ndim=1, size=count, refusal=InvalidCosts)
        outside = (rest < low) | (rest > high)
        if outside.any():
            which = int(np.argmax(outside))
            raise InvalidCosts(
                f"{given_names[which]!r} is {rest[which]} after the end of an episode, declared "
                f"between {low[which]} and {high[which]}",
                "Say what it costs by after_end, or declare a range that holds it",
            )
        assign(self, function=function, names=given_names, lowest=low, highest=high, after_end=rest)

    @property
    def num_costs(self) -> int:
        return len(self.names)

    def at(
        self,
        observations: NDArray[Any],
        actions: NDArray[Any],
        following: NDArray[Any],
        rewards: FloatArray,
        terminated: NDArray[np.bool_],
    ) -> FloatArray:
        """(steps x costs); a value outside its declared range is refused."""
        found = self.function(observations, actions, following, rewards, terminated)
        steps = len(rewards)
        values = returned_values(found, f"{steps} steps", steps, self.num_costs)
        outside = out_of_range(values, self.lowest, self.highest)
        if outside.any():
            row, which = (int(part[0]) for part in np.nonzero(outside))
            raise InvalidCosts(
                f"{self.names[which]!r} is {values[row, which]} when {actions[row]!r} is done at "
                f"{observations[row]!r}, declared between {self.lowest[which]} and "
                f"{self.highest[which]}",
                "Correct the function, clip its values, or declare the range it has",
            )
        return np.clip(values, self.lowest, self.highest)

    def __repr__(self) -> str:
        return f"StepCosts({self.num_costs} costs: {', '.join(self.names)})"
