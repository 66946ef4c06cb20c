"""What is known of the expert: totals of its episodes, the target they give, estimates, intervals.

A terminated episode rests in its last state. Its endless tail is known when that state costs the
same under each of its actions, psi(x_T) discount^T/(1 - discount); no other tail is known.

The shaped estimate: training episodes, those with the least digests, decide potential V, centre c,
weights s, limit b and length H. With

    S_t = <initial, V> - c + sum_{k<t} discount^k (psi + discount P V - V)(x_k, a_k)
    |S|^2 = sum_i S_i^2/s_i

an episode is stopped before the step that would make |S_t| exceed b. It is complete when it was not
stopped and its tail is known, with |S| <= b behind it, or begins after H steps. The estimate is
c + mean S, S where an episode was stopped or ends; its error is at most

    f (sqrt(2 S2 L/n) + 2 b L/n) + p 2 N h + 2 N h discount^H

Whether an episode stays below the limit can be a matter of rounding (when nothing is random, all of
S is rounding): how many were incomplete is then taken from the claim, if it is possible.
"""

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from journeyman.checker.archives import Bools, Floats, dense
from journeyman.checker.chain import Chain, attainable
from journeyman.checker.costs import (
    SPREAD,
    Costs,
    bernstein,
    clopper_pearson,
    pinelis,
    smaller_radii,
)
from journeyman.checker.findings import AGREEMENT, DerivedTerm, Findings, Refused
from journeyman.checker.inputs import Problem, Records, StoredWorld

PLAIN_PARTS = (0.80, 0.20)
"""Of delta, for data-independent radii and the empirical Bernstein radius."""
PLAIN_UP_TO, LEAST_PART = 20, 0.05
"""Demonstrations without a shaped estimate, which takes from the first part; what it leaves."""
TRAINING_SHARE, MARGIN = (0.12, 1.0), (1.25, 2.2)
"""a + b/sqrt(count): of the demonstrations for training; of the limit over what they reached."""
SMOOTHING, LEAST_SPREAD = 0.1, 1e-3
DEVIATION_PART, MOMENT_PART, INCOMPLETE_PART = 0.7, 0.15, 0.15
TRUNCATION = "N h mean discount^T"
SHAPED, STOPPED = "control variate", "stopped shaping"
MOVED = ("blend", "completed mean", STOPPED)
"""Kinds of targets that are moved into the attainable ranges."""
ROUNDING = 1e-11
"""Relative to the largest totals: closer than this to the limit, rounding decides."""
BLOCK = 1 << 22
"""Numbers in a block of episodes."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Expectations of the expert, the terms of their error, and the name they go by."""

    name: str
    values: Floats
    terms: tuple[DerivedTerm, ...]

    @property
    def error(self) -> float:
        return math.fsum(term.value for term in self.terms)


@dataclass(frozen=True, eq=False)
class EpisodeTails:
    """What follows the record of every episode: whether it is known, its discounted time
    discount^T/(1 - discount), and its costs per step (zero where it is not known)."""

    known: Bools
    time: Floats
    resting: Floats

    @classmethod
    def of(cls, world: StoredWorld, matrix: Any, records: Records) -> "EpisodeTails":
        time = world.discount ** records.lengths.astype(float) / (1 - world.discount)
        known, resting = records.terminated.copy(), np.zeros((len(records), matrix.shape[1]))
        for state in np.unique(records.ends[records.terminated]):
            rows = dense(matrix[world.first[state] : world.first[state + 1]])
            here = records.terminated & (records.ends == state)
            if (rows == rows[0]).all():
                resting[here] = rows[0]
            else:
                known[here] = False
        return cls(known, time, resting)

    @property
    def unknown_time(self) -> Floats:
        return np.where(self.known, 0.0, self.time)

    @property
    def totals(self) -> Floats:
        return np.asarray(self.resting * self.time[:, np.newaxis])


def discounted(records: Records, discount: float, costs: Floats) -> Floats:
    """The discounted total over every episode of costs that are given per step."""
    weight = discount ** records.time.astype(float)
    sums = [np.bincount(records.episode, weight * one, len(records)) for one in costs.T]
    return np.column_stack(sums)


