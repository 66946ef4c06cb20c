"""The apprentice's side of a certificate in a world too large to enumerate.

Kind E, from walks of the policy, as in `rollouts`; kind A from fresh rows: with u = Phi theta, the
laws q1 and q2 of `LargeFeatures` and q = (q2 + initial)/2,

    psi_i' u = sum over j of theta_j <phi_j, psi_i>       where it is known exactly
             + mean of psi_i(s) u_i(s)/q1(s)              s ~ q1, u_i of the other columns
    V1       = mean of u-(s)/q1(s)                        s ~ q1
    V2       = mean of |D_y theta - initial_y|/q(y)       y ~ q

    gap_W(Psi' mu_pi - x) <= gap_W(Psi' u - x) + N h (2 V1 + V2)        (Lemma 2)

Features are nonnegative, so u(s)/q1(s) lies within C_1 max(-theta)+ below and C_1 max(theta)+ above
zero, and the samples of V2 are at most 2 C_2 max|theta| + 2. Half of q is the initial law: a state
with nothing but initial mass would otherwise never be drawn. What is exact has no error and takes
no part of delta; the sums that are sampled share it evenly, then their costs, both signs, and both
radii (Hoeffding, empirical Bernstein).

*Guarantee*: with probability 1 - delta, for rows and walks that are independent of the policy.
Problem and policy decide which are drawn (`draw_seeds`); nothing a solver has drawn is used.
*Cost*: nothing depends on the number of states.
"""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.certificate.concentration import empirical_bernstein_radius, hoeffding_radius
from journeyman.certificate.evaluation import Evaluation, Statistics
from journeyman.certificate.expert import PLAIN_SHARES, PlainMean, coordinatewise
from journeyman.certificate.large_premises import LEVEL
from journeyman.certificate.premises import Premise, declared
from journeyman.certificate.rollouts import Rollouts, floats, require_whole
from journeyman.certificate.row_checks import (
    Draws,
    Steps,
    draws_of,
    followed,
    looked_up,
    require_drawable,
    require_drawable_states,
    row_premises,
)
from journeyman.certificate.separate_walks import independence
from journeyman.certificate.terms import Term, above, total
from journeyman.demonstrations.row_by_row import require_row_by_row
from journeyman.demonstrations.simulation import simulate
from journeyman.errors import InvalidCosts
from journeyman.execution import Executor, Serial
from journeyman.features.base import LargeFeatures
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.feature_policy import FeaturePolicy
from journeyman.problem import draw_seeds
from journeyman.problem.draw_seeds import ignored_seed
from journeyman.problem.large_apprenticeship import LargeApprenticeship
from journeyman.problem.simulated_apprenticeship import SimulatedProblem, require_possible

WALKS, ROWS = 0x6C77616C, 0x6C726F77
"""Which of a seed's streams walks and rows are drawn from."""
SHARD = 1 << 10
"""16 times as many rows belong to one shard."""
SLACK = 1e-9
"""Relative, on ranges: more than sums can lose to rounding."""


@dataclass(frozen=True)
class LargeRows:
    """Evaluate a `FeaturePolicy` from fresh rows, for `certify(..., evaluation=LargeRows(...))`.

    Args:
        rows: pairs, and states, that are drawn.
        seed: has no influence any more, and is going to be removed: problem and policy decide
            which rows are drawn.
    """

    rows: int
    seed: InitVar[int | None] = None

    def __post_init__(self, seed: int | None) -> None:
        ignored_seed(seed, "LargeRows")
        require_whole("rows", self.rows, 2)


def walked(
    problem: SimulatedProblem,
    policy: AnyPolicy,
    rollouts: Rollouts,
    failure_probability: float,
    executor: Executor | None = None,
) -> Evaluation:
    """Kind E, with the smaller of two radii."""
    seed = draw_seeds.large_seed(problem, policy)
    separate = separated(problem, [policy], rollouts.horizon, seed)
    means = mean_of_walks(problem, policy, rollouts, seed, executor)
    found = evaluation_of_walks(problem, means, rollouts, seed, failure_probability)
    return replace(found, premises=(*found.premises, separate))


def separated(
    problem: SimulatedProblem, policies: Sequence[AnyPolicy], horizon: int, seed: int
) -> Premise:
    """That walks share nothing: refused where it is plain, then tested."""
    world = getattr(problem, "world", None)
    if world is not None:
        for policy in policies:
            require_row_by_row(policy, world)
    return independence(problem.simulator, policies, horizon, seed, LEVEL)


def mean_of_walks(
    problem: SimulatedProblem,
    policy: AnyPolicy,
    rollouts: Rollouts,
    seed: int,
    executor: Executor | None = None,
) -> PlainMean:
    """Totals of independent walks of a policy; the shards do not depend on the executor."""
    count, horizon = rollouts.trajectories, rollouts.horizon
    (record,) = simulate(problem.simulator, [(policy, (WALKS,))], count, horizon, seed, executor)
    require_possible(record, problem.simulator)
    return PlainMean(problem, record.totals, record.unrecorded, "rollouts")


