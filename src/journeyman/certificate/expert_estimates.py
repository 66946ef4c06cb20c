"""How the expert is known: estimates of its expectations with a bound on their error.

    gap_W(x - e) <= gap_W(x - values) + total(terms)        for every x

with probability 1 - delta for *all* estimates returned together, so the best of them may be chosen
after seeing the data: the plain mean with a radius that does not look at them (Hoeffding, signs,
McDiarmid: the smallest is known beforehand), the plain mean with bets on what every direction of
the class costs (`certificate.betting_means`), and shaped totals with such bets. Each has a part of
delta of its own. Bets have an order: that of digests of the episodes, so that the order in which
they were recorded, or sorted, decides nothing.

*With discount 1* no length bounds what an episode costs. Every episode is cut after
L = M max(1, log(m)/2) steps, which depends on no record, and completed in thought by what the
expert expects to cost from there on, given all that happened: at most M steps by the premise. Such
totals are independent, have the expert's expectations as their mean and at most L + M steps, so the
radii and bets below hold with L + M for h; records that were cut off, or were too long, lack up to
M of them.

Truncated records: with complete trajectories the radii are for, the recorded means are off by at
most N h mean discount^T, pathwise, however the records were cut off. Where centring makes N smaller
the tails are taken to cost the middle of each range.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary, ref

import numpy as np

from journeyman.arrays import FloatArray, IntArray, Matrix, dense
from journeyman.certificate.betting_means import largest_error, lower_means, mean_in_ball
from journeyman.certificate.concentration import (
    empirical_bernstein_radius,
    radii,
    require_probability,
)
from journeyman.certificate.model_error import (
    ModelError,
    model_error,
    model_term,
    robust_ranges,
    true_world_trivial_bound,
)
from journeyman.certificate.terms import ExpertEstimate, Term, total
from journeyman.costs import CostBasis, CostClass, EuclideanBall
from journeyman.costs.cost_class import Rate, Totals
from journeyman.demonstrations import (
    Blend,
    Demonstrations,
    ExpertExpectation,
    MonteCarlo,
    SplitBlend,
    StoppedShaping,
    clone,
)
from journeyman.demonstrations.expectation import (
    Shaping,
    Tails,
    sweeps_in,
    take_training_shaping,
)
from journeyman.demonstrations.reading_order import contents, reading_order, split
from journeyman.demonstrations.simulation import EpisodeTotals
from journeyman.demonstrations.stepped_control_variate import discounted_totals
from journeyman.policy import occupancy
from journeyman.problem import Apprenticeship
from journeyman.progress import OutOfTime, keeping, whatever_it_takes
from journeyman.world.levels import Level

PLAIN_UP_TO = 20
"""Trajectories up to which a shaped estimate cannot be worth a part of delta."""
ROLLOUT_SHARES = (0.80, 0.20)
"""Parts of delta for data-independent radii and empirical Bernstein, of rollouts."""
INDEPENDENT_SHARE = 0.05
"""Of delta for the data-independent radii."""
LEAST_PLAIN = 0.30
"""What is left to bets on plain totals in the end: the shaped ones are better by then."""


AVERAGES_SHARE = 0.5
"""The same with average costs, where few long records are known by these radii alone."""


def shares(count: int, *, shaped: bool, averages: bool = False) -> tuple[float, float, float]:
    """Parts of delta: data-independent radii, bets on plain totals, and the shaped estimate.

    They depend on nothing but the number of trajectories. A part that falls does so
    as 1/count, while its radius, a multiple of log(n/part delta)/count or of its root, goes on
    falling as long as log(n/part delta) > 1: so no step of the schedule makes a radius larger, and
    more data never cost anything.

    >>> [shares(count, shaped=True)[1] for count in (20, 40, 100_000)]
    [0.95, 0.475, 0.3]
    """
    independent = INDEPENDENT_SHARE
    if averages:
        independent = max(INDEPENDENT_SHARE, AVERAGES_SHARE * min(1.0, PLAIN_UP_TO / count))
    bets = plain = 1 - independent
    if shaped:
        plain = max(LEAST_PLAIN, bets * min(1.0, PLAIN_UP_TO / count))
    return independent, plain, bets - plain


BETTING, SHAPED = "plain mean, betting", "control variate"


def expert_estimates(
    problem: Apprenticeship, failure_probability: float
) -> tuple[ExpertEstimate, ...]:
    """Every estimate the data and the time allow; all hold together with 1 -
    `failure_probability`."""
    return estimates_in_time(problem, failure_probability)[0]


def estimates_in_time(
    problem: Apprenticeship, failure_probability: float
) -> tuple[tuple[ExpertEstimate, ...], tuple[str, ...]]:
    """The same, and the names of those for which there was no time."""
    if problem.expert is None:
        return (ExpertEstimate("known cost", problem.target, (), 0.0),), ()
    if problem.expectation.is_declared:
        return (ExpertEstimate("declared", problem.target, (), 0.0),), ()
    records = problem.demonstrations
    inputs = problem.world, problem.basis, problem.cost_class
    given, delta, found = _LATEST.get(records, (None, 0.0, ())) if records else (None, 0.0, ())
    if given is None or delta != failure_probability or any(
        one() is not other for one, other in zip(given, inputs, strict=True)
    ):  # fmt: skip
        found, left_out = _estimates(problem, failure_probability)
        if left_out:
            return found, left_out
        if records is not None:
            _LATEST[records] = tuple(map(ref, inputs)), failure_probability, found
    return found, ()


_LATEST: WeakKeyDictionary[Demonstrations, Any] = WeakKeyDictionary()
"""The last estimates made of demonstrations, and of what: `learn` asks for them twice."""


def _estimates(
    problem: Apprenticeship, delta: float
) -> tuple[tuple[ExpertEstimate, ...], tuple[str, ...]]:
    mean = PlainMean.of(problem)
    world = problem.world
    shapeable = problem.level is Level.EXPLICIT and not (
        world.is_estimated or world.has_goal or world.averages is not None
    )
    parts = shares(mean.count, shaped=shapeable, averages=isinstance(mean, MeanOfSteps))
    independent, plain, shaped = (part * delta for part in parts)
    found, left_out = [mean.independent(independent)], []
    ways: dict[str, Callable[[], ExpertEstimate | None]] = {
        BETTING: lambda: mean.betting(plain),
        SHAPED: lambda: shaped_estimate(problem, shaped) if shaped > 0 else None,
    }
    for name, way in ways.items():
        try:
            with nullcontext() if problem.level is Level.EXPLICIT else whatever_it_takes():
                estimate = way()
        except OutOfTime:
            left_out.append(name)
            continue
        found += [] if estimate is None else [estimate]
    return tuple(found), tuple(left_out)


def expert_totals(problem: Apprenticeship) -> EpisodeTotals:
    """What every episode of the expert cost below the explicit level, where no tail is known."""
    if problem.records is not None:
        return problem.records
    demos, discount = problem.demonstrations, problem.world.discount
    assert demos is not None
    totals = discounted_totals(demos, problem.cost_functions, discount)
    return EpisodeTotals(totals, discount**demos.lengths * problem.effective_horizon)


LEAST_CUT, GROWING_CUT = 1.0, 0.5
"""Of M, and of M times the logarithm of the number of episodes: where these are cut. An expert
whose episodes last M steps on average, with geometric lengths, is then cut in one of sqrt(m)."""


def cut_length(most: float, count: int) -> int:
    """L: after how many steps an episode is cut with discount 1, whatever it shows."""
    return math.ceil(most * max(LEAST_CUT, GROWING_CUT * math.log(count)))


def total_horizon(problem: Apprenticeship, count: int) -> float:
    """What time a total counts; with discount 1 L + M for `count` episodes."""
    if not getattr(problem.world, "has_goal", False):
        return problem.total_time
    most = problem.effective_horizon
    return cut_length(most, count) + most


@dataclass(frozen=True, eq=False)
class PlainMean:
    """The mean total of independent records of one policy or expert.

    Records are demonstrations, or rollouts of an apprentice; the radii are the same. Each holds for
    either sign of the error.
    """

    problem: Apprenticeship
    totals: FloatArray
    """Of every record, known tails included: (records x costs)."""
    missing: FloatArray
    """Discounted time without a record, per record."""
    noun: str
    records: Demonstrations | None = None
    """Where the totals came from, at the explicit level."""

    @classmethod
    def of(cls, problem: Apprenticeship) -> "PlainMean":
        """Of the expert's episodes."""
        if problem.level is Level.EXPLICIT and problem.demonstrations is not None:
            matrix, demos = problem.cost_matrix, problem.demonstrations
            if problem.world.averages is not None:
                return MeanOfSteps.with_costs(problem, demos, matrix, "demonstrations")
            if problem.world.has_goal:
                demos = demos.until(cut_length(problem.effective_horizon, len(demos)))
            return cls.with_costs(problem, demos, matrix, "demonstrations")
        records = expert_totals(problem)
        return cls(problem, records.totals, records.unrecorded, "demonstrations")

    @classmethod
    def with_costs(
        cls, problem: Apprenticeship, records: Demonstrations, matrix: Matrix, noun: str
    ) -> "PlainMean":
        """With costs per pair that have the same means and ranges as those of the problem."""
        totals = MonteCarlo().totals(records, matrix, problem.world)
        missing = Tails.of(records, matrix, problem.world).unknown_mass
        return cls(problem, totals, missing, noun, records)

    @property
    def count(self) -> int:
        return self.missing.size

    @property
    def ranges(self) -> FloatArray:
        """Widths of the ranges of one complete total, cost by cost."""
        basis = self._known.basis
        return np.asarray((basis.highest - basis.lowest) * self._known.horizon)

    @property
    def horizon(self) -> float:
        """How much time one complete total can be made of: h, or with discount 1 L + M."""
        return total_horizon(self.problem, self.count)

    @cached_property
    def spread(self) -> FloatArray:
        """At least the sample standard deviation of the complete totals, cost by cost.

        With its tail at mid-range a total is off by half its range over the tail's time, and the
        standard deviation by no more than the root mean square of that.
        """
        if self.count < 2:
            return np.full(self.problem.basis.num_costs, np.inf)
        basis = self._known.basis
        halves = (basis.highest - basis.lowest) / 2
        blur = halves * np.sqrt((self.missing**2).sum() / (self.count - 1))
        completed = self.totals + self.missing[:, np.newaxis] * basis.centre
        return np.asarray(completed.std(axis=0, ddof=1) + blur)

    @cached_property
    def _centred_is_smaller(self) -> bool:
        plain = self.problem.cost_class.pointwise_bound(self._known.basis.matrix)
        return self.problem.cost_class.centred_bound(self._known.basis) < plain

    @property
    def values(self) -> FloatArray:
        """Means with the unrecorded tails at zero or at mid-range, whichever has less error."""
        mean = self.totals.mean(axis=0)
        centre = self._known.basis.centre * float(self.missing.mean())
        return np.asarray(mean + centre if self._centred_is_smaller else mean)

    @property
    def truncation(self) -> Term:
        error = self.problem.cost_class.centred_bound(self._known.basis) * float(
            self.missing.mean()
        )
        return Term("truncation", error, "N h mean discount^T", "recorded lengths")

    def independent(self, failure_probability: float) -> ExpertEstimate:
        """With the smallest radius that does not look at the data."""
        best = min(self._rates(failure_probability), key=lambda rate: rate.scale)
        source = f"{self.count} {self.noun}"
        sampling = Term("sampling", best.at(self.count), best.formula, source)
        name = f"plain mean, {best.name}"
        return ExpertEstimate(name, self.values, (sampling, self.truncation), failure_probability)

    def betting(self, failure_probability: float) -> ExpertEstimate:
        """With bets on <d, total> for every direction d that the class probes.

        <d, total> is between h times the least and the greatest cost <d, psi> of a pair. Time
        without a record counts with the least one: whatever followed cost as much or more, so the
        bound holds however records were cut off.
        """
        found = bounded_mean(
            self.problem, self.values, self._samples, self._ranges, self._in_ball,
            failure_probability,
        )  # fmt: skip
        source = f"{self.count} {self.noun}, one after the other"
        terms = found.terms(source, self.truncation)
        return ExpertEstimate(BETTING, found.values, terms, failure_probability, found.reverse)

    def _in_ball(self, axes: FloatArray) -> "InBall":
        """Complete totals are h times costs that lie in a ball about zero or the middle."""
        basis, h, ball = self._known.basis, self._known.horizon, EuclideanBall(axes)
        about_middle, missing = ball.bound_about_middle(basis), self.missing[self.order]
        given = ball.pointwise_bound(basis.matrix)
        centre = h * basis.centre * (about_middle < given)
        totals = self.totals[self.order] + np.outer(missing, basis.centre)
        return InBall(totals, centre, about_middle * missing, h * min(given, about_middle))

    def lower(self, directions: FloatArray, failure_probability: float) -> FloatArray:
        """A lower bound on <d, e> for each row d; each fails with this probability."""
        factors, low, high = self._ranges(directions)
        width = np.where(high > low, high - low, 1.0)
        shares = np.maximum((self._samples @ factors.T - low) / width, 0.0)
        return np.asarray(low + width * lower_means(shares, failure_probability))

    def _ranges(self, d: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Time without a record costs the least that a step can; ends have room for rounding."""
        basis, h = self._known.basis, self._known.horizon
        low, high = self._known.ends_of(d)
        room = ROUNDING * h * (np.abs(d) @ basis.norms)
        return np.column_stack([d, low]), h * low - room, h * high + room

    @property
    def _known(self) -> Totals:
        if not getattr(self.problem.world, "has_goal", False):
            return self.problem.totals
        return Totals(self.problem.basis, self.horizon)

    @cached_property
    def _samples(self) -> FloatArray:
        return np.column_stack([self.totals, self.missing])[self.order]

    @cached_property
    def order(self) -> IntArray:
        """In which bets are made."""
        if self.records is not None:
            return reading_order(contents(self.records, self.problem.world))
        table = np.column_stack([self.totals, self.missing]).astype("<f8")
        return reading_order([row.tobytes() for row in table])

    def adaptive(self, failure_probability: float) -> ExpertEstimate:
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
        return ExpertEstimate(name, self.values, (sampling, self.truncation), failure_probability)

    def _rates(self, failure_probability: float) -> tuple[Rate, ...]:
        """The radii of the class; that of one cost where the cost is known."""
        if not self.problem.cost_class.is_known:
            return radii(self.problem, failure_probability, two_sided=False, totals=self._known)
        width = self.problem.cost_class.scaling(1)[0] * self.ranges[0]
        scale = float(width) * math.sqrt(math.log(1 / failure_probability) / 2)
        return (Rate("one cost", scale, "R sqrt(log(1/delta)/(2m))"),)


class MeanOfSteps(PlainMean):
    """Of average costs: the mean of an episode's T steps, `missing` the time 2 D/T of its bias.

    The expert acts by a stationary policy, so that <d, mean> has an expectation within
    (high - low) D/T of <d, e>, where low <= <d, psi> <= high (`world.averages`). Hence bets on
    <d, mean> - (high - low) D/T bound <d, e> from below, and a radius needs the bias on top.

    *Few long records*. With h the relative values of <d, psi>, <d, psi - e> + h(x_{t+1}) - h(x_t)
    is a martingale difference, within an interval of length (high - low)(1 + D) given x_t. By Azuma
    the mean of all n steps is as good as that of n/(1 + D)^2 independent episodes, in all radii
    that bound one direction at a time, whether or not episodes are independent; its bias is that of
    2 D m/n. Which of the two is smaller the lengths decide, and no cost that was recorded.
    """

    @property
    def _centred_is_smaller(self) -> bool:
        return False

    @property
    def truncation(self) -> Term:
        return self._bias(float(self.missing.mean()))

    def _bias(self, time: float) -> Term:
        error = self.problem.cost_class.centred_bound(self._known.basis) * time
        return Term("truncation", error, BIAS, "recorded lengths")

    def independent(self, failure_probability: float) -> ExpertEstimate:
        plain = super().independent(failure_probability)
        demos, averages = self.records, self.problem.world.averages
        assert demos is not None
        assert averages is not None
        count = demos.num_steps / (1 + averages.memory) ** 2
        rates = [one for one in self._rates(failure_probability) if VECTORS not in one.name]
        if not rates:
            return plain
        best = min(rates, key=lambda rate: rate.scale)
        source = f"{demos.num_steps} steps, as good as {count:.6g} episodes"
        sampling = Term("sampling", best.scale / math.sqrt(count), best.formula, source)
        bias = self._bias(2 * averages.memory * self.count / demos.num_steps)
        if total((sampling, bias)) >= total(plain.terms):
            return plain
        values = np.asarray(demos.lengths @ self.totals / demos.num_steps)
        name = f"mean of all steps, {best.name}"
        return ExpertEstimate(name, values, (sampling, bias), failure_probability)

    def _in_ball(self, axes: FloatArray) -> "InBall":
        basis, ball = self._known.basis, EuclideanBall(axes)
        about_middle, given = ball.bound_about_middle(basis), ball.pointwise_bound(basis.matrix)
        blur = about_middle * self.missing[self.order]
        centre = basis.centre * (about_middle < given)
        radius = min(given, about_middle) + float(blur.max())
        return InBall(self.totals[self.order], centre, blur, radius)

    def _ranges(self, d: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        low, high = self._known.ends_of(d)
        half = (high - low) / 2
        room = ROUNDING * (np.abs(d) @ self._known.basis.norms) + half * float(self.missing.max())
        return np.column_stack([d, -half]), low - room, high + room


BIAS = "2 N memory mean 1/T"
VECTORS = "McDiarmid"
"""In the names of radii for all directions at once."""
ROUNDING = 1e-12
"""Relative to the largest totals: what rounding cannot exceed."""
Ranges: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""Directions d to what samples are multiplied by, and the ends between which that lies."""


class InBall(NamedTuple):
    """Samples for what is round of a class: see `mean_in_ball`."""

    samples: FloatArray
    centre: FloatArray
    blur: FloatArray
    radius: float


@dataclass(frozen=True, eq=False)
class BoundedMean:
    """Values, and errors that no gap_W of values - mean and of mean - values exceeds."""

    values: FloatArray
    forward: float
    reverse: float

    def terms(self, source: str, truncation: Term) -> tuple[Term, ...]:
        """The error, with what unrecorded time can have to do with it apart."""
        cut = replace(truncation, value=min(truncation.value, self.forward))
        formula = "max_w <w, values> - lower(<w, total>)"
        return Term("sampling", self.forward - cut.value, formula, source), cut


def bounded_mean(
    problem: Apprenticeship, values: FloatArray, samples: FloatArray, ranges: Ranges,
    in_ball: Callable[[FloatArray], InBall], failure_probability: float,
) -> BoundedMean:  # fmt: skip
    """Bets in all directions that the class probes, and on samples in a ball where it is round,
    with half of the failure probability if it is both."""
    cost_class = problem.cost_class
    axes, about, share = cost_class.axes(values.size), 0.0, failure_probability
    groups = _directions(problem)
    if axes is not None:
        given, alone = in_ball(axes), not groups
        share = failure_probability / (1 if alone else 2)
        moved = axes * (given.samples - given.centre)
        found, about = mean_in_ball(moved, given.blur, given.radius, share)
        values = given.centre + found / axes
    forward = directed_error(cost_class, groups, 1.0, values, samples, ranges, share)
    symmetric = cost_class.is_symmetric
    back = forward if symmetric else directed_error(
        cost_class, groups, -1.0, values, samples, ranges, share
    )  # fmt: skip
    return BoundedMean(values, forward + about, back + about)


def _directions(problem: Apprenticeship) -> tuple[FloatArray, ...]:
    """Those that the class probes; such as differ in costs that are zero everywhere are one."""
    groups, counts = problem.cost_class.probes(problem.num_costs), problem.basis.norms > 0
    if counts.all():
        return groups
    return tuple(np.unique(group * counts, axis=0) for group in groups)


def directed_error(
    cost_class: CostClass, groups: tuple[FloatArray, ...], sign: float, values: FloatArray,
    samples: FloatArray, ranges: Ranges, failure_probability: float,
) -> float:  # fmt: skip
    """No gap_W(sign (values - mean)) is larger, but for what is round of the class, by bets in all
    directions of the groups; they share the failure probability evenly."""
    share = failure_probability / max(1, sum(len(group) for group in groups))
    tops = []
    for group in groups:
        factors, low, high = ranges(sign * group)
        centre = sign * group @ values
        tops.append(largest_error(factors, centre, samples, low, high, share))
    return cost_class.combined(np.array(tops))


def coordinatewise(cost_class: CostClass, radius: FloatArray) -> float:
    """gap_W of an error that is within +-radius_i in every coordinate."""
    return cost_class.largest_gap(-radius, radius)


SMOOTHING = 0.1
LIMIT = 0.5
"""Of how far the sums of training trajectories went: beyond it plain costs are better bets."""
MOST_STATES = 1 << 26
"""States times directions, up to which the range of the potential is found in every direction."""
LEAST_SPREAD = 1e-3
"""Of a cost's range: smaller spreads are not used when weights are chosen."""
LEAST_LIMIT = 1e-9
"""Of the largest totals: no stop is a matter of rounding where nothing is random."""


def shaped_estimate(problem: Apprenticeship, failure_probability: float) -> ExpertEstimate | None:
    """The estimate, or None when the training trajectories do not allow one.

    A potential V is learned from some of the trajectories (see `ControlVariate`), the others are
    measured with it. In the norm |x|^2 = sum_i x_i^2/s_i, with a centre c and a limit b that the
    training trajectories decide, follow the partial sums

        S_t = <initial, V> - c + sum_{k<t} discount^k (psi + discount P V - V)(x_k, a_k)

    of every trajectory, stop before the step that would lead out of the ball |S| <= b, at time T,
    and go on with plain costs:

        X = S_T + discount^T (R_T - V(x_T)),        R_T = sum_{t>=T} discount^(t-T) psi(x_t, a_t)

    T is the length of the record where nothing was stopped. The estimate is c + mean of X, with
    V behind records that are cut off, and its error is bounded by bets on X. In a direction w

        <w, X> >= -b |w|_s - max(0, max_x <w, V(x)> - h min <w, psi>),    |w|_s^2 = sum_i s_i w_i^2

    where time without a record counts with its least cost, as in plain totals; and X is in a ball
    of radius b + max_x max_pair |h psi - V(x)| where the class is round.

    *Why*: S_{t+1} is known before x_{t+1} is drawn, so T is a stopping time, provided that records
    end without foresight. V(x_0) and V(x_{t+1}), t < T, were replaced by their conditional means,
    hence X has expectation e - c (optional stopping), whoever the expert is and whatever V, c and b
    are. Shaped sums vary little and reach far, plain tails vary much and lie within 2 N h: the
    sums are stopped early enough that the bets do not pay for their reach, and seldom enough that
    they vary little. A lower bound by bets depends on a range only where its stakes are cut, at
    CAP/(candidate - low): with many trajectories the rare stop costs nothing.
    """
    demos = problem.demonstrations
    assert demos is not None
    training, applied = (demos.subset(episodes) for episodes in split(demos, problem.world))
    if len(training) < 2 or len(applied) < 2:
        return None
    shaping = take_training_shaping(demos, problem.basis, problem.cost_matrix, problem.world)
    return _Frame.learned(problem, training, shaping).estimate(applied, failure_probability)


@dataclass(frozen=True, eq=False)
class _Frame:
    """All that the training trajectories decide."""

    problem: Apprenticeship
    shaping: Shaping
    centre: FloatArray
    weights: FloatArray
    limit: float

    @classmethod
    def learned(
        cls, problem: Apprenticeship, training: Demonstrations, shaping: Shaping
    ) -> "_Frame":
        world, matrix = problem.world, problem.cost_matrix
        totals = shaping.totals(training, matrix, world)
        ranges = (problem.basis.highest - problem.basis.lowest) * world.effective_horizon
        spread = np.maximum(totals.std(axis=0, ddof=1), LEAST_SPREAD * ranges)
        scale = problem.cost_class.scaling(ranges.size)
        least = (LEAST_SPREAD * float((scale * ranges).max()) or 1.0) / scale
        weights, _ = problem.cost_class.quadratic_bound(np.where(ranges > 0, spread, least))
        frame = cls(problem, shaping, totals.mean(axis=0), weights, np.inf)
        smallest = LEAST_LIMIT * float(frame.size(problem.basis.norms * world.effective_horizon))
        reached = LIMIT * float(frame.furthest(training).max())
        return replace(frame, limit=max(reached, smallest, float(frame.size(frame.start))))

    @property
    def start(self) -> FloatArray:
        return np.asarray(self.shaping.baseline - self.centre)

    def size(self, sums: FloatArray) -> FloatArray:
        """|S| of every row."""
        return np.asarray(np.sqrt((sums**2 / self.weights).sum(axis=-1)))

    def estimate(self, demos: Demonstrations, failure_probability: float) -> ExpertEstimate:
        """From episodes in the order in which bets are made."""
        problem, world = self.problem, self.problem.world
        X, stopped = self.completed(demos)
        missing = Tails.of(demos, problem.cost_matrix, world).unrecorded
        behind = missing[:, np.newaxis] / world.effective_horizon
        whole = X + behind * self.shaping.potential[demos.last_states]
        found = bounded_mean(
            problem, whole.mean(axis=0), np.column_stack([X, missing]), self._ranges,
            lambda axes: self._in_ball(axes, whole, behind[:, 0]), failure_probability,
        )  # fmt: skip
        count = len(demos)
        source = f"{count} of the demonstrations, shaped by the others; {stopped} were stopped"
        lost = problem.cost_class.centred_bound(problem.basis) * float(missing.mean())
        truncation = Term("truncation", lost, "N h mean discount^T", "recorded lengths")
        return ExpertEstimate(
            SHAPED, self.centre + found.values, found.terms(source, truncation),
            failure_probability, found.reverse,
            self.centre + whole,
        )  # fmt: skip

    def _ranges(self, d: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Time without a record costs the least that a step can; ends have room for rounding."""
        basis, h = self.problem.basis, self.problem.effective_horizon
        reach = self.limit * np.sqrt(d**2 @ self.weights)
        least, greatest = Totals(basis, h).ends_of(d)
        potential = Totals(CostBasis(self.shaping.potential), h, MOST_STATES)
        low, high = potential.ends_of(d)
        below, above = np.maximum(high - h * least, 0.0), np.maximum(h * greatest - low, 0.0)
        room = ROUNDING * (reach + h * (np.abs(d) @ basis.norms))
        return np.column_stack([d, least]), -reach - below - room, reach + above + room

    def _in_ball(self, axes: FloatArray, whole: FloatArray, behind: FloatArray) -> InBall:
        """Weights of a round class are those of its ellipsoid, so that |axes S|_2 is |S| up to a
        factor."""
        basis, h, V = self.problem.basis, self.problem.effective_horizon, self.shaping.potential
        factor = float((axes * np.sqrt(self.weights)).max())
        middle = h * basis.centre
        around = h * EuclideanBall(axes).bound_about_middle(basis)
        away = np.linalg.norm(axes * (V - middle), axis=1)
        radius = factor * self.limit + around + float(away.max())
        return InBall(whole, np.zeros(axes.size), behind * (around + float(away.max())), radius)

    def completed(self, demos: Demonstrations) -> tuple[FloatArray, int]:
        """X of every episode, as far as it was recorded and its tail is known; and how many were
        stopped."""
        problem, world = self.problem, self.problem.world
        pairs, matrix = demos.pairs_in(world), problem.cost_matrix
        visited, place_of = np.unique(pairs, return_inverse=True)
        plain = dense(matrix[visited])
        X, going = np.tile(self.start, (len(demos), 1)), np.ones(len(demos), dtype=bool)
        stop, place = demos.lengths.copy(), demos.last_states.copy()
        for t, episodes, steps in self._steps(demos):
            moved = X[episodes] + steps
            leaves = going[episodes] & (self.size(moved) > self.limit)
            step = place_of[demos.offsets[episodes] + t]
            here = episodes[leaves]
            stop[here], place[here] = t, world.pairs.states[visited[step[leaves]]]
            going[here] = False
            inside = going[episodes]
            X[episodes[inside]] = moved[inside]
            X[episodes[~inside]] += world.discount**t * plain[step[~inside]]
        X -= (world.discount**stop)[:, np.newaxis] * self.shaping.potential[place]
        X += Tails.of(demos, matrix, world).known_totals
        return X, int((~going).sum())

    def furthest(self, demos: Demonstrations) -> FloatArray:
        """The largest |S_t| of every episode."""
        sums = np.tile(self.start, (len(demos), 1))
        peaks = self.size(sums)
        for _, episodes, steps in self._steps(demos):
            sums[episodes] += steps
            peaks[episodes] = np.maximum(peaks[episodes], self.size(sums[episodes]))
        return peaks

    def _steps(self, demos: Demonstrations) -> Iterator[tuple[int, IntArray, FloatArray]]:
        """Time, the episodes that go on and what their sums change by."""
        world, pairs = self.problem.world, demos.pairs_in(self.problem.world)
        visited, place = np.unique(pairs, return_inverse=True)
        shaped = self.shaping.costs(visited, self.problem.cost_matrix, world)
        for t in range(int(demos.lengths.max())):
            episodes = np.flatnonzero(demos.lengths > t)
            here = place[demos.offsets[episodes] + t]
            yield t, episodes, world.discount**t * shaped[here]


TARGET_SHARE = 0.5
"""Of the time for a target, that estimates leave to other candidates."""
TARGET_WORTHWHILE = 0.05
"""Of the bound: what another target than the blend must lower it by."""
WEAK_PROMISE = 0.5
"""Of the trivial bound: promises above it decide nothing."""
NAMES = {
    Blend: "the blend of plain and shaped totals",
    SplitBlend: "the blend of plain and shaped totals",
    MonteCarlo: "the completed plain mean",
    StoppedShaping: "the mean of stopped shaped totals",
}


@dataclass(frozen=True, eq=False)
class TargetChoice:
    """The target that was chosen, and the bound that each candidate promised."""

    expectation: ExpertExpectation
    promised: dict[str, float]
    """The certified bound of a policy that attains it, by the candidate's name."""
    reason: str


def choose_target(problem: Apprenticeship, failure_probability: float) -> TargetChoice:
    """The target for the demonstrations of `problem`, whose own target is the blend.

    A certificate holds for every policy at once, however it was found: its radii bound the error of
    estimates of the expert and do not speak of the policy. So the target may be chosen after
    looking at the data. A policy that attains a target t is certified by

        bound(t) = min over the certificate's estimates of gap_W(t - values) + total(terms)

    (and what the model's error adds for a cloned policy, in an estimated world). The candidates are
    the estimate of least variance (`Blend`), the completed plain mean, and the mean of the stopped
    shaped totals. The rule:

    1. the blend, whose estimated error is the smallest, as long as no other candidate promises a
    bound that is smaller by more than `WORTHWHILE`, or is below half of the trivial bound at all;
    2. otherwise the candidate with the smallest bound.

    No candidate leaves out what is behind a record that was cut off, nor lies outside the
    attainable ranges.
    """
    demos, delta = problem.demonstrations, require_probability(failure_probability)
    assert demos is not None
    error = model_error(problem, delta)
    remaining = delta - (0.0 if error is None else error.failure_probability)
    problem = problem.in_time()
    with keeping(TARGET_SHARE):
        estimates = expert_estimates(problem, remaining)
    candidates = [problem.expectation]
    if problem.expectation.method == MonteCarlo():
        reason = "the plain mean: there was no time for another target"
        if problem.world.averages is None:
            return TargetChoice(candidates[0], {}, reason)
    if problem.world.averages is None:
        shaped = stopped_shaping(problem, estimates)
        candidates += [] if shaped is None else [shaped]
        if sweeps_in(problem.world, problem.num_costs) is None:
            with suppress(OutOfTime):
                candidates.insert(1, _completed(problem, demos))
    model = 0.0 if error is None else _model(problem, demos, error)
    bounds = [_promised(problem, one, estimates) + model for one in candidates]
    promised = {name_of(one): bound for one, bound in zip(candidates, bounds, strict=True)}
    best = int(np.argmin(bounds))
    blend, least = bounds[0], bounds[best]
    name, saved = name_of(candidates[0]), 1 - least / blend if blend > 0 else 0.0
    if least >= WEAK_PROMISE * true_world_trivial_bound(problem, error, valid=True).value:
        reason = f"{name}, of least variance; no target promises a bound that says much"
        return TargetChoice(candidates[0], promised, reason)
    if len(candidates) == 1:
        return TargetChoice(candidates[0], promised, name)
    if saved <= TARGET_WORTHWHILE:
        other = f"would lower the certified bound by {max(saved, 0.0):.1%} at most"
        return TargetChoice(candidates[0], promised, f"{name}, of least variance; another {other}")
    larger = f"the certified bound is {blend / least - 1:.0%} larger"
    reason = f"{name_of(candidates[best])}; with {name} {larger}"
    return TargetChoice(candidates[best], promised, reason)


def name_of(expectation: ExpertExpectation) -> str:
    """In words, how expectations were estimated."""
    if expectation.method == MonteCarlo():
        return "the plain mean"
    return NAMES[type(expectation.method)]


def stopped_shaping(
    problem: Apprenticeship, estimates: tuple[ExpertEstimate, ...]
) -> ExpertExpectation | None:
    """The mean of the totals of the shaped one of the certificate's estimates; None where there is
    none."""
    demos, world = problem.demonstrations, problem.world
    totals = next((one.totals for one in estimates if one.totals is not None), None)
    if totals is None or demos is None:
        return None
    missing = Tails.of(demos, problem.cost_matrix, world).unknown_mass
    found = ExpertExpectation.from_totals(totals, missing, StoppedShaping(), demos)
    return found.attainable(problem.basis, world) if problem.cost_class.bears_clipping else found


def _completed(problem: Apprenticeship, demos: Demonstrations) -> ExpertExpectation:
    way = MonteCarlo(completed=True)
    return ExpertExpectation.from_demonstrations(
        demos, problem.basis, problem.world, method=way, clipped=problem.cost_class.bears_clipping
    )


def _model(problem: Apprenticeship, demos: Demonstrations, error: ModelError) -> float:
    """What the error of the model adds to the bound of the cloned policy."""
    policy = clone(demos, problem.world)
    visits = occupancy(problem.world, policy)
    own = visits.expectations(problem.basis)
    least, greatest = robust_ranges(problem, policy, error)
    worst = problem.cost_class.largest_gap(least - own, greatest - own)
    return min(worst, model_term(problem, visits, error))


def _promised(
    problem: Apprenticeship, target: ExpertExpectation, estimates: tuple[ExpertEstimate, ...]
) -> float:
    return min(
        problem.cost_class.gap(target.values - one.values) + total(one.terms) for one in estimates
    )
