"""Lower bounds that hold for every policy.

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
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, assign, read_only, real_array
from journeyman.errors import InvalidProblem
from journeyman.policy import Plan, plan
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.world import World

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
    """What no policy's expected discounted total of `cost` (per pair) can go below."""
    slack = cost - world.flow.adjoint(values)
    bound = world.initial @ values + slack.min() * world.effective_horizon
    size, largest = float(np.abs(values).max()), float(np.abs(cost).max())
    branches = int(np.diff(world.transition.indptr).max())
    per_pair = (branches + 4) * (largest + 2 * size) * world.effective_horizon
    return float(bound - EPSILON * (per_pair + (world.num_states + 2) * size))


def lower_bound(problem: Apprenticeship, witness: Witness) -> float:
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


def infeasibility_margin(problem: Apprenticeship, prices: ArrayLike) -> float:
    """If positive, a proof that no policy keeps all the budgets: at these prices every one pays."""
    xi = np.maximum(np.asarray(prices, dtype=float), 0.0)
    cost = np.asarray(problem.budget_matrix @ xi)
    least = least_cost_bound(problem.world, cost, plan(problem.world, cost).values)
    terms = len(problem.constraints) + 2
    size = _sum_of_sizes(problem, np.zeros(problem.basis.num_costs), xi)
    paid = xi @ np.abs(problem.limits) + size * problem.world.effective_horizon
    return float(least - xi @ problem.limits - EPSILON * terms * paid)


def witness_from_plan(
    problem: Apprenticeship,
    weights: ArrayLike,
    prices: ArrayLike,
    *,
    warm_start: Plan | None = None,
) -> Witness:
    """The witness with given weights and prices whose values are optimal for their cost."""
    admitted, positive = _repaired(problem, np.asarray(weights), np.asarray(prices))
    best = plan(problem.world, priced_cost(problem, admitted, positive), warm_start=warm_start)
    return Witness(admitted, best.values, positive)


def best_witness(problem: Apprenticeship, weights: FloatArray, prices: FloatArray) -> Witness:
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


def priced_cost(problem: Apprenticeship, weights: FloatArray, prices: FloatArray) -> FloatArray:
    """c = Psi w + D xi per pair."""
    return np.asarray(problem.cost_of(weights) + problem.budget_matrix @ prices)


def _repaired(
    problem: Apprenticeship, weights: FloatArray, prices: FloatArray
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


def _sum_of_sizes(problem: Apprenticeship, weights: FloatArray, prices: FloatArray) -> float:
    """A bound on the terms that are added up in a priced cost."""
    budgets = np.array([budget.size for budget in problem.constraints])
    return float(np.abs(weights) @ problem.basis.norms + prices @ budgets)
