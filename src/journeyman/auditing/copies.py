"""The test that no episode was copied once more, episode after episode.

The certificate computes it from counts of equal episodes and arrays of logarithms. Here every
episode is looked up among those before it: c of j equal it, p is the probability of its start and
steps by the laws, and the bet rows(kappa) is multiplied by (kappa + c/p)/(kappa + j). The mean over
pairs of 1{equal}/p is summed group by group.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.auditing import protocol
from journeyman.auditing.inputs import Records, World
from journeyman.auditing.premises import log_mean
from journeyman.auditing.tables import Floats, Ints


@dataclass(frozen=True)
class Copies:
    """log e-values of the record and of the record repeated (None where only code could say), and
    how many of its episodes equal an earlier one."""

    log_value: float | None
    log_twice: float | None
    episodes: int
    repeats: int


def copies_in(world: World, records: Records) -> Copies:
    """Of a record in a world whose laws are known, or count as certain where they are not."""
    chance = np.zeros(len(records))
    if world.knowledge.of_steps:
        steps = np.asarray(world.rows[records.pair, records.next_state]).ravel()
        chance += _episode_sums(steps, records.episode, len(records))
    if world.knowledge.of_starts:
        chance += _log(world.initial[records.starts])
    columns = np.column_stack([records.pair, records.next_state])
    return copies_of(_keys(records.starts, columns, records.lengths), chance)


def copies_of(keys: Sequence[Any], log_chance: Floats | None) -> Copies:
    """Of episodes by their contents, and the logarithms of their probabilities."""
    repeats = len(keys) - len(set(keys))
    if log_chance is None:
        return Copies(None, None, len(keys), repeats)
    found = [float(one) for one in log_chance]
    once, twice = log_evidence(keys, found), log_evidence([*keys, *keys], [*found, *found])
    return Copies(once, twice, len(keys), repeats)


def walked_keys(states: Ints, actions: Ints, following: Ints, lengths: Ints) -> list[Any]:
    """The contents of episodes that are stored step by step."""
    columns = np.column_stack([states, actions, following])
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return _keys(states[first], columns, lengths)


def walked_chances(starts: Floats, steps: Floats | None, episode: Ints) -> Floats:
    """Logarithms of the probabilities of episodes; steps that nobody knows count as certain."""
    found = _log(np.asarray(starts, dtype=float))
    return found if steps is None else found + _episode_sums(steps, episode, found.size)


def log_evidence(keys: Iterable[Any], log_chance: Sequence[float]) -> float:
    """The log of the mean of both kinds of bets."""
    seen: Counter[Any] = Counter()
    ratios, chance_of = [], {}
    for key, chance in zip(keys, log_chance, strict=True):
        before = seen[key]
        ratios.append(math.log(before) - chance if before else -math.inf)
        seen[key], chance_of[key] = before + 1, chance
    count = len(ratios)
    if count < 2:
        return 0.0
    equal = [
        math.log(number * (number - 1) / 2) - chance_of[key]
        for key, number in seen.items()
        if number > 1
    ]
    pairs = _log_sum(equal) - math.log(count) - math.log(count - 1) + math.log(2)
    rows = []
    for kappa in protocol.COPY_SCALES:
        gains = (
            _log_sum([math.log(kappa), ratio]) - math.log(kappa + j)
            for j, ratio in enumerate(ratios)
        )
        rows.append(math.fsum(gains))
    return log_mean([pairs, log_mean(rows)]) if equal else log_mean(rows) - math.log(2)


def _keys(starts: Ints, columns: Ints, lengths: Ints) -> list[Any]:
    ends = np.cumsum(lengths)
    parts = zip(starts, ends - lengths, ends, strict=True)
    return [(int(x), columns[first:last].tobytes()) for x, first, last in parts]


def _episode_sums(probabilities: Floats, episode: Ints, count: int) -> Floats:
    return np.bincount(episode, _log(probabilities), minlength=count).astype(float)


def _log(probabilities: Floats) -> Floats:
    """Logarithms; what is impossible is the affair of other premises, and counts as certain."""
    return np.log(probabilities, out=np.zeros(probabilities.size), where=probabilities > 0)


def _log_sum(logs: list[float]) -> float:
    top = max(logs, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(math.exp(one - top) for one in logs))
