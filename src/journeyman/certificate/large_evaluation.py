"""The apprentice's side of a certificate in a world too large to enumerate.

Kind E, from walks of the policy, as in `rollouts`; kind A from fresh rows: with u = Phi theta, the
laws q1 and q2 of `LargeFeatures` and q = (q2 + initial)/2,

    Psi' u = mean of psi(s) u(s)/q1(s)                    s ~ q1
    V1     = mean of u-(s)/q1(s)                          s ~ q1
    V2     = mean of |D_y theta - initial_y|/q(y)         y ~ q

    gap_W(Psi' mu_pi - x) <= gap_W(Psi' u - x) + N h (2 V1 + V2)        (Lemma 2)

Features are nonnegative, so u(s)/q1(s) lies within C_1 max(-theta)+ below and C_1 max(theta)+ above
zero, and the samples of V2 are at most 2 C_2 max|theta| + 2. Half of q is the initial law: a state
with nothing but initial mass would otherwise never be drawn.

*Guarantee*: with probability 1 - delta, for rows and walks that are independent of the policy. A
seed starts a stream of its own here. *Cost*: nothing depends on the number of states.
"""

from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.concentration import empirical_bernstein_radius, hoeffding_radius
from journeyman.certificate.evaluation import Evaluation, Statistics
from journeyman.certificate.expert import WITHOUT_SHAPING, PlainMean, coordinatewise
from journeyman.certificate.premises import declared
from journeyman.certificate.rollouts import Rollouts, floats, require_whole
from journeyman.certificate.terms import Term, above, total
from journeyman.demonstrations.episode_totals import simulate
from journeyman.execution import Executor, Serial
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.feature_policy import FeaturePolicy
from journeyman.problem.large_apprenticeship import LargeApprenticeship
from journeyman.problem.large_features import LargeFeatures
from journeyman.problem.simulated_apprenticeship import SimulatedProblem

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
        seed: of a stream of its own.
    """

    rows: int
    seed: int

    def __post_init__(self) -> None:
        require_whole("rows", self.rows, 2)
        require_whole("seed", self.seed, 0)


def walked(
    problem: SimulatedProblem,
    policy: AnyPolicy,
    rollouts: Rollouts,
    failure_probability: float,
    executor: Executor | None = None,
) -> Evaluation:
    """Kind E, with the smaller of two radii."""
    means = mean_of_walks(problem, policy, rollouts, executor)
    return evaluation_of_walks(problem, means, rollouts, failure_probability)


def mean_of_walks(
    problem: SimulatedProblem,
    policy: AnyPolicy,
    rollouts: Rollouts,
    executor: Executor | None = None,
) -> PlainMean:
    """Totals of independent walks of a policy; the shards do not depend on the executor."""
    count, horizon, seed = rollouts.trajectories, rollouts.horizon, rollouts.seed
    (record,) = simulate(problem.simulator, [(policy, (WALKS,))], count, horizon, seed, executor)
    return PlainMean(problem, record.totals, record.unrecorded, "rollouts")


def evaluation_of_walks(
    problem: SimulatedProblem, mean: PlainMean, rollouts: Rollouts, failure_probability: float
) -> Evaluation:
    """What the totals of walks prove."""
    independent, adaptive, _ = (part * failure_probability for part in WITHOUT_SHAPING)
    estimates = (mean.independent(independent), mean.adaptive(adaptive))
    best = min(estimates, key=lambda estimate: total(estimate.terms))
    terms = tuple(replace(term, name=f"rollout {term.name}") for term in best.terms)
    statistics = Statistics(
        "rollouts", rollouts.seed, rollouts.trajectories,
        means=floats(mean.totals.mean(axis=0)), variances=floats(mean.spread**2),
        ranges=floats(mean.ranges), failure_probability=failure_probability,
        horizon=rollouts.horizon, unrecorded=float(mean.missing.mean()),
    )  # fmt: skip
    fresh = declared(
        "fresh rollouts are independent of the policy",
        f"{rollouts.trajectories} rollouts from seed {rollouts.seed}; the policy is taken not to "
        "have been chosen because of them",
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
    """Kind A: the delta is shared by V1, V2 and the expectations, two radii for each."""
    features, theta = policy.features, policy.coefficients
    assert isinstance(features, LargeFeatures)
    size = 16 * SHARD
    tasks = [
        (drawn.seed, first, min(size, drawn.rows - first)) for first in range(0, drawn.rows, size)
    ]
    run = Serial() if executor is None else executor
    parts = run.map(_rows, tasks, shared=(problem, features, theta))
    expected, negative, violated = (np.concatenate(part) for part in zip(*parts, strict=True))
    share = failure_probability / 3
    V1 = _upper(negative, features.pair_ratio * float(np.maximum(-theta, 0).max()), share)
    V2 = _upper(violated, 2 * features.flow_ratio * float(np.abs(theta).max()) + 2, share)
    N, h = problem.cost_class.pointwise_bound(problem.cost_matrix), problem.effective_horizon
    width = np.ptp(np.append(theta, 0.0)) * features.pair_ratio
    sizes = np.maximum(np.abs(problem.costs.lowest), np.abs(problem.costs.highest))
    radius = _radii(expected, 2 * sizes * width, share)
    source = f"{drawn.rows} rows"
    terms = (
        Term("negativity", above(2 * N * h * V1), "2 N h V1", source),
        Term("flow violation", above(N * h * V2), "N h V2", source),
        Term(
            "expectations", coordinatewise(problem.cost_class, radius), "radius of Psi' u", source
        ),
        rounding(problem, features.num_features),
    )
    fresh = declared(
        "fresh rows are independent of the coefficients",
        f"{drawn.rows} rows for each sum from seed {drawn.seed}; the coefficients are taken not to "
        "have been chosen because of them",
    )
    return Evaluation(
        "A (sampled)", expected.mean(axis=0), terms, failure_probability, (), (fresh,)
    )


def rounding(problem: SimulatedProblem, summands: int) -> Term:
    """What double precision can have hidden of means of sums of that many products."""
    epsilon = float(np.finfo(float).eps)
    N, h = problem.cost_class.pointwise_bound(problem.cost_matrix), problem.effective_horizon
    value = 2 * epsilon * (summands + problem.basis.num_costs + 32) * (1 + h) * N * h
    return Term("rounding", value, "2 eps (summands + costs + 32) (1 + h) N h", "double precision")


def _rows(
    task: tuple[int, int, int], shared: tuple[LargeApprenticeship, LargeFeatures, FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Samples of Psi' u (rows x costs), V1 and V2."""
    (seed, first, count), (problem, features, theta) = task, shared
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(ROWS, first)))
    pairs = features.draw(rng, count)
    rows = features.rows(*pairs)
    density = (rows @ theta) / features.pair_law(rows)
    expected = problem.costs.at(*pairs) * density[:, np.newaxis]
    world = problem.world
    states = np.where(
        rng.random(count) < 0.5, world.draw_initial(rng, count), features.draw_flow(rng, count)
    )
    flow, initial = features.flow(states), np.asarray(world.initial_probability(states))
    law = (flow.law + initial) / 2
    violated = np.abs(flow.rows @ theta - initial) / law
    return expected, np.maximum(-density, 0.0), np.asarray(violated)


def _upper(samples: FloatArray, width: float, delta: float) -> float:
    """An upper bound on the mean of samples in [0, width]."""
    radius = float(_radii(samples[:, np.newaxis], np.array([(1 + SLACK) * width]), delta)[0])
    return min((1 + SLACK) * width, float(samples.mean()) + radius)


def _radii(samples: FloatArray, widths: FloatArray, delta: float) -> FloatArray:
    """Of every column's mean, in both directions: the smaller of both radii at half of delta."""
    count, columns = samples.shape
    share = delta / (4 * columns)
    return np.array([
        min(
            hoeffding_radius(width, count, share),
            empirical_bernstein_radius(variance, width, count, share),
        )
        for variance, width in zip(samples.var(axis=0, ddof=1), widths, strict=True)
    ])  # fmt: skip
