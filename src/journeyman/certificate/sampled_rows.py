"""Kinds A and B from sampled rows: a certificate for coefficients without a pass over all pairs.

With u = base + Phi theta, v- and v+ the negative and positive part of v, E = B - discount P,

    V1 = sum over pairs of u-            = mean of u-(s)/q1(s)                   s ~ q1
    V2 = sum over states of |E' u - nu|  = mean of |D_y theta - t_y|/q2(y)       y ~ q2
    r+ = sum over states of |nu - E' u+| = mean of |p_y - E_y' (u+ - base+)|/q3(y)   y ~ q3

where nu = initial, D = E' Phi, t = nu - E' base, p = nu - E' base+, with

    A (sampled)   expectations Psi' u,   error N h (2 V1 + V2)              (Lemma 2)
    B (sampled)   expectations Psi' u,   error N V1 + N h r+

from upper bounds on V1, V2, r+ (Hoeffding or empirical Bernstein, whichever is smaller, each with
its part of delta); B because gap_W(Psi' u+ - x) <= gap_W(Psi' u - x) + N V1.

*In an explicit world* each law is proportional to an *envelope*, row by row at least what is
summed; then every sample lies between 0 and the envelope's total, and rows of probability zero add
nothing:

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
its mean is below V2. Psi' u is exact. *Cost*: only Psi' Phi and the envelopes (which know theta by
its length only) need all rows, and so does the check that u defines the policy.

*In a stepped world* q1 and q2 are the laws of `DrawnFeatures`, and q = (q2 + initial)/2 takes the
place of q2 in V2; there is no base measure and no r+, and the expectations are sampled as well:

    psi_i' u = sum over j of theta_j <phi_j, psi_i>       where it is known exactly
             + mean of psi_i(s) u_i(s)/q1(s)              s ~ q1, u_i of the other columns

Features are nonnegative, so u(s)/q1(s) lies within C_1 max(-theta)+ below and C_1 max(theta)+ above
zero, and the samples of V2 are at most 2 C_2 max|theta| + 2. What is exact has no error and takes
no part of delta; the sums that are sampled share it evenly, then their costs, both signs, and both
radii. Whether the rows are what they claim to be is tested (`row_checks`). *Cost*: nothing depends
on the number of states.

*Guarantee*: with probability 1 - delta all kinds hold together. Rows must be *fresh*: independent
of theta. Problem and policy decide which rows are drawn (`draw_seeds`); nothing a solver has drawn
is used. Coefficients that were chosen because of these rows are not covered: the best of J needs
delta/J for each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    SparseMatrix,
    assign,
    first_index,
    real_array,
    require_whole,
)
from journeyman.certificate.concentration import empirical_bernstein_radius, hoeffding_radius
from journeyman.certificate.evaluation import defines, largest_cost, rounding
from journeyman.certificate.expert_estimates import coordinatewise
from journeyman.certificate.premises import LEVEL
from journeyman.certificate.rollouts import floats, fresh_stream, walk_rounding
from journeyman.certificate.row_checks import (
    CheckedRows,
    Steps,
    draws_of,
    followed,
    looked_up,
    require_drawable,
    require_drawable_states,
    row_premises,
)
from journeyman.certificate.terms import (
    PolicyEvaluation,
    Premise,
    PremiseStatus,
    Statistics,
    Term,
    above,
    declared,
    failed,
)
from journeyman.errors import InvalidCosts, InvalidProblem
from journeyman.execution import Executor, Serial
from journeyman.features.base import DrawnFeatures, Features
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.function_policy import FeaturePolicy
from journeyman.problem import Apprenticeship, draw_seeds
from journeyman.problem.draw_seeds import ignored_seed
from journeyman.problem.reduced import Reduced, row_norms
from journeyman.world.levels import Level

STREAM, DRAW_STREAM = 0x726F7773, 0x6C726F77
"""Which of a seed's streams rows are drawn from, in an explicit world and in a stepped one."""
SLACK = 1e-9
"""Relative, on norms and ranges: more than products of rows can lose to rounding."""
ROWS_OF_A_TASK = 1 << 14
SUPPORT = "support of q: every row that counts can be drawn"


