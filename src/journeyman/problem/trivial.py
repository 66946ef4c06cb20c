"""The trivial bound: what no policy's gap exceeds, whatever it does. One definition for everybody.

    gap <= max of gap_W over the box [lowest - highest, highest - lowest]
    gap <= max of gap_W over the box [lowest - x, highest - x]

the first for an expert who is known from demonstrations, the second for a declared target x, or
zero for a known cost. Here [lowest, highest] are the attainable ranges of the costs
(`policy.attainable`): the expert is a policy of the world too. The trivial bound is the smaller of
that and of what bounded costs alone say,

    gap <= 2 N h        and        gap <= N h + gap_W(h c - x)                   ("the plain bound")

with h = 1/(1 - discount) and N the largest cost of the class in any pair, as given (c = 0) or after
the middle c of each cost's range is subtracted: Psi' mu = h c + (Psi - 1 c')' mu.

A bound is *vacuous* when it is not below the trivial bound, *weak* when it is above half of it; see
`certificate.gap_bound`. In an estimated world the ranges are those of the model, so the box proves
nothing without the model's error: `certificate.trivial` widens it, here the plain bound is used.

*Cost*: two plans per cost at most. They end as soon as the remaining costs cannot matter any more:
when the ranges known so far give the plain bound already, or the others are too small to count.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from journeyman.arrays import FloatArray

if TYPE_CHECKING:
    from journeyman.problem.apprenticeship import Apprenticeship

EPSILON = float(np.finfo(float).eps)


class Ranges(Protocol):
    """Attainable ranges with their proofs, cost by cost."""

    @property
    def widest(self) -> tuple[FloatArray, FloatArray]: ...

    def of(self, cost: int) -> tuple[float, float]: ...

    def potentials(self, cost: int) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True, eq=False)
class ProvenRanges:
    """The ranges that a trivial bound rests on, with the V that prove them (costs x states)."""

    costs: tuple[int, ...]
    lowest: FloatArray
    highest: FloatArray
    low_values: FloatArray
    high_values: FloatArray


@dataclass(frozen=True, eq=False)
class TrivialBound:
    """No policy of the world has a gap above `value`; none has one below `least`."""

    value: float
    least: float
    """Zero for an expert known from demonstrations and for the balls; the least total of a known
    cost, the least gap of a one-sided class to a declared target."""
    ranges: ProvenRanges | None
    """None where bounded costs alone say as much."""


def plain_bound(problem: "Apprenticeship", target: FloatArray | None, sign: float = 1.0) -> float:
    """What bounded costs alone say of every gap; with sign -1 of minus every gap.

    `target` is one that is taken as exact, None for an expert known from demonstrations.
    """
    h, cost_class, num_costs = (
        problem.effective_horizon,
        problem.cost_class,
        problem.basis.num_costs,
    )
    rounding = (num_costs + 8) * EPSILON
    if target is None:
        return 2 * cost_class.centred_bound(problem.basis) * h * (1 + rounding)
    ways = (
        (np.zeros(num_costs), cost_class.pointwise_bound(problem.basis.matrix)),
        (problem.basis.centre, cost_class.bound_about_middle(problem.basis)),
    )
    found = []
    for centre, size in ways:
        sizes = size * h + h * np.abs(centre).sum() + float(np.abs(target).sum())
        distance = cost_class.gap(sign * (h * centre - target))
        found.append(size * h + distance + rounding * float(sizes))
    return min(found)


def without_plans(
    problem: "Apprenticeship", target: FloatArray | None, *, known_cost: bool = False
) -> TrivialBound:
    """The plain bound, which needs nothing but bounded costs."""
    sided = known_cost or _may_be_negative(problem, target)
    least = -plain_bound(problem, target, -1.0) if sided else 0.0
    return TrivialBound(plain_bound(problem, target), least, None)


def _may_be_negative(problem: "Apprenticeship", target: FloatArray | None) -> bool:
    """Whether policies can do better than a target under every cost of the class."""
    return target is not None and not problem.cost_class.contains_zero


def with_ranges(
    problem: "Apprenticeship",
    target: FloatArray | None,
    ranges: Ranges,
    *,
    known_cost: bool = False,
) -> TrivialBound:
    """The plain bound or that over the box; plans are made while they can matter."""
    plain = without_plans(problem, target, known_cost=known_cost)
    box = _Box(problem, target, ranges)
    for cost in box.order():
        if box.largest(decided=False) >= plain.value:
            return plain
        if box.largest(decided=True) <= box.largest(decided=False):
            break
        box.plan(cost)
    value = box.largest(decided=True)
    if known_cost:
        return TrivialBound(min(value, plain.value), box.least(), box.proven())
    least = box.least_gap() if _may_be_negative(problem, target) else 0.0
    return TrivialBound(value, least, box.proven()) if value < plain.value else plain


class _Box:
    """Differences of expectations that are possible, as far as they are known."""

    def __init__(
        self, problem: "Apprenticeship", target: FloatArray | None, ranges: Ranges
    ) -> None:
        self.problem, self.target, self.ranges = problem, target, ranges
        self.low, self.high = (end.copy() for end in ranges.widest)
        self.planned: list[int] = []

    def order(self) -> Any:
        """Costs whose range may be widest first."""
        width = self.problem.cost_class.scaling(self.low.size) * (self.high - self.low)
        return np.argsort(-width, kind="stable").tolist()

    def plan(self, cost: int) -> None:
        self.low[cost], self.high[cost] = self.ranges.of(cost)
        self.planned.append(cost)

    def largest(self, *, decided: bool) -> float:
        """The largest gap over the box: with the other costs as wide as can be, or as harmless."""
        low, high = self._differences()
        if not decided:
            rest = np.ones(low.size, dtype=bool)
            rest[self.planned] = False
            easiest = self.problem.cost_class.easiest(low, high)
            if self.target is None:
                easiest = np.zeros(low.size)
            low, high = np.where(rest, easiest, low), np.where(rest, easiest, high)
        gap = self.problem.cost_class.largest_gap(low, high)
        return gap + EPSILON * (low.size + 8) * abs(gap)

    def least(self) -> float:
        """The lower end of the only cost's range."""
        return float(self._differences()[0][0])

    def least_gap(self) -> float:
        """No difference that is possible has a smaller gap."""
        low, high = self._differences()
        gap = self.problem.cost_class.least_gap(low, high)
        return gap - EPSILON * (low.size + 8) * abs(gap)

    def proven(self) -> ProvenRanges:
        costs = sorted(self.planned)
        values = [self.ranges.potentials(cost) for cost in costs]
        return ProvenRanges(
            tuple(costs), self.low[costs], self.high[costs],
            np.array([low for low, _ in values]), np.array([high for _, high in values]),
        )  # fmt: skip

    def _differences(self) -> tuple[FloatArray, FloatArray]:
        if self.target is None:
            return self.low - self.high, self.high - self.low
        sizes = EPSILON * (np.abs(self.low) + np.abs(self.high) + np.abs(self.target))
        return self.low - self.target - sizes, self.high - self.target + sizes
