"""Kinds A and B from sampled rows: a certificate for coefficients without a pass over all pairs.

With u = base + Phi theta, v- and v+ the negative and positive part of v, E = B - discount P,

    V1 = sum over pairs of u-            = mean of u-(s)/q1(s)                   s ~ q1
    V2 = sum over states of |E' u - nu|  = mean of |D_y theta - t_y|/q2(y)       y ~ q2
    r+ = sum over states of |nu - E' u+| = mean of |p_y - E_y' (u+ - base+)|/q3(y)   y ~ q3

where nu = initial, D = E' Phi, t = nu - E' base, p = nu - E' base+. Each law is proportional to an
*envelope*, row by row at least what is summed; then every sample lies between 0 and the envelope's
total, and rows of probability zero add nothing to the sum:

| sum | envelope                                          | total without a base measure      |
|-----|---------------------------------------------------|-----------------------------------|
| V1  | [|Phi_s| |theta| - base_s]+                       | C_1 |theta|                       |
| V2  | |D_y| |theta| + |t_y|                             | C_2 |theta| + 1                   |
| r+  | ((B + discount P)' (|Phi_s| |theta|))_y + |p_y|   | (1 + discount) C_1 |theta| + 1    |

in 2-norms, C_1 = sum |Phi_s|, C_2 = sum |D_y|. For Phi >= 0 only the negative coefficients count in
V1, only the positive ones in r+ (the longer of both with a base measure). *Why*, with a base
measure: u- = [-Phi_s theta - base_s]+, and |u+ - base+| <= |Phi_s theta|. A base measure that is an
occupancy measure has t = p = 0. Without one t = p = initial, which must be in the law: the law q2
of the subgradients, proportional to |D_y| alone, misses states that have only initial mass, and
its mean is below V2.

    A (sampled)   expectations Psi' u,   error N h (2 V1 + V2)
    B (sampled)   expectations Psi' u,   error N V1 + N h r+

with upper bounds V1, V2, r+ (Hoeffding or empirical Bernstein, each at half of the part of delta);
B because gap_W(Psi' u+ - x) <= gap_W(Psi' u - x) + N V1. *Guarantee*: with probability 1 - delta
both hold together. Rows must be *fresh*: independent of theta. World and policy decide which rows
are drawn (`draw_seeds`). Coefficients that were chosen because of these
rows are not covered: the best of J needs delta/J for each. *Cost*: only Psi' Phi and the envelopes
(which know theta by its length only) need all rows, and so does the check that u defines the
policy; otherwise 3 `rows` rows are read.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix, assign, first_index, real_array
from journeyman.certificate.concentration import empirical_bernstein_radius, hoeffding_radius
from journeyman.certificate.evaluation import (
    Evaluation,
    Statistics,
    defines,
    largest_cost,
    rounding,
)
from journeyman.certificate.premises import Premise, Verdict, declared, failed
from journeyman.certificate.rollouts import fresh_stream, require_whole
from journeyman.certificate.terms import Term, above
from journeyman.errors import InvalidProblem
from journeyman.features.base import Features
from journeyman.policy import Policy
from journeyman.problem import Program, draw_seeds
from journeyman.problem.draw_seeds import ignored_seed
from journeyman.problem.reduced import Reduced, row_norms

STREAM = 0x726F7773
"""Which of a seed's streams the rows are drawn from."""
SLACK = 1e-9
"""Relative, on norms and ranges: more than products of rows can lose to rounding."""
SUPPORT = "support of q: every row that counts can be drawn"


