"""Where single expectations lie: the expert's in probability, the apprentice's for certain.

The expert's intervals hold together: R_i sqrt(log(2n/delta)/(2m)) to both sides of the plain mean,
or the empirical Bernstein radius, whichever is smaller at half of delta each, and the unrecorded
tails. They are a statement of their own, beside the bound.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.concentration import empirical_bernstein_radius, hoeffding_radius
from journeyman.demonstrations import MonteCarlo
from journeyman.demonstrations.totals import Tails
from journeyman.policy import Occupancy
from journeyman.problem import Apprenticeship, Program


@dataclass(frozen=True)
class Interval:
    """One expectation."""

    name: str
    low: float
    high: float


def expert_intervals(problem: Program, failure_probability: float) -> tuple[Interval, ...]:
    """One for each cost; a point where the expectations were declared."""
    if not isinstance(problem, Apprenticeship) or problem.demonstrations is None:
        return _intervals(problem, problem.target, np.zeros(problem.basis.num_costs))
    demos, basis, world = problem.demonstrations, problem.basis, problem.world
    totals = MonteCarlo().totals(demos, problem.cost_matrix, world)
    missing = float(Tails.of(demos, problem.cost_matrix, world).unknown_mass.mean())
    half = (basis.highest - basis.lowest) / 2
    share = failure_probability / (4 * basis.num_costs)
    radius = np.array(
        [
            _radius(totals[:, i], 2 * half[i] * world.effective_horizon, share)
            for i in range(half.size)
        ]
    )
    return _intervals(
        problem, totals.mean(axis=0) + basis.centre * missing, radius + half * missing
    )


def apprentice_intervals(problem: Program, visits: Occupancy) -> tuple[Interval, ...]:
    """One for each cost: as wide as the residual of the evaluation allows."""
    width = problem.basis.norms * problem.world.effective_horizon * visits.residual
    return _intervals(problem, visits.expectations(problem.basis), width)


def _radius(samples: FloatArray, width: float, failure_probability: float) -> float:
    count = samples.size
    variance = float(samples.var(ddof=1)) if count > 1 else np.inf
    return min(
        hoeffding_radius(width, count, failure_probability),
        empirical_bernstein_radius(variance, width, count, failure_probability),
    )


def _intervals(problem: Program, middle: FloatArray, radius: FloatArray) -> tuple[Interval, ...]:
    ends = zip(problem.basis.names, middle - radius, middle + radius, strict=True)
    return tuple(Interval(name, float(low), float(high)) for name, low, high in ends)