@dataclass(frozen=True, eq=False, init=False)
class SampledRows:
    """Evaluate the policy of u = base + Phi theta from rows drawn at random.

    Args:
        features: Phi, and the base measure if there is one. In a stepped world they are those of
            the `FeaturePolicy` that is certified, and left out here.
        coefficients: theta; its measure must define the policy that is certified. Left out with
            the features.
        rows: how many are drawn for each of V1, V2 and r+.
        seed: has no influence any more, and is going to be removed: world and policy decide which
            rows are drawn.

    >>> SampledRows(Features([[1.0], [2.0]]), [0.5], rows=1000).coefficients.tolist()
    [0.5]
    """

    needs: ClassVar[Level] = Level.STEPPED

    features: Features | None
    coefficients: FloatArray | None
    rows: int

    def __init__(
        self,
        features: Features | None = None,
        coefficients: ArrayLike | None = None,
        rows: int | None = None,
        seed: int | None = None,
    ) -> None:
        ignored_seed(seed, "SampledRows")
        count = require_whole("rows", rows, 2, InvalidProblem)
        theta = None
        if features is not None or coefficients is not None:
            if not isinstance(features, Features):
                raise InvalidProblem(
                    f"features is a {type(features).__name__}", "Give jm.features.Features(matrix)"
                )
            theta = real_array(
                "coefficients", coefficients, ndim=1, size=features.num_features,
                refusal=InvalidProblem,
            )  # fmt: skip
        assign(self, features=features, coefficients=theta, rows=count)

    def evaluate(
        self,
        problem: Apprenticeship,
        policy: AnyPolicy,
        failure_probability: float,
        executor: Executor | None = None,
    ) -> tuple[PolicyEvaluation, ...]:
        """Kinds A (sampled) and, in an explicit world, B (sampled); both hold together."""
        if problem.level is Level.EXPLICIT:
            return self._by_envelopes(problem, policy, failure_probability)
        if not isinstance(policy, FeaturePolicy) or not isinstance(policy.features, DrawnFeatures):
            raise InvalidProblem(
                f"a {type(policy).__name__} has no features to draw rows from",
                "Give evaluation=jm.Rollouts(...)",
            )
        if policy.features.world is not problem.world:
            raise InvalidProblem(
                "the policy has features of another world, whose rows prove nothing here",
                "Make the features for problem.world itself, or give evaluation=jm.Rollouts(...)",
            )
        if self.features is not None:
            raise InvalidProblem(
                "rows of features by callables are those of the policy itself",
                "Give SampledRows(rows=...) without features and coefficients",
            )
        return (_by_draws(problem, policy, self.rows, failure_probability, executor),)

    def _by_envelopes(
        self, problem: Apprenticeship, policy: Any, failure_probability: float
    ) -> tuple[PolicyEvaluation, ...]:
        features, theta = self.features, self.coefficients
        if features is None or theta is None:
            raise InvalidProblem(
                "there are no features to take rows of",
                "Give SampledRows(features, coefficients, rows=...)",
            )
        if not defines(features.on(problem.world).measure(theta), policy, problem):
            raise InvalidProblem(
                "the policy is not the one that features and coefficients define",
                "Certify jm.policy.extract(world, features.measure(coefficients))",
            )
        reduced = Reduced(problem, features)
        sums = row_sums(reduced, theta)
        share = failure_probability / max(1, sum(one.width > 0 for one in sums))
        seed = draw_seeds.explicit_seed(problem.world, policy)
        rng = fresh_stream(seed, STREAM)
        found = tuple(one.statistics(self.rows, rng, seed, share) for one in sums)
        V1, V2, r_plus = (upper_bound(one) for one in found)
        N, h, source = largest_cost(problem), problem.effective_horizon, f"{self.rows} rows"
        base, expectations = features.base, reduced.matching @ theta
        mass = float(np.linalg.norm(theta)) * float(row_norms(features.matrix).sum())
        if base is not None:
            expectations = expectations + problem.cost_matrix.T @ base
            mass += float(np.abs(base).sum())
        hidden = rounding(problem, mass, features.num_features)
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
        premises = (_fresh(self.rows, seed), support_premise(sums))
        return tuple(
            PolicyEvaluation(
                kind, np.asarray(expectations), (*terms, hidden), failure_probability, found,
                premises,
            )
            for kind, terms in ways.items()
        )  # fmt: skip


