"""Kind E: the apprentice's expectations from rollouts of its policy.

    gap_W(Psi' mu_pi - x) <= gap_W(means - x) + s(M, delta) + N h mean discount^T     for every x

with probability 1 - delta over M independent rollouts, T steps each. The radius s is the smallest
that does not look at the rollouts (Hoeffding, signs, McDiarmid) or empirical Bernstein; they have
parts of delta of their own, so the smaller may be taken. A rollout that comes to rest in an
absorbing state is complete: every step there counts with the mean cost of the policy's actions in
that state, which changes no expectation and makes the endless rest known.

*Where*: any policy of any world that can be walked in; no linear system is solved. *Guarantee*: the
rollouts must be independent of the policy. World and policy decide which numbers are drawn
(`draw_seeds`), so nobody can choose among rollouts of one policy. A policy that was chosen *because
of* its rollouts is not covered: the best of J policies needs delta/J for each.

*Cost*: M walks of at most `horizon` steps. The radius falls with 1/sqrt(M), the tail with
discount^horizon.
"""

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign
from journeyman.certificate.evaluation import rounding
from journeyman.certificate.expert import PLAIN_SHARES, PlainMean
from journeyman.certificate.premises import LEVEL
from journeyman.certificate.terms import (
    Estimate,
    Evaluation,
    Premise,
    Statistics,
    Term,
    Verdict,
    above,
    declared,
    failed,
    total,
)
from journeyman.demonstrations.row_by_row import require_row_by_row
from journeyman.demonstrations.simulation import Simulator, simulate
from journeyman.errors import InvalidProblem
from journeyman.execution import Executor
from journeyman.policy import Policy
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem import draw_seeds
from journeyman.problem.apprenticeship import Apprenticeship, require_possible
from journeyman.problem.draw_seeds import ignored_seed
from journeyman.problem.mixture_rollouts import MixtureRollouts

STREAM = 0x726F6C6C
"""Which of a seed's streams the rollouts are drawn from."""
LARGEST_COUNT = 1 << 62


@dataclass(frozen=True)
class Rollouts:
    """Evaluate a policy by simulation, for `certify(..., evaluation=Rollouts(...))`.

    Args:
        trajectories: how many, M.
        horizon: steps after which a rollout is cut off.
        seed: has no influence any more, and is going to be removed: world and policy decide which
            rollouts are drawn.

    >>> Rollouts(trajectories=1000, horizon=200)
    Rollouts(trajectories=1000, horizon=200)
    """

    trajectories: int
    horizon: int
    seed: InitVar[int | None] = None

    def __post_init__(self, seed: int | None) -> None:
        ignored_seed(seed, "Rollouts")
        require_whole("trajectories", self.trajectories, 2)
        require_whole("horizon", self.horizon, 1)
        whole = {name: int(value) for name, value in vars(self).items()}
        assign(self, **whole)

    def evaluate(
        self, problem: Apprenticeship, policy: Policy, failure_probability: float
    ) -> tuple[Evaluation, ...]:
        """Kind E, with the smaller of the two radii."""
        seed = draw_seeds.explicit_seed(problem.world, policy)
        mean = self._mean(problem, policy, seed)
        independent, adaptive = (part * failure_probability for part in PLAIN_SHARES)
        estimates = (mean.independent(independent), mean.adaptive(adaptive))
        best = min(estimates, key=lambda estimate: total(estimate.terms))
        terms = (
            *(replace(term, name=f"rollout {term.name}") for term in best.terms),
            self._rounding(problem),
        )
        fresh = declared(
            "fresh rollouts are independent of the policy",
            f"{self.trajectories} rollouts from seed {seed}, a digest of world and policy; the "
            "policy is taken not to have been chosen because of them",
        )
        return (
            Evaluation(
                "E", best.values, terms, failure_probability,
                (self._statistics(mean, seed, failure_probability),), (fresh,),
            ),
        )  # fmt: skip

    def _mean(self, problem: Apprenticeship, policy: Policy, seed: int) -> PlainMean:
        from journeyman.demonstrations.recording import record

        records = record(
            problem.world, policy, trajectories=self.trajectories, horizon=self.horizon,
            seed=fresh_stream(seed, STREAM),
        )  # fmt: skip
        return PlainMean.with_costs(problem, records, resting_costs(problem, policy), "rollouts")

    def _statistics(self, mean: PlainMean, seed: int, failure_probability: float) -> Statistics:
        return Statistics(
            "rollouts", seed, self.trajectories,
            means=floats(mean.totals.mean(axis=0)), variances=floats(mean.spread**2),
            ranges=floats(mean.ranges), failure_probability=failure_probability,
            horizon=self.horizon, unrecorded=float(mean.missing.mean()),
        )  # fmt: skip

    def _rounding(self, problem: Apprenticeship) -> Term:
        """A rollout visits pairs for 1/(1 - discount) in all, in `horizon` summands at most."""
        return rounding(problem, problem.world.effective_horizon, self.horizon)


