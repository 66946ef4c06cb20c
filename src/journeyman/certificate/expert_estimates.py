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

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, ref

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray, Matrix
from journeyman.certificate.betting_means import largest_error, lower_means, upper_mean
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
from journeyman.costs import CostClass
from journeyman.costs.cost_class import Rate, Totals
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
from journeyman.policy.planning import widest_ranges
from journeyman.problem import Apprenticeship
from journeyman.world import World
from journeyman.world.layers import time_left
from journeyman.world.levels import Level

PLAIN_UP_TO = 20
"""Trajectories up to which a shaped estimate cannot be worth a part of delta."""
ROLLOUT_SHARES = (0.80, 0.20)
"""Parts of delta for data-independent radii and empirical Bernstein, of rollouts."""
INDEPENDENT_SHARE, ROUND_SHARE = 0.05, 0.50
"""Of delta for the data-independent radii; and with few trajectories, where no finite set of
directions has all of the class."""
LEAST_PLAIN = 0.30
"""What is left to bets on plain totals in the end: the shaped ones are better by then."""


def shares(count: int, *, shaped: bool, round_class: bool) -> tuple[float, float, float]:
    """Parts of delta: data-independent radii, bets on plain totals, and the shaped estimate.

    They depend on nothing but the class and the number of trajectories. A part that falls does so
    as 1/count, while its radius, a multiple of log(n/part delta)/count or of its root, goes on
    falling as long as log(n/part delta) > 1: so no step of the schedule makes a radius larger, and
    more data never cost anything.

    >>> [shares(count, shaped=True, round_class=False)[1] for count in (20, 40, 100_000)]
    [0.95, 0.475, 0.3]
    """
    few = min(1.0, PLAIN_UP_TO / count)
    independent = max(INDEPENDENT_SHARE, ROUND_SHARE * few) if round_class else INDEPENDENT_SHARE
    bets = plain = 1 - independent
    if shaped:
        plain = max(LEAST_PLAIN, bets * few)
    return independent, plain, bets - plain


def expert_estimates(
    problem: Apprenticeship, failure_probability: float
) -> tuple[ExpertEstimate, ...]:
    """Every estimate the data allow; all hold together with 1 - `failure_probability`."""
    if problem.expert is None:
        return (ExpertEstimate("known cost", problem.target, (), 0.0),)
    if problem.expectation.is_declared:
        return (ExpertEstimate("declared", problem.target, (), 0.0),)
    records = problem.demonstrations
    inputs = problem.world, problem.basis, problem.cost_class
    given, delta, found = _LATEST.get(records, (None, 0.0, ())) if records else (None, 0.0, ())
    if given is None or delta != failure_probability or any(
        one() is not other for one, other in zip(given, inputs, strict=True)
    ):  # fmt: skip
        found = _estimates(problem, failure_probability)
        if records is not None:
            _LATEST[records] = tuple(map(ref, inputs)), failure_probability, found
    return found


_LATEST: WeakKeyDictionary[Demonstrations, Any] = WeakKeyDictionary()
"""The last estimates made of demonstrations, and of what: `learn` asks for them twice."""


def _estimates(problem: Apprenticeship, delta: float) -> tuple[ExpertEstimate, ...]:
    mean = PlainMean.of(problem)
    shapeable = problem.level is Level.EXPLICIT and not (
        problem.world.is_estimated or problem.world.has_goal
    )
    parts = shares(mean.count, shaped=shapeable, round_class=problem.cost_class.is_round)
    independent, plain, shaped = (part * delta for part in parts)
    found = [mean.independent(independent), mean.betting(plain)]
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
        forward = self._error(1.0, failure_probability)
        symmetric = self.problem.cost_class.is_symmetric
        reverse = forward if symmetric else self._error(-1.0, failure_probability)
        cut = replace(self.truncation, value=min(self.truncation.value, forward))
        source = f"{self.count} {self.noun}, one after the other"
        sampling = Term(
            "sampling", forward - cut.value, "max_w <w, values> - lower(<w, total>)", source
        )
        return ExpertEstimate(
            "plain mean, betting", self.values, (sampling, cut), failure_probability,
            reverse=reverse,
        )  # fmt: skip

    def _error(self, sign: float, failure_probability: float) -> float:
        """No gap_W(sign (values - e)) is larger."""
        return directed_error(
            self.problem.cost_class, sign, self.values, self._samples, self._ranges,
            failure_probability,
        )  # fmt: skip

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


