"""Where single expectations lie: the expert's in probability, the apprentice's by the laws of the
world, or in probability where these were estimated from counts.

The expert's intervals hold together: R_i sqrt(log(2n/delta)/(2m)) to both sides of the plain mean,
or the empirical Bernstein radius, whichever is smaller at half of delta each, and the unrecorded
tails. They are a statement of their own, beside the bound.

No interval reaches beyond min psi_i h and max psi_i h, with h = 1/(1 - discount): there every total
lies. Expectations that were declared are left as they are.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.concentration import empirical_bernstein_radius, hoeffding_radius
from journeyman.certificate.evaluation import exact_evaluation
from journeyman.certificate.expert import PlainMean
from journeyman.certificate.model_error import ModelError, occupancy_distance
from journeyman.certificate.terms import total
from journeyman.policy import Occupancy
from journeyman.problem import Apprenticeship, Program

EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Interval:
    """One expectation."""

    name: str
    low: float
    high: float


def expert_intervals(problem: Program, failure_probability: float) -> tuple[Interval, ...]:
    """One for each cost; a point where the expectations were declared."""
    if not isinstance(problem, Apprenticeship) or problem.demonstrations is None:
        return _intervals(problem, problem.target, problem.target)
    mean, share = PlainMean.of(problem, problem.demonstrations), failure_probability / 4
    share /= problem.basis.num_costs
    radius = np.array([
        min(
            hoeffding_radius(width, mean.count, share),
            empirical_bernstein_radius(spread**2, width, mean.count, share),
        )
        for width, spread in zip(mean.ranges, mean.spread, strict=True)
    ])  # fmt: skip
    missing = float(mean.missing.mean())
    middle = mean.totals.mean(axis=0) + problem.basis.centre * missing
    tails = (problem.basis.highest - problem.basis.lowest) / 2 * missing
    return _within_range(problem, middle, radius + tails)


def apprentice_intervals(
    problem: Program, visits: Occupancy, error: ModelError | None = None
) -> tuple[Interval, ...]:
    """One for each cost, as wide as residual, rounding and the model's error demand."""
    basis, largest = problem.basis, problem.cost_unit
    width = basis.norms / largest * total(exact_evaluation(problem, visits).terms)
    if error is not None:
        width = width + (basis.highest - basis.lowest) / 2 * occupancy_distance(visits, error)
    return _within_range(problem, visits.expectations(problem.basis), width)


def _within_range(problem: Program, middle: FloatArray, radius: FloatArray) -> tuple[Interval, ...]:
    """Cut where no total can be, with room for rounding."""
    basis, h = problem.basis, problem.world.effective_horizon
    room = EPSILON * (problem.world.num_pairs + 8) * basis.norms * h
    least, most = basis.lowest * h - room, basis.highest * h + room
    ends = (np.clip(end, least, most) for end in (middle - radius, middle + radius))
    return _intervals(problem, *ends)


def _intervals(problem: Program, low: FloatArray, high: FloatArray) -> tuple[Interval, ...]:
    ends = zip(problem.basis.names, low, high, strict=True)
    return tuple(Interval(name, float(least), float(most)) for name, least, most in ends)
