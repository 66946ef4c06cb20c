"""Bounds that hold for every policy: lower bounds by duality, and the trivial bound.

For any values V and any cost c per pair, every occupancy measure mu satisfies

    <mu, c> = <initial, V> + <mu, c + discount P V - B V>
            >= <initial, V> + min over pairs of (c + discount P V - B V)/(1 - discount)

because mu is a flow of mass 1/(1 - discount): `least_cost_bound`. Everything else follows. For any
weights w of the cost class and prices xi >= 0, with c = Psi w + D xi and b the budgets' limits,

    gap(pi) >= <mu, c> - <w, target> - <xi, b>        for every pi that keeps the budgets,

and a positive value of <mu, D xi> - <xi, b> over all mu proves that no policy keeps them.

Nothing is assumed about where w, V and xi come from: weights outside the class are moved into it,
negative prices are cut off, and an inexact V is paid for by the minimum. Rounding is subtracted, so
a number is below the true value of its bound.

*With discount 1* values are zero at ends, and the mass off the ends lies between 0 and M
(`World.effective_horizon`): M min(0, ...) takes the place of the second term, and the bound is
about policies that expect at most M steps. M takes the place of h below too: costs are zero at
ends, so mass there is free, and every measure can be completed to mass M.

*The trivial bound* is what no policy's gap exceeds, whatever it does:

    gap <= max of gap_W over the box [lowest - highest, highest - lowest]
    gap <= max of gap_W over the box [lowest - x, highest - x]

the first for an expert who is known from demonstrations, the second for a declared target x, or
zero for a known cost. Here [lowest, highest] are the attainable ranges of the costs
(`policy.attainable`): the expert is a policy of the world too. The trivial bound is the smaller
of that and of what bounded costs alone imply,

    gap <= 2 N h        and        gap <= N h + gap_W(h c - x)             (the plain bound)

with h = 1/(1 - discount) and N the largest cost of the class in any pair, as given (c = 0) or
after the middle c of each cost's range is subtracted: Psi' mu = h c + (Psi - 1 c')' mu. In a world
with a horizon h is the discounted time of an episode, and costs are those of its steps.

A bound is *vacuous* when it is not below the trivial bound, *weak* when it is above half of it.
In an estimated world the ranges are those of the model, so the box proves nothing without the
model's error: `certificate.model_error` widens it, here the plain bound is used.

*Cost*: two plans per cost at most. They end as soon as the remaining costs cannot matter any
more: when the ranges known so far give the plain bound already, or the others are too small to
count.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, assign, read_only, real_array
from journeyman.errors import InvalidProblem
from journeyman.policy import Plan
from journeyman.policy.planning import potential
from journeyman.progress import out_of_time, say
from journeyman.world import World

if TYPE_CHECKING:
    from journeyman.problem.apprenticeship import Apprenticeship


EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False, init=False)
class Witness:
    """A dual point: the cost weights that make the problem hardest, their values, budget prices."""

    cost_weights: FloatArray
    values: FloatArray
    budget_prices: FloatArray

    def __init__(
        self, cost_weights: ArrayLike, values: ArrayLike, budget_prices: ArrayLike = ()
    ) -> None:
        parts = {
            "cost_weights": cost_weights, "values": values, "budget_prices": budget_prices,
        }  # fmt: skip
        for name, part in parts.items():
            assign(self, **{name: real_array(name, part, ndim=1, refusal=InvalidProblem)})


def least_cost_bound(world: World, cost: FloatArray, values: FloatArray) -> float:
    """What no policy's expected discounted total of `cost` (per pair) can go below; with discount
    1 no policy's that expects at most M steps."""
    if world.has_goal:
        values = np.where(world.absorbing, 0.0, values)
    slack = cost - world.flow.adjoint(values)
    least = slack.min() if not world.has_goal else _least_slack(world, slack)
    bound = world.initial @ values + least * world.effective_horizon
    size, largest = float(np.abs(values).max()), float(np.abs(cost).max())
    branches = int(np.diff(world.transition.indptr).max())
    per_pair = (branches + 4) * (largest + 2 * size) * world.effective_horizon
    return float(bound - EPSILON * (per_pair + (world.num_states + 2) * size))


def _least_slack(world: World, slack: FloatArray) -> float:
    """min(0, slack): with discount 1 the mass off the ends is only known to lie between 0 and M,
    and there is none in states that no policy gets to."""
    return min(0.0, float(slack[world.reachable[world.pairs.states]].min()))


def lower_bound(problem: "Apprenticeship", witness: Witness) -> float:
    """A value that no policy within the budgets can go below."""
    weights, prices = _repaired(problem, witness.cost_weights, witness.budget_prices)
    values = real_array(
        "values of the witness", witness.values, ndim=1, size=problem.world.num_states,
        refusal=InvalidProblem,
    )  # fmt: skip
    cost = priced_cost(problem, weights, prices)
    constants = np.abs(weights) @ np.abs(problem.target) + prices @ np.abs(problem.limits)
    terms = problem.basis.num_costs + len(problem.constraints) + 2
    rounding = EPSILON * terms * (
        constants + _sum_of_sizes(problem, weights, prices) * problem.world.effective_horizon
    )  # fmt: skip
    least = least_cost_bound(problem.world, cost, values)
    return float(least - weights @ problem.target - prices @ problem.limits - rounding)