ROUNDING = 1e-12
"""Relative to the largest totals: what rounding cannot exceed."""
Ranges: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]
"""Directions d to what samples are multiplied by, and the ends between which that lies."""


def directed_error(
    cost_class: CostClass, sign: float, values: FloatArray, samples: FloatArray, ranges: Ranges,
    failure_probability: float,
) -> float:  # fmt: skip
    """No gap_W(sign (values - mean)) is larger, by bets in all directions that the class probes;
    they share the failure probability evenly."""
    groups = cost_class.probes(values.size)
    share = failure_probability / sum(len(group) for group in groups)
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
SAMPLING_SHARE, OUTLIER_SHARE = 0.8, 0.2
"""Of the failure probability: d1, d2."""
LEAST_SPREAD = 1e-3
"""Of a cost's range: smaller spreads are not used when weights are chosen."""
LEAST_LIMIT = 1e-9
"""Of the largest totals: no stop is a matter of rounding where nothing is random."""


def shaped_estimate(problem: Apprenticeship, failure_probability: float) -> ExpertEstimate | None:
    """The estimate, or None when the training trajectories do not allow one.

    A potential V is learned from some of the trajectories (see `ControlVariate`), the others are
    measured with it. In the norm |x|^2 = sum_i x_i^2/s_i, with a centre c, a limit b and a length H
    that the training trajectories decide, follow the partial sums

        S_t = <initial, V> - c + sum_{k<t} discount^k (psi + discount P V - V)(x_k, a_k)

    of every trajectory and stop before the step that would lead out of the ball |S| <= b. The
    estimate is c + mean of the stopped sums. A trajectory is *complete* when it was not stopped,
    and its tail is known and added within the ball. The error is at most

        max_w <w, mean S_T> - lower(<w, S_T>)       bets on the stopped sums, |<w, S_T>| <= b |w|_s
        + upper(G)                                  bets on the rest of what is not complete

    with probability 1 - d1 - d2, where |w|_s^2 = sum_i s_i w_i^2, and G = discount^T F(x_T), or 0
    where a trajectory is complete. F(x) = max_w <w, V(x)> - (least total from x) is at most 2 N h,
    and at most the largest gap of V(x) and totals between h min psi_i and h max psi_i.

    *Why*: let T be the time where a trajectory was stopped, or where its record ends. S_{t+1} is
    known before x_{t+1} is drawn, so T is a stopping time, provided that records end without
    foresight. V(x_0) and V(x_{t+1}), t < T, were replaced by their conditional means, hence S_T +
    discount^T (tail - V(x_T)) has expectation e - c (optional stopping). Its last part is zero for
    a known tail, and <w, .> of it is at least -G for every w.
    """
    demos = problem.demonstrations
    assert demos is not None
    training, applied = (demos.subset(episodes) for episodes in split(demos, problem.world))
    if len(training) < 2 or len(applied) < 2:
        return None
    frame = _Frame.learned(problem, training)
    if frame is None:
        return None
    return frame.estimate(applied, failure_probability)


def training_share(count: int) -> float:
    """Of the trajectories: a potential needs a few dozen of them, however many there are."""
    return 0.12 + 1 / math.sqrt(count)


def margin(num_training: int) -> float:
    """Of the limit over what the training trajectories reached: fresh ones go further, and the
    further the fewer have been seen."""
    return 1.25 + 2.2 / math.sqrt(num_training)


def split(demos: Demonstrations, world: World) -> tuple[IntArray, IntArray]:
    """Which episodes train, and which are measured, in the order in which they are read."""
    order = reading_order(contents(demos, world))
    cut = round(training_share(len(demos)) * len(demos))
    return np.sort(order[:cut]), order[cut:]


def contents(demos: Demonstrations, world: World) -> list[bytes]:
    """Every episode as bytes."""
    pairs, ends = demos.pairs_in(world).astype("<i8"), demos.last_states.astype("<i8")
    found = []
    for episode in range(len(demos)):
        steps = pairs[demos.offsets[episode] : demos.offsets[episode + 1]].tobytes()
        found.append(steps + ends[episode].tobytes() + bytes([int(demos.terminated[episode])]))
    return found


