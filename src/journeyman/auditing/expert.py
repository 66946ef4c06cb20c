"""The expert's side once more: totals, the target they give, estimates and intervals.

A terminated episode rests in its last state. Its endless tail is known when that state costs the
same under each of its actions, psi(x_T) discount^T/(1 - discount); no other tail is known.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from journeyman.auditing import protocol
from journeyman.auditing.chain import Chain, column
from journeyman.auditing.concentration import bernstein, data_independent, hoeffding
from journeyman.auditing.costs import Costs
from journeyman.auditing.inputs import Question, Records, World
from journeyman.auditing.ledger import AGREEMENT, Figure
from journeyman.auditing.reading import Refused

Floats = NDArray[np.float64]
TRUNCATION = "N h mean discount^T"


@dataclass(frozen=True, eq=False)
class Estimate:
    """Expectations of the expert, the figures of their error, and the name they go by.

    Where rounding decides which of two radii is smaller, there are two estimates of one `role`;
    where it decides whether there is an estimate, the estimate is not `needed`.
    """

    role: str
    name: str
    values: Floats
    figures: tuple[Figure, ...]
    needed: bool = True


@dataclass(frozen=True, eq=False)
class Tails:
    """What follows the record of every episode."""

    known: NDArray[np.bool_]
    time: Floats
    """Discounted, of the tail: discount^T/(1 - discount)."""
    resting: Floats
    """Costs per step in the last state, zero where the tail is not known."""

    @property
    def unknown_time(self) -> Floats:
        return np.where(self.known, 0.0, self.time)

    @property
    def totals(self) -> Floats:
        return np.asarray(self.resting * self.time[:, np.newaxis])


def tails_of(world: World, matrix: Any, records: Records) -> Tails:
    time = world.discount ** records.lengths.astype(float) / (1 - world.discount)
    known = records.terminated.copy()
    resting = np.zeros((len(records), matrix.shape[1]))
    for state in np.unique(records.ends[records.terminated]):
        rows = matrix[world.first[state] : world.first[state + 1]]
        rows = np.asarray(rows.toarray() if sparse.issparse(rows) else rows)
        here = records.terminated & (records.ends == state)
        if (rows == rows[0]).all():
            resting[here] = rows[0]
        else:
            known[here] = False
    return Tails(known, time, resting)


def recorded(world: World, matrix: Any, records: Records) -> Floats:
    """The discounted total of every cost over the steps of every episode."""
    weight = world.discount ** records.time.astype(float)
    sums = [
        np.bincount(records.episode, weight * column(matrix, i)[records.pair], len(records))
        for i in range(matrix.shape[1])
    ]
    return np.column_stack(sums)


def cloned(world: World, records: Records, smoothing: float) -> Floats:
    """Smoothed frequencies of actions; uniform where a state was never seen."""
    counts = np.bincount(records.pair, minlength=world.num_pairs) + smoothing
    seen = np.bincount(world.state_of, counts, minlength=world.num_states)[world.state_of]
    width = np.diff(world.first)[world.state_of]
    return np.asarray(np.where(seen > 0, counts, 1.0) / np.where(seen > 0, seen, width))


@dataclass(frozen=True, eq=False)
class Potential:
    """Values V of a cloned policy, and costs shaped by them: psi + discount P V - V."""

    values: Floats
    baseline: Floats
    shaped: Floats

    @classmethod
    def learned(cls, world: World, matrix: Any, records: Records, smoothing: float) -> "Potential":
        V = Chain(world, cloned(world, records, smoothing)).values(matrix)
        ahead = world.rows @ V
        dense = np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
        shaped = dense + world.discount * ahead - V[world.state_of]
        return cls(V, V.T @ world.initial, shaped)

    def tails(self, world: World, records: Records, tails: Tails) -> Floats:
        """Known tails in the place of the potential that stood for them."""
        stood = self.values[records.ends] * (1 - world.discount)
        worth = (tails.resting - stood) * tails.time[:, np.newaxis]
        return np.where(tails.known[:, np.newaxis], worth, 0.0)

    def totals(self, world: World, matrix: Any, records: Records) -> Floats:
        ends = self.tails(world, records, tails_of(world, matrix, records))
        return np.asarray(self.baseline + recorded(world, self.shaped, records) + ends)


def target_of(world: World, question: Question, records: Records | None) -> Floats:
    """The target that the problem's own rule makes of its inputs."""
    facts, matrix = question.expectation, question.matrix
    kind = facts.get("kind")
    if kind == "known cost":
        return np.zeros(1)
    if kind == "declared":
        return question.target
    if records is None:
        raise Refused("the target was estimated, but there are no demonstrations")
    if kind == "plain mean":
        ends = tails_of(world, matrix, records).totals
        return np.asarray((recorded(world, matrix, records) + ends).mean(axis=0))
    if kind == "completed mean":
        return np.asarray(completed(world, matrix, records, float(facts["smoothing"])).mean(axis=0))
    if kind not in ("control variate", "blend"):
        raise Refused(f"a target by {kind!r} cannot be audited")
    folds, smoothing = int(facts["num_folds"]), float(facts["smoothing"])
    if kind == "blend":
        return blended(world, matrix, records, folds, smoothing)
    mean = np.zeros(matrix.shape[1])
    for fold in range(folds):
        mine = np.arange(len(records)) % folds == fold
        potential = Potential.learned(world, matrix, records.only(~mine), smoothing)
        mean += potential.totals(world, matrix, records.only(mine)).sum(axis=0) / len(records)
    return mean