def resting_costs(problem: Apprenticeship, policy: Policy) -> Matrix:
    """Psi, but in absorbing states every action costs what the policy's actions cost on average."""
    pairs, absorbed = problem.world.pairs, problem.world.absorbing[problem.world.pairs.states]
    if not absorbed.any():
        return problem.cost_matrix
    states = sparse.csr_array((np.ones(len(pairs)), pairs.states, np.arange(len(pairs) + 1)))
    resting = sparse.diags_array(absorbed.astype(float)) @ states
    means = states.T @ sparse.diags_array(policy.on(problem.world))
    moving = sparse.diags_array((~absorbed).astype(float))
    return sparse.csr_array(moving + resting @ means) @ problem.cost_matrix


def fresh_stream(seed: int, stream: int) -> np.random.Generator:
    """A generator that shares nothing with `default_rng(seed)`, nor with another `stream`."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))


def floats(values: FloatArray) -> tuple[float, ...]:
    """Plain numbers, which compare and print as what they are."""
    return tuple(float(value) for value in values)


def require_whole(name: str, value: Any, least: int) -> None:
    """Refuse everything but whole numbers from `least` on."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and least <= value < LARGEST_COUNT):
        raise InvalidProblem(f"{name} = {value!r}", f"Give a whole number from {least} on")


WALK_STREAM = 0x6C77616C


def walked(
    problem: Apprenticeship,
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
    problem: Apprenticeship, policies: Sequence[AnyPolicy], horizon: int, seed: int
) -> Premise:
    """That walks share nothing: refused where it is plain, then tested."""
    for policy in policies if problem.has_states else ():
        require_row_by_row(policy, problem.world)
    return independence(problem.simulator, policies, horizon, seed, LEVEL)


def mean_of_walks(
    problem: Apprenticeship,
    policy: AnyPolicy,
    rollouts: Rollouts,
    seed: int,
    executor: Executor | None = None,
) -> PlainMean:
    """Totals of independent walks of a policy; the shards do not depend on the executor."""
    count, horizon = rollouts.trajectories, rollouts.horizon
    (record,) = simulate(
        problem.simulator, [(policy, (WALK_STREAM,))], count, horizon, seed, executor
    )
    require_possible(record, problem.simulator)
    return PlainMean(problem, record.totals, record.unrecorded, "rollouts")


def evaluation_of_walks(
    problem: Apprenticeship,
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
        "E", best.values, (*terms, walk_rounding(problem, rollouts.horizon)), failure_probability,
        (statistics,), (fresh,),
    )  # fmt: skip


def walk_rounding(problem: Apprenticeship, summands: int, mass: float = 1.0) -> Term:
    """What double precision can have hidden of means of sums of that many products."""
    epsilon = float(np.finfo(float).eps)
    N, h = problem.cost_class.pointwise_bound(problem.cost_matrix), problem.effective_horizon
    value = 2 * epsilon * (summands + problem.basis.num_costs + 32) * (1 + h) * N * h * mass
    formula = "2 eps (summands + costs + 32) (1 + h) N h"
    if mass != 1:
        formula += " max(1, 3 |theta|_1)"
    return Term("rounding", value, formula, "double precision")