def reading_order(episodes: list[bytes]) -> IntArray:
    """The order in which episodes are read: that of digests. Those that come first train.

    A digest is that of all episodes, of the episode's own content, and of how many equal ones came
    before it. So the order of the record decides nothing, and nobody can look for one with a small
    bound; equal episodes are kept apart, or rare ones would all fall into one part; and other
    records are read anew, so that no kind of episode always comes first.
    """
    digests = [hashlib.sha256(content).digest() for content in episodes]
    everything = hashlib.sha256(b"".join(sorted(digests))).digest()
    copies: Counter[bytes] = Counter()
    keys = []
    for digest in digests:
        place = copies[digest].to_bytes(8, "little")
        keys.append(hashlib.sha256(everything + digest + place).digest())
        copies[digest] += 1
    return np.array(sorted(range(len(episodes)), key=keys.__getitem__), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class _Frame:
    """All that the training trajectories decide."""

    problem: Apprenticeship
    shaping: Shaping
    centre: FloatArray
    weights: FloatArray
    limit: float

    @classmethod
    def learned(cls, problem: Apprenticeship, training: Demonstrations) -> "_Frame | None":
        world, matrix = problem.world, problem.cost_matrix
        shaping = Shaping.learned(training, matrix, world, SMOOTHING)
        totals = shaping.totals(training, matrix, world)
        ranges = (problem.basis.highest - problem.basis.lowest) * world.effective_horizon
        spread = np.maximum(totals.std(axis=0, ddof=1), LEAST_SPREAD * ranges)
        scale = problem.cost_class.scaling(ranges.size)
        least = (LEAST_SPREAD * float((scale * ranges).max()) or 1.0) / scale
        weights, _ = problem.cost_class.quadratic_bound(np.where(ranges > 0, spread, least))
        frame = cls(problem, shaping, totals.mean(axis=0), weights, np.inf)
        furthest = margin(len(training)) * float(frame.furthest(training).max())
        smallest = LEAST_LIMIT * float(frame.size(problem.basis.norms * world.effective_horizon))
        frame = replace(frame, limit=max(furthest, smallest))
        return frame if frame.size(frame.start) <= frame.limit else None

    @property
    def start(self) -> FloatArray:
        return np.asarray(self.shaping.baseline - self.centre)

    @property
    def trivial(self) -> float:
        """2 N h, costs centred: two points of the hull of h Psi differ by no more."""
        bound = self.problem.cost_class.centred_bound(self.problem.basis)
        return 2 * bound * self.problem.world.effective_horizon

    def furthest_apart(self, steps: IntArray | int) -> FloatArray:
        """2 N times the time that an episode has left after so many steps, costs centred: the same
        for what is still to come; in a world with a horizon N is that of its steps."""
        bound = self.problem.cost_class.centred_bound(self.problem.totals.basis)
        return np.asarray(2 * bound * time_left(self.problem.world, steps))

    def size(self, sums: FloatArray) -> FloatArray:
        """|S| of every row."""
        return np.asarray(np.sqrt((sums**2 / self.weights).sum(axis=-1)))

    def estimate(self, demos: Demonstrations, failure_probability: float) -> ExpertEstimate:
        """From episodes in the order in which bets are made."""
        sums, stop, stopped = self.stopped_sums(demos)
        values = self.centre + sums.mean(axis=0)
        forward, symmetric = self._error(sums, 1.0, failure_probability), self._is_symmetric
        reverse = forward if symmetric else self._error(sums, -1.0, failure_probability)
        rest, most = self._rests(demos, stop, 1.0)
        other, furthest = (rest, most) if symmetric else self._rests(demos, stop, -1.0)
        share, count = OUTLIER_SHARE * failure_probability, len(demos)
        outliers, back = upper_mean(rest, most, share), upper_mean(other, furthest, share)
        cut = float(rest[~stopped].sum()) / count
        source = f"{count} of the demonstrations, shaped by the others"
        seen = f"{int(stopped.sum())} of {count} were stopped; more cannot be excluded"
        terms = (
            Term("sampling", forward, "max_w <w, values> - lower(<w, total>)", source),
            Term("outliers", max(outliers - cut, 0.0), "upper(discount^T F)", seen),
            Term("truncation", cut, "mean discount^T F", "recorded lengths"),
        )
        return ExpertEstimate(
            "control variate", values, terms, failure_probability, reverse + back,
            self.centre + sums,
        )  # fmt: skip

    @property
    def _is_symmetric(self) -> bool:
        return self.problem.cost_class.is_symmetric

    def _error(self, sums: FloatArray, sign: float, failure_probability: float) -> float:
        """No gap_W(sign (mean of the sums - their expectation)) is larger."""

        def ranges(d: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
            reach = (1 + ROUNDING) * self.limit * np.sqrt(d**2 @ self.weights)
            return d, -reach, reach

        share = SAMPLING_SHARE * failure_probability
        mean = sums.mean(axis=0)
        return directed_error(self.problem.cost_class, sign, mean, sums, ranges, share)

    def _rests(
        self, demos: Demonstrations, stop: IntArray, sign: float
    ) -> tuple[FloatArray, float]:
        """G of every episode that is not complete after `stop` steps, and what none exceeds."""
        world, V = self.problem.world, self.shaping.potential
        least, greatest = widest_ranges(world, self.problem.basis)

        def distance(low: FloatArray, high: FloatArray) -> float:
            ends = (low - greatest, high - least) if sign > 0 else (least - high, greatest - low)
            return max(0.0, min(self.trivial, self.problem.cost_class.largest_gap(*ends)))

        open_ = np.flatnonzero(stop >= 0)
        states, place = np.unique(self._states_at(demos, open_, stop), return_inverse=True)
        distances = np.array([distance(V[state], V[state]) for state in states])
        found = np.zeros(len(demos))
        found[open_] = world.discount ** stop[open_] * distances[place]
        most = distance(V.min(axis=0), V.max(axis=0))
        if world.layers is None:
            return found, most
        found[open_] = np.minimum(found[open_], self.furthest_apart(stop[open_]))
        return found, min(most, float(self.furthest_apart(0)))

    def _states_at(self, demos: Demonstrations, episodes: IntArray, stop: IntArray) -> IntArray:
        """Where the episodes are after `stop` steps."""
        at_end = stop[episodes] == demos.lengths[episodes]
        pairs = demos.pairs_in(self.problem.world)
        before = np.minimum(demos.offsets[episodes] + stop[episodes], pairs.size - 1)
        inside = self.problem.world.pairs.states[pairs[before]]
        return np.where(at_end, demos.last_states[episodes], inside)

    def stopped_sums(self, demos: Demonstrations) -> tuple[FloatArray, IntArray, BoolArray]:
        """S of every episode where it was stopped or ends; after how many steps, -1 where it is
        complete; and whether it was stopped."""
        sums = np.tile(self.start, (len(demos), 1))
        going, stop = np.ones(len(demos), dtype=bool), demos.lengths.copy()
        for t, episodes, steps in self._steps(demos):
            moved = sums[episodes] + steps
            leaves = going[episodes] & (self.size(moved) > self.limit)
            stop[episodes[leaves]] = t
            going[episodes[leaves]] = False
            inside = going[episodes]
            sums[episodes[inside]] = moved[inside]
        known = Tails.of(demos, self.problem.cost_matrix, self.problem.world).known
        ended = sums + self.shaping.tails(demos, self.problem.cost_matrix, self.problem.world)
        complete = going & known & (self.size(ended) <= self.limit)
        sums[complete] = ended[complete]
        stopped = ~going | (known & ~complete)
        return sums, np.where(complete, -1, stop), stopped

    def furthest(self, demos: Demonstrations) -> FloatArray:
        """The largest |S_t| of every episode."""
        sums = np.tile(self.start, (len(demos), 1))
        peaks = self.size(sums)
        for _, episodes, steps in self._steps(demos):
            sums[episodes] += steps
            peaks[episodes] = np.maximum(peaks[episodes], self.size(sums[episodes]))
        ended = sums + self.shaping.tails(demos, self.problem.cost_matrix, self.problem.world)
        return np.maximum(peaks, self.size(ended))

    def _steps(self, demos: Demonstrations) -> Iterator[tuple[int, IntArray, FloatArray]]:
        """Time, the episodes that go on and what their sums change by."""
        world, pairs = self.problem.world, demos.pairs_in(self.problem.world)
        for t in range(int(demos.lengths.max())):
            episodes = np.flatnonzero(demos.lengths > t)
            visited = pairs[demos.offsets[episodes] + t]
            yield t, episodes, world.discount**t * self.shaping.costs[visited]


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