def _fresh(rows: int, seed: int) -> Premise:
    return declared(
        "fresh rows are independent of the coefficients",
        f"{rows} rows for each sum from seed {seed}, a digest of problem and policy; the "
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


def upper_bound(statistics: Statistics, *, signs: int = 1) -> float:
    """Of a mean of samples between zero and their range."""
    (mean,), (width,) = statistics.means, statistics.ranges
    return min(width, mean + float(_radii(statistics, signs=signs)[0]))


def support_premise(sums: tuple[RowSum, ...]) -> Premise:
    """Whether no row of probability zero adds to its sum."""
    missed = [(one.name, row) for one in sums if (row := one.never_drawn()) is not None]
    if missed:
        name, row = missed[0]
        return failed(SUPPORT, f"row {row} counts in {name} but is never drawn", 0.0)
    detail = "no row of probability zero adds to V1, V2 or r+"
    return Premise(SUPPORT, PremiseStatus.TESTED, detail, 0.0)


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


def _by_draws(
    problem: Apprenticeship,
    policy: FeaturePolicy,
    count: int,
    failure_probability: float,
    executor: Executor | None = None,
) -> PolicyEvaluation:
    """Kind A: the delta is shared by what is sampled of V1, V2 and the expectations."""
    features, theta = policy.features, policy.coefficients
    assert isinstance(features, DrawnFeatures)
    known = features.exact_matching(problem.cost_functions)
    size, seed = ROWS_OF_A_TASK, draw_seeds.large_seed(problem, policy)
    tasks = [(seed, first, min(size, count - first)) for first in range(0, count, size)]
    run = Serial() if executor is None else executor
    parts = run.map(_rows, tasks, shared=(problem, features, theta, known))
    samples = [np.concatenate(part) for part in zip(*(one[:3] for one in parts), strict=True)]
    steps = [*(one[3] for one in parts), looked_up(features.world, problem.demonstrations)]
    premises = (
        *_row_premises(problem, count, seed, known),
        *row_premises(Steps.joined(steps), [one[4] for one in parts], LEVEL),
    )
    sums = _statistics(samples, _ranges(problem, features, theta, known), seed, failure_probability)
    V1, V2 = (upper_bound(one, signs=2) for one in sums[1:])
    N, h = problem.cost_class.pointwise_bound(problem.cost_matrix), problem.effective_horizon
    error, source = coordinatewise(problem.cost_class, _radii(sums[0])), f"{count} rows"
    mass = max(1.0, 3 * float(np.abs(theta).sum()))
    terms = (
        Term("negativity", above(2 * N * h * V1), "2 N h V1", source),
        Term("flow violation", above(N * h * V2), "N h V2", source),
        Term("expectations", above(error), "radius of Psi' u", source),
        walk_rounding(problem, features.num_features + count, mass),
    )
    expectations = np.nan_to_num(known) @ theta + np.array(sums[0].means)
    return PolicyEvaluation(
        "A (sampled)", expectations, terms, failure_probability, sums, premises,
    )  # fmt: skip


def _row_premises(
    problem: Apprenticeship, count: int, seed: int, known: FloatArray
) -> tuple[Premise, ...]:
    fresh = _fresh(count, seed)
    exact = [problem.cost_functions.names[i] for i in np.flatnonzero(~np.isnan(known).all(axis=1))]
    if not exact:
        return (fresh,)
    tables = declared(
        "costs of one factor are those of their tables",
        f"{', '.join(exact)}: checked in {count} pairs that were drawn",
    )
    return fresh, tables


def _rows(
    task: tuple[int, int, int],
    shared: tuple[Apprenticeship, DrawnFeatures, FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray, FloatArray, Steps, CheckedRows]:
    """Samples of what is not known of Psi' u (rows x costs), of V1 and of V2; what was found when
    the rows were examined."""
    (seed, first, count), (problem, features, theta, known) = task, shared
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(DRAW_STREAM, first)))
    pairs = features.draw(rng, count)
    rows = features.rows(*pairs)
    _require_nonnegative(rows, pairs)
    law = features.pair_law(rows)
    require_drawable(law, pairs)
    costs = problem.cost_functions.at(*pairs)
    features.require_tables(problem.cost_functions, pairs[0], costs)
    expected = costs * np.asarray(rows @ _unknown(theta, known).T) / law[:, np.newaxis]
    world = problem.world
    start = rng.random(count) < 0.5
    states = np.where(start, world.draw_initial(rng, count), features.draw_flow(rng, count))
    flow, initial = features.flow(states), np.asarray(world.initial_probability(states))
    mixed = (flow.law + initial) / 2
    require_drawable_states(mixed, states)
    violated = np.abs(flow.rows @ theta - initial) / mixed
    steps = followed(features.world, pairs, states, rng)
    drawn = draws_of(rows, pairs, law, (states[~start], flow.law[~start]), initial / mixed)
    return expected, np.maximum(-(rows @ theta) / law, 0.0), np.asarray(violated), steps, drawn


