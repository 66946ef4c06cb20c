"""What is known of the expert: totals of its episodes, the target they give, estimates, intervals.

A terminated episode rests in its last state. Its endless tail is known when that state costs the
same under each of its actions, psi(x_T) discount^T/(1 - discount); no other tail is known.

The shaped estimate: training episodes, those with the least digests, decide potential V, centre c,
weights s and limit b. With

    S_t = <initial, V> - c + sum_{k<t} discount^k (psi + discount P V - V)(x_k, a_k)
    |S|^2 = sum_i S_i^2/s_i

an episode is stopped before the step that would make |S_t| exceed b. It is complete when it was not
stopped and its tail is known, with |S| <= b behind it. The estimate is c + mean S, S where an
episode was stopped or ends after T steps; its error is at most

    max_w <w, mean S> - lower(<w, S>) + upper(G),       |<w, S>|^2 <= b^2 sum_i s_i w_i^2

where G is 0 for complete episodes, and else discount^T times the largest difference between V(x_T)
and what totals from there can be, up to 2 N h; in a world with a horizon up to 2 N times the time
that an episode has left, N that of its steps. Bets are made in the order of the digests.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from journeyman.checker.archives import Bools, Floats, Ints, dense
from journeyman.checker.betting import largest_error, lower_means, reading_order, upper_mean
from journeyman.checker.chain import Chain, attainable
from journeyman.checker.costs import Costs
from journeyman.checker.findings import AGREEMENT, DerivedTerm, Findings, Refused
from journeyman.checker.inputs import Problem, Records, StoredWorld

FIXED_PART, ROUND_PART = 0.05, 0.50
"""Of delta, for data-independent radii, and with few demonstrations for those of round classes; the
rest is for bets."""
PLAIN_UP_TO, LEAST_PART = 20, 0.30
"""Demonstrations without a shaped estimate, which takes from the bets; what it leaves to them."""
TRAINING_SHARE, MARGIN = (0.12, 1.0), (1.25, 2.2)
"""a + b/sqrt(count): of the demonstrations for training; of the limit over what they reached."""
SMOOTHING, LEAST_SPREAD = 0.1, 1e-3
SAMPLING_PART, OUTLIER_PART = 0.8, 0.2
LEAST_LIMIT = 1e-9
"""Of the largest totals."""
ROOM = 1e-12
"""Relative to the largest totals, on both sides of their range."""
BETS = "max_w <w, values> - lower(<w, total>)"
TRUNCATION = "N h mean discount^T"
SHAPED, STOPPED = "control variate", "stopped shaping"
MOVED = ("blend", "completed mean", STOPPED)
"""Kinds of targets that are moved into the attainable ranges."""
BLOCK = 1 << 22
"""Numbers in a block of episodes."""
EPSILON = float(np.finfo(float).eps)
Ranges: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""Directions to what samples are multiplied by, and the ends between which that lies."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Expectations of the expert, the terms of their error, and the name they go by."""

    name: str
    values: Floats
    terms: tuple[DerivedTerm, ...]
    reverse: float | None = None
    """No gap of the expert to the values is larger; the terms where there is none."""

    @property
    def error(self) -> float:
        own = math.fsum(term.value for term in self.terms)
        return own if self.reverse is None else self.reverse


@dataclass(frozen=True, eq=False)
class EpisodeTails:
    """What follows the record of every episode: whether it is known, its discounted time
    discount^T/(1 - discount), with discount 1 what is expected at most, and its costs per step
    (zero where it is not known, and at ends)."""

    known: Bools
    time: Floats
    left: Floats
    """The same as an episode counts it, where the world has a horizon."""
    resting: Floats

    @classmethod
    def of(cls, world: StoredWorld, matrix: Any, records: Records) -> "EpisodeTails":
        time = world.discount ** records.lengths.astype(float) * world.horizon
        known, resting = records.terminated.copy(), np.zeros((len(records), matrix.shape[1]))
        for state in np.unique(records.ends[records.terminated]):
            rows = dense(matrix[world.first[state] : world.first[state + 1]])
            here = records.terminated & (records.ends == state)
            if (rows == rows[0]).all():
                resting[here] = rows[0]
            else:
                known[here] = False
        return cls(known, time, world.time_after(records.lengths), resting)

    @property
    def unknown_time(self) -> Floats:
        return np.where(self.known, 0.0, self.left)

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
            behind = np.where(left > 0, world.discount ** records.lengths.astype(float), 0.0)
            totals = totals + behind[:, np.newaxis] * values[records.ends]
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


