"""What is known of the expert: totals of its episodes, the target they give, estimates, intervals.

A terminated episode rests in its last state. Its endless tail is known when that state costs the
same under each of its actions, psi(x_T) discount^T/(1 - discount); no other tail is known.

The shaped estimate: training episodes, those with the least digests, decide potential V, centre c,
weights s and limit b. With

    S_t = <initial, V> - c + sum_{k<t} discount^k (psi + discount P V - V)(x_k, a_k)
    |S|^2 = sum_i S_i^2/s_i

an episode is stopped before the step that would make |S_t| exceed b, and goes on with plain costs:

    X = S_T + discount^T (R_T - V(x_T)),    R_T = sum_{t>=T} discount^(t-T) psi(x_t, a_t)

with T the length of an episode that was not stopped. E X = e - c by optional stopping. Where a
record ends without a known tail V stands for it in the estimate c + mean X, and the least cost of
all pairs in bets. These know that, with h = 1/(1 - discount),

    <w, X> >= -b |w|_s - max(0, max_x <w, V(x)> - h min <w, psi>),      |w|_s^2 = sum_i s_i w_i^2

and for round classes that X is as far from zero as S and two totals can be. Bets are made in the
order of the digests.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from journeyman.checker.archives import Bools, Floats, Ints, dense
from journeyman.checker.betting import largest_error, lower_means, mean_in_ball, reading_order
from journeyman.checker.chain import Chain, attainable
from journeyman.checker.costs import Costs
from journeyman.checker.findings import AGREEMENT, DerivedTerm, Findings, Refused
from journeyman.checker.inputs import Problem, Records, StoredWorld

FIXED_PART = 0.05
"""Of delta, for data-independent radii; the rest is for bets."""
PLAIN_UP_TO, LEAST_PART = 20, 0.30
"""Demonstrations without a shaped estimate, which takes from the bets; what it leaves to them."""
TRAINING_SHARE, LIMIT = (0.12, 1.0), 0.5
"""a + b/sqrt(count) of the demonstrations, for training; of what they reached, the limit."""
SMOOTHING, LEAST_SPREAD = 0.1, 1e-3
LEAST_LIMIT = 1e-9
"""Of the largest totals."""
ROOM = 1e-12
"""Relative to the largest totals, on both sides of their range."""
BETS = "max_w <w, values> - lower(<w, total>)"
TRUNCATION = "N h mean discount^T"
BIAS, VECTORS = "2 N memory mean 1/T", "McDiarmid"
"""Of means of steps; and the name of radii that hold for all directions at once."""
BETTING = "plain mean, betting"
SHAPED, STOPPED, SPLIT = "control variate", "stopped shaping", "split blend"
MOVED = ("blend", "completed mean", STOPPED, SPLIT)
"""Kinds of targets that are moved into the attainable ranges."""
EXACT_WORK, STEP_WORK = 20_000_000, 12_000_000_000
"""Transitions times costs up to which values of a clone are exact; and times the steps that those
of larger worlds look ahead."""
HORIZONS, FEWEST_STEPS = 2.0, 8
"""Such steps, in units of 1/(1 - discount) where the work allows it, and at least."""
SETTLED = 0.01
"""A cost whose values the last of the least steps changes by no more than this share of what the
first one did looks no further."""
TOGETHER = 4
"""Costs whose values are found together."""
BLOCK = 1 << 22
"""Numbers in a block of episodes."""
ROWS = 1 << 14
"""States whose values are compared at a time."""
LEAST_WEIGHED = 1e-5
"""Of the largest total: spreads below it do not decide weights."""
MOST_STATES = 1 << 26
"""States times directions in which the potential's range is found."""
EPSILON = float(np.finfo(float).eps)
Ranges: TypeAlias = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""Directions to what samples are multiplied by, and the ends between which that lies."""
Ball: TypeAlias = tuple[Floats, Floats, Floats, float]
"""Samples, the centre of a ball that has them, how far off each may be, and its radius."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Expectations of the expert, the terms of their error, and the name they go by."""

    name: str
    values: Floats
    terms: tuple[DerivedTerm, ...]
    reverse: float | None = None
    """No gap of the expert to the values is larger; the terms where there is none."""
    mean: Floats | None = None
    """Of shaped totals, with equal weights."""

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
    """Totals of every episode with its known tail, and the time that has no record behind it. With
    average costs means of steps, and the time of their bias."""
    if world.base is not None and world.times is not None:
        costs = dense(matrix[records.pair]) * world.times[records.state][:, np.newaxis]
        means = discounted(records, 1.0, costs) / records.lengths[:, np.newaxis]
        return means, world.time_after(records.lengths)
    tails = EpisodeTails.of(world, matrix, records)
    steps = discounted(records, world.discount, dense(matrix[records.pair]))
    return steps + tails.totals, tails.unknown_time


