"""How the expert is known: estimates of its expectations with a bound on their error.

    gap_W(x - e) <= gap_W(x - values) + total(terms)        for every x

with probability 1 - delta for *all* estimates returned together, so the best of them may be chosen
after seeing the data. Data-independent radii (Hoeffding, signs, McDiarmid) share one part of delta,
because the smallest of them is known beforehand; the empirical Bernstein radius and the shaped
estimate look at the data and have parts of their own.

Truncated records: with complete trajectories the radii are for, the recorded means are off by at
most N h mean discount^T, pathwise, however the records were cut off. Where centring makes N smaller
the tails are taken to cost the middle of each range.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray, Matrix
from journeyman.certificate.concentration import (
    empirical_bernstein_radius,
    hilbert_radius,
    radii,
    require_probability,
    upper_frequency,
    upper_mean,
)
from journeyman.certificate.model_error import (
    ModelError,
    model_error,
    model_term,
    robust_ranges,
    true_world_trivial_bound,
)
from journeyman.certificate.terms import ExpertEstimate, Term, total
from journeyman.costs import CostClass
from journeyman.costs.cost_class import Rate
from journeyman.demonstrations import (
    Blend,
    Demonstrations,
    ExpertExpectation,
    MonteCarlo,
    StoppedShaping,
    clone,
)
from journeyman.demonstrations.expectation import Shaping, Tails
from journeyman.demonstrations.simulation import EpisodeTotals
from journeyman.demonstrations.stepped_control_variate import discounted_totals
from journeyman.policy import occupancy
from journeyman.problem import Apprenticeship
from journeyman.world import World
from journeyman.world.levels import Level

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


def expert_estimates(
    problem: Apprenticeship, failure_probability: float
) -> tuple[ExpertEstimate, ...]:
    """Every estimate the data allow; all hold together with 1 - `failure_probability`."""
    if problem.expert is None:
        return (ExpertEstimate("known cost", problem.target, (), 0.0),)
    if problem.expectation.is_declared:
        return (ExpertEstimate("declared", problem.target, (), 0.0),)
    mean = PlainMean.of(problem)
    shapeable = problem.level is Level.EXPLICIT and not problem.world.is_estimated
    parts = shares(mean.count, shaped=shapeable)
    independent, adaptive, shaped = (part * failure_probability for part in parts)
    found = [mean.independent(independent), mean.adaptive(adaptive)]
    estimate = shaped_estimate(problem, shaped) if shaped > 0 else None
    return tuple(found if estimate is None else [*found, estimate])


def expert_totals(problem: Apprenticeship) -> EpisodeTotals:
    """What every episode of the expert cost below the explicit level, where no tail is known."""
    if problem.records is not None:
        return problem.records
    demos, discount = problem.demonstrations, problem.world.discount
    assert demos is not None
    totals = discounted_totals(demos, problem.cost_functions, discount)
    return EpisodeTotals(totals, discount**demos.lengths * problem.effective_horizon)


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

    @classmethod
    def of(cls, problem: Apprenticeship) -> "PlainMean":
        """Of the expert's episodes."""
        if problem.level is Level.EXPLICIT and problem.demonstrations is not None:
            matrix = problem.cost_matrix
            return cls.with_costs(problem, problem.demonstrations, matrix, "demonstrations")
        records = expert_totals(problem)
        return cls(problem, records.totals, records.unrecorded, "demonstrations")

    @classmethod
    def with_costs(
        cls, problem: Apprenticeship, records: Demonstrations, matrix: Matrix, noun: str
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
        return self.problem.cost_class.centred_bound(self.problem.basis) < plain

    @property
    def values(self) -> FloatArray:
        """Means with the unrecorded tails at zero or at mid-range, whichever has less error."""
        mean = self.totals.mean(axis=0)
        centre = self.problem.basis.centre * float(self.missing.mean())
        return np.asarray(mean + centre if self._centred_is_smaller else mean)

    @property
    def truncation(self) -> Term:
        error = self.problem.cost_class.centred_bound(self.problem.basis) * float(
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
            return radii(self.problem, failure_probability, two_sided=False)
        width = self.problem.cost_class.scaling(1)[0] * self.ranges[0]
        scale = float(width) * math.sqrt(math.log(1 / failure_probability) / 2)
        return (Rate("one cost", scale, "R sqrt(log(1/delta)/(2m))"),)


def coordinatewise(cost_class: CostClass, radius: FloatArray) -> float:
    """gap_W of an error that is within +-radius_i in every coordinate."""
    return cost_class.largest_gap(-radius, radius)


SMOOTHING = 0.1
DEVIATION_SHARE, MOMENT_SHARE, INCOMPLETE_SHARE = 0.7, 0.15, 0.15
"""Of the failure probability: d1, d2, d3."""
LEAST_SPREAD = 1e-3
"""Of a cost's range: smaller spreads are not used when weights are chosen."""


def shaped_estimate(problem: Apprenticeship, failure_probability: float) -> ExpertEstimate | None:
    """The estimate, or None when the training trajectories do not allow one.

    A potential V is learned from some of the trajectories (see `ControlVariate`), the others are
    measured with it. In the norm |x|^2 = sum_i x_i^2/s_i, with a centre c, a limit b and a length H
    that the training trajectories decide, follow the partial sums

        S_t = <initial, V> - c + sum_{k<t} discount^k (psi + discount P V - V)(x_k, a_k)

    of every trajectory and stop before the step that would lead out of the ball |S| <= b. The
    estimate is c + mean of the stopped sums. A trajectory is *complete* when it was not stopped and
    its tail is known, and added within the ball, or begins after H steps. With gap_W(x) <= f |x|
    for the cost class and two points of the hull of h Psi no further apart than 2 N h, the error is
    at most

        f [ sqrt(2 S2 log(2/d1)/n) + 2 b log(2/d1)/n ]        mean of the stopped sums (Pinelis)
        + p 2 N h                                             what is not complete
        + 2 N h discount^H                                    complete, but not recorded to its end

    with probability 1 - d1 - d2 - d3, where S2 is an upper bound on E |S|^2 that holds with
    probability 1 - d2 and p one on the probability of not being complete that holds with 1 - d3.

    *Why*: let T be the time where a trajectory was stopped, or where its record ends. S_{t+1} is
    known before x_{t+1} is drawn, so T is a stopping time, provided that records end without
    foresight. V(x_0) and V(x_{t+1}), t < T, were replaced by their conditional means, hence S_T +
    discount^T (tail - V(x_T)) has expectation e - c (optional stopping). Its last part is zero for
    a known tail, and in general at most 2 N h discount^T, because tail and V(x_T) are points of the
    hull.
    """
    demos = problem.demonstrations
    assert demos is not None
    training, applied = (demos.subset(episodes) for episodes in split(demos, problem.world))
    if len(training) < 2 or len(applied) < 2:
        return None
    frame = _Frame.learned(problem, training)
    if frame is None:
        return None
    return _estimate(frame, *frame.stopped_sums(applied), failure_probability)


def training_share(count: int) -> float:
    """Of the trajectories: a potential needs a few dozen of them, however many there are."""
    return 0.12 + 1 / math.sqrt(count)


def margin(num_training: int) -> float:
    """Of the limit over what the training trajectories reached: fresh ones go further, and the
    further the fewer have been seen."""
    return 1.25 + 2.2 / math.sqrt(num_training)


def split(demos: Demonstrations, world: World) -> tuple[IntArray, IntArray]:
    """Which episodes train and which are measured: those with the least digests train.

    A digest is that of all episodes, of the episode's own content, and of how many equal ones came
    before it. So the order of the episodes decides nothing, and nobody can look for one with a
    small bound; equal episodes are kept apart, or rare ones would all fall into one part; and
    other records are split anew, so that no kind of episode always falls into the same part.
    """
    pairs, ends = demos.pairs_in(world).astype("<i8"), demos.last_states.astype("<i8")
    contents = []
    for episode in range(len(demos)):
        steps = pairs[demos.offsets[episode] : demos.offsets[episode + 1]].tobytes()
        end = ends[episode].tobytes() + bytes([int(demos.terminated[episode])])
        contents.append(hashlib.sha256(steps + end).digest())
    everything = hashlib.sha256(b"".join(sorted(contents))).digest()
    copies: Counter[bytes] = Counter()
    keys = []
    for content in contents:
        place = copies[content].to_bytes(8, "little")
        keys.append(hashlib.sha256(everything + content + place).digest())
        copies[content] += 1
    order = sorted(range(len(demos)), key=keys.__getitem__)
    cut = round(training_share(len(demos)) * len(demos))
    return np.sort(order[:cut]), np.sort(order[cut:])


def _estimate(
    frame: "_Frame", sums: FloatArray, complete: BoolArray, failure_probability: float
) -> ExpertEstimate:
    count, lacking = complete.size, int((~complete).sum())
    squares = (sums**2 / frame.weights).sum(axis=1)
    moment = upper_mean(squares, frame.limit**2, MOMENT_SHARE * failure_probability)
    radius = frame.factor * hilbert_radius(
        moment, frame.limit, count, DEVIATION_SHARE * failure_probability
    )
    share = upper_frequency(lacking, count, INCOMPLETE_SHARE * failure_probability)
    source = f"{count} of the demonstrations, shaped by the others"
    seen = f"{lacking} of {count} were stopped or too short; more cannot be excluded"
    terms = (
        Term("sampling", radius, "f (sqrt(2 S2 L/n) + 2 b L/n)", source),
        Term("outliers", share * frame.trivial, "p 2 N h", seen),
        Term("truncation", frame.truncation, "2 N h discount^H", "recorded lengths"),
    )
    values, totals = frame.centre + sums.mean(axis=0), frame.centre + sums
    return ExpertEstimate("control variate", values, terms, failure_probability, totals)


@dataclass(frozen=True, eq=False)
class _Frame:
    """All that the training trajectories decide."""

    problem: Apprenticeship
    shaping: Shaping
    centre: FloatArray
    weights: FloatArray
    factor: float
    limit: float
    shortest: int | None
    """H; None when no training trajectory was truncated."""

    @classmethod
    def learned(cls, problem: Apprenticeship, training: Demonstrations) -> "_Frame | None":
        world, matrix = problem.world, problem.cost_matrix
        shaping = Shaping.learned(training, matrix, world, SMOOTHING)
        totals = shaping.totals(training, matrix, world)
        ranges = (problem.basis.highest - problem.basis.lowest) * world.effective_horizon
        spread = np.maximum(totals.std(axis=0, ddof=1), LEAST_SPREAD * ranges)
        scale = problem.cost_class.scaling(ranges.size)
        least = (LEAST_SPREAD * float((scale * ranges).max()) or 1.0) / scale
        weights, factor = problem.cost_class.quadratic_bound(np.where(ranges > 0, spread, least))
        open_ended = ~Tails.of(training, matrix, world).known
        shortest = int(training.lengths[open_ended].min()) if open_ended.any() else None
        frame = cls(problem, shaping, totals.mean(axis=0), weights, factor, np.inf, shortest)
        furthest = float(frame.furthest(training).max())
        frame = replace(frame, limit=margin(len(training)) * furthest)
        return frame if frame.size(frame.start) <= frame.limit else None

    @property
    def start(self) -> FloatArray:
        return np.asarray(self.shaping.baseline - self.centre)

    @property
    def trivial(self) -> float:
        """2 N h, costs centred: two points of the hull of h Psi differ by no more."""
        bound = self.problem.cost_class.centred_bound(self.problem.basis)
        return 2 * bound * self.problem.world.effective_horizon

    @property
    def truncation(self) -> float:
        if self.shortest is None:
            return 0.0
        return self.trivial * self.problem.world.discount**self.shortest

    def size(self, sums: FloatArray) -> FloatArray:
        """|S| of every row."""
        return np.asarray(np.sqrt((sums**2 / self.weights).sum(axis=-1)))

    def is_recorded(self, demos: Demonstrations) -> BoolArray:
        """Tail known, or record at least H steps long."""
        known = Tails.of(demos, self.problem.cost_matrix, self.problem.world).known
        enough = False if self.shortest is None else demos.lengths >= self.shortest
        return np.asarray(known | enough)

    def stopped_sums(self, demos: Demonstrations) -> tuple[FloatArray, BoolArray]:
        """S of every episode where it was stopped or ends, and whether the episode is complete."""
        sums = np.tile(self.start, (len(demos), 1))
        going = np.ones(len(demos), dtype=bool)
        for episodes, steps in self._steps(demos):
            moved = sums[episodes] + steps
            stays = self.size(moved) <= self.limit
            going[episodes] &= stays
            inside = episodes[going[episodes]]
            sums[inside] = moved[going[episodes]]
        ended = sums + self.shaping.tails(demos, self.problem.cost_matrix, self.problem.world)
        fits = going & (self.size(ended) <= self.limit)
        sums[fits] = ended[fits]
        return sums, fits & self.is_recorded(demos)

    def furthest(self, demos: Demonstrations) -> FloatArray:
        """The largest |S_t| of every episode."""
        sums = np.tile(self.start, (len(demos), 1))
        peaks = self.size(sums)
        for episodes, steps in self._steps(demos):
            sums[episodes] += steps
            peaks[episodes] = np.maximum(peaks[episodes], self.size(sums[episodes]))
        ended = sums + self.shaping.tails(demos, self.problem.cost_matrix, self.problem.world)
        return np.maximum(peaks, self.size(ended))

    def _steps(self, demos: Demonstrations) -> Iterator[tuple[IntArray, FloatArray]]:
        """Time by time, the episodes that go on and what their sums change by."""
        world, pairs = self.problem.world, demos.pairs_in(self.problem.world)
        for t in range(int(demos.lengths.max())):
            episodes = np.flatnonzero(demos.lengths > t)
            visited = pairs[demos.offsets[episodes] + t]
            yield episodes, world.discount**t * self.shaping.costs[visited]


TARGET_WORTHWHILE = 0.05
"""Of the bound: what another target than the blend must lower it by."""
WEAK_PROMISE = 0.5
"""Of the trivial bound: promises above it decide nothing."""
NAMES = {
    Blend: "the blend of plain and shaped totals",
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
    estimates = expert_estimates(problem, remaining)
    shaped = stopped_shaping(problem, estimates)
    candidates = [problem.expectation, _completed(problem, demos), shaped]
    model = 0.0 if error is None else _model(problem, demos, error)
    found = [one for one in candidates if one is not None]
    bounds = [_promised(problem, one, estimates) + model for one in found]
    promised = {name_of(one): bound for one, bound in zip(found, bounds, strict=True)}
    best = int(np.argmin(bounds))
    blend, least = bounds[0], bounds[best]
    name, saved = name_of(found[0]), 1 - least / blend if blend > 0 else 0.0
    if least >= WEAK_PROMISE * true_world_trivial_bound(problem, error, valid=True).value:
        reason = f"{name}, of least variance; no target promises a bound that says much"
        return TargetChoice(found[0], promised, reason)
    if saved <= TARGET_WORTHWHILE:
        other = f"would lower the certified bound by {max(saved, 0.0):.1%} at most"
        return TargetChoice(found[0], promised, f"{name}, of least variance; another {other}")
    reason = f"{name_of(found[best])}; with {name} the certified bound is {blend / least - 1:.0%} "
    return TargetChoice(found[best], promised, reason + "larger")


def name_of(expectation: ExpertExpectation) -> str:
    """In words, how expectations were estimated."""
    return NAMES[type(expectation.method)]


def stopped_shaping(
    problem: Apprenticeship, estimates: tuple[ExpertEstimate, ...]
) -> ExpertExpectation | None:
    """The values of the shaped one of the certificate's estimates; None where there is none."""
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