def cut(world: StoredWorld, records: Records) -> tuple[float, Records]:
    """How much time a complete total is made of, and the records that count. With discount 1 those
    of L = M max(1, log(m)/2) steps, to which M expected ones may have to be added."""
    if not world.has_goal:
        return world.total_time, records
    length = math.ceil(world.horizon * max(1.0, math.log(len(records)) / 2))
    return length + world.horizon, records.until(length)


def plain_estimates(
    costs: Costs, horizon: float, totals: Floats, missing: Floats, shares: tuple[float, float],
    names: set[str], order: Ints, *, centred: bool,
) -> list[Estimate]:  # fmt: skip
    """The plain mean with a data-independent radius, the one that is among the claimed `names` or
    else the smallest, and with bets. `shares` are failure probabilities."""
    count, unknown = len(totals), math.fsum(missing) / len(totals)
    mean = totals.mean(axis=0) + (costs.centre * unknown if centred else 0.0)
    sample, lost = f"{count} demonstrations", costs.of_tails(centred=centred) * unknown
    cut = DerivedTerm("truncation", TRUNCATION, lost, "recorded lengths")
    radii = costs.radii(horizon, count, shares[0])
    claimed = [name for name in radii if f"plain mean, {name}" in names]
    name = claimed[0] if claimed else min(radii, key=lambda one: radii[one][0])
    fixed = DerivedTerm("sampling", radii[name][1], radii[name][0], sample)
    samples = np.column_stack([totals, missing])[order]

    def ranges(d: Floats) -> tuple[Floats, Floats, Floats]:
        """Time without a record costs the least that a step can."""
        low, high = costs.ends_of(d)
        room = ROOM * horizon * (np.abs(d) @ costs.norms)
        return np.column_stack([d, low]), horizon * low - room, horizon * high + room

    own, reverse = both_errors(costs, mean, samples, ranges, shares[1])
    short = min(lost, own)
    bets = DerivedTerm("sampling", BETS, own - short, f"{sample}, one after the other")
    rest = DerivedTerm("truncation", TRUNCATION, short, "recorded lengths")
    return [
        Estimate(f"plain mean, {name}", mean, (fixed, cut)),
        Estimate("plain mean, betting", mean, (bets, rest), reverse),
    ]


def both_errors(
    costs: Costs, values: Floats, samples: Floats, ranges: Ranges, delta: float
) -> tuple[float, float]:
    """No gap of values - mean, and none of mean - values, is larger; each up to `delta`."""
    groups, found = costs.probes(), []
    part = delta / sum(len(group) for group in groups)
    for sign in (1.0,) if costs.symmetric else (1.0, -1.0):
        tops = []
        for group in groups:
            factors, low, high = ranges(sign * group)
            centre = sign * group @ values
            tops.append(largest_error(factors, centre, samples, low, high, part))
        found.append(costs.combined(tops))
    return found[0], found[-1]


def order_of(records: Records) -> Ints:
    """In which episodes are read: by their pairs and ends."""
    stops, pairs = np.cumsum(records.lengths), records.pair.astype("<i8")
    contents = []
    for k, (stop, length) in enumerate(zip(stops, records.lengths, strict=True)):
        end = int(records.ends[k]).to_bytes(8, "little") + bytes([bool(records.terminated[k])])
        contents.append(pairs[stop - length : stop].tobytes() + end)
    return reading_order(contents)


def order_of_totals(totals: Floats, missing: Floats) -> Ints:
    """The same where only totals were saved."""
    return reading_order([row.tobytes() for row in np.column_stack([totals, missing])])