# Whether rollouts are independent of one another, by a test that is exact.
#
# Before the rollouts of a certificate `BATCHES` batches of `WALKS` walks are drawn, each with a
# stream of its own. If all walks are independent, any of them may stand in any batch. With their
# totals brought to mean 0 and variance 1, cost by cost,
#
#     S = sum over batches and costs of (sum of the totals in the batch)^2
#
# is large when the walks of a batch share their luck: a rule that draws one number for all, a
# simulator that is seeded once a batch, a memory that is shared. S is compared with what random
# orders of the same walks give, until 10 of them reach it (p = 10/orders) or all were tried; p <=
# level then has probability `level` at most (Besag and Clifford, 1991).
#
# *Not seen*: dependence that no cost shows in the first steps, or that is weak. It is declared.

SEPARATE = "rollouts are independent of one another"
SEPARATE_STREAM = 0x73657061
"""Which of a seed's streams the batches are drawn from."""
BATCHES, WALKS = 16, 8
LONGEST = 64
"""Steps of such a walk at most."""
ORDERS, ENOUGH = 9_999, 10
EQUAL = 1e-9
"""Relative: figures that differ by less are equal but for rounding."""


def independence(
    simulator: Simulator,
    policies: Sequence[AnyPolicy],
    horizon: int,
    seed: int,
    level: float,
) -> Premise:
    """The test of all policies together, each at its part of the level."""
    values = [
        p_value(_totals(simulator, policy, min(horizon, LONGEST), seed, number), seed, number)
        for number, policy in enumerate(policies)
    ]
    p = min(1.0, min(values) * len(values))
    figure = f"p-value {p:.3g} from {BATCHES} batches of {WALKS} walks"
    if len(values) > 1:
        figure += f" of each of {len(values)} candidates"
    detail = f"{figure}, refuted up to {level:g}"
    if p <= level:
        return failed(SEPARATE, f"{detail}: walks of a batch share their luck", level)
    taken = "what the test does not see is taken to be independent"
    return Premise(SEPARATE, Verdict.TESTED, f"{detail}; {taken}", level)


def p_value(totals: FloatArray, seed: int, number: int) -> float:
    """Of walks in their batches, (walks x costs), against random orders of them."""
    spread = totals.std(axis=0)
    size = np.abs(totals).max(axis=0, initial=0.0)
    varying = spread > EQUAL * np.maximum(size, np.finfo(float).tiny)
    if not varying.any():
        return 1.0
    figures = ((totals - totals.mean(axis=0)) / np.where(varying, spread, 1.0))[:, varying]
    observed = _statistic(figures)
    rng = _stream(seed, number, BATCHES)
    reached = 0
    for tried in range(1, ORDERS + 1):
        reached += _statistic(figures[rng.permutation(len(figures))]) >= observed * (1 - EQUAL)
        if reached == ENOUGH:
            return reached / tried
    return (reached + 1) / (ORDERS + 1)


def _statistic(figures: FloatArray) -> float:
    sums = figures.reshape(BATCHES, WALKS, -1).sum(axis=1)
    return float((sums**2).sum())


def _totals(
    simulator: Simulator, policy: AnyPolicy, horizon: int, seed: int, number: int
) -> FloatArray:
    parts = []
    for batch in range(BATCHES):
        record = simulator.totals(policy, WALKS, horizon, _stream(seed, number, batch))
        require_possible(record, simulator)
        parts.append(record.totals)
    return np.vstack(parts)


def _stream(seed: int, number: int, batch: int) -> np.random.Generator:
    return np.random.default_rng(
        np.random.SeedSequence(seed, spawn_key=(SEPARATE_STREAM, number, batch))
    )


# Kind E for a mixture: every candidate rolled out, with the union over all of them.
#
#     gap_W(sum_k theta_k m_k - x) <= gap_W(sum_k theta_k m^_k - x) + sum_k theta_k s_k
#                                     + N h sum_k theta_k mean discount^T                 for every
# x
#
# with probability 1 - delta for every theta at once, where s_k is the smaller of two radii of
# candidate k at its part of delta (`MixtureRollouts`). Nothing is taken over from a solver: problem
# and policy decide which episodes are drawn (`draw_seeds`). Candidates without weight need none.


