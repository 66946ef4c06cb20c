"""Lower bounds that hold for every policy.

For any weights w of the cost class, any values V and any prices xi >= 0, with c = Psi w + D xi,

    gap(pi) >= <initial, V> - <w, target> - <xi, b>
               + min over pairs of (c + discount P V - B V)/(1 - discount)

for every policy pi that keeps the budgets: <mu, c> = <initial, V> + <mu, c + discount P V - B V>
holds for each occupancy mu, and mu has mass 1/(1 - discount). Nothing is assumed about where w, V
and xi come from: weights outside the class are moved into it, negative prices are cut off, and an
inexact V is paid for by the minimum. Rounding is subtracted, so the figure is below the bound's
true value.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, read_only, real_array
from journeyman.errors import InvalidProblem
from journeyman.frozen import assign
from journeyman.policy import Plan, plan
from journeyman.problem.program import Program


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


def lower_bound(problem: Program, witness: Witness) -> float:
    """A value that no policy within the budgets can go below."""
    world = problem.world
    weights, prices = _repaired(problem, witness.cost_weights, witness.budget_prices)
    values = real_array(
        "values of the witness", witness.values, ndim=1, size=world.num_states,
        refusal=InvalidProblem,
    )  # fmt: skip
    cost = priced_cost(problem, weights, prices)
    slack = cost - world.flow.adjoint(values)
    constant = world.initial @ values - weights @ problem.target - prices @ problem.limits
    return float(
        constant
        + slack.min() * world.effective_horizon
        - _rounding(problem, weights, prices, values)
    )


def sharpest_witness(
    problem: Program, weights: ArrayLike, prices: ArrayLike, *, warm_start: Plan | None = None
) -> Witness:
    """The witness with given weights and prices whose values are optimal for their cost."""
    admitted, positive = _repaired(problem, np.asarray(weights), np.asarray(prices))
    best = plan(problem.world, priced_cost(problem, admitted, positive), warm_start=warm_start)
    return Witness(admitted, best.values, positive)


def priced_cost(problem: Program, weights: FloatArray, prices: FloatArray) -> FloatArray:
    """c = Psi w + D xi per pair."""
    return np.asarray(problem.cost_of(weights) + problem.budget_matrix @ prices)


def _repaired(
    problem: Program, weights: FloatArray, prices: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The nearest dual point that is allowed to speak."""
    if weights.size != problem.basis.num_costs or prices.size not in (0, len(problem.constraints)):
        raise InvalidProblem(
            f"the witness has {weights.size} weights and {prices.size} prices, the problem "
            f"{problem.basis.num_costs} costs and {len(problem.constraints)} budgets",
            "Use a witness of this problem",
        )
    positive = np.maximum(prices, 0.0) if prices.size else np.zeros(len(problem.constraints))
    return read_only(problem.cost_class.admit(weights)), read_only(positive)


def _rounding(
    problem: Program, weights: FloatArray, prices: FloatArray, values: FloatArray
) -> float:
    """A bound on what float64 arithmetic can have added to the bound."""
    world = problem.world
    unit = np.finfo(float).eps
    branches = int(np.diff(world.transition.indptr).max())
    terms = branches + problem.basis.num_costs + len(problem.constraints) + 4
    size = float(np.abs(values).max(initial=0.0))
    absolute = np.abs(weights).max(initial=0.0) * abs(problem.basis.matrix).max()
    costs = absolute * problem.basis.num_costs + float(
        (np.abs(problem.budget_matrix).max(axis=0, initial=0.0) * prices).sum()
    )
    per_pair = unit * terms * (costs + 2 * size) * world.effective_horizon
    constants = np.abs(weights) @ np.abs(problem.target) + prices @ np.abs(problem.limits)
    return float(per_pair + unit * (world.num_states * size + terms * constants))
