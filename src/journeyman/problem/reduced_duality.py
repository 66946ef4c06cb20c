"""Lower bounds on the surrogate loss over a ball of coefficients.

For any w in the class, y in [-1, 1] per state, z in [0, 1] per pair and x in [0, 1] per budget,

    min over |theta|_2 <= radius of L(theta)
        >= -<w, target> - lambda_2 <y, initial> + lambda_1 <z, floor> - lambda_3 <x, limits>
           - radius |G'w + lambda_2 D'y - lambda_1 Phi'z + lambda_3 C'x|_2

because each term of L is the maximum of a linear function over such a point. Points outside these
sets are moved into them first, so any proposal gives a valid bound.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, assign, real_array
from journeyman.errors import InvalidProblem
from journeyman.problem.surrogate import Surrogate


@dataclass(frozen=True, eq=False, init=False)
class ReducedWitness:
    """A dual point of the surrogate: w, y, z, x."""

    cost_weights: FloatArray
    flow_signs: FloatArray
    negative_pairs: FloatArray
    broken_budgets: FloatArray

    def __init__(
        self,
        cost_weights: ArrayLike,
        flow_signs: ArrayLike,
        negative_pairs: ArrayLike,
        broken_budgets: ArrayLike = (),
    ) -> None:
        parts = {
            "cost_weights": cost_weights, "flow_signs": flow_signs,
            "negative_pairs": negative_pairs, "broken_budgets": broken_budgets,
        }  # fmt: skip
        for name, part in parts.items():
            assign(self, **{name: real_array(name, part, ndim=1, refusal=InvalidProblem)})


def reduced_lower_bound(surrogate: Surrogate, witness: ReducedWitness, radius: float) -> float:
    """What the surrogate loss cannot go below for any coefficients within `radius`."""
    reduced, penalties = surrogate.reduced, surrogate.penalties
    w = reduced.problem.cost_class.admit(witness.cost_weights)
    y = np.clip(witness.flow_signs, -1.0, 1.0)
    z = np.clip(witness.negative_pairs, 0.0, 1.0)
    x = np.clip(witness.broken_budgets, 0.0, 1.0)
    if not x.size:
        x = np.zeros(reduced.budget_limits.size)
    slope = (
        reduced.matching.T @ w
        + penalties.flow * (reduced.flow_rows.T @ y)
        - penalties.pairs * (reduced.pair_rows.T @ z)
        + penalties.budgets * (reduced.budget_rows.T @ x)
    )
    constant = (
        -w @ reduced.matching_target
        - penalties.flow * (y @ reduced.flow_target)
        + penalties.pairs * (z @ reduced.floor)
        - penalties.budgets * (x @ reduced.budget_limits)
    )
    return float(constant - radius * np.linalg.norm(slope))


def natural_witness(surrogate: Surrogate, coefficients: ArrayLike) -> ReducedWitness:
    """The dual point that is active at theta; averages over iterates converge to an optimal one."""
    reduced, theta = surrogate.reduced, np.asarray(coefficients, dtype=float)
    difference = reduced.matching @ theta - reduced.matching_target
    return ReducedWitness(
        reduced.problem.cost_class.worst_case(difference),
        np.sign(reduced.flow_rows @ theta - reduced.flow_target),
        (reduced.pair_rows @ theta < reduced.floor).astype(float),
        (reduced.budget_rows @ theta > reduced.budget_limits).astype(float),
    )