def recorded(world: StoredWorld, matrix: Any, records: Records) -> tuple[Floats, Floats]:
    """Totals of every episode with its known tail, and the time that has no record behind it."""
    tails = EpisodeTails.of(world, matrix, records)
    steps = discounted(records, world.discount, dense(matrix[records.pair]))
    return steps + tails.totals, tails.unknown_time


def clone_values(world: StoredWorld, matrix: Any, records: Records, smoothing: float) -> Floats:
    """Values of the smoothed frequencies of actions; uniform where a state was never seen."""
    counts = np.asarray(np.bincount(records.pair, minlength=world.num_pairs) + smoothing)
    seen = world.per_state(counts)[world.state_of]
    width = np.diff(world.first)[world.state_of]
    policy = np.where(seen > 0, counts, 1.0) / np.where(seen > 0, seen, width)
    return Chain(world, policy).values(matrix)


# The target that a problem's own rule makes of its inputs


def check_target(
    findings: Findings, world: StoredWorld, problem: Problem, records: Records | None, shaped: Any
) -> None:
    kind = problem.expectation.get("kind")
    if problem.estimated != (records is not None):
        raise Refused("demonstrations and the kind of target do not go together")
    if records is None:
        derived = np.zeros(1) if kind == "known cost" else problem.target
    elif kind == STOPPED:
        if shaped is None:
            raise Refused("the target is a shaped estimate, and there is none")
        derived = shaped.values
    else:
        derived = _target(world, problem, records)
    sizes = problem.costs.norms * world.horizon
    for k, (name, stated) in enumerate(zip(problem.names, problem.target, strict=True)):
        low = high = float(derived[k])
        if kind in MOVED and abs(float(stated) - low) > AGREEMENT * float(sizes[k]):
            low, high = attainable(world, dense(problem.matrix[:, [k]]).ravel(), low)
        findings.within(f"the target of {name!r}", float(stated), low, high, float(sizes[k]))


def _target(world: StoredWorld, problem: Problem, records: Records) -> Floats:
    facts, matrix = problem.expectation, problem.matrix
    kind = facts.get("kind")
    totals, left = recorded(world, matrix, records)
    if kind == "plain mean":
        return np.asarray(totals.mean(axis=0))
    smoothing = float(facts["smoothing"]) if "smoothing" in facts else 0.0
    if kind in ("completed mean", "blend"):
        if left.any():
            values = clone_values(world, matrix, records, smoothing)
            totals = totals + (left * (1 - world.discount))[:, np.newaxis] * values[records.ends]
        if kind == "completed mean":
            return np.asarray(totals.mean(axis=0))
        return _blend(world, matrix, records, totals, int(facts["num_folds"]), smoothing)
    if kind != SHAPED:
        raise Refused(f"a target by {kind!r} cannot be audited")
    fold, mean = np.arange(len(records)) % int(facts["num_folds"]), np.zeros(matrix.shape[1])
    for one in range(int(facts["num_folds"])):
        mine = records.only(fold == one)
        potential = Potential.learned(world, matrix, records.only(fold != one), smoothing)
        mean += potential.totals(world, matrix, mine).sum(axis=0) / len(records)
    return mean


def _blend(
    world: StoredWorld, matrix: Any, records: Records, Z: Floats, folds: int, smoothing: float
) -> Floats:
    """The mean of Z - beta D: Z the completed totals, D what a potential of the other folds
    takes out of them, beta = cov(Z, D)/(var D + m B) of the other folds' episodes within [0, 1].

    D by its own sum: V(x_0) - <initial, V> + sum_t discount^(t+1) (V(x_(t+1)) - (P V)(x_t, a_t)).
    """
    count, D, doubt = len(records), np.zeros_like(Z), np.zeros(Z.shape[1])
    fold, mean = np.arange(count) % folds, np.zeros(Z.shape[1])
    if count < 2:
        return np.asarray(Z.mean(axis=0))
    for one in range(min(folds, count)):
        mine = records.only(fold == one)
        V = clone_values(world, matrix, records.only(fold != one), smoothing)
        surprise = V[mine.next_state] - (world.rows @ V)[mine.pair]
        later = world.discount * discounted(mine, world.discount, surprise)
        D[fold == one] = V[mine.starts] - world.initial @ V + later
        doubt += _variance_of_model(world, mine, V) * len(mine)
    for one in range(min(folds, count)):
        mine, seen = fold == one, fold != one
        for k in range(mean.size):
            beta = 0.0
            if seen.sum() > 1:
                both = np.cov(Z[seen, k], D[seen, k])
                own = float(both[1, 1] + doubt[k])
                beta = min(1.0, max(0.0, float(both[0, 1]) / own)) if own > 0 else 0.0
            mean[k] += float((Z[mine, k] - beta * D[mine, k]).sum()) / count
    return mean