@dataclass(frozen=True, eq=False, init=False)
class SampledRows:
    """Evaluate the policy of u = base + Phi theta from rows drawn at random.

    Args:
        features: Phi, and the base measure if there is one.
        coefficients: theta; its measure must define the policy that is certified.
        rows: how many are drawn for each of V1, V2 and r+.
        seed: has no influence any more, and is going to be removed: world and policy decide which
            rows are drawn.

    >>> SampledRows(Features([[1.0], [2.0]]), [0.5], rows=1000).coefficients.tolist()
    [0.5]
    """

    features: Features
    coefficients: FloatArray
    rows: int

    def __init__(
        self,
        features: Features,
        coefficients: ArrayLike,
        rows: int,
        seed: int | None = None,
    ) -> None:
        ignored_seed(seed, "SampledRows")
        if not isinstance(features, Features):
            raise InvalidProblem(
                f"features is a {type(features).__name__}", "Give jm.Features(matrix)"
            )
        theta = real_array(
            "coefficients", coefficients, ndim=1, size=features.num_features,
            refusal=InvalidProblem,
        )  # fmt: skip
        require_whole("rows", rows, 2)
        assign(self, features=features, coefficients=theta, rows=int(rows))

    def evaluate(
        self, problem: Program, policy: Policy, failure_probability: float
    ) -> tuple[Evaluation, ...]:
        """Kinds A (sampled) and B (sampled); both hold together."""
        if not defines(self.features.on(problem.world).measure(self.coefficients), policy, problem):
            raise InvalidProblem(
                "the policy is not the one that features and coefficients define",
                "Certify jm.extract(world, features.measure(coefficients))",
            )
        reduced = Reduced(problem, self.features)
        sums = row_sums(reduced, self.coefficients)
        share = failure_probability / max(1, sum(one.width > 0 for one in sums))
        seed = draw_seeds.explicit_seed(problem.world, policy)
        rng = fresh_stream(seed, STREAM)
        found = [one.statistics(self.rows, rng, seed, share) for one in sums]
        V1, V2, r_plus = (upper_bound(one) for one in found)
        N, h, source = largest_cost(problem), problem.world.effective_horizon, f"{self.rows} rows"
        hidden = rounding(problem, self._mass, self.features.num_features)
        ways = {
            "A (sampled)": (
                Term("negativity", above(2 * N * h * V1), "2 N h V1", source),
                Term("flow violation", above(N * h * V2), "N h V2", source),
            ),
            "B (sampled)": (
                Term("negativity", above(N * V1), "N V1", source),
                Term("flow residual", above(N * h * r_plus), "N h r+", source),
            ),
        }
        premises = (self._fresh(seed), support_premise(sums))
        return tuple(
            Evaluation(
                kind, self._expectations(reduced), (*terms, hidden), failure_probability,
                tuple(found), premises,
            )
            for kind, terms in ways.items()
        )  # fmt: skip

    @property
    def _mass(self) -> float:
        """At least |u|_1."""
        length = float(np.linalg.norm(self.coefficients))
        base = 0.0 if self.features.base is None else float(np.abs(self.features.base).sum())
        return length * float(row_norms(self.features.matrix).sum()) + base

    def _expectations(self, reduced: Reduced) -> FloatArray:
        """Psi' u = Psi' Phi theta + Psi' base."""
        found, base = reduced.matching @ self.coefficients, self.features.base
        return np.asarray(found if base is None else found + reduced.problem.cost_matrix.T @ base)

    def _fresh(self, seed: int) -> Premise:
        return declared(
            "fresh rows are independent of the coefficients",
            f"{self.rows} rows for each sum from seed {seed}, a digest of world and policy; the "
            "coefficients are taken not to have been chosen because of them",
        )


@dataclass(frozen=True, eq=False)
class RowSum:
    """A sum over rows of something nonnegative, as the mean of value/law under a law."""

    name: str
    law: FloatArray
    width: float
    """No sample value/law is larger."""
    values: Callable[[IntArray], FloatArray]
    """What is summed, for any rows."""

    @classmethod
    def under(
        cls, name: str, envelope: FloatArray, values: Callable[[IntArray], FloatArray]
    ) -> "RowSum":
        """The law proportional to an envelope of the values; uniform where that is zero."""
        whole = float(envelope.sum())
        law = envelope / whole if whole > 0 else np.full(envelope.size, 1 / envelope.size)
        return cls(name, law, (1 + SLACK) * whole, values)

    def samples(self, rows: IntArray) -> FloatArray:
        """value/law of every row in `rows`; each distinct one is computed once."""
        distinct, places = np.unique(rows, return_inverse=True)
        return np.asarray((self.values(distinct) / self.law[distinct])[places])

    def statistics(
        self, count: int, rng: np.random.Generator, seed: int, failure_probability: float
    ) -> Statistics:
        """Of `count` samples."""
        samples = self.samples(rng.choice(self.law.size, size=count, p=self.law))
        return Statistics(
            self.name, seed, count, means=(float(samples.mean()),),
            variances=(float(samples.var(ddof=1)),), ranges=(self.width,),
            failure_probability=failure_probability,
        )  # fmt: skip

    def never_drawn(self) -> int | None:
        """The first row of probability zero that has a value, None if there is none."""
        zero = np.flatnonzero((self.law <= 0) | (self.width <= 0))
        missed = self.values(zero) != 0
        return int(zero[first_index(missed)]) if missed.any() else None