def clone_values(world: StoredWorld, matrix: Any, records: Records, smoothing: float) -> Floats:
    """Values of the smoothed frequencies of actions; uniform where a state was never seen."""
    policy = np.asarray(np.bincount(records.pair, minlength=world.num_pairs) + smoothing)
    seen, width = world.per_state(policy), np.diff(world.first)
    policy[(seen <= 0)[world.state_of]] = 1.0
    policy /= np.where(seen > 0, seen, width)[world.state_of]
    steps = steps_ahead(world, matrix.shape[1])
    if steps is None:
        return Chain(world, policy).values(matrix)
    pairs = np.arange(world.num_pairs, dtype=world.rows.indices.dtype)
    shape = (world.num_states, world.num_pairs)
    mixing = sparse.csr_array((policy, pairs, world.first), shape)
    now = mixing @ matrix
    mixing.data *= world.discount
    chain = mixing @ world.rows
    del mixing, pairs, policy
    found = np.empty(now.shape)
    for first in range(0, now.shape[1], TOGETHER):
        cost = np.ascontiguousarray(dense(now[:, first : first + TOGETHER]))
        value = np.tile(cost.mean(axis=0) * world.horizon, (len(cost), 1))
        settled = np.zeros(cost.shape[1], dtype=bool)
        for step in range(1, steps + 1):
            before, value = value, chain @ value
            value += cost
            if step == 1:
                begun = _spans(value, before)
            if step == FEWEST_STEPS:
                settled = _spans(value, before) <= SETTLED * begun
                found[:, first : first + TOGETHER][:, settled] = value[:, settled]
                if settled.all():
                    break
        found[:, first : first + TOGETHER][:, ~settled] = value[:, ~settled]
    return found


def _spans(after: Floats, before: Floats) -> Floats:
    """Of the change of every column."""
    parts = range(0, len(after), ROWS)
    low, high = np.full(after.shape[1], math.inf), np.full(after.shape[1], -math.inf)
    for at in parts:
        change = after[at : at + ROWS] - before[at : at + ROWS]
        low, high = np.minimum(low, change.min(axis=0)), np.maximum(high, change.max(axis=0))
    return np.asarray(high - low)