def infeasibility_margin(problem: "Apprenticeship", prices: ArrayLike) -> float:
    """If positive, a proof that no policy keeps all the budgets: at these prices every one pays."""
    xi = np.maximum(np.asarray(prices, dtype=float), 0.0)
    cost = np.asarray(problem.budget_matrix @ xi)
    least = least_cost_bound(problem.world, cost, potential(problem.world, cost))
    terms = len(problem.constraints) + 2
    size = _sum_of_sizes(problem, np.zeros(problem.basis.num_costs), xi)
    paid = xi @ np.abs(problem.limits) + size * problem.world.effective_horizon
    return float(least - xi @ problem.limits - EPSILON * terms * paid)


def witness_from_plan(
    problem: "Apprenticeship",
    weights: ArrayLike,
    prices: ArrayLike,
    *,
    warm_start: Plan | None = None,
    tolerance: float | None = None,
) -> Witness:
    """The witness with given weights and prices whose values are optimal for their cost, up to
    `tolerance`: by as much the bound can fall short, which holds whatever the values."""
    admitted, positive = _repaired(problem, np.asarray(weights), np.asarray(prices))
    cost = priced_cost(problem, admitted, positive)
    values = potential(problem.world, cost, warm_start=warm_start, tolerance=tolerance)
    return Witness(admitted, values, positive)


def best_witness(problem: "Apprenticeship", weights: FloatArray, prices: FloatArray) -> Witness:
    """The witness from a plan for a proposed dual point, or the origin where that proves more.

    For a class that contains the zero cost the origin proves that no gap is negative.
    """
    num_costs, num_budgets = problem.basis.num_costs, len(problem.constraints)
    if not (np.isfinite(weights).all() and np.isfinite(prices).all()):
        weights, prices = np.zeros(num_costs), np.zeros(num_budgets)
    witness = witness_from_plan(problem, weights, prices)
    if problem.cost_class.contains_zero and lower_bound(problem, witness) <= 0:
        return Witness(np.zeros(num_costs), np.zeros(witness.values.size), np.zeros(num_budgets))
    return witness


def priced_cost(problem: "Apprenticeship", weights: FloatArray, prices: FloatArray) -> FloatArray:
    """c = Psi w + D xi per pair."""
    return np.asarray(problem.cost_of(weights) + problem.budget_matrix @ prices)


def _repaired(
    problem: "Apprenticeship", weights: FloatArray, prices: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The nearest dual point that is feasible."""
    if weights.size != problem.basis.num_costs or prices.size not in (0, len(problem.constraints)):
        raise InvalidProblem(
            f"the witness has {weights.size} weights and {prices.size} prices, the problem "
            f"{problem.basis.num_costs} costs and {len(problem.constraints)} budgets",
            "Use a witness of this problem",
        )
    positive = np.maximum(prices, 0.0) if prices.size else np.zeros(len(problem.constraints))
    return read_only(problem.cost_class.admit(weights)), read_only(positive)


def _sum_of_sizes(problem: "Apprenticeship", weights: FloatArray, prices: FloatArray) -> float:
    """A bound on the terms that are added up in a priced cost."""
    budgets = np.array([budget.size for budget in problem.constraints])
    return float(np.abs(weights) @ problem.basis.norms + prices @ budgets)


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
    """Zero for a class that contains the cost zero; the least total of a known cost; else what a
    policy can at most be better by than the expert, or than a declared target."""
    ranges: ProvenRanges | None
    """None where bounded costs alone imply as much."""


def plain_bound(problem: "Apprenticeship", target: FloatArray | None, sign: float = 1.0) -> float:
    """What bounded costs alone imply for every gap; with sign -1 of minus every gap.

    `target` is one that is taken as exact, None for an expert known from demonstrations.
    """
    totals, cost_class, num_costs = problem.totals, problem.cost_class, problem.num_costs
    h, basis = totals.horizon, totals.basis
    rounding, scale = (num_costs + 8) * EPSILON, cost_class.scaling(num_costs)
    if target is None:
        return 2 * cost_class.centred_bound(basis) * h * (1 + rounding)
    ways = (
        (np.zeros(num_costs), cost_class.pointwise_bound(basis.matrix)),
        (basis.centre, cost_class.bound_about_middle(basis)),
    )
    found = []
    for centre, size in ways:
        sizes = size * h + h * (scale @ np.abs(centre)) + scale @ np.abs(target)
        distance = cost_class.gap(sign * (h * centre - target))
        found.append(size * h + distance + rounding * float(sizes))
    return min(found)


def without_plans(
    problem: "Apprenticeship", target: FloatArray | None, *, known_cost: bool = False
) -> TrivialBound:
    """The plain bound, which needs nothing but bounded costs."""
    sided = known_cost or not problem.cost_class.contains_zero
    least = -plain_bound(problem, target, -1.0) if sided else 0.0
    return TrivialBound(plain_bound(problem, target), least, None)


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
    say("largest gap that is possible at all")
    for cost in box.order():
        if box.largest(decided=False) >= plain.value or out_of_time():
            return plain
        if box.largest(decided=True) <= box.largest(decided=False):
            break
        box.plan(cost)
    value = box.largest(decided=True)
    if known_cost:
        return TrivialBound(min(value, plain.value), box.least(), box.proven())
    least = 0.0 if problem.cost_class.contains_zero else box.least_gap()
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
