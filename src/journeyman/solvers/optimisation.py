"""What a run of a stochastic method proves about its own optimisation error.

Deterministic: L(average) minus the lower bound of a dual point (see `ReducedSolution`).
In probability, for any step rule (expert data fixed, weights w_t fixed in advance): with
probability at least 1 - delta

    L(average) - min L <= [sum_t w_t <g_t, theta_t> + rho |sum_t w_t g_t|_2
                           + 2 rho sigma sqrt(2 log(1/delta) sum_t w_t^2)] / sum_t w_t

the realised regret plus the noise of the estimates. A run that may end at any of its evaluations,
because it is accurate enough there, pays for having looked: at the j-th one delta/(j (j + 1)) takes
the place of delta. The clock and Ctrl-C are taken to know nothing of the draws. It often exceeds
2N/(1 - discount) and is then called vacuous.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.subgradient_codes import REGRET, SQUARED_WEIGHT, WEIGHT
from journeyman.solvers.subgradient_state import TRACE_FIELDS, SubgradientState


@dataclass(frozen=True)
class TracePoint:
    """A moment of a run: the average so far and what is proven of the least loss."""

    step: int
    seconds: float
    loss: float
    matching: float
    negativity: float
    flow: float
    bound: float


@dataclass(frozen=True)
class Optimisation:
    """The trace of a run and the bound in probability on its optimisation error."""

    steps: int
    trace: tuple[TracePoint, ...]
    realised_regret: float
    noise: float
    failure_probability: float
    gap_scale: float

    @property
    def regret_bound(self) -> float:
        return self.realised_regret + self.noise

    @property
    def is_vacuous(self) -> bool:
        return self.regret_bound >= self.gap_scale

    def __str__(self) -> str:
        verdict = ", vacuous" if self.is_vacuous else ""
        return (
            f"{self.steps} steps; in probability {1 - self.failure_probability:g} the error is at "
            f"most {self.regret_bound:.4g} (realised regret {self.realised_regret:.4g}, noise "
            f"{self.noise:.4g}{verdict})"
        )


def optimisation_of(
    surrogate: Surrogate,
    state: SubgradientState,
    radius: float,
    batch: int,
    failure_probability: float,
    looks: int = 0,
) -> Optimisation:
    """Read the figures off the state of a run that could have ended at `looks` evaluations."""
    totals = state.iterate.totals
    weight = max(float(totals[WEIGHT]), np.finfo(float).tiny)
    regret = totals[REGRET] + radius * np.linalg.norm(state.iterate.weighted_gradient)
    share = failure_probability / (looks * (looks + 1) if looks else 1)
    spread = np.sqrt(2 * np.log(1 / share) * totals[SQUARED_WEIGHT])
    noise = 2 * radius * surrogate.noise_bound(batch, batch) * spread
    rows = [dict(zip(TRACE_FIELDS, row, strict=True)) for row in state.trace]
    return Optimisation(
        state.step,
        tuple(TracePoint(int(row.pop("step")), **row) for row in rows),
        float(regret / weight),
        float(noise / weight),
        failure_probability,
        surrogate.reduced.problem.gap_scale,
    )