def completed(world: World, matrix: Any, records: Records, smoothing: float) -> Floats:
    """Totals with the values of the clone of all episodes behind those that were cut off."""
    tails = tails_of(world, matrix, records)
    totals = recorded(world, matrix, records) + tails.totals
    left = tails.unknown_time * (1 - world.discount)
    if left.any():
        values = Chain(world, cloned(world, records, smoothing)).values(matrix)
        totals = totals + left[:, np.newaxis] * values[records.ends]
    return np.asarray(totals)


def blended(world: World, matrix: Any, records: Records, folds: int, smoothing: float) -> Floats:
    """The mean of Z - beta D: Z the completed totals, D what a potential of the other folds
    takes out of them, beta = cov(Z, D)/(var D + m B) of the other folds' episodes within [0, 1].

    D by its own sum: V(x_0) - <initial, V> + sum_t discount^(t+1) (V(x_(t+1)) - (P V)(x_t, a_t)).
    """
    Z, count = completed(world, matrix, records, smoothing), len(records)
    D, fold, doubt = np.zeros_like(Z), np.arange(count) % folds, np.zeros(Z.shape[1])
    if count < 2:
        return np.asarray(Z.mean(axis=0))
    for one in range(min(folds, count)):
        mine = fold == one
        V = Chain(world, cloned(world, records.only(~mine), smoothing)).values(matrix)
        D[mine] = _noise(world, records.only(mine), V)
        doubt += _variance_of_model(world, records.only(mine), V) * mine.sum()
    mean = np.zeros(Z.shape[1])
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


def _noise(world: World, records: Records, V: Floats) -> Floats:
    """D of every episode."""
    surprise = V[records.next_state] - (world.rows @ V)[records.pair]
    weight = world.discount ** (records.time + 1.0)
    start = V[records.starts] - world.initial @ V
    return np.column_stack([
        start[:, k] + np.bincount(records.episode, weight * surprise[:, k], len(records))
        for k in range(V.shape[1])
    ])  # fmt: skip


def _variance_of_model(world: World, records: Records, V: Floats) -> Floats:
    """Of the mean of D because laws are estimates: var V/n for laws from n counts, the square of
    err/2 times the span of V for declared distances."""
    known, found = world.knowledge, np.zeros(V.shape[1])
    if not known.is_estimate:
        return found
    weight = world.discount ** (records.time + 1.0)
    visits = np.bincount(records.pair, weight, minlength=world.num_pairs) / len(records)
    half = np.ptp(V, axis=0) / 2
    if known.counts is not None:
        mean = world.rows @ V
        spread = np.maximum(world.rows @ V**2 - mean**2, 0.0)
        found += ((visits**2 / np.maximum(known.counts, 1))[:, np.newaxis] * spread).sum(axis=0)
    elif known.error is not None:
        found += (float(visits @ known.error) * half) ** 2
    if known.starts is not None:
        spread = world.initial @ V**2 - (world.initial @ V) ** 2
        found += np.maximum(spread, 0.0) / known.starts
    elif known.initial_error is not None:
        found += (known.initial_error * half) ** 2
    return found


def known_estimate(question: Question) -> Estimate | None:
    """The target itself, where nothing was estimated."""
    kind = question.expectation.get("kind")
    if kind not in ("declared", "known cost"):
        return None
    return Estimate("known", str(kind), question.target, ())