def _variance_of_model(world: StoredWorld, records: Records, V: Floats) -> Floats:
    """Of the mean of D because laws are estimates: var V/n for laws from n counts, the square of
    err/2 times the span of V for declared distances."""
    known, found = world.knowledge, np.zeros(V.shape[1])
    if not known.is_estimate:
        return found
    weight = world.discount ** (records.time + 1.0)
    visits = np.bincount(records.pair, weight, minlength=world.num_pairs) / len(records)
    half = np.ptp(V, axis=0) / 2
    if known.counts is not None:
        spread = np.maximum(world.rows @ V**2 - (world.rows @ V) ** 2, 0.0)
        found += ((visits**2 / np.maximum(known.counts, 1))[:, np.newaxis] * spread).sum(axis=0)
    elif known.error is not None:
        found += (float(visits @ known.error) * half) ** 2
    if known.starts is not None:
        spread = world.initial @ V**2 - (world.initial @ V) ** 2
        found += np.maximum(spread, 0.0) / known.starts
    elif known.initial_error is not None:
        found += (known.initial_error * half) ** 2
    return found


# Estimates with their errors


def plain_estimates(
    costs: Costs, horizon: float, totals: Floats, missing: Floats, shares: tuple[float, float],
    names: set[str], *, centred: bool,
) -> list[Estimate]:  # fmt: skip
    """The plain mean with a data-independent radius, the one that is among the claimed `names` or
    else the smallest, and with its own variance. `shares` are failure probabilities."""
    count, unknown = len(totals), math.fsum(missing) / len(totals)
    mean = totals.mean(axis=0) + (costs.centre * unknown if centred else 0.0)
    sample = f"{count} demonstrations"
    cut = DerivedTerm(
        "truncation", TRUNCATION, costs.of_tails(centred=centred) * unknown, "recorded lengths"
    )
    radii = costs.radii(horizon, count, shares[0])
    claimed = [name for name in radii if f"plain mean, {name}" in names]
    name = claimed[0] if claimed else min(radii, key=lambda one: radii[one][0])
    fixed = DerivedTerm("sampling", radii[name][1], radii[name][0], sample)
    variances = spread(costs, totals, missing) ** 2
    radius = costs.spread_radius(horizon, variances, count, shares[1])
    adapted = DerivedTerm("sampling", SPREAD, radius, f"{sample} and their spread")
    return [
        Estimate(f"plain mean, {name}", mean, (fixed, cut)),
        Estimate("plain mean, empirical Bernstein", mean, (adapted, cut)),
    ]


def parts_of(world: StoredWorld, count: int) -> tuple[float, float, float]:
    """Of delta: data-independent radii, empirical Bernstein, and the shaped estimate, which needs
    laws that are known and takes from the first."""
    first, second = PLAIN_PARTS
    if world.knowledge.is_estimate or count <= PLAIN_UP_TO:
        return first, second, 0.0
    left = max(LEAST_PART, first * PLAIN_UP_TO / count)
    return left, second, first - left


def spread(costs: Costs, totals: Floats, missing: Floats) -> Floats:
    """At least the standard deviation of complete totals: with unknown tails at mid-range, and
    the root mean square of what these tails can differ by."""
    count = len(totals)
    if count < 2:
        return np.full(totals.shape[1], math.inf)
    blur = costs.ranges / 2 * math.sqrt(math.fsum(missing**2) / (count - 1))
    complete = totals + np.outer(missing, costs.centre)
    return np.asarray(complete.std(axis=0, ddof=1) + blur)


def intervals(
    world: StoredWorld, problem: Problem, records: Records | None, delta: float
) -> tuple[Floats, Floats]:
    """Both ends of the expert's interval for every cost, none where no total can be."""
    if records is None:
        return problem.target, problem.target
    costs, h = problem.costs, world.horizon
    totals, missing = recorded(world, problem.matrix, records)
    unknown, half = math.fsum(missing) / len(records), costs.ranges / 2
    middle = totals.mean(axis=0) + costs.centre * unknown
    variances, level = spread(costs, totals, missing) ** 2, delta / (4 * half.size)
    reach = smaller_radii(variances, costs.ranges * h, len(records), level) + half * unknown
    least, most = (end * h for end in costs.ends)
    return np.clip(middle - reach, least, most), np.clip(middle + reach, least, most)