def evaluation_of_walks(
    problem: SimulatedProblem,
    mean: PlainMean,
    rollouts: Rollouts,
    seed: int,
    failure_probability: float,
) -> Evaluation:
    """What the totals of walks prove."""
    independent, adaptive = (part * failure_probability for part in PLAIN_SHARES)
    estimates = (mean.independent(independent), mean.adaptive(adaptive))
    best = min(estimates, key=lambda estimate: total(estimate.terms))
    terms = tuple(replace(term, name=f"rollout {term.name}") for term in best.terms)
    statistics = Statistics(
        "rollouts", seed, rollouts.trajectories,
        means=floats(mean.totals.mean(axis=0)), variances=floats(mean.spread**2),
        ranges=floats(mean.ranges), failure_probability=failure_probability,
        horizon=rollouts.horizon, unrecorded=float(mean.missing.mean()),
    )  # fmt: skip
    fresh = declared(
        "fresh rollouts are independent of the policy",
        f"{rollouts.trajectories} rollouts from seed {seed}, a digest of problem and policy; the "
        "policy is taken not to have been chosen because of them",
    )
    return Evaluation(
        "E", best.values, (*terms, rounding(problem, rollouts.horizon)), failure_probability,
        (statistics,), (fresh,),
    )  # fmt: skip


def from_rows(
    problem: LargeApprenticeship,
    policy: FeaturePolicy,
    drawn: LargeRows,
    failure_probability: float,
    executor: Executor | None = None,
) -> Evaluation:
    """Kind A: the delta is shared by what is sampled of V1, V2 and the expectations."""
    features, theta = policy.features, policy.coefficients
    assert isinstance(features, LargeFeatures)
    known = features.exact_matching(problem.costs)
    size, seed = 16 * SHARD, draw_seeds.large_seed(problem, policy)
    tasks = [(seed, first, min(size, drawn.rows - first)) for first in range(0, drawn.rows, size)]
    run = Serial() if executor is None else executor
    parts = run.map(_rows, tasks, shared=(problem, features, theta, known))
    samples = [np.concatenate(part) for part in zip(*(one[:3] for one in parts), strict=True)]
    steps = [*(one[3] for one in parts), looked_up(features.world, problem.demonstrations)]
    premises = (
        *_row_premises(problem, drawn, seed, known),
        *row_premises(Steps.joined(steps), [one[4] for one in parts], LEVEL),
    )
    sums = _statistics(samples, _ranges(problem, features, theta, known), seed, failure_probability)
    V1, V2 = (_upper(one) for one in sums[1:])
    N, h = problem.cost_class.pointwise_bound(problem.cost_matrix), problem.effective_horizon
    error, source = coordinatewise(problem.cost_class, _radii(sums[0])), f"{drawn.rows} rows"
    mass = max(1.0, 3 * float(np.abs(theta).sum()))
    terms = (
        Term("negativity", above(2 * N * h * V1), "2 N h V1", source),
        Term("flow violation", above(N * h * V2), "N h V2", source),
        Term("expectations", above(error), "radius of Psi' u", source),
        rounding(problem, features.num_features + drawn.rows, mass),
    )
    expectations = np.nan_to_num(known) @ theta + np.array(sums[0].means)
    return Evaluation(
        "A (sampled)", expectations, terms, failure_probability, sums, premises,
    )  # fmt: skip


def _row_premises(
    problem: LargeApprenticeship, drawn: LargeRows, seed: int, known: FloatArray
) -> tuple[Premise, ...]:
    fresh = declared(
        "fresh rows are independent of the coefficients",
        f"{drawn.rows} rows for each sum from seed {seed}, a digest of problem and policy; the "
        "coefficients are taken not to have been chosen because of them",
    )
    exact = [problem.costs.names[i] for i in np.flatnonzero(~np.isnan(known).all(axis=1))]
    if not exact:
        return (fresh,)
    tables = declared(
        "costs of one factor are those of their tables",
        f"{', '.join(exact)}: checked in {drawn.rows} pairs that were drawn",
    )
    return fresh, tables


def rounding(problem: SimulatedProblem, summands: int, mass: float = 1.0) -> Term:
    """What double precision can have hidden of means of sums of that many products."""
    epsilon = float(np.finfo(float).eps)
    N, h = problem.cost_class.pointwise_bound(problem.cost_matrix), problem.effective_horizon
    value = 2 * epsilon * (summands + problem.basis.num_costs + 32) * (1 + h) * N * h * mass
    formula = "2 eps (summands + costs + 32) (1 + h) N h"
    if mass != 1:
        formula += " max(1, 3 |theta|_1)"
    return Term("rounding", value, formula, "double precision")


def _rows(
    task: tuple[int, int, int],
    shared: tuple[LargeApprenticeship, LargeFeatures, FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray, FloatArray, Steps, Draws]:
    """Samples of what is not known of Psi' u (rows x costs), of V1 and of V2; what was found when
    the rows were examined."""
    (seed, first, count), (problem, features, theta, known) = task, shared
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(ROWS, first)))
    pairs = features.draw(rng, count)
    rows = features.rows(*pairs)
    _require_nonnegative(rows, pairs)
    law = features.pair_law(rows)
    require_drawable(law, pairs)
    costs = problem.costs.at(*pairs)
    features.require_tables(problem.costs, pairs[0], costs)
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
    problem: LargeApprenticeship, features: LargeFeatures, theta: FloatArray, known: FloatArray
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


def _upper(statistics: Statistics) -> float:
    """An upper bound on the mean of samples between zero and their range."""
    return min(statistics.ranges[0], statistics.means[0] + float(_radii(statistics)[0]))


def _radii(statistics: Statistics) -> FloatArray:
    """Of every mean that is sampled, in both directions: the smaller of both radii."""
    widths, count = np.array(statistics.ranges), statistics.count
    radii, sampled = np.zeros(widths.size), np.flatnonzero(widths > 0)
    share = statistics.failure_probability / (4 * max(1, sampled.size))
    for i in sampled:
        radii[i] = min(
            hoeffding_radius(statistics.ranges[i], count, share),
            empirical_bernstein_radius(statistics.variances[i], statistics.ranges[i], count, share),
        )
    return radii
