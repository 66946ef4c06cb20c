"""Rollouts of a policy once more: from their statistics, from their seed, and from fresh draws.

All walks take a step together; whoever has come to rest leaves. In a state of rest every step costs
what the policy's actions cost there on average, so the endless rest is known. A walk that is cut
off after H steps leaves discount^H/(1 - discount) of time without a record.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.auditing import protocol
from journeyman.auditing.apprentice import Apprentice, Way
from journeyman.auditing.concentration import bernstein, data_independent
from journeyman.auditing.costs import Costs
from journeyman.auditing.draws import (
    TOO_MANY,
    Moments,
    check_alike,
    check_expected,
    check_same,
    fresh_generator,
    stored_generator,
)
from journeyman.auditing.ledger import AGREEMENT, Figure, Ledger
from journeyman.auditing.reading import Refused
from journeyman.auditing.stored import ROLLOUTS, Sample
from journeyman.auditing.tables import Floats, Ints

MOST_STEPS, MOST_AGAIN = 1 << 24, 1 << 26
"""That an audit walks: beyond it fewer rollouts are drawn, and none again."""
STREAM = protocol.STREAMS[ROLLOUTS]
SPREAD = "combined sqrt(2 Var L/m) + 7 R L/(3(m - 1))"


def check_rollouts(
    ledger: Ledger, apprentice: Apprentice, sample: Sample, *, same_numpy: bool
) -> None:
    """Whether the statistics can be those of rollouts, and are those of their seed."""
    world, costs = apprentice.world, apprentice.question.costs
    names, horizon = apprentice.question.names, _horizon(sample, apprentice)
    low, high = (end * world.horizon for end in costs.ends)
    sizes, widths = costs.norms * world.horizon, high - low
    for k, name in enumerate(names):
        what = f"the range of {name!r} in rollouts"
        ledger.close(what, float(sample.ranges[k]), float(widths[k]), float(sizes[k]))
    cut = world.discount**horizon * world.horizon
    unfinished = sample.unrecorded * sample.count / cut if cut > 0 else 0.0
    ledger.check(
        -0.1 < unfinished < sample.count + 0.1
        and abs(unfinished - round(unfinished)) <= AGREEMENT * sample.count,
        f"rollouts of {horizon} steps cannot leave {sample.unrecorded!r} of time unrecorded",
    )
    stored = _completed(apprentice, sample, round(unfinished) * cut**2)
    inside = (stored.means >= low - AGREEMENT * sizes) & (stored.means <= high + AGREEMENT * sizes)
    ledger.check(inside.all(), "the means of rollouts lie outside their ranges")
    shortest = stored.variances <= widths**2 / 4 * sample.count / (sample.count - 1) * (1 + 1e-9)
    ledger.check(
        (shortest | (stored.variances <= AGREEMENT * sizes**2)).all(),
        "the variances of rollouts are larger than their ranges allow",
    )
    margins = widths / 2 * (1 - world.discount) * sample.unrecorded
    margins = margins + AGREEMENT * sizes + apprentice.own_error
    check_expected(ledger, names, stored, apprentice.expectations, widths, margins)
    steps = sample.count * horizon
    fewer = max(2, min(sample.count, MOST_STEPS // horizon))
    drawn = Walks.taken(apprentice, fewer, horizon, fresh_generator(sample.seed, STREAM))
    check_alike(ledger, names, stored, drawn.moments(apprentice), widths, sizes)
    if steps > MOST_AGAIN:
        ledger.leave_open(TOO_MANY)
    else:
        own = stored_generator(sample.seed, STREAM)
        same = Walks.taken(apprentice, sample.count, horizon, own)
        moments = same.moments(apprentice)
        check_same(ledger, names, stored, moments, sizes, same_numpy=same_numpy)


def rollout_way(apprentice: Apprentice, sample: Sample, told: str | None, *, centred: bool) -> Way:
    """Kind E from its statistics; of radii that are equal, the one that is `told`."""
    world, costs = apprentice.world, apprentice.question.costs
    radius, formula, source = sample_radius(costs, world.horizon, sample, told)
    cut = costs.smaller * sample.unrecorded
    figures = (
        Figure.exactly("rollout sampling", formula, radius, source),
        Figure.exactly("rollout truncation", "N h mean discount^T", cut, "recorded lengths"),
        apprentice.rounding_of_mass(world.horizon, _horizon(sample, apprentice)),
    )
    moved = costs.centre * sample.unrecorded if centred else 0.0
    return Way("E", sample.means + moved, figures)


def sample_radius(
    costs: Costs, horizon: float, sample: Sample, told: str | None
) -> tuple[float, str, str]:
    """Of the mean of rollouts, with its formula and source; of equal radii the one that is told."""
    count, delta, n = sample.count, sample.failure_probability, costs.scale.size
    independent, adaptive = (part * delta for part in protocol.PLAIN_PARTS)
    radii = [
        (radius, formula, f"{count} rollouts")
        for radius, formula in data_independent(costs, horizon, count, independent).values()
    ]
    each = [
        bernstein(float(variance), float(width), count, adaptive / (2 * n))
        for variance, width in zip(sample.variances, sample.ranges, strict=True)
    ]
    radii.append((costs.spread_gap(np.array(each)), SPREAD, f"{count} rollouts and their spread"))
    least = min(radius for radius, _, _ in radii)
    best = [one for one in radii if one[0] <= least * (1 + AGREEMENT)]
    return next((one for one in best if one[1] == told), best[0])


def _horizon(sample: Sample, apprentice: Apprentice) -> int:
    if sample.name != ROLLOUTS or sample.horizon is None:
        raise Refused("the statistics are not those of rollouts")
    if sample.means.size != len(apprentice.question.names):
        raise Refused("the rollouts have not one mean for every cost")
    return sample.horizon


def _completed(apprentice: Apprentice, sample: Sample, squares: float) -> Moments:
    """Of totals with unrecorded tails at mid-range; the stored variances allow for those tails,
    whose times have the given sum of squares."""
    costs = apprentice.question.costs
    blur = costs.ranges / 2 * math.sqrt(max(squares, 0.0) / (sample.count - 1))
    deviations = np.sqrt(sample.variances) - blur
    if (deviations < -AGREEMENT * costs.norms * apprentice.world.horizon).any():
        raise Refused("the variances of rollouts do not allow for what was not recorded")
    means = sample.means + costs.centre * sample.unrecorded
    return Moments(sample.count, means, np.maximum(deviations, 0.0) ** 2)


@dataclass(frozen=True, eq=False)
class Walks:
    """Totals of walks, and the time without a record behind each."""

    totals: Floats
    missing: Floats

    def moments(self, apprentice: Apprentice) -> Moments:
        """With unrecorded tails at mid-range."""
        return Moments.of(self.totals + np.outer(self.missing, apprentice.question.costs.centre))

    @classmethod
    def taken(
        cls, apprentice: Apprentice, count: int, horizon: int, rng: np.random.Generator
    ) -> "Walks":
        """`count` walks of at most `horizon` steps."""
        world, policy = apprentice.world, apprentice.policy
        here = rng.choice(world.num_states, size=count, p=world.initial)
        rest = _resting(apprentice)
        totals, going = np.zeros((count, rest.shape[1])), np.arange(count)
        missing = np.zeros(count)
        for time in range(horizon):
            if time % protocol.CHUNK == 0:
                block = min(protocol.CHUNK, horizon - time)
                numbers, place = rng.random((going.size, block, 2)), np.arange(going.size)
            now = numbers[place, time % protocol.CHUNK]
            at = here[going]
            pair = _drawn(policy, world.first[at], world.first[at + 1], now[:, 0])
            ends = world.rows.indptr[pair], world.rows.indptr[pair + 1]
            here[going] = world.rows.indices[_drawn(world.rows.data, *ends, now[:, 1])]
            cost = np.where(world.rests[at, np.newaxis], rest[at], _rows(apprentice, pair))
            totals[going] += world.discount**time * cost
            stopped = world.rests[here[going]]
            tail = world.discount ** (time + 1) * world.horizon
            totals[going[stopped]] += tail * rest[here[going[stopped]]]
            going, place = going[~stopped], place[~stopped]
            if not going.size:
                break
        missing[going] = world.discount**horizon * world.horizon
        return cls(totals, missing)


def _rows(apprentice: Apprentice, pairs: Ints) -> Floats:
    found: Any = apprentice.question.matrix[pairs]
    return np.asarray(found.toarray() if sparse.issparse(found) else found)


def _resting(apprentice: Apprentice) -> Floats:
    """What a step costs in every state of rest, zero elsewhere."""
    world, n = apprentice.world, len(apprentice.question.names)
    found = np.zeros((world.num_states, n))
    for state in np.flatnonzero(world.rests):
        pairs = np.arange(world.first[state], world.first[state + 1])
        found[state] = apprentice.policy[pairs] @ _rows(apprentice, pairs)
    return found


def _drawn(weights: Floats, first: Ints, stop: Ints, numbers: Floats) -> Ints:
    """A position between `first` and `stop` for every number, by the weights; never one without
    weight. The numbers are used up weight by weight."""
    found, left, open_ = first.copy(), numbers.copy(), np.arange(first.size)
    offset = 0
    while open_.size:
        position = first[open_] + offset
        inside = position < stop[open_]
        open_, position = open_[inside], position[inside]
        weight = weights[position]
        found[open_] = np.where(weight > 0, position, found[open_])
        left[open_] -= weight
        open_ = open_[(left[open_] >= 0) | (weight <= 0)]
        offset += 1
    return found