@dataclass(frozen=True, eq=False)
class Potential:
    """Values V of a cloned policy, and costs shaped by them: psi + discount P V - V."""

    values: Floats
    baseline: Floats
    shaped: Floats

    @classmethod
    def learned(
        cls, world: StoredWorld, matrix: Any, records: Records, smoothing: float
    ) -> "Potential":
        V = clone_values(world, matrix, records, smoothing)
        shaped = dense(matrix) + world.discount * (world.rows @ V) - V[world.state_of]
        return cls(V, V.T @ world.initial, shaped)

    def tails(self, world: StoredWorld, records: Records, tails: EpisodeTails) -> Floats:
        """Known tails in the place of the potential that stood for them."""
        stood = self.values[records.ends] * (1 - world.discount)
        worth = (tails.resting - stood) * tails.time[:, np.newaxis]
        return np.where(tails.known[:, np.newaxis], worth, 0.0)

    def totals(self, world: StoredWorld, matrix: Any, records: Records) -> Floats:
        ends = self.tails(world, records, EpisodeTails.of(world, matrix, records))
        steps = discounted(records, world.discount, self.shaped[records.pair])
        return np.asarray(self.baseline + steps + ends)


def shaped_estimate(
    world: StoredWorld, problem: Problem, records: Records, delta: float, claimed: str | None
) -> Estimate | None:
    """The estimate with `delta` as its failure probability; None where there can be none. `claimed`
    is the stated source of its outliers, None where no such estimate is claimed."""
    trains = _trains(records)
    if trains.sum() < 2 or (~trains).sum() < 2:
        return None
    frame = Frame.learned(world, problem, records.only(trains))
    start = float(frame.size(frame.start))
    if start > frame.limit + (frame.blur if claimed is not None else -frame.blur):
        return None
    applied = records.only(~trains)
    sums, peaks = frame.sums(applied)
    late = frame.is_recorded(applied)
    most = int((~(late & (peaks <= frame.limit - frame.blur))).sum())
    least = int((~(late & (peaks <= frame.limit + frame.blur))).sum())
    stated = re.match(r"(\d+) of \d+ were stopped", claimed or "")
    lacking = min(max(int(stated[1]) if stated else most, least), most)
    return frame.estimate(sums, lacking, delta)


def _trains(records: Records) -> Bools:
    """Which episodes train: those with the least digests of the record, of their own pairs and end,
    and of their number among equals."""
    stops, pairs = np.cumsum(records.lengths), records.pair.astype("<i8")
    contents = []
    for k, (stop, length) in enumerate(zip(stops, records.lengths, strict=True)):
        end = int(records.ends[k]).to_bytes(8, "little") + bytes([bool(records.terminated[k])])
        contents.append(hashlib.sha256(pairs[stop - length : stop].tobytes() + end).digest())
    record = hashlib.sha256(b"".join(sorted(contents))).digest()
    equals: Counter[bytes] = Counter()
    keys = []
    for content in contents:
        place = equals[content].to_bytes(8, "little")
        keys.append(hashlib.sha256(record + content + place).digest())
        equals[content] += 1
    (least, falling), count = TRAINING_SHARE, len(records)
    cut = round((least + falling / count**0.5) * count)
    trains = np.zeros(count, dtype=bool)
    trains[sorted(range(count), key=keys.__getitem__)[:cut]] = True
    return trains


