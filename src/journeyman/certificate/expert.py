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

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray, Matrix
from journeyman.certificate.concentration import empirical_bernstein_radius
from journeyman.certificate.sample_sizes import Rate, radii
from journeyman.certificate.shaped_estimate import shaped_estimate
from journeyman.certificate.terms import Term
from journeyman.costs import CostClass, EuclideanBall, InfinityBall, KnownCost
from journeyman.demonstrations import Demonstrations, MonteCarlo
from journeyman.demonstrations.control_variate import Tails
from journeyman.problem import Apprenticeship, Program
from journeyman.problem.cost_problem import CostProblem
from journeyman.problem.trivial import centred_bound

PLAIN_UP_TO = 20
"""Trajectories up to which a shaped estimate cannot be worth a part of delta."""
PLAIN_SHARES = (0.80, 0.20)
"""Parts of delta for the data-independent radii and empirical Bernstein, if there is no other."""
LEAST_INDEPENDENT = 0.05
"""What is left to the data-independent radii in the end: the others are smaller by then."""


def shares(count: int, *, shaped: bool) -> tuple[float, float, float]:
    """Parts of delta: data-independent radii, empirical Bernstein, and the shaped estimate.

    They depend on nothing but the number of trajectories. The first falls as 1/count, while its
    radius R sqrt(log(n/part delta)/(2 count)) goes on falling as long as log(n/part delta) > 1: so
    no step of the schedule makes any radius larger, and more data never cost anything.

    >>> [shares(count, shaped=True) for count in (20, 40, 100_000)]
    [(0.8, 0.2, 0.0), (0.4, 0.2, 0.4), (0.05, 0.2, 0.75)]
    """
    independent, adaptive = PLAIN_SHARES
    left = independent
    if shaped:
        left = max(LEAST_INDEPENDENT, independent * min(1.0, PLAIN_UP_TO / count))
    return left, adaptive, independent - left


@dataclass(frozen=True, eq=False)
class Estimate:
    """Expectations of the expert and the terms of their error.

    A radius holds for either sign of the error; bounds and lower bounds are separate statements.
    """

    name: str
    values: FloatArray
    terms: tuple[Term, ...]
    failure_probability: float
    totals: FloatArray | None = None
    """Of a shaped estimate: the stopped totals whose mean the values are."""


def expert_estimates(problem: Program, failure_probability: float) -> tuple[Estimate, ...]:
    """Every estimate the data allow; all hold together with 1 - `failure_probability`."""
    if not isinstance(problem, Apprenticeship):
        return (Estimate("known cost", problem.target, (), 0.0),)
    if problem.expectation.is_declared:
        return (Estimate("declared", problem.target, (), 0.0),)
    assert problem.demonstrations is not None
    parts = shares(len(problem.demonstrations), shaped=not problem.world.is_estimated)
    independent, adaptive, shaped = (part * failure_probability for part in parts)
    mean = PlainMean.of(problem, problem.demonstrations)
    found = [mean.independent(independent), mean.adaptive(adaptive)]
    if shaped > 0:
        estimate = shaped_estimate(problem, shaped)
        if estimate is not None:
            found.append(
                Estimate(
                    "control variate", estimate.values, estimate.terms, shaped, estimate.totals
                )
            )
    return tuple(found)


