"""Penalties: what a violated constraint costs in the surrogate loss.

    L(theta) = gap(theta) + pairs * V1(theta) + flow * V2(theta) + budgets * overspending(theta)

where V1 is the total negativity and V2 the flow violation of u_theta.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from journeyman.errors import InvalidSolver
from journeyman.policy import occupancy, plan
from journeyman.problem.large_apprenticeship import LargeApprenticeship
from journeyman.problem.program import Program

SLACK_ROUNDS = 60


@dataclass(frozen=True)
class Penalties:
    """The multipliers lambda_1, lambda_2 and lambda_3."""

    pairs: float
    flow: float
    budgets: float


class Penalty(ABC):
    """A rule that sets the penalties of a problem."""

    @abstractmethod
    def of(self, problem: Program | LargeApprenticeship) -> Penalties:
        """The multipliers for `problem`."""


@dataclass(frozen=True)
class ExactPenalty(Penalty):
    """Penalties at which the loss itself bounds the policy's gap: gap(pi_theta) <= L(theta).

        lambda_1 = 2 N'/(1 - discount),  lambda_2 = N'/(1 - discount),  N' = N + lambda_3 sum |d_j|

    where N bounds the costs of the class. With budgets lambda_3 = (2N/(1 - discount))/slack, where
    `slack` > 0 is by how much some policy stays within all the budgets at once; it is looked for
    when it is not given.
    """

    slack: float | None = None

    def of(self, problem: Program | LargeApprenticeship) -> Penalties:
        horizon = problem.effective_horizon
        size = problem.cost_class.pointwise_bound(problem.basis.matrix)
        overspending, sizes = 0.0, 0.0
        if isinstance(problem, Program) and problem.constraints:
            slack = common_slack(problem) if self.slack is None else self.slack
            if not slack > 0:
                raise InvalidSolver(
                    "no policy was found that stays strictly within all the budgets",
                    "Give ExactPenalty(slack=...), or loosen the budgets",
                )
            overspending = 2 * size * horizon / slack
            sizes = sum(float(np.abs(budget.cost).max()) for budget in problem.constraints)
        total = size + overspending * sizes
        return Penalties(2 * total * horizon, total * horizon, overspending)


@dataclass(frozen=True)
class SinglePenalty(Penalty):
    """One multiplier for everything, as in the paper (there 1/accuracy).

    Below the exact penalties the loss does not bound the policy's gap, and for `Simplex` and
    known costs it may be unbounded below.
    """

    value: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.value) and self.value > 0):
            raise InvalidSolver(f"penalty = {self.value}", "Give a positive number")

    def of(self, problem: Program | LargeApprenticeship) -> Penalties:
        return Penalties(self.value, self.value, self.value)


def common_slack(problem: Program) -> float:
    """By how much one measure stays within every budget, by multiplicative weights over budgets.

    Each round plans against the budgets that are worst off; the average of the occupancies is an
    occupancy, so what is returned is attained by a policy, if not the best there is.
    """
    world, D = problem.world, problem.budget_matrix
    scale = np.abs(D).max(axis=0) * world.effective_horizon + np.finfo(float).tiny
    weights = np.ones(len(problem.constraints))
    total, best, warm = np.zeros(world.num_pairs), -np.inf, None
    for count in range(1, SLACK_ROUNDS + 1):
        warm = plan(world, D @ (weights / scale), warm_start=warm)
        total += occupancy(world, warm.policy).measure
        spare = -problem.overspending(total / count)
        best = max(best, float(spare.min()))
        weights = np.exp(-spare / scale * np.sqrt(count) * 4)
        weights /= weights.sum()
        if len(weights) == 1:
            break
    return best
