"""Whether an episode of the record was copied: a bet on repetitions.

Copies make a record look larger than it is: n episodes, each of them k times, have the radius of
k n ones. Two episodes of a sound record are equal in all states and actions only by chance. Episode
j comes after others; whatever its expert does and whenever it stops, the probability that it equals
a given one, tau = (x_0, a_0, ..., x_T), is at most

    p(tau) = initial(x_0) prod_t P(x_{t+1} | x_t, a_t)

for that probability is p(tau) times those of the actions and of the end, which are at most one. So
each of these has a mean of at most one in a sound record, and so has their mean E:

    pairs         the mean over pairs of episodes of 1{they are equal}/p
    rows(kappa)   the product over episodes j = 0, 1, ... of (kappa + c_j/p_j)/(kappa + j)

where c_j of the episodes before j equal it. The second is the bet of `betting` on whole episodes,
with p in place of their unknown law, and depends on the numbers of equal episodes only, not on
their order. *pairs* is for a copy or two in a large record, *rows* for many.

*Guarantee*: exact for every number of episodes, for experts that depend on all of the past, and for
lengths that do. Markov: P(E >= 1/level) <= level in a sound record. Laws that are not known count
as one, which keeps the guarantee and loses strength.

*Strength*: in a world that leaves little to chance p is near one and equal episodes are no
evidence. Where all episodes, recorded twice, would not be refuted, nothing is tested.

*Cost*: a pass over the record. *Reference*: as in `betting`.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from journeyman.arrays import FloatArray, IntArray
from journeyman.demonstrations import Demonstrations

SCALES = tuple(10.0**power for power in range(13))
"""kappa: about the square of the number of episodes in which a few copies are sought."""


@dataclass(frozen=True)
class Repetitions:
    """What equal episodes of a record say."""

    log_value: float
    """log E."""
    log_twice: float
    """log E if every episode had been recorded twice."""
    num_episodes: int
    num_repeats: int
    """Episodes that equal an earlier one."""
    example: tuple[int, int, float] | None
    """Two equal episodes and log p of them: the least likely ones."""


def repetitions(demos: Demonstrations, log_chances: FloatArray) -> Repetitions:
    """The evidence of a record whose episodes have log p as given."""
    labels = equal_episodes(demos)
    earlier = ranks(labels)
    repeats = np.flatnonzero(earlier)
    example = None
    if repeats.size:
        second = int(repeats[np.argmin(log_chances[repeats])])
        first = int(np.argmax(labels == labels[second]))
        example = first, second, float(log_chances[second])
    twice = ranks(np.concatenate([labels, labels]))
    return Repetitions(
        log_evidence(earlier, log_chances),
        log_evidence(twice, np.concatenate([log_chances, log_chances])),
        len(demos),
        repeats.size,
        example,
    )


def equal_episodes(demos: Demonstrations) -> IntArray:
    """A number for every episode, the same for those with the same states and actions."""
    known: dict[tuple[bytes, bytes], int] = {}
    episodes = (demos.episode(j) for j in range(len(demos)))
    return np.array([known.setdefault((x.tobytes(), a.tobytes()), len(known)) for x, a in episodes])


def ranks(labels: IntArray) -> IntArray:
    """c_j: how many entries before each one have its label.

    >>> ranks(np.array([5, 3, 5, 5, 3])).tolist()
    [0, 0, 1, 2, 1]
    """
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    first = np.searchsorted(ordered, ordered, side="left")
    found = np.empty(labels.size, dtype=np.int64)
    found[order] = np.arange(labels.size) - first
    return found


def log_evidence(earlier: IntArray, log_chances: FloatArray) -> float:
    """log E from c_j and log p_j; one episode is no evidence.

    >>> round(log_evidence(np.array([0, 1]), np.log([0.25, 0.25])), 3)
    0.944
    """
    count = earlier.size
    if count < 2:
        return 0.0
    with np.errstate(divide="ignore"):
        ratios = np.log(earlier) - log_chances
    pairs = special.logsumexp(ratios) - math.log(count * (count - 1) / 2)
    past = np.arange(count)
    rows = [
        float((np.logaddexp(0.0, ratios - math.log(kappa)) - np.log1p(past / kappa)).sum())
        for kappa in SCALES
    ]
    together = special.logsumexp(rows) - math.log(len(rows))
    return float(np.logaddexp(pairs, together) - math.log(2))