def parts_of(costs: Costs, count: int, *, shapeable: bool) -> tuple[float, float, float]:
    """Of delta: data-independent radii, bets on plain totals, and the shaped estimate, which needs
    laws that are known and takes from the second."""
    few = PLAIN_UP_TO / count if count > PLAIN_UP_TO else 1.0
    fixed = max(FIXED_PART, ROUND_PART * few) if costs.round else FIXED_PART
    bets = plain = 1 - fixed
    if shapeable:
        plain = max(LEAST_PART, bets * few)
    return fixed, plain, bets - plain


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
    costs, (h, records) = problem.step_costs, cut(world, records)
    totals, missing = (part[order_of(records)] for part in recorded(world, problem.matrix, records))
    room, level = ROOM * h * costs.norms, delta / (2 * costs.norms.size)
    least, most = (end * h for end in costs.ends)
    lower, upper = least - room, most + room
    lowest = totals + np.outer(missing, costs.ends[0])
    highest = totals + np.outer(missing, costs.ends[1])
    width = np.where(room > 0, upper - lower, 1.0)
    up = lower + width * lower_means(np.maximum((lowest - lower) / width, 0.0), level)
    down = upper - width * lower_means(np.maximum((upper - highest) / width, 0.0), level)
    least, most = (end * world.total_time for end in costs.ends)
    return np.clip(up, least, most), np.clip(down, least, most)


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
    world: StoredWorld, problem: Problem, records: Records, delta: float
) -> Estimate | None:
    """The estimate with `delta` as its failure probability; None where there can be none."""
    order, (least, falling) = order_of(records), TRAINING_SHARE
    cut = round((least + falling / len(records) ** 0.5) * len(records))
    if cut < 2 or len(records) - cut < 2:
        return None
    trains = np.zeros(len(records), dtype=bool)
    trains[order[:cut]] = True
    frame = Frame.learned(world, problem, records.only(trains))
    if float(frame.size(frame.start)) > frame.limit:
        return None
    place = (np.cumsum(~trains) - 1)[order[cut:]]
    return frame.estimate(records.only(~trains), place, delta)