@dataclass(frozen=True, eq=False)
class PlainMean:
    """The mean total of independent records of one policy or expert.

    Records are demonstrations, or rollouts of an apprentice; the radii are the same. Each holds for
    either sign of the error.
    """

    problem: CostProblem
    totals: FloatArray
    """Of every record, known tails included: (records x costs)."""
    missing: FloatArray
    """Discounted time without a record, per record."""
    noun: str

    @classmethod
    def of(cls, problem: Program, demos: Demonstrations) -> "PlainMean":
        return cls.with_costs(problem, demos, problem.cost_matrix, "demonstrations")

    @classmethod
    def with_costs(
        cls, problem: Program, records: Demonstrations, matrix: Matrix, noun: str
    ) -> "PlainMean":
        """With costs per pair that have the same means and ranges as those of the problem."""
        totals = MonteCarlo().totals(records, matrix, problem.world)
        missing = Tails.of(records, matrix, problem.world).unknown_mass
        return cls(problem, totals, missing, noun)

    @property
    def count(self) -> int:
        return self.missing.size

    @property
    def ranges(self) -> FloatArray:
        """Widths of the ranges of one complete total, cost by cost."""
        basis = self.problem.basis
        return np.asarray((basis.highest - basis.lowest) * self.problem.effective_horizon)

    @cached_property
    def spread(self) -> FloatArray:
        """At least the sample standard deviation of the complete totals, cost by cost.

        With its tail at mid-range a total is off by half its range over the tail's time, and the
        standard deviation by no more than the root mean square of that.
        """
        if self.count < 2:
            return np.full(self.problem.basis.num_costs, np.inf)
        basis = self.problem.basis
        halves = (basis.highest - basis.lowest) / 2
        blur = halves * np.sqrt((self.missing**2).sum() / (self.count - 1))
        completed = self.totals + self.missing[:, np.newaxis] * basis.centre
        return np.asarray(completed.std(axis=0, ddof=1) + blur)

    @cached_property
    def _centred_is_smaller(self) -> bool:
        plain = self.problem.cost_class.pointwise_bound(self.problem.cost_matrix)
        return centred_bound(self.problem, self.problem.cost_class) < plain

    @property
    def values(self) -> FloatArray:
        """Means with the unrecorded tails at zero or at mid-range, whichever has less error."""
        mean = self.totals.mean(axis=0)
        centre = self.problem.basis.centre * float(self.missing.mean())
        return np.asarray(mean + centre if self._centred_is_smaller else mean)

    @property
    def truncation(self) -> Term:
        error = centred_bound(self.problem, self.problem.cost_class) * float(self.missing.mean())
        return Term("truncation", error, "N h mean discount^T", "recorded lengths")

    def independent(self, failure_probability: float) -> Estimate:
        """With the smallest radius that does not look at the data."""
        best = min(self._rates(failure_probability), key=lambda rate: rate.scale)
        source = f"{self.count} {self.noun}"
        sampling = Term("sampling", best.at(self.count), best.formula, source)
        name = f"plain mean, {best.name}"
        return Estimate(name, self.values, (sampling, self.truncation), failure_probability)

    def adaptive(self, failure_probability: float) -> Estimate:
        """With a radius from the sample variance."""
        share = failure_probability / (2 * self.spread.size)
        radius = np.array([
            empirical_bernstein_radius(s**2, width, self.count, share)
            for s, width in zip(self.spread, self.ranges, strict=True)
        ])  # fmt: skip
        sampling = Term(
            "sampling", coordinatewise(self.problem.cost_class, radius),
            "combined sqrt(2 Var L/m) + 7 R L/(3(m - 1))",
            f"{self.count} {self.noun} and their spread",
        )  # fmt: skip
        name = "plain mean, empirical Bernstein"
        return Estimate(name, self.values, (sampling, self.truncation), failure_probability)

    def _rates(self, failure_probability: float) -> tuple[Rate, ...]:
        """The radii of the class; that of one cost where the cost is known."""
        if not isinstance(self.problem.cost_class, KnownCost):
            return radii(self.problem, failure_probability, two_sided=False)
        width = self.problem.cost_class.scaling(1)[0] * self.ranges[0]
        scale = float(width) * math.sqrt(math.log(1 / failure_probability) / 2)
        return (Rate("one cost", scale, "R sqrt(log(1/delta)/(2m))"),)


def coordinatewise(cost_class: CostClass, radius: FloatArray) -> float:
    """gap_W of an error that is within +-radius_i in every coordinate."""
    scaled = cost_class.scaling(radius.size) * radius
    if isinstance(cost_class, InfinityBall):
        return float(scaled.sum())
    return float(np.linalg.norm(scaled) if isinstance(cost_class, EuclideanBall) else scaled.max())
