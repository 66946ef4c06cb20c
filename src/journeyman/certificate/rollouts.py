"""Kind E: the apprentice's expectations from rollouts of its policy.

    gap_W(Psi' mu_pi - x) <= gap_W(means - x) + s(M, delta) + N h mean discount^T     for every x

with probability 1 - delta over M independent rollouts, T steps each. The radius s is the smallest
that does not look at the rollouts (Hoeffding, signs, McDiarmid) or empirical Bernstein; they have
parts of delta of their own, so the smaller may be taken.

*Where*: any policy of any world that can be walked in; no linear system is solved. In an explicit
world a rollout that comes to rest in an absorbing state is complete: every step there counts with
the mean cost of the policy's actions in that state, which changes no expectation and makes the
endless rest known. Elsewhere code answers for many walks at once, so their independence is tested.

*Guarantee*: the rollouts must be independent of the policy. Problem and policy decide which numbers
are drawn (`draw_seeds`), so nobody can choose among rollouts of one policy. A policy that was
chosen *because of* its rollouts is not covered: the best of J policies needs delta/J for each.

*Mixtures*: every candidate is rolled out, with the union over all of them,

    gap_W(sum_k theta_k m_k - x) <= gap_W(sum_k theta_k m^_k - x) + sum_k theta_k s_k
                                    + N h sum_k theta_k mean discount^T                 for every x

with probability 1 - delta for every theta at once, where s_k is the smaller of two radii of
candidate k at its part of delta (`MixtureRollouts`). Candidates without weight need none.

*Cost*: M walks of at most `horizon` steps. The radius falls with 1/sqrt(M), the tail with
discount^horizon.
"""

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign, require_whole
from journeyman.certificate.evaluation import rounding
from journeyman.certificate.expert_estimates import ROLLOUT_SHARES, PlainMean
from journeyman.certificate.premises import LEVEL
from journeyman.certificate.terms import (
    ExpertEstimate,
    PolicyEvaluation,
    Premise,
    PremiseStatus,
    Statistics,
    Term,
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
from journeyman.problem import Apprenticeship, draw_seeds
from journeyman.problem.apprenticeship import require_possible
from journeyman.problem.draw_seeds import ignored_seed
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.world.levels import Level

STREAM, WALK_STREAM = 0x726F6C6C, 0x6C77616C
"""Which of a seed's streams rollouts are drawn from, in an explicit world and elsewhere."""


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

    needs: ClassVar[Level] = Level.SAMPLED

    trajectories: int
    horizon: int
    seed: InitVar[int | None] = None

    def __post_init__(self, seed: int | None) -> None:
        ignored_seed(seed, "Rollouts")
        count = require_whole("trajectories", self.trajectories, 2, InvalidProblem)
        horizon = require_whole("horizon", self.horizon, 1, InvalidProblem)
        assign(self, trajectories=count, horizon=horizon)

    def evaluate(
        self,
        problem: Apprenticeship,
        policy: AnyPolicy,
        failure_probability: float,
        executor: Executor | None = None,
    ) -> tuple[PolicyEvaluation, ...]:
        """Kind E, with the smaller of the two radii."""
        separate: tuple[Premise, ...] = ()
        if problem.level is Level.EXPLICIT:
            assert isinstance(policy, Policy)
            seed = draw_seeds.explicit_seed(problem.world, policy)
            mean = self._recorded(problem, policy, seed)
            hidden = rounding(problem, problem.effective_horizon, self.horizon)
        else:
            seed = draw_seeds.large_seed(problem, policy)
            separate = (separate_walks(problem, [policy], self.horizon, seed),)
            mean = mean_of_walks(problem, policy, self, seed, executor)
            hidden = walk_rounding(problem, self.horizon)
        best = _best_estimate(mean, failure_probability)
        terms = (*(replace(term, name=f"rollout {term.name}") for term in best.terms), hidden)
        fresh = declared(
            "fresh rollouts are independent of the policy",
            f"{self.trajectories} rollouts from seed {seed}, a digest of problem and policy; the "
            "policy is taken not to have been chosen because of them",
        )
        statistics = _statistics("rollouts", mean, self, seed, failure_probability)
        return (
            PolicyEvaluation(
                "E", best.values, terms, failure_probability, (statistics,), (fresh, *separate)
            ),
        )

    def _recorded(self, problem: Apprenticeship, policy: Policy, seed: int) -> PlainMean:
        from journeyman.demonstrations.recording import record

        records = record(
            problem.world, policy, trajectories=self.trajectories, horizon=self.horizon,
            seed=fresh_stream(seed, STREAM),
        )  # fmt: skip
        return PlainMean.with_costs(problem, records, resting_costs(problem, policy), "rollouts")


@dataclass(frozen=True)
class MixtureEvaluation:
    """Evaluate a mixture candidate by candidate, by its `MixtureRollouts`."""

    needs: ClassVar[Level] = Level.SAMPLED

    rollouts: MixtureRollouts

    def evaluate(
        self,
        problem: Apprenticeship,
        policy: AnyPolicy,
        failure_probability: float,
        executor: Executor | None = None,
    ) -> tuple[PolicyEvaluation, ...]:
        """Kind E (mixture)."""
        if not isinstance(policy, MixturePolicy):
            raise InvalidProblem(
                f"a {type(policy).__name__} has no candidates", "Give evaluation=jm.Rollouts(...)"
            )
        rollouts, drawn = self.rollouts, [int(k) for k in np.flatnonzero(policy.weights)]
        parts = [float(part) for part in rollouts.parts(len(policy.candidates))]
        seed = draw_seeds.large_seed(problem, policy)
        used = [policy.candidates[k] for k in drawn]
        separate = separate_walks(problem, used, rollouts.horizon, seed)
        records = rollouts.totals(problem.simulator, policy.candidates, seed, drawn, executor)
        estimates, statistics = [], []
        for k, one in zip(drawn, records, strict=True):
            require_possible(one, problem.simulator)
            mean, delta = (
                PlainMean(problem, one.totals, one.unrecorded, "rollouts"),
                parts[k] * failure_probability,
            )
            estimates.append(_best_estimate(mean, delta))
            statistics.append(
                _statistics(f"rollouts of candidate {k}", mean, rollouts, seed, delta)
            )
        weights = policy.weights[drawn]
        source = f"{len(drawn)} of {len(parts)} candidates, {rollouts.trajectories} rollouts each"
        terms = [
            _weighted(f"rollout {first.name}", weights, [one.terms[j] for one in estimates], source)
            for j, first in enumerate(estimates[0].terms)
        ]
        sizes = rollouts.rounds or (len(policy.candidates),)
        fresh = declared(
            "rollouts are independent of the candidates",
            f"{rollouts.trajectories} rollouts of each from seed {seed}, in rounds of "
            f"{', '.join(map(str, sizes))} candidates; the seed is a digest of problem and policy, "
            "which are taken not to have been chosen because of it",
        )
        return (
            PolicyEvaluation(
                "E (mixture)", np.asarray(weights @ np.array([one.values for one in estimates])),
                (*terms, walk_rounding(problem, rollouts.horizon + len(drawn))),
                failure_probability, tuple(statistics), (fresh, separate),
            ),
        )  # fmt: skip


def _best_estimate(mean: PlainMean, failure_probability: float) -> ExpertEstimate:
    """With the smaller of two radii, each with its part of the failure probability."""
    independent, adaptive = (part * failure_probability for part in ROLLOUT_SHARES)
    estimates = (mean.independent(independent), mean.adaptive(adaptive))
    return min(estimates, key=lambda estimate: total(estimate.terms))


def _statistics(
    name: str, mean: PlainMean, rollouts: Rollouts | MixtureRollouts, seed: int, delta: float
) -> Statistics:
    return Statistics(
        name, seed, rollouts.trajectories,
        means=floats(mean.totals.mean(axis=0)), variances=floats(mean.spread**2),
        ranges=floats(mean.ranges), failure_probability=delta,
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


def mean_of_walks(
    problem: Apprenticeship,
    policy: AnyPolicy,
    rollouts: Rollouts,
    seed: int,
    executor: Executor | None = None,
) -> PlainMean:
    """Totals of independent walks of a policy; no bit depends on the executor."""
    count, horizon = rollouts.trajectories, rollouts.horizon
    walks = [(policy, (WALK_STREAM,))]
    (found,) = simulate(problem.simulator, walks, count, horizon, seed, executor)
    require_possible(found, problem.simulator)
    return PlainMean(problem, found.totals, found.unrecorded, "rollouts")


def walk_rounding(problem: Apprenticeship, summands: int, mass: float = 1.0) -> Term:
    """What double precision can have hidden of means of sums of that many products."""
    epsilon = float(np.finfo(float).eps)
    N, h = problem.cost_class.pointwise_bound(problem.cost_matrix), problem.effective_horizon
    value = 2 * epsilon * (summands + problem.basis.num_costs + 32) * (1 + h) * N * h * mass
    formula = "2 eps (summands + costs + 32) (1 + h) N h"
    if mass != 1:
        formula += " max(1, 3 |theta|_1)"
    return Term("rounding", value, formula, "double precision")


def fresh_stream(seed: int, stream: int) -> np.random.Generator:
    """A generator that shares nothing with `default_rng(seed)`, nor with another `stream`."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))


def floats(values: FloatArray) -> tuple[float, ...]:
    """Plain numbers, which compare and print as what they are."""
    return tuple(float(value) for value in values)


SEPARATE = "rollouts are independent of one another"
SEPARATE_STREAM = 0x73657061
"""Which of a seed's streams the batches are drawn from."""
BATCHES, WALKS = 16, 8
LONGEST = 64
"""Steps of such a walk at most."""
ORDERS, ENOUGH = 9_999, 10
EQUAL = 1e-9
"""Relative: numbers that differ by less are equal but for rounding."""


def separate_walks(
    problem: Apprenticeship, policies: Sequence[AnyPolicy], horizon: int, seed: int
) -> Premise:
    """Whether rollouts are independent of one another, by a test that is exact.

    Code that is known to answer for several walks at once otherwise than for each is refused. Then
    `BATCHES` batches of `WALKS` walks are drawn, each with a stream of its own. If all walks are
    independent, any of them may stand in any batch. With their totals brought to mean 0 and
    variance 1, cost by cost,

        S = sum over batches and costs of (sum of the totals in the batch)^2

    is large when the walks of a batch share their luck: a rule that draws one number for all, a
    simulator that is seeded once a batch, a memory that is shared. S is compared with what random
    orders of the same walks give, until 10 of them reach it (p = 10/orders) or all were tried; p <=
    level then has probability `level` at most (Besag and Clifford, 1991). Each policy is tested at
    its part of the level.

    *Not seen*: dependence that no cost shows in the first steps, or that is weak. It is declared.
    """
    if problem.has_states:
        for policy in policies:
            require_row_by_row(policy, problem.world)
    steps = min(horizon, LONGEST)
    values = [
        p_value(_totals(problem.simulator, policy, steps, seed, number), seed, number)
        for number, policy in enumerate(policies)
    ]
    p = min(1.0, min(values) * len(values))
    of_each = f" of each of {len(values)} candidates" if len(values) > 1 else ""
    sample = f"{BATCHES} batches of {WALKS} walks{of_each}"
    detail = f"p-value {p:.3g} from {sample}, refuted up to {LEVEL:g}"
    if p <= LEVEL:
        return failed(SEPARATE, f"{detail}: walks of a batch share their luck", LEVEL)
    taken = "what the test does not see is taken to be independent"
    return Premise(SEPARATE, PremiseStatus.TESTED, f"{detail}; {taken}", LEVEL)


def p_value(totals: FloatArray, seed: int, number: int) -> float:
    """Of walks in their batches, (walks x costs), against random orders of them."""
    spread = totals.std(axis=0)
    size = np.abs(totals).max(axis=0, initial=0.0)
    varying = spread > EQUAL * np.maximum(size, np.finfo(float).tiny)
    if not varying.any():
        return 1.0
    scores = ((totals - totals.mean(axis=0)) / np.where(varying, spread, 1.0))[:, varying]
    observed = _statistic(scores)
    rng = _stream(seed, number, BATCHES)
    reached = 0
    for tried in range(1, ORDERS + 1):
        reached += _statistic(scores[rng.permutation(len(scores))]) >= observed * (1 - EQUAL)
        if reached == ENOUGH:
            return reached / tried
    return (reached + 1) / (ORDERS + 1)


def _statistic(scores: FloatArray) -> float:
    sums = scores.reshape(BATCHES, WALKS, -1).sum(axis=1)
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
