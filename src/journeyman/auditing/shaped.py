"""The shaped estimate once more, with whole blocks of episodes side by side.

The training episodes decide potential V, centre c, weights s, limit b and length H. With

    S_t = <initial, V> - c + sum_{k<t} discount^k (psi + discount P V - V)(x_k, a_k)
    |S|^2 = sum_i S_i^2/s_i

an episode is stopped before the step that would make |S_t| exceed b. It is complete when it was not
stopped and its tail is known, with |S| <= b behind it, or begins after H steps. The estimate is
c + mean S, S where an episode was stopped or ends; its error is at most

    f (sqrt(2 S2 L/n) + 2 b L/n) + p 2 N h + 2 N h discount^H

Whether an episode stays below the limit can be a matter of rounding (when nothing is random, all
of S is rounding). Both answers are then allowed, and the figures become intervals.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from journeyman.auditing import protocol
from journeyman.auditing.concentration import bernstein, clopper_pearson, pinelis
from journeyman.auditing.costs import INFINITY
from journeyman.auditing.expert import Estimate, Potential, tails_of
from journeyman.auditing.inputs import Question, Records, World
from journeyman.auditing.ledger import Figure

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
NAME = "control variate"
ROUNDING = 1e-11
"""Relative to the largest totals: closer than this to the limit, rounding decides."""
BLOCK = 1 << 22
"""Numbers in a block of episodes."""


def shaped_estimate(
    world: World, question: Question, records: Records, delta: float
) -> Estimate | None:
    """The estimate with `delta` as its failure probability; None where there can be none."""
    trains = _trains(records)
    if trains.sum() < 2 or (~trains).sum() < 2:
        return None
    frame = Frame.learned(world, question, records.only(trains))
    start = float(frame.size(frame.start))
    if start > frame.limit + frame.blur:
        return None
    applied = records.only(~trains)
    sums, peaks = frame.sums(applied)
    late = frame.is_recorded(applied)
    surely, perhaps = peaks <= frame.limit - frame.blur, peaks <= frame.limit + frame.blur
    return frame.estimate(
        sums, late & surely, late & perhaps, delta, needed=start <= frame.limit - frame.blur
    )


def _trains(records: Records) -> Bools:
    """Which episodes train: those with the least digests of the record, of their own pairs and end,
    and of their number among equals."""
    stops = np.cumsum(records.lengths)
    steps = records.pair.astype("<i8")
    contents = [
        hashlib.sha256(
            b"".join((
                steps[stop - length : stop].tobytes(),
                int(end).to_bytes(8, "little"),
                b"\x01" if ended else b"\x00",
            ))
        ).digest()
        for stop, length, end, ended in zip(
            stops, records.lengths, records.ends, records.terminated, strict=True
        )
    ]  # fmt: skip
    equals: dict[bytes, list[int]] = {}
    for number, content in enumerate(contents):
        equals.setdefault(content, []).append(number)
    record = hashlib.sha256()
    for content in sorted(contents):
        record.update(content)
    keys = {
        hashlib.sha256(record.digest() + content + place.to_bytes(8, "little")).digest(): number
        for content, members in equals.items()
        for place, number in enumerate(members)
    }
    least, falling = protocol.TRAINING_SHARE
    count = len(records)
    first = sorted(keys)[: round((least + falling / count**0.5) * count)]
    trains = np.zeros(len(records), dtype=bool)
    trains[[keys[key] for key in first]] = True
    return trains


@dataclass(frozen=True, eq=False)
class Frame:
    """All that the training episodes decide."""

    world: World
    question: Question
    potential: Potential
    centre: Floats
    weights: Floats
    factor: float
    limit: float
    least_length: int | None

    @classmethod
    def learned(cls, world: World, question: Question, training: Records) -> "Frame":
        costs, matrix = question.costs, question.matrix
        potential = Potential.learned(world, matrix, training, protocol.SMOOTHING)
        totals = potential.totals(world, matrix, training)
        centre = totals.mean(axis=0)
        spread = np.sqrt(((totals - centre) ** 2).sum(axis=0) / (len(training) - 1))
        spread = np.maximum(spread, protocol.LEAST_SPREAD * costs.ranges * world.horizon)
        widest = protocol.LEAST_SPREAD * world.horizon * float((costs.scale * costs.ranges).max())
        constant = costs.ranges <= 0
        spread[constant] = (widest or 1.0) / costs.scale[constant]
        is_ball = costs.kind == INFINITY
        weights = spread / costs.scale if is_ball else costs.scale**-2.0
        factor = math.sqrt(math.fsum(costs.scale**2 * weights)) if is_ball else 1.0
        open_ended = ~tails_of(world, matrix, training).known
        length = int(training.lengths[open_ended].min()) if open_ended.any() else None
        rough = cls(world, question, potential, centre, weights, factor, math.inf, length)
        least, falling = protocol.MARGIN
        margin = least + falling / len(training) ** 0.5
        limit = margin * float(rough.sums(training)[1].max())
        return cls(world, question, potential, centre, weights, factor, limit, length)

    @property
    def start(self) -> Floats:
        return np.asarray(self.potential.baseline - self.centre)

    @property
    def blur(self) -> float:
        """What rounding can do to |S|."""
        totals = self.question.costs.norms * self.world.horizon
        return ROUNDING * float(self.size(totals))

    def size(self, sums: Floats) -> Floats:
        return np.asarray(np.sqrt((np.square(sums) / self.weights).sum(axis=-1)))

    def is_recorded(self, records: Records) -> Bools:
        known = tails_of(self.world, self.question.matrix, records).known
        if self.least_length is None:
            return known
        return np.asarray(known | (records.lengths >= self.least_length))

    def sums(self, records: Records) -> tuple[Floats, Floats]:
        """S where an episode was stopped or ends, and the largest |S_t| it would have reached."""
        longest, n = int(records.lengths.max()), self.centre.size
        together = max(1, BLOCK // (longest * n))
        parts = [
            self._block(records, first, min(first + together, len(records)), longest)
            for first in range(0, len(records), together)
        ]
        last, peaks = (np.concatenate(part) for part in zip(*parts, strict=True))
        tails = tails_of(self.world, self.question.matrix, records)
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
        weight = self.world.discount ** time.astype(float)
        steps[place, time + 1] = (
            weight[:, np.newaxis] * self.potential.shaped[records.pair[low:high]]
        )
        running = np.cumsum(steps, axis=1)
        sizes = self.size(running)
        outside = sizes > self.limit + self.blur
        stopped = outside.any(axis=1)
        last = np.where(stopped, np.argmax(outside, axis=1) - 1, longest)
        return running[np.arange(stop - first), last], sizes.max(axis=1)

    def estimate(
        self, sums: Floats, surely: Bools, perhaps: Bools, delta: float, *, needed: bool
    ) -> Estimate:
        """With `surely` complete episodes, and those that are complete if rounding wills."""
        count = surely.size
        squares = np.square(sums) / self.weights
        moments = squares.sum(axis=1)
        width = self.limit**2
        parts = moments / width if width > 0 else np.zeros(count)
        radius = bernstein(float(parts.var(ddof=1)), 1.0, count, protocol.MOMENT_PART * delta)
        moment = width * min(1.0, float(parts.mean()) + radius)
        sampling = self.factor * pinelis(moment, self.limit, count, protocol.DEVIATION_PART * delta)
        shares = [
            clopper_pearson(int((~some).sum()), count, protocol.INCOMPLETE_PART * delta)
            for some in (perhaps, surely)
        ]
        costs = self.question.costs
        trivial = 2 * costs.smaller * self.world.horizon
        cut = 0.0 if self.least_length is None else self.world.discount**self.least_length
        sample = f"{count} of the demonstrations, shaped by the others"
        certain = shares[0] == shares[1]
        told = (
            f"{int((~surely).sum())} of {count} were stopped or too short; more cannot be excluded"
        )
        figures = (
            Figure.exactly("sampling", "f (sqrt(2 S2 L/n) + 2 b L/n)", sampling, sample),
            Figure(
                "outliers",
                "p 2 N h",
                shares[0] * trivial,
                shares[1] * trivial,
                told if certain else None,
            ),
            Figure.exactly("truncation", "2 N h discount^H", trivial * cut, "recorded lengths"),
        )
        return Estimate(NAME, NAME, self.centre + sums.mean(axis=0), figures, needed)