@dataclass(frozen=True, eq=False)
class Frame:
    """All that the training episodes decide."""

    world: StoredWorld
    problem: Problem
    potential: Potential
    centre: Floats
    weights: Floats
    factor: float
    limit: float
    least_length: int | None

    @classmethod
    def learned(cls, world: StoredWorld, problem: Problem, training: Records) -> "Frame":
        costs, matrix = problem.costs, problem.matrix
        potential = Potential.learned(world, matrix, training, SMOOTHING)
        totals = potential.totals(world, matrix, training)
        ranges, scale = costs.ranges * world.horizon, costs.scale
        deviation = np.maximum(totals.std(axis=0, ddof=1), LEAST_SPREAD * ranges)
        constant = (LEAST_SPREAD * float((scale * ranges).max()) or 1.0) / scale
        weights, factor = costs.quadratic(np.where(costs.ranges > 0, deviation, constant))
        open_ended = ~EpisodeTails.of(world, matrix, training).known
        length = int(training.lengths[open_ended].min()) if open_ended.any() else None
        centre = totals.mean(axis=0)
        rough = cls(world, problem, potential, centre, weights, factor, math.inf, length)
        margin = MARGIN[0] + MARGIN[1] / len(training) ** 0.5
        return replace(rough, limit=margin * float(rough.sums(training)[1].max()))

    @property
    def start(self) -> Floats:
        return np.asarray(self.potential.baseline - self.centre)

    @property
    def blur(self) -> float:
        """What rounding can do to |S|."""
        return ROUNDING * float(self.size(self.problem.costs.norms * self.world.horizon))

    def size(self, sums: Floats) -> Floats:
        return np.asarray(np.sqrt((np.square(sums) / self.weights).sum(axis=-1)))

    def is_recorded(self, records: Records) -> Bools:
        known = EpisodeTails.of(self.world, self.problem.matrix, records).known
        late = False if self.least_length is None else records.lengths >= self.least_length
        return np.asarray(known | late)

    def sums(self, records: Records) -> tuple[Floats, Floats]:
        """S where an episode was stopped or ends, and the largest |S_t| it would have reached."""
        longest = int(records.lengths.max())
        together = max(1, BLOCK // (longest * self.centre.size))
        parts = [
            self._block(records, first, min(first + together, len(records)), longest)
            for first in range(0, len(records), together)
        ]
        last, peaks = (np.concatenate(part) for part in zip(*parts, strict=True))
        tails = EpisodeTails.of(self.world, self.problem.matrix, records)
        ended = last + self.potential.tails(self.world, records, tails)
        reached = np.maximum(peaks, self.size(ended))
        fits = reached <= self.limit + self.blur
        return np.where(fits[:, np.newaxis], ended, last), reached

    def _block(
        self, records: Records, first: int, stop: int, longest: int
    ) -> tuple[Floats, Floats]:
        """Episodes side by side; steps beyond an episode's end cost nothing."""
        low, high = np.searchsorted(records.episode, (first, stop))
        time, place = records.time[low:high], records.episode[low:high] - first
        steps = np.zeros((stop - first, longest + 1, self.centre.size))
        steps[:, 0] = self.start
        weight = self.world.discount ** time.astype(float)[:, np.newaxis]
        steps[place, time + 1] = weight * self.potential.shaped[records.pair[low:high]]
        running = np.cumsum(steps, axis=1)
        sizes = self.size(running)
        outside = sizes > self.limit + self.blur
        last = np.where(outside.any(axis=1), np.argmax(outside, axis=1) - 1, longest)
        return running[np.arange(stop - first), last], sizes.max(axis=1)

    def estimate(self, sums: Floats, lacking: int, delta: float) -> Estimate:
        """From the stopped sums, `lacking` of which are not complete."""
        count, width = len(sums), self.limit**2
        moments = (np.square(sums) / self.weights).sum(axis=1)
        parts = moments / width if width > 0 else np.zeros(count)
        radius = bernstein(float(parts.var(ddof=1)), 1.0, count, MOMENT_PART * delta)
        moment = width * min(1.0, float(parts.mean()) + radius)
        sampling = self.factor * pinelis(moment, self.limit, count, DEVIATION_PART * delta)
        share = clopper_pearson(lacking, count, INCOMPLETE_PART * delta)
        trivial = 2 * self.problem.costs.smaller * self.world.horizon
        cut = 0.0 if self.least_length is None else self.world.discount**self.least_length
        sample = f"{count} of the demonstrations, shaped by the others"
        seen = f"{lacking} of {count} were stopped or too short; more cannot be excluded"
        terms = (
            DerivedTerm("sampling", "f (sqrt(2 S2 L/n) + 2 b L/n)", sampling, sample),
            DerivedTerm("outliers", "p 2 N h", share * trivial, seen),
            DerivedTerm("truncation", "2 N h discount^H", trivial * cut, "recorded lengths"),
        )
        return Estimate(SHAPED, self.centre + sums.mean(axis=0), terms)
