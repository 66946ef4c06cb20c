"""The expert's side of a certificate: estimates of its expectations with a bound on their error.

    gap_W(x - e) <= gap_W(x - values) + total(terms)        for every x

with probability 1 - delta for *all* estimates returned together, so the best of them may be chosen
after seeing the data. Data-independent radii (Hoeffding, signs, McDiarmid) share one part of delta,
because the smallest of them is known beforehand; the empirical Bernstein radius and the shaped
estimate look at the data and have parts of their own.

Truncated records: with complete trajectories the radii are for, the recorded means are off by at
most N h mean discount^T, pathwise, however the records were cut off. Where centring makes N smaller
the tails are taken to cost the middle of each range.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.concentration import empirical_bernstein_radius
from journeyman.certificate.sample_sizes import centred_bound, radii
from journeyman.certificate.shaped_estimate import shaped_estimate
from journeyman.certificate.terms import Term
from journeyman.costs import CostClass, EuclideanBall, InfinityBall
from journeyman.demonstrations import Demonstrations, MonteCarlo
from journeyman.demonstrations.totals import Tails
from journeyman.problem import Apprenticeship, Program

SHAPED_FROM = 500
"""Trajectories from which a shaped estimate is worth its part of delta."""
WITH_SHAPING = (0.25, 0.05, 0.70)
WITHOUT_SHAPING = (0.80, 0.20, 0.0)
"""Parts of delta for the data-independent radii, empirical Bernstein, and the shaped estimate."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Expectations of the expert and the terms of their error, in both directions."""

    name: str
    values: FloatArray
    terms: tuple[Term, ...]
    failure_probability: float


def expert_estimates(problem: Program, failure_probability: float) -> tuple[Estimate, ...]:
    """Every estimate the data allow; all hold together with 1 - `failure_probability`."""
    if not isinstance(problem, Apprenticeship):
        return (Estimate("known cost", problem.target, (), 0.0),)
    if problem.expectation.is_declared:
        return (Estimate("declared", problem.target, (), 0.0),)
    assert problem.demonstrations is not None
    enough = len(problem.demonstrations) >= SHAPED_FROM
    usable = enough and not problem.world.is_estimated
    parts = WITH_SHAPING if usable else WITHOUT_SHAPING
    independent, adaptive, shaped = (part * failure_probability for part in parts)
    found = [_independent(problem, independent), _adaptive(problem, adaptive)]
    if usable:
        estimate = shaped_estimate(problem, shaped)
        if estimate is not None:
            found.append(Estimate("control variate", estimate.values, estimate.terms, shaped))
    return tuple(found)


def _independent(problem: Apprenticeship, failure_probability: float) -> Estimate:
    """The plain mean with the smallest radius that does not look at the data."""
    demos = _demonstrations(problem)
    values, truncation = _plain_mean(problem, demos)
    rates = radii(problem, failure_probability, two_sided=False)
    best = min(rates, key=lambda rate: rate.scale)
    sampling = Term("sampling", best.at(len(demos)), best.formula, f"{len(demos)} demonstrations")
    name = f"plain mean, {best.name}"
    return Estimate(name, values, (sampling, truncation), failure_probability)


def _adaptive(problem: Apprenticeship, failure_probability: float) -> Estimate:
    """The plain mean with a radius from its sample variance.

    Samples are the completed totals: the unrecorded tail, which the sample lacks, may move each by
    N h discount^T, and the sample standard deviation by no more than the root mean square of that.
    """
    demos = _demonstrations(problem)
    values, truncation = _plain_mean(problem, demos)
    basis, world, count = problem.basis, problem.world, len(demos)
    totals = MonteCarlo().totals(demos, problem.cost_matrix, world)
    missing = Tails.of(demos, problem.cost_matrix, world).unknown_mass
    ranges = basis.highest - basis.lowest
    blur = ranges / 2 * np.sqrt((missing**2).sum() / max(count - 1, 1))
    spread = totals.std(axis=0, ddof=1) + blur if count > 1 else np.full(basis.num_costs, np.inf)
    share = failure_probability / (2 * basis.num_costs)
    radius = np.array([
        empirical_bernstein_radius(s**2, r * world.effective_horizon, count, share)
        for s, r in zip(spread, ranges, strict=True)
    ])  # fmt: skip
    sampling = Term(
        "sampling", coordinatewise(problem.cost_class, radius),
        "combined sqrt(2 Var L/m) + 7 R L/(3(m - 1))", f"{count} demonstrations and their spread",
    )  # fmt: skip
    name = "plain mean, empirical Bernstein"
    return Estimate(name, values, (sampling, truncation), failure_probability)


def _plain_mean(problem: Apprenticeship, demos: Demonstrations) -> tuple[FloatArray, Term]:
    """Means with the unrecorded tails at zero or at mid-range, whichever has the smaller error."""
    matrix, world = problem.cost_matrix, problem.world
    mean = MonteCarlo().totals(demos, matrix, world).mean(axis=0)
    missing = float(Tails.of(demos, matrix, world).unknown_mass.mean())
    plain = problem.cost_class.pointwise_bound(matrix)
    centred = centred_bound(problem, problem.cost_class)
    if centred < plain:
        mean = mean + problem.basis.centre * missing
    error = min(plain, centred) * missing
    return mean, Term("truncation", error, "N h mean discount^T", "recorded lengths")


def coordinatewise(cost_class: CostClass, radius: FloatArray) -> float:
    """gap_W of an error that is within +-radius_i in every coordinate."""
    scaled = cost_class.scaling(radius.size) * radius
    if isinstance(cost_class, InfinityBall):
        return float(scaled.sum())
    return float(np.linalg.norm(scaled) if isinstance(cost_class, EuclideanBall) else scaled.max())


def _demonstrations(problem: Apprenticeship) -> Demonstrations:
    assert problem.demonstrations is not None
    return problem.demonstrations