@dataclass(frozen=True, eq=False)
class Frame:
    """All that the training episodes decide."""

    world: StoredWorld
    problem: Problem
    potential: Potential
    centre: Floats
    weights: Floats
    limit: float

    @classmethod
    def learned(cls, world: StoredWorld, problem: Problem, training: Records) -> "Frame":
        costs, matrix = problem.costs, problem.matrix
        potential = Potential.learned(world, matrix, training, SMOOTHING)
        totals = potential.totals(world, matrix, training)
        ranges, scale = costs.ranges * world.horizon, costs.scale
        deviation = np.maximum(totals.std(axis=0, ddof=1), LEAST_SPREAD * ranges)
        constant = (LEAST_SPREAD * float((scale * ranges).max()) or 1.0) / scale
        weights, _ = costs.quadratic(np.where(costs.ranges > 0, deviation, constant))
        rough = cls(world, problem, potential, totals.mean(axis=0), weights, math.inf)
        margin = MARGIN[0] + MARGIN[1] / len(training) ** 0.5
        furthest = margin * float(rough.sums(training)[3].max())
        least = LEAST_LIMIT * float(rough.size(costs.norms * world.horizon))
        return replace(rough, limit=max(furthest, least))

    @property
    def start(self) -> Floats:
        return np.asarray(self.potential.baseline - self.centre)

    def size(self, sums: Floats) -> Floats:
        return np.asarray(np.sqrt((np.square(sums) / self.weights).sum(axis=-1)))

    def sums(self, records: Records) -> tuple[Floats, Ints, Bools, Floats]:
        """S where an episode was stopped or ends; after how many steps, -1 where it is complete;
        whether it was stopped; and the largest |S_t| it would have reached."""
        longest = int(records.lengths.max())
        together = max(1, BLOCK // (longest * self.centre.size))
        parts = [
            self._block(records, first, min(first + together, len(records)), longest)
            for first in range(0, len(records), together)
        ]
        last, steps, peaks = (np.concatenate(part) for part in zip(*parts, strict=True))
        tails = EpisodeTails.of(self.world, self.problem.matrix, records)
        ended = last + self.potential.tails(self.world, records, tails)
        reached = np.maximum(peaks, self.size(ended))
        complete = tails.known & (steps < 0) & (self.size(ended) <= self.limit)
        stop = np.where(complete, -1, np.where(steps < 0, records.lengths, steps))
        stopped = (steps >= 0) | (tails.known & ~complete)
        return np.where(complete[:, np.newaxis], ended, last), stop, stopped, reached

    def _block(
        self, records: Records, first: int, stop: int, longest: int
    ) -> tuple[Floats, Ints, Floats]:
        """Episodes side by side; steps beyond an episode's end cost nothing. The last sum within
        the limit, after how many steps it was left, -1 if never, and the largest |S|."""
        low, high = np.searchsorted(records.episode, (first, stop))
        time, place = records.time[low:high], records.episode[low:high] - first
        steps = np.zeros((stop - first, longest + 1, self.centre.size))
        steps[:, 0] = self.start
        weight = self.world.discount ** time.astype(float)[:, np.newaxis]
        steps[place, time + 1] = weight * self.potential.shaped[records.pair[low:high]]
        running = np.cumsum(steps, axis=1)
        sizes = self.size(running)
        outside = sizes > self.limit
        left = np.where(outside.any(axis=1), np.argmax(outside, axis=1) - 1, -1)
        last = np.where(left < 0, longest, left)
        return running[np.arange(stop - first), last], left, sizes.max(axis=1)

    def rests(self, records: Records, stop: Ints, sign: float) -> tuple[Floats, float]:
        """G of every episode, and what none can exceed."""
        world, costs, V = self.world, self.problem.costs, self.potential.values
        slack = 4 * EPSILON * costs.norms
        least, most = ((end + way * slack) * world.horizon for end, way in
                       zip(costs.ends, (-1, 1), strict=True))  # fmt: skip
        trivial, found = 2 * costs.smaller * world.horizon, np.zeros(len(records))

        def distance(low: Floats, high: Floats) -> float:
            ends = (low - most, high - least) if sign > 0 else (least - high, most - low)
            return max(0.0, min(trivial, costs.largest_gap(*ends)))

        firsts, known = np.cumsum(records.lengths) - records.lengths, {}
        for k in np.flatnonzero(stop >= 0):
            at_end = stop[k] == records.lengths[k]
            state = int(records.ends[k] if at_end else records.state[firsts[k] + stop[k]])
            if state not in known:
                known[state] = distance(V[state], V[state])
            found[k] = world.discount ** float(stop[k]) * known[state]
        furthest = distance(V.min(axis=0), V.max(axis=0))
        if world.steps is None:
            return found, furthest
        left, unit = world.time_after(np.maximum(stop, 0)), 2 * self.problem.step_costs.smaller
        return np.asarray(np.minimum(found, unit * left)), min(furthest, unit * world.total_time)

    def estimate(self, records: Records, order: Ints, delta: float) -> Estimate:
        """From the stopped sums of episodes that are read in this order."""
        sums, stop, stopped, _ = self.sums(records)
        costs, count, mean = self.problem.costs, len(sums), sums.mean(axis=0)

        def ranges(d: Floats) -> tuple[Floats, Floats, Floats]:
            reach = (1 + ROOM) * self.limit * np.sqrt(np.square(d) @ self.weights)
            return d, -reach, reach

        own, reverse = both_errors(costs, mean, sums[order], ranges, SAMPLING_PART * delta)
        ways = [self.rests(records, stop, sign) for sign in (1.0, -1.0)]
        upper = [upper_mean(rest[order], most, OUTLIER_PART * delta) for rest, most in ways]
        cut = math.fsum(ways[0][0][~stopped]) / count
        sample = f"{count} of the demonstrations, shaped by the others"
        seen = f"{int(stopped.sum())} of {count} were stopped; more cannot be excluded"
        terms = (
            DerivedTerm("sampling", BETS, own, sample),
            DerivedTerm("outliers", "upper(discount^T F)", max(upper[0] - cut, 0.0), seen),
            DerivedTerm("truncation", "mean discount^T F", cut, "recorded lengths"),
        )
        other = upper[0] if costs.symmetric else upper[1]
        return Estimate(SHAPED, self.centre + mean, terms, reverse + other)
