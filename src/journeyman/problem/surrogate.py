"""The surrogate loss of the paper, its subgradients, and the constants of their estimates.

    L(theta) = gap_W(G theta - target) + lambda_1 V1(theta) + lambda_2 V2(theta)
               + lambda_3 sum_j [C_j theta - limit_j]+
    V1 = sum over pairs of [Phi_s theta - floor_s]-      V2 = sum over states of |D_y theta - nu_y|

with the matrices of `Reduced`. Guarantee (exact penalties): for every theta the policy of u_theta
satisfies gap(pi_theta) + lambda_3 sum_j [<mu, d_j> - b_j]+ <= L(theta).

At kinks any subgradient is valid; here sign(0) = 0, a negativity counts strictly below the floor,
and the first maximiser of the cost class is taken. Cost: one pass over the rows of Phi and D for a
value or full subgradient; O(num_costs d) plus two rows for a sampled one.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, Matrix, assign, dense, real_array
from journeyman.errors import InvalidProblem
from journeyman.problem.reduced import (
    DrawnRows,
    ExactPenalty,
    Penalties,
    Penalty,
    Reduced,
    RowNorms,
    RowSampling,
    SamplingLaws,
)


@dataclass(frozen=True, eq=False, init=False)
class Surrogate:
    """L for a reduced problem, a penalty and a way to sample rows."""

    reduced: Reduced
    penalties: Penalties
    laws: SamplingLaws

    def __init__(
        self,
        reduced: Reduced,
        penalty: Penalty | None = None,
        sampling: RowSampling | None = None,
    ) -> None:
        chosen = ExactPenalty() if penalty is None else penalty
        rule = RowNorms() if sampling is None else sampling
        assign(
            self,
            reduced=reduced,
            penalties=chosen.of(reduced.problem),
            laws=reduced.laws(rule),
        )

    @property
    def num_features(self) -> int:
        return self.reduced.num_features

    def matching_error(self, coefficients: ArrayLike) -> float:
        """gap_W(G theta - target): the loss without penalties."""
        return self.reduced.problem.cost_class.gap(self._difference(coefficients))

    def negativity(self, coefficients: ArrayLike) -> float:
        """V1: the total negative mass of u_theta."""
        return float(np.maximum(-self._above_floor(coefficients), 0.0).sum())

    def flow_violation(self, coefficients: ArrayLike) -> float:
        """V2: |(B - discount P)' u_theta - initial|_1."""
        return float(np.abs(self._flow_error(coefficients)).sum())

    def overspending(self, coefficients: ArrayLike) -> float:
        """sum_j [C_j theta - limit_j]+."""
        return float(np.maximum(self._over_budget(coefficients), 0.0).sum())

    def value(self, coefficients: ArrayLike) -> float:
        """L(theta)."""
        return (
            self.matching_error(coefficients)
            + self.penalties.pairs * self.negativity(coefficients)
            + self.penalties.flow * self.flow_violation(coefficients)
            + self.penalties.budgets * self.overspending(coefficients)
        )

    def estimate(self, coefficients: FloatArray, rows: DrawnRows) -> tuple[float, float]:
        """An unbiased estimate of L(theta) from rows that theta has not seen; its standard error.

        What is averaged is the difference to theta = 0, whose penalties are known,

            [Phi_s theta - floor_s]- - [-floor_s]-,      |D_y theta - nu_y| - |nu_y|,

        so a term is at most its row norm times |theta|_2, and rows that are zero need not be drawn.
        """
        parts = self.estimated_parts(coefficients, rows)
        V1, V2 = self.reduced.penalised_at_zero
        penalties = self.penalties
        known = (
            self.matching_error(coefficients)
            + penalties.budgets * self.overspending(coefficients)
            + penalties.pairs * V1
            + penalties.flow * V2
        )
        variance = sum(float(np.var(part, ddof=1)) for part in parts) / rows.pair_law.size
        variance += self.reduced.deviation(coefficients, penalties.budgets) ** 2
        return float(known + sum(part.mean() for part in parts)), float(np.sqrt(variance))

    def estimated_parts(
        self, coefficients: FloatArray, rows: DrawnRows
    ) -> tuple[FloatArray, FloatArray]:
        """What each drawn pair and state adds to both penalties, beyond what it does at zero."""
        floor, nu, penalties = rows.floor, rows.flow_target, self.penalties
        negativity = np.maximum(floor - rows.pair_rows @ coefficients, 0.0)
        violation = np.abs(rows.flow_rows @ coefficients - nu)
        return (
            penalties.pairs * (negativity - np.maximum(floor, 0.0)) / rows.pair_law,
            penalties.flow * (violation - np.abs(nu)) / rows.flow_law,
        )

    def estimated_violations(
        self, coefficients: FloatArray, rows: DrawnRows
    ) -> tuple[float, float]:
        """V1 and V2 from drawn rows."""
        V1, V2 = self.reduced.penalised_at_zero
        pairs, flow = self.estimated_parts(coefficients, rows)
        return (
            V1 + float(pairs.mean()) / (self.penalties.pairs or 1.0),
            V2 + float(flow.mean()) / (self.penalties.flow or 1.0),
        )

    def subgradient(self, coefficients: ArrayLike) -> FloatArray:
        """A subgradient of L at theta, over all rows."""
        reduced = self.reduced
        negative = (self._above_floor(coefficients) < 0).astype(float)
        signs = np.sign(self._flow_error(coefficients))
        return np.asarray(
            self._exact_part(coefficients)
            + self.penalties.flow * (reduced.flow_rows.T @ signs)
            - self.penalties.pairs * (reduced.pair_rows.T @ negative)
        )

    def sampled_subgradient(self, coefficients: ArrayLike, pair: int, state: int) -> FloatArray:
        """The unbiased estimate from a pair ~ `pair_sampling` and a state ~ `state_sampling`."""
        reduced, theta = self.reduced, np.asarray(coefficients, dtype=float)
        pair_row, flow_row = _row(reduced.pair_rows, pair), _row(reduced.flow_rows, state)
        negative = float(pair_row @ theta < reduced.floor[pair])
        sign = np.sign(flow_row @ theta - reduced.flow_target[state])
        flow_weight = self.penalties.flow / self.laws.state_sampling[state]
        pair_weight = self.penalties.pairs / self.laws.pair_sampling[pair]
        return np.asarray(
            self._exact_part(theta)
            + flow_weight * sign * flow_row
            - pair_weight * negative * pair_row
        )

    @cached_property
    def matching_bound(self) -> float:
        """K_psi plus the budgets' share: a bound on the part of the subgradient that is exact."""
        reduced = self.reduced
        image = reduced.problem.cost_class.image_bound(reduced.matching.T)
        budgets = float(np.linalg.norm(reduced.budget_rows, axis=1).sum())
        return image + self.penalties.budgets * budgets

    @property
    def subgradient_bound(self) -> float:
        """K: no sampled subgradient is longer."""
        laws = self.laws
        return (
            self.matching_bound
            + self.penalties.pairs * laws.pair_ratio
            + self.penalties.flow * laws.flow_ratio
        )

    def noise_bound(self, pair_batch: int = 1, state_batch: int = 1) -> float:
        """sigma: sqrt((lambda_1 C_1)^2/b_1 + (lambda_2 C_2)^2/b_2)."""
        pairs = (self.penalties.pairs * self.laws.pair_ratio) ** 2 / pair_batch
        flow = (self.penalties.flow * self.laws.flow_ratio) ** 2 / state_batch
        return float(np.sqrt(pairs + flow))

    def _difference(self, coefficients: ArrayLike) -> FloatArray:
        found, _ = self.reduced.expected(np.asarray(coefficients, dtype=float))
        return np.asarray(found - self.reduced.matching_target)

    def _above_floor(self, coefficients: ArrayLike) -> FloatArray:
        return np.asarray(self.reduced.pair_rows @ np.asarray(coefficients) - self.reduced.floor)

    def _flow_error(self, coefficients: ArrayLike) -> FloatArray:
        theta = np.asarray(coefficients)
        return np.asarray(self.reduced.flow_rows @ theta - self.reduced.flow_target)

    def _over_budget(self, coefficients: ArrayLike) -> FloatArray:
        _, found = self.reduced.expected(np.asarray(coefficients, dtype=float))
        return np.asarray(found - self.reduced.budget_limits)

    def _exact_part(self, coefficients: ArrayLike) -> FloatArray:
        """The part of a subgradient that is never sampled: matching and budgets."""
        reduced = self.reduced
        weights = reduced.problem.cost_class.worst_case(self._difference(coefficients))
        broken = (self._over_budget(coefficients) > 0).astype(float)
        return np.asarray(
            reduced.matching.T @ weights + self.penalties.budgets * (reduced.budget_rows.T @ broken)
        )


def _row(matrix: Matrix, index: int) -> FloatArray:
    row = matrix[[index]]
    return dense(row).ravel()


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
    """What the surrogate loss cannot go below for any coefficients within `radius`.

    For any w in the class, y in [-1, 1] per state, z in [0, 1] per pair and x in [0, 1] per budget,

        min over |theta|_2 <= radius of L(theta)
            >= -<w, target> - lambda_2 <y, initial> + lambda_1 <z, floor> - lambda_3 <x, limits>
               - radius |G'w + lambda_2 D'y - lambda_1 Phi'z + lambda_3 C'x|_2

    because each term of L is the maximum of a linear function over such a point. Points outside
    these sets are moved into them first, so any witness gives a valid bound.
    """
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