def row_sums(reduced: Reduced, coefficients: FloatArray) -> tuple[RowSum, RowSum, RowSum]:
    """V1, V2 and r+ of the module's docstring."""
    down, up = _reach(reduced.features, coefficients)
    norms = (1 + SLACK) * row_norms(reduced.pair_rows)
    sizes = row_norms(reduced.flow_rows) * float(np.linalg.norm(coefficients))
    change = up if reduced.features.base is None else max(down, up)
    world, lacking = reduced.problem.world, _lacking(reduced)
    moved = world.pairs.total(norms) + world.discount * (world.transition.T @ norms)
    return (
        RowSum.under(
            "V1", np.maximum(down * norms + reduced.floor, 0.0), _negativity(reduced, coefficients)
        ),
        RowSum.under(
            "V2", sizes + np.abs(reduced.flow_target), _flow_violation(reduced, coefficients)
        ),
        RowSum.under(
            "r+", change * moved + np.abs(lacking), _flow_residual(reduced, coefficients, lacking)
        ),
    )


def upper_bound(statistics: Statistics) -> float:
    """Of a mean of samples in [0, width]: the smaller of both radii at half of delta each."""
    (mean,), (variance,), (width,) = statistics.means, statistics.variances, statistics.ranges
    count, share = statistics.count, statistics.failure_probability / 2
    radius = min(
        hoeffding_radius(width, count, share),
        empirical_bernstein_radius(variance, width, count, share),
    )
    return min(width, mean + radius)


def support_premise(sums: tuple[RowSum, ...]) -> Premise:
    """Whether no row of probability zero adds to its sum."""
    missed = [(one.name, row) for one in sums if (row := one.never_drawn()) is not None]
    if missed:
        name, row = missed[0]
        return failed(SUPPORT, f"row {row} counts in {name} but is never drawn", 0.0)
    detail = "no row of probability zero adds to V1, V2 or r+"
    return Premise(SUPPORT, Verdict.TESTED, detail, 0.0)


def _reach(features: Features, coefficients: FloatArray) -> tuple[float, float]:
    """How far -Phi_s theta and Phi_s theta can be, per unit of |Phi_s|."""
    if features.matrix.min() >= 0:
        parts = np.maximum(-coefficients, 0.0), np.maximum(coefficients, 0.0)
        return float(np.linalg.norm(parts[0])), float(np.linalg.norm(parts[1]))
    length = float(np.linalg.norm(coefficients))
    return length, length


def _lacking(reduced: Reduced) -> FloatArray:
    """p = initial - E' base+."""
    world, base = reduced.problem.world, reduced.features.base
    return world.initial if base is None else world.flow.residual(np.maximum(base, 0.0))


def _negativity(reduced: Reduced, theta: FloatArray) -> Callable[[IntArray], FloatArray]:
    return lambda pairs: np.maximum(
        reduced.floor[pairs] - _product(reduced.pair_rows, pairs, theta), 0.0
    )


def _flow_violation(reduced: Reduced, theta: FloatArray) -> Callable[[IntArray], FloatArray]:
    return lambda states: np.abs(
        _product(reduced.flow_rows, states, theta) - reduced.flow_target[states]
    )


def _flow_residual(
    reduced: Reduced, theta: FloatArray, lacking: FloatArray
) -> Callable[[IntArray], FloatArray]:
    """|p - E' (u+ - base+)|, where u+ - base+ is taken without cancellation."""
    columns = sparse.csr_array(reduced.problem.world.flow.matrix().T)

    def values(states: IntArray) -> FloatArray:
        chosen = columns[states]
        pairs = np.unique(chosen.indices)
        floor, change = reduced.floor[pairs], _product(reduced.pair_rows, pairs, theta)
        moved = np.zeros(columns.shape[1])
        moved[pairs] = np.where(
            floor <= 0, np.maximum(change, floor), np.maximum(change - floor, 0.0)
        )
        return np.asarray(np.abs(lacking[states] - chosen @ moved))

    return values


def _product(matrix: Matrix, rows: IntArray, theta: FloatArray) -> FloatArray:
    return np.asarray(matrix[rows] @ theta)