def plain_estimates(
    world: World, question: Question, records: Records, delta: float, *, centred: bool
) -> list[Estimate]:
    """The plain mean with the smallest data-independent radius, and with its own variance."""
    parts = parts_of(world, records)
    tails = tails_of(world, question.matrix, records)
    totals = recorded(world, question.matrix, records) + tails.totals
    shares = (parts[0] * delta, parts[1] * delta)
    return mean_estimates(
        question.costs, world.horizon, totals, tails.unknown_time, shares, centred=centred
    )


def mean_estimates(
    costs: Costs,
    horizon: float,
    totals: Floats,
    missing: Floats,
    shares: tuple[float, float],
    *,
    centred: bool,
) -> list[Estimate]:
    """From totals and the time without a record behind each; `shares` are failure probabilities."""
    count, unknown = len(totals), math.fsum(missing) / len(totals)
    mean = totals.mean(axis=0) + (costs.centre * unknown if centred else 0.0)
    cut = Figure.exactly("truncation", TRUNCATION, costs.smaller * unknown, "recorded lengths")
    sample = f"{count} demonstrations"
    radii = data_independent(costs, horizon, count, shares[0])
    least = min(radius for radius, _ in radii.values())
    found = [
        Estimate(
            "independent of the data",
            f"plain mean, {name}",
            mean,
            (Figure.exactly("sampling", formula, radius, sample), cut),
        )
        for name, (radius, formula) in radii.items()
        if radius <= least * (1 + AGREEMENT)
    ]
    radius = _variance_radius(costs, horizon, totals, missing, shares[1])
    formula = "combined sqrt(2 Var L/m) + 7 R L/(3(m - 1))"
    adaptive = (
        Figure.exactly("sampling", formula, costs.spread_gap(radius), f"{sample} and their spread"),
        cut,
    )
    name = "plain mean, empirical Bernstein"
    return [*found, Estimate("adapted to the data", name, mean, adaptive)]


def parts_of(world: World, records: Records) -> tuple[float, float, float]:
    """Of delta: data-independent radii, empirical Bernstein, and the shaped estimate, which needs
    laws that are known and takes what falls away from the first."""
    first, second = protocol.PLAIN_PARTS
    if world.knowledge.is_estimate or len(records) <= protocol.PLAIN_UP_TO:
        return first, second, 0.0
    left = max(protocol.LEAST_PART, first * protocol.PLAIN_UP_TO / len(records))
    return left, second, first - left


def _variance_radius(
    costs: Costs, horizon: float, totals: Floats, missing: Floats, delta: float
) -> Floats:
    """Of every cost, when each of the two sides of each may fail with its part of delta."""
    widths = costs.ranges * horizon
    return np.array([
        bernstein(float(one) ** 2, float(width), len(totals), delta / (2 * widths.size))
        for one, width in zip(_spread(costs, totals, missing), widths, strict=True)
    ])  # fmt: skip


def _spread(costs: Costs, totals: Floats, missing: Floats) -> Floats:
    """At least the standard deviation of complete totals: with unknown tails at mid-range, and
    the root mean square of what these tails can differ by."""
    count, n = totals.shape
    if count < 2:
        return np.full(n, math.inf)
    blur = costs.ranges / 2 * math.sqrt(math.fsum(missing**2) / (count - 1))
    complete = totals + np.outer(missing, costs.centre)
    squares = ((complete - complete.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(squares / (count - 1)) + blur)


def intervals(
    world: World, question: Question, records: Records | None, delta: float
) -> tuple[Floats, Floats]:
    """Both ends of the expert's interval for every cost, none where no total can be."""
    if records is None:
        return question.target, question.target
    tails = tails_of(world, question.matrix, records)
    totals = recorded(world, question.matrix, records) + tails.totals
    missing, half = math.fsum(tails.unknown_time) / len(records), question.costs.ranges / 2
    middle = totals.mean(axis=0) + question.costs.centre * missing
    plain = [
        hoeffding(2 * float(one) * world.horizon, len(records), delta / (4 * half.size))
        for one in half
    ]
    shaken = _variance_radius(question.costs, world.horizon, totals, tails.unknown_time, delta / 2)
    radius = np.minimum(plain, shaken)
    least, most = (end * world.horizon for end in question.costs.ends)
    low, high = middle - radius - half * missing, middle + radius + half * missing
    return np.clip(low, least, most), np.clip(high, least, most)
