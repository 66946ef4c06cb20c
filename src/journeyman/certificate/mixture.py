"""Kind E for a mixture: every candidate rolled out, with the union over all of them.

    gap_W(sum_k theta_k m_k - x) <= gap_W(sum_k theta_k m^_k - x) + sum_k theta_k s_k
                                    + N h sum_k theta_k mean discount^T                 for every x

with probability 1 - delta for every theta at once, where s_k is the smaller of two radii of
candidate k at its part of delta (`MixtureRollouts`). Nothing is taken over from a solver: problem
and policy decide which episodes are drawn (`draw_seeds`). Candidates without weight need none.
"""

import math
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.evaluation import Evaluation, Statistics
from journeyman.certificate.expert import PLAIN_SHARES, Estimate, PlainMean
from journeyman.certificate.large_evaluation import rounding, separated
from journeyman.certificate.premises import Premise, declared
from journeyman.certificate.rollouts import floats
from journeyman.certificate.terms import Term, above, total
from journeyman.errors import InvalidProblem
from journeyman.execution import Executor
from journeyman.policy.acting import AnyPolicy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem import draw_seeds
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.problem.simulated_apprenticeship import SimulatedProblem, require_possible


def mixed(
    problem: SimulatedProblem,
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
        rounding(problem, rollouts.horizon + len(drawn)),
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