def steps_ahead(world: StoredWorld, num_costs: int) -> int | None:
    """How far values of a clone look ahead, beyond which every state costs what states cost on
    average; None where they look ahead for ever."""
    work = int(world.rows.nnz) * num_costs
    if work <= EXACT_WORK or world.has_goal or world.steps is not None:
        return None
    return max(FEWEST_STEPS, min(round(HORIZONS * world.horizon), STEP_WORK // work))


# The target that a problem's own rule makes of its inputs


def check_target(
    findings: Findings,
    world: StoredWorld,
    problem: Problem,
    records: Records | None,
    shaped: Any,
    trained: Callable[[], Any],
) -> None:
    kind = problem.expectation.get("kind")
    if problem.estimated != (records is not None):
        raise Refused("demonstrations and the kind of target do not go together")
    if records is None:
        derived = np.zeros(1) if kind == "known cost" else problem.target
    elif kind == STOPPED:
        if shaped is None:
            raise Refused("the target is a shaped estimate, and there is none")
        derived = shaped.mean
    else:
        derived = _target(world, problem, records, trained)
    sizes = problem.costs.norms * world.horizon
    for k, (name, stated) in enumerate(zip(problem.names, problem.target, strict=True)):
        low = high = float(derived[k])
        if kind in MOVED and abs(float(stated) - low) > AGREEMENT * float(sizes[k]):
            low, high = _moved(world, problem, k, low)
        findings.within(f"the target of {name!r}", float(stated), low, high, float(sizes[k]))


def _moved(world: StoredWorld, problem: Problem, k: int, value: float) -> tuple[float, float]:
    """Where a target comes to lie in what policies attain of a cost; in large worlds, where no
    plans are made, in what its extremes allow."""
    if int(world.rows.nnz) * problem.target.size <= EXACT_WORK:
        return attainable(world, dense(problem.matrix[:, [k]]).ravel(), value)
    least, most = (float(end[k]) * world.horizon for end in problem.costs.ends)
    moved = min(max(value, least), most)
    return moved, moved


def _target(
    world: StoredWorld, problem: Problem, records: Records, trained: Callable[[], Any]
) -> Floats:
    facts, matrix = problem.expectation, problem.matrix
    kind = facts.get("kind")
    totals, left = recorded(world, matrix, records)
    if kind == "plain mean":
        return np.asarray(totals.mean(axis=0))
    smoothing = float(facts["smoothing"]) if "smoothing" in facts else 0.0
    if kind == SPLIT:
        return _split_blend(world, matrix, records, totals, smoothing, trained)
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
        surprise = V[mine.next_state] - world.rows[mine.pair] @ V
        later = world.discount * discounted(mine, world.discount, surprise)
        D[fold == one] = V[mine.starts] - world.initial @ V + later
        doubt += _variance_of_model(world, mine, V) * len(mine)
        del V  # two potentials would be held at a time
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


def _split_blend(
    world: StoredWorld,
    matrix: Any,
    records: Records,
    Z: Floats,
    smoothing: float,
    trained: Callable[[], Any],
) -> Floats:
    """The means of Z - beta D over the episodes that do not train, with the potential V of those
    that do, and of Z over these, by the inverse of their variances, both by the other episodes;
    beta as in `_blend`, over episodes at even and at odd places. V stands behind records that are
    cut off."""
    both = training(records)
    known = trained() if both is not None and smoothing == SMOOTHING else None
    part = records if both is None else records.only(both[0])
    V = clone_values(world, matrix, part, smoothing) if known is None else known.values
    left = EpisodeTails.of(world, matrix, records)
    behind = np.where(left.known, 0.0, world.discount ** records.lengths.astype(float))
    Z = Z + behind[:, np.newaxis] * V[records.ends]
    if both is None:
        return np.asarray(Z.mean(axis=0))
    trains, order = both
    mine = records.only(~trains)
    surprise = V[mine.next_state] - world.rows[mine.pair] @ V
    D = V[mine.starts] - world.initial @ V
    D = (D + world.discount * discounted(mine, world.discount, surprise))[order]
    doubt = _variance_of_model(world, mine, V) * len(mine)
    first, second, mean = Z[~trains][order], Z[trains], np.zeros(Z.shape[1])
    even = np.arange(len(first)) % 2 == 0
    for k in range(mean.size):
        own = first[:, k].copy()
        for seen, used in ((even, ~even), (~even, even)):
            if seen.sum() > 1:
                shared = np.cov(first[seen, k], D[seen, k])
                spread = float(shared[1, 1] + doubt[k])
                beta = min(1.0, max(0.0, float(shared[0, 1]) / spread)) if spread > 0 else 0.0
                own[used] -= beta * D[used, k]
        least = (LEAST_WEIGHED * float(np.abs(Z[:, k]).max())) ** 2
        spreads = [float(one.var(ddof=1)) + least for one in (own, first[:, k])]
        errors = spreads[0] / len(first), spreads[1] / len(second)
        share = errors[0] / math.fsum(errors) if errors[1] > 0 else len(second) / len(Z)
        mean[k] = (1 - share) * float(own.mean()) + share * float(second[:, k].mean())
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
    names: set[str], order: Ints, *, centred: bool, lengths: Ints | None = None,
) -> list[Estimate]:  # fmt: skip
    """The plain mean with a data-independent radius, the one that is among the claimed `names` or
    else the smallest, and with bets. `shares` are failure probabilities; `lengths` are given where
    totals are means of steps."""
    if lengths is not None:
        return step_estimates(costs, totals, missing, shares, names, order, lengths)
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

    def ball(axes: Floats) -> Ball:
        """About zero or the middle; tails are at mid-range, and off by what costs are from it."""
        sizes = [
            costs.largest(lambda rows: np.linalg.norm(axes * rows, axis=1), centre)
            for centre in (np.zeros(axes.size), costs.centre)
        ]
        centre = horizon * costs.centre if sizes[1] < sizes[0] else np.zeros(axes.size)
        completed = (totals + np.outer(missing, costs.centre))[order]
        return completed, centre, sizes[1] * missing[order], horizon * min(sizes)

    bets = bounded(costs, mean, samples, ranges, ball, shares[1])
    return [
        Estimate(f"plain mean, {name}", mean, (fixed, cut)),
        bets.estimate(BETTING, lost, f"{sample}, one after the other"),
    ]


def step_estimates(
    costs: Costs, means: Floats, missing: Floats, shares: tuple[float, float],
    names: set[str], order: Ints, lengths: Ints,
) -> list[Estimate]:  # fmt: skip
    """The same for means of steps of a stationary policy, whose expectations are off by at most
    half the range of a cost times `missing`, 2 D/T. All n steps together are as good as
    n/(1 + D)^2 episodes, for radii that bound one direction at a time (Azuma)."""
    count, steps = len(means), int(lengths.sum())
    mean, sample = means.mean(axis=0), f"{count} demonstrations"

    def bias(time: float) -> DerivedTerm:
        return DerivedTerm("truncation", BIAS, costs.smaller * time, "recorded lengths")

    short = bias(math.fsum(missing) / count)
    radii = costs.radii(1.0, count, shares[0])
    claimed = [one for one in radii if f"plain mean, {one}" in names]
    name = claimed[0] if claimed else min(radii, key=lambda one: radii[one][0])
    fixed = DerivedTerm("sampling", radii[name][1], radii[name][0], sample)
    found = [Estimate(f"plain mean, {name}", mean, (fixed, short))]
    memory = float(missing[0] * lengths[0]) / 2
    worth = steps / (1 + memory) ** 2
    for one, (radius, formula) in costs.radii(1.0, count, shares[0]).items():
        if f"mean of all steps, {one}" in names and VECTORS not in one:
            source = f"{steps} steps, as good as {worth:.6g} episodes"
            error = DerivedTerm("sampling", formula, radius * math.sqrt(count / worth), source)
            pooled = lengths @ means / steps
            long = bias(2 * memory * count / steps)
            found = [Estimate(f"mean of all steps, {one}", pooled, (error, long))]
    samples = np.column_stack([means, missing])[order]

    def ranges(d: Floats) -> tuple[Floats, Floats, Floats]:
        low, high = costs.ends_of(d)
        half = (high - low) / 2
        room = ROOM * (np.abs(d) @ costs.norms) + half * float(missing.max())
        return np.column_stack([d, -half]), low - room, high + room

    def ball(axes: Floats) -> Ball:
        about, given = (
            costs.largest(lambda rows: np.linalg.norm(axes * rows, axis=1), centre)
            for centre in (costs.centre, np.zeros(axes.size))
        )
        blur = about * missing[order]
        centre = costs.centre if about < given else np.zeros(axes.size)
        return means[order], centre, blur, min(given, about) + float(blur.max())

    bets = bounded(costs, mean, samples, ranges, ball, shares[1])
    betting = bets.estimate(BETTING, short.value, f"{sample}, one after the other")
    renamed = replace(betting, terms=(betting.terms[0], replace(betting.terms[1], formula=BIAS)))
    return [*found, renamed]


@dataclass(frozen=True, eq=False)
class Bounded:
    """Values, and what gaps of values - mean and of mean - values do not exceed."""

    values: Floats
    error: float
    reverse: float

    def estimate(self, name: str, lost: float, sample: str) -> Estimate:
        """With what unrecorded time can have `lost` as a term of its own."""
        short = min(lost, self.error)
        terms = (
            DerivedTerm("sampling", BETS, self.error - short, sample),
            DerivedTerm("truncation", TRUNCATION, short, "recorded lengths"),
        )
        return Estimate(name, self.values, terms, self.reverse)


def bounded(
    costs: Costs, values: Floats, samples: Floats, ranges: Ranges, ball: Callable[[Floats], Ball],
    delta: float,
) -> Bounded:  # fmt: skip
    """By bets in every direction, and in a ball for what is round; half of delta each if both."""
    axes, about = costs.axes(), 0.0
    if axes is not None:
        delta = delta / 2 if costs.probes() else delta
        rows, centre, blur, radius = ball(axes)
        found, about = mean_in_ball(axes * (rows - centre), blur, radius, delta)
        values = centre + found / axes
    own, reverse = both_errors(costs, values, samples, ranges, delta)
    return Bounded(values, own + about, reverse + about)


def both_errors(
    costs: Costs, values: Floats, samples: Floats, ranges: Ranges, delta: float
) -> tuple[float, float]:
    """No gap of values - mean, and none of mean - values, is larger; each up to `delta`."""
    groups, found = costs.probes(), []
    if (costs.norms == 0).any():  # directions that differ there only are one
        groups = [np.unique(group * (costs.norms > 0), axis=0) for group in groups]
    part = delta / max(1, sum(len(group) for group in groups))
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


def parts_of(count: int, *, shapeable: bool, averages: bool = False) -> tuple[float, float, float]:
    """Of delta: data-independent radii, bets on plain totals, and the shaped estimate, which needs
    laws that are known and takes from the second. With average costs the first begins at a half."""
    if averages:
        fixed = max(FIXED_PART, 0.5 * min(1.0, PLAIN_UP_TO / count)) if count else 0.5
        return fixed, 1 - fixed, 0.0
    bets = plain = 1 - FIXED_PART
    if shapeable and count > PLAIN_UP_TO:
        plain = max(LEAST_PART, bets * PLAIN_UP_TO / count)
    return FIXED_PART, plain, bets - plain


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
    if world.base is not None:
        off = np.outer(missing, costs.ranges / 2)
        lowest, highest = totals - off, totals + off
        lower, upper = lower - off.max(axis=0), upper + off.max(axis=0)
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

    @classmethod
    def learned(
        cls, world: StoredWorld, matrix: Any, records: Records, smoothing: float
    ) -> "Potential":
        V = clone_values(world, matrix, records, smoothing)
        return cls(V, V.T @ world.initial)

    def shaped(self, world: StoredWorld, matrix: Any, pairs: Ints) -> Floats:
        """The costs of some pairs, shaped."""
        visited, place = np.unique(pairs, return_inverse=True)
        ahead = world.discount * (world.rows[visited] @ self.values)
        shaped = dense(matrix[visited]) + ahead - self.values[world.state_of[visited]]
        return np.asarray(shaped[place])

    def tails(self, world: StoredWorld, records: Records, tails: EpisodeTails) -> Floats:
        """Known tails in the place of the potential that stood for them."""
        stood = self.values[records.ends] * (1 - world.discount)
        worth = (tails.resting - stood) * tails.time[:, np.newaxis]
        return np.where(tails.known[:, np.newaxis], worth, 0.0)

    def totals(self, world: StoredWorld, matrix: Any, records: Records) -> Floats:
        ends = self.tails(world, records, EpisodeTails.of(world, matrix, records))
        steps = discounted(records, world.discount, self.shaped(world, matrix, records.pair))
        return np.asarray(self.baseline + steps + ends)


def training(records: Records) -> tuple[Bools, Ints] | None:
    """Which episodes train, and the others in the order in which they are read, by their places
    among themselves; None where there are too few."""
    order, (least, falling) = order_of(records), TRAINING_SHARE
    cut = round((least + falling / len(records) ** 0.5) * len(records))
    if cut < 2 or len(records) - cut < 2:
        return None
    trains = np.zeros(len(records), dtype=bool)
    trains[order[:cut]] = True
    return trains, (np.cumsum(~trains) - 1)[order[cut:]]


def trained_potential(world: StoredWorld, problem: Problem, records: Records) -> Potential | None:
    """Of the training episodes."""
    both = training(records)
    if both is None:
        return None
    return Potential.learned(world, problem.matrix, records.only(both[0]), SMOOTHING)


def shaped_estimate(
    world: StoredWorld,
    problem: Problem,
    records: Records,
    potential: Potential | None,
    delta: float,
) -> Estimate | None:
    """The estimate with `delta` as its failure probability; None where there can be none."""
    both = training(records)
    if both is None or potential is None:
        return None
    trains, place = both
    frame = Frame.learned(world, problem, potential, records.only(trains))
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
    def learned(
        cls, world: StoredWorld, problem: Problem, potential: Potential, training: Records
    ) -> "Frame":
        costs, matrix = problem.costs, problem.matrix
        totals = potential.totals(world, matrix, training)
        ranges, scale = costs.ranges * world.horizon, costs.scale
        deviation = np.maximum(totals.std(axis=0, ddof=1), LEAST_SPREAD * ranges)
        constant = (LEAST_SPREAD * float((scale * ranges).max()) or 1.0) / scale
        weights, _ = costs.quadratic(np.where(costs.ranges > 0, deviation, constant))
        rough = cls(world, problem, potential, totals.mean(axis=0), weights, math.inf)
        furthest = LIMIT * float(rough.sums(training)[2].max())
        least = LEAST_LIMIT * float(rough.size(costs.norms * world.horizon))
        return replace(rough, limit=max(furthest, least, float(rough.size(rough.start))))

    @property
    def start(self) -> Floats:
        return np.asarray(self.potential.baseline - self.centre)

    def size(self, sums: Floats) -> Floats:
        return np.asarray(np.sqrt((np.square(sums) / self.weights).sum(axis=-1)))

    def sums(self, records: Records) -> tuple[Floats, Ints, Floats]:
        """S where an episode was stopped or ends; after how many steps it was stopped, -1 if it
        was not; and the largest |S_t| it would have reached."""
        longest = int(records.lengths.max())
        together = max(1, BLOCK // (longest * self.centre.size))
        parts = [
            self._block(records, first, min(first + together, len(records)), longest)
            for first in range(0, len(records), together)
        ]
        last, steps, peaks = (np.concatenate(part) for part in zip(*parts, strict=True))
        return last, steps, peaks

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
        visited, matrix = records.pair[low:high], self.problem.matrix
        steps[place, time + 1] = weight * self.potential.shaped(self.world, matrix, visited)
        running = np.cumsum(steps, axis=1)
        sizes = self.size(running)
        outside = sizes > self.limit
        left = np.where(outside.any(axis=1), np.argmax(outside, axis=1) - 1, -1)
        last = np.where(left < 0, longest, left)
        return running[np.arange(stop - first), last], left, sizes.max(axis=1)

    def estimate(self, records: Records, order: Ints, delta: float) -> Estimate:
        """From episodes that are read in this order."""
        world, costs, V = self.world, self.problem.costs, self.potential.values
        h, matrix, discount = world.horizon, self.problem.matrix, world.discount
        sums, stop, _ = self.sums(records)
        stopped, firsts = stop >= 0, np.cumsum(records.lengths) - records.lengths
        later = stopped[records.episode] & (records.time >= stop[records.episode])
        rest = discounted(records, discount, dense(matrix[records.pair]) * later[:, np.newaxis])
        at = np.minimum(firsts + np.maximum(stop, 0), records.state.size - 1)
        state = np.where(stopped, records.state[at], records.ends)
        after = discount ** np.where(stopped, stop, records.lengths).astype(float)
        tails = EpisodeTails.of(world, matrix, records)
        X = sums + rest + tails.totals - after[:, np.newaxis] * V[state]
        missing = np.where(tails.known, 0.0, tails.time)
        behind = missing * (1 - discount)
        whole = X + behind[:, np.newaxis] * V[records.ends]

        def ranges(d: Floats) -> tuple[Floats, Floats, Floats]:
            reach = self.limit * np.sqrt(np.square(d) @ self.weights)
            least, most = costs.ends_of(d)
            low, high = replace(costs, matrix=V).ends_of(d, MOST_STATES)
            room = ROOM * (reach + h * (np.abs(d) @ costs.norms))
            below, above = np.maximum(high - h * least, 0.0), np.maximum(h * most - low, 0.0)
            return np.column_stack([d, least]), -reach - below - room, reach + above + room

        def ball(axes: Floats) -> Ball:
            around = costs.largest(lambda rows: np.linalg.norm(axes * rows, axis=1), costs.centre)
            away = float(np.linalg.norm(axes * (V - h * costs.centre), axis=1).max())
            sums = self.limit * float((axes * np.sqrt(self.weights)).max())
            apart = h * around + away
            return whole[order], np.zeros(axes.size), behind[order] * apart, sums + apart

        samples = np.column_stack([X, missing])[order]
        found = bounded(costs, whole.mean(axis=0), samples, ranges, ball, delta)
        lost = costs.smaller * math.fsum(missing) / len(missing)
        sample = f"{len(records)} of the demonstrations, shaped by the others; "
        known = found.estimate(SHAPED, lost, f"{sample}{int(stopped.sum())} were stopped")
        mean = self.centre + whole.mean(axis=0)
        return replace(known, values=self.centre + known.values, mean=mean)
