"""What `PolicyMixture` returns."""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.problem.mixture_rollouts import MixtureRollouts
from journeyman.solvers.status import Status


@dataclass(frozen=True, eq=False)
class MixtureAnswer:
    """The outcome of `jm.solve` with `PolicyMixture`.

    All figures are those of the rollouts and the demonstrations, unrecorded tails at mid-range.
    What they prove `jm.certify(problem, answer)` says, from rollouts of its own.
    """

    problem: Apprenticeship
    status: Status
    engine: str
    policy: MixturePolicy
    value: float
    """gap_W(sum_k weights_k expectations_k - target)."""
    lower_bound: float
    """No mixture of these candidates has a smaller value."""
    cost_weights: FloatArray
    """The worst case for the mixture: what the next best response would be asked for."""
    expectations: FloatArray
    """(candidates x costs), means of rollouts."""
    spreads: FloatArray
    """(candidates x costs), standard deviations over rollouts."""
    rollouts: MixtureRollouts
    """How many a certificate draws, and what each round may cost of its failure probability."""
    trace: FloatArray
    """Round, candidates, value and lower bound, row by row."""
    rollout_seconds: float = 0.0
    solve_seconds: float = 0.0

    @property
    def weights(self) -> FloatArray:
        return self.policy.weights

    def __repr__(self) -> str:
        return (
            f"MixtureAnswer({self.status.name}: value {self.value:.6g}, "
            f"{np.count_nonzero(self.weights)} of {self.weights.size} candidates in use, rounds "
            f"{len(self.trace)}; {self.engine}, rollouts {self.rollout_seconds:.2g} s, solve "
            f"{self.solve_seconds:.2g} s)"
        )