def _require_nonnegative(rows: SparseMatrix, pairs: tuple[IntArray, IntArray]) -> None:
    """Refuse features to which the ranges of the samples do not apply."""
    least = rows.min(axis=1).toarray().ravel()
    if (least < 0).any():
        at = int(np.argmin(least))
        raise InvalidCosts(
            f"a feature is {least[at]} in state {pairs[0][at]}, action {pairs[1][at]}",
            "Features of large worlds are at least 0; coefficients may have either sign",
        )


def _unknown(theta: FloatArray, known: FloatArray) -> FloatArray:
    """The coefficients of the columns whose <phi_j, psi_i> is not known: (costs x features)."""
    return np.where(np.isnan(known), theta, 0.0)


def _ranges(
    problem: Apprenticeship, features: DrawnFeatures, theta: FloatArray, known: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Widths of the ranges of the samples; a product of two ranges is widest at its corners."""
    sampled = _unknown(theta, known)
    below, above_zero = (
        features.pair_ratio * np.maximum(sign * sampled, 0.0).max(axis=1) for sign in (-1, 1)
    )
    ends = problem.basis.lowest, problem.basis.highest
    corners = [end * reach for end in ends for reach in (-below, above_zero)]
    expected = np.max(corners, axis=0) - np.min(corners, axis=0)
    negative = features.pair_ratio * float(np.maximum(-theta, 0.0).max())
    violated = 2 * features.flow_ratio * float(np.abs(theta).max()) + 2
    return (
        (1 + SLACK) * expected, np.array([(1 + SLACK) * negative]),
        np.array([(1 + SLACK) * violated]),
    )  # fmt: skip


def _statistics(
    samples: list[FloatArray], ranges: tuple[FloatArray, ...], seed: int, delta: float
) -> tuple[Statistics, ...]:
    """Of Psi' u, V1 and V2; what cannot vary takes no part of delta."""
    share = delta / sum(bool((widths > 0).any()) for widths in ranges)
    return tuple(
        Statistics(
            name, seed, len(one), means=floats(np.atleast_1d(one.mean(axis=0))),
            variances=floats(np.atleast_1d(one.var(axis=0, ddof=1))), ranges=floats(widths),
            failure_probability=share if (widths > 0).any() else 0.0,
        )
        for name, one, widths in zip(("Psi' u", "V1", "V2"), samples, ranges, strict=True)
    )  # fmt: skip


def _radii(statistics: Statistics, *, signs: int = 2) -> FloatArray:
    """Of every mean that is sampled, in one direction or both: the smaller of two radii, at half of
    its part of delta each."""
    widths, count = np.array(statistics.ranges), statistics.count
    radii, sampled = np.zeros(widths.size), np.flatnonzero(widths > 0)
    share = statistics.failure_probability / (2 * signs * max(1, sampled.size))
    for i in sampled:
        radii[i] = min(
            hoeffding_radius(statistics.ranges[i], count, share),
            empirical_bernstein_radius(statistics.variances[i], statistics.ranges[i], count, share),
        )
    return radii
