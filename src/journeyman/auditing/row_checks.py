"""Drawn rows of a large world once more: steps followed there and back, laws of draws bet against.

    from a drawn pair      a successor by lot, which has to list the pair with its probability
    from a drawn state     a listed predecessor by lot, which has to lead there with its probability
    from a recorded step   its end has to list its pair

Bets, with tilts l and n draws: on what comes again (each by itself at kappa; all that was seen), on
the shares of the columns (mean 1/d), on half the density of starts (mean 1/2).
"""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.auditing import protocol
from journeyman.auditing.large_inputs import Walked
from journeyman.auditing.premises import log_mean
from journeyman.auditing.tables import Floats, Ints

RELATIVE, ABSOLUTE = 1e-9, 1e-12
SIGNED = [sign * tilt for tilt in protocol.TILTS for sign in (-1.0, 1.0)]


@dataclass(frozen=True, eq=False)
class Examined:
    """One shard: how many steps were followed, the first that contradicts itself, sums of draws."""

    followed: int
    contradiction: str
    count: int
    shares: Floats
    starts: float
    pairs: list[tuple[Any, float]]
    states: list[tuple[Any, float]]


def steps_agree(
    world: Any, pairs: tuple[Ints, Ints], states: Ints, rng: np.random.Generator
) -> tuple[int, str]:
    """Forwards and back from pairs, backwards and there from states; what contradicts itself."""
    x, a = (np.asarray(part)[: protocol.FOLLOWED] for part in pairs)
    ids, laws = _successors(world, x, a)
    reached = ids[np.arange(x.size), _by_lot(laws, rng.random(x.size))]
    y = np.asarray(states)[: protocol.FOLLOWED]
    lots = rng.random(y.size)
    there = _lists(world, x, a, reached)
    offsets, before, actions, chances = (np.asarray(part) for part in world.predecessors(y))
    numbers = np.diff(offsets)
    has = np.flatnonzero(numbers)
    place = offsets[has] + (lots[has] * numbers[has]).astype(np.int64)
    true = _chance(world, before[place], actions[place], y[has])
    back = _contradiction(before[place], actions[place], y[has], true, chances[place])
    return x.size + y.size, there or back


def record_agrees(world: Any, record: Walked | None) -> tuple[int, str]:
    """Recorded steps, each once, that can happen; what contradicts itself."""
    if record is None:
        return 0, ""
    first = slice(0, protocol.TESTED_STEPS)
    steps = {*zip(
        record.states[first].tolist(), record.actions[first].tolist(),
        record.following[first].tolist(), strict=True,
    )}  # fmt: skip
    x, a, y = (np.array(part) for part in zip(*steps, strict=True))
    possible = _chance(world, x, a, y) > 0
    return int(possible.sum()), _lists(world, x[possible], a[possible], y[possible])


def log_evidence(parts: list[Examined]) -> float:
    """log E against the laws of all draws."""
    count = sum(part.count for part in parts)
    shares, starts = sum(part.shares for part in parts), math.fsum(part.starts for part in parts)
    columns = np.atleast_1d(np.asarray(shares))
    return log_mean([
        _repeated(parts[0].pairs), _repeated(parts[0].states),
        log_mean([_tilted(float(one), count, 1 / columns.size) for one in columns]),
        _tilted(starts, count, 0.5),
    ])  # fmt: skip


def _tilted(total: float, count: int, mean: float) -> float:
    return log_mean([
        tilt * total - count * math.log(1 - mean + mean * math.exp(tilt)) for tilt in SIGNED
    ])  # fmt: skip


def _repeated(draws: list[tuple[Any, float]]) -> float:
    """Draw after draw, with what was seen before it."""
    if not draws:
        return 0.0
    seen: Counter[Any] = Counter()
    covered = 0.0
    single = dict.fromkeys(protocol.CONCENTRATIONS, 0.0)
    every = dict.fromkeys(SIGNED, 0.0)
    for number, (what, law) in enumerate(draws):
        for kappa in single:
            single[kappa] += math.log1p(seen[what] / (kappa * law)) - math.log1p(number / kappa)
        for tilt in every:
            mean = max(1 + covered * math.expm1(tilt), protocol.LEAST)
            every[tilt] += tilt * (what in seen and seen[what] > 0) - math.log(mean)
        covered += 0.0 if seen[what] else law
        seen[what] += 1
    return log_mean([log_mean(list(single.values())), log_mean(list(every.values()))])


def _successors(world: Any, x: Ints, a: Ints) -> tuple[Ints, Floats]:
    ids, laws = (np.asarray(part) for part in world.successors(x, a))
    return ids, laws


def _chance(world: Any, x: Ints, a: Ints, y: Ints) -> Floats:
    """P(y | x, a), row by row."""
    ids, laws = _successors(world, x, a)
    return np.asarray(np.where(ids == y[:, np.newaxis], laws, 0.0).sum(axis=1))


def _lists(world: Any, x: Ints, a: Ints, y: Ints) -> str:
    """Where a y does not list (x, a) with the probability of the step."""
    true = _chance(world, x, a, y)
    offsets, before, actions, chances = (np.asarray(part) for part in world.predecessors(y))
    said = np.array([
        chances[low:high][(before[low:high] == one) & (actions[low:high] == other)].sum()
        for low, high, one, other in zip(offsets[:-1], offsets[1:], x, a, strict=True)
    ])  # fmt: skip
    return _contradiction(x, a, y, true, said)


def _contradiction(x: Ints, a: Ints, y: Ints, true: Floats, said: Floats) -> str:
    wrong = np.flatnonzero(~(np.abs(said - true) <= ABSOLUTE + RELATIVE * true))
    if not wrong.size:
        return ""
    k = int(wrong[0])
    return (
        f"state {x[k]}, action {a[k]} leads to state {y[k]} with probability {float(true[k])!r} by "
        f"successors and {float(said[k])!r} by predecessors"
    )


def _by_lot(laws: Floats, numbers: Floats) -> Ints:
    """A column of every row: where the running sum exceeds the number, one of chance zero never."""
    sums = np.cumsum(laws, axis=1)
    last = laws.shape[1] - 1 - np.argmax(laws[:, ::-1] > 0, axis=1)
    return np.asarray(np.minimum((sums <= numbers[:, np.newaxis]).sum(axis=1), last))
