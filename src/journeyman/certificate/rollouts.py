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

from dataclasses import InitVar, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign
from journeyman.certificate.evaluation import Evaluation, Statistics, rounding
from journeyman.certificate.expert import PLAIN_SHARES, PlainMean
from journeyman.certificate.premises import declared
from journeyman.certificate.terms import Term, total
from journeyman.errors import InvalidProblem
from journeyman.policy import Policy
from journeyman.problem import Program, draw_seeds
from journeyman.problem.draw_seeds import ignored_seed

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
        self, problem: Program, policy: Policy, failure_probability: float
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

    def _mean(self, problem: Program, policy: Policy, seed: int) -> PlainMean:
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

    def _rounding(self, problem: Program) -> Term:
        """A rollout visits pairs for 1/(1 - discount) in all, in `horizon` summands at most."""
        return rounding(problem, problem.world.effective_horizon, self.horizon)


def resting_costs(problem: Program, policy: Policy) -> Matrix:
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