def mixed(
    problem: Apprenticeship,
    policy: AnyPolicy,
    rollouts: MixtureRollouts,
    failure_probability: float,
    executor: Executor | None = None,
) -> Evaluation:
    """Kind E (mixture)."""
    if not isinstance(policy, MixturePolicy):
        raise InvalidProblem(
            f"a {type(policy).__name__} has no candidates", "Give evaluation=jm.Rollouts(...)"
        )
    drawn = [int(k) for k in np.flatnonzero(policy.weights)]
    parts = rollouts.parts(len(policy.candidates))
    seed = draw_seeds.large_seed(problem, policy)
    used = [policy.candidates[k] for k in drawn]
    separate = separated(problem, used, rollouts.horizon, seed)
    records = rollouts.totals(problem.simulator, policy.candidates, seed, drawn, executor)
    for record in records:
        require_possible(record, problem.simulator)
    found = [
        _Candidate.of(
            PlainMean(problem, record.totals, record.unrecorded, "rollouts"),
            float(parts[k]) * failure_probability,
        )
        for k, record in zip(drawn, records, strict=True)
    ]
    weights = policy.weights[drawn]
    source = f"{len(drawn)} of {len(parts)} candidates, {rollouts.trajectories} rollouts each"
    terms = (
        *(
            _weighted(f"rollout {first.name}", weights, [one.estimate.terms[j] for one in found],
                      source)
            for j, first in enumerate(found[0].estimate.terms)
        ),
        walk_rounding(problem, rollouts.horizon + len(drawn)),
    )  # fmt: skip
    values = np.array([one.estimate.values for one in found])
    statistics = tuple(
        one.statistics(k, rollouts, seed) for k, one in zip(drawn, found, strict=True)
    )
    return Evaluation(
        "E (mixture)", np.asarray(weights @ values), terms, failure_probability, statistics,
        (_independence(policy, rollouts, seed), separate),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Candidate:
    """What the rollouts of one candidate prove, with its part of delta."""

    mean: PlainMean
    estimate: Estimate
    failure_probability: float

    @classmethod
    def of(cls, mean: PlainMean, delta: float) -> "_Candidate":
        independent, adaptive = (part * delta for part in PLAIN_SHARES)
        estimates = (mean.independent(independent), mean.adaptive(adaptive))
        return cls(mean, min(estimates, key=lambda one: total(one.terms)), delta)

    def statistics(self, number: int, rollouts: MixtureRollouts, seed: int) -> Statistics:
        mean = self.mean
        return Statistics(
            f"rollouts of candidate {number}", seed, rollouts.trajectories,
            means=floats(mean.totals.mean(axis=0)), variances=floats(mean.spread**2),
            ranges=floats(mean.ranges), failure_probability=self.failure_probability,
            horizon=rollouts.horizon, unrecorded=float(mean.missing.mean()),
        )  # fmt: skip


def _weighted(name: str, weights: FloatArray, terms: list[Term], source: str) -> Term:
    """The mean of the same term of all candidates."""
    value = math.fsum(
        float(weight) * term.value for weight, term in zip(weights, terms, strict=True)
    )
    formulas = {term.formula for term in terms}
    formula = f"sum_k theta_k ({formulas.pop()})" if len(formulas) == 1 else "sum_k theta_k s_k"
    return Term(name, above(above(value)), formula, source)


def _independence(policy: MixturePolicy, rollouts: MixtureRollouts, seed: int) -> Premise:
    sizes = rollouts.rounds or (len(policy.candidates),)
    return declared(
        "rollouts are independent of the candidates",
        f"{rollouts.trajectories} rollouts of each from seed {seed}, in rounds of "
        f"{', '.join(map(str, sizes))} candidates; the seed is a digest of problem and policy, "
        "which are taken not to have been chosen because of it",
    )
