"""The expert's expectations from shaped totals, with a radius that follows their small spread.

A potential V is learned from some of the trajectories (see `ControlVariate`), the
others are measured with it. In the norm |x|^2 = sum_i x_i^2/s_i, with a centre c, a limit b and a
length H that the training trajectories decide, follow the partial sums

    S_t = <initial, V> - c + sum_{k<t} discount^k (psi + discount P V - V)(x_k, a_k)

of every trajectory and stop before the step that would lead out of the ball |S| <= b. The estimate
is c + mean of the stopped sums. A trajectory is *complete* when it was not stopped and its tail is
known, and added within the ball, or begins after H steps. With gap_W(x) <= f |x| for the cost class
and two points of the hull of h Psi no further apart than 2 N h, the error is at most

    f [ sqrt(2 S2 log(2/d1)/n) + 2 b log(2/d1)/n ]        mean of the stopped sums (Pinelis)
    + p 2 N h                                             what is not complete
    + 2 N h discount^H                                    complete, but not recorded to its end

with probability 1 - d1 - d2 - d3, where S2 is an upper bound on E |S|^2 that holds with probability
1 - d2 and p one on the probability of not being complete that holds with 1 - d3.

*Why*: let T be the time where a trajectory was stopped, or where its record ends. S_{t+1} is known
before x_{t+1} is drawn, so T is a stopping time, provided that records end without foresight.
V(x_0) and V(x_{t+1}), t < T, were replaced by their conditional means, hence S_T + discount^T (tail
- V(x_T)) has expectation e - c (optional stopping). Its last part is zero for a known tail, and in
general at most 2 N h discount^T, because tail and V(x_T) are points of the hull.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.certificate.concentration import hilbert_radius, upper_frequency, upper_mean
from journeyman.certificate.terms import Term
from journeyman.costs import CostClass, InfinityBall
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.control_variate import Shaping, Tails
from journeyman.problem import Apprenticeship
from journeyman.problem.trivial import centred_bound
from journeyman.world import World

SMOOTHING = 0.1
DEVIATION_SHARE, MOMENT_SHARE, INCOMPLETE_SHARE = 0.7, 0.15, 0.15
"""Of the failure probability: d1, d2, d3."""
LEAST_SPREAD = 1e-3
"""Of a cost's range: smaller spreads are not believed when weights are chosen."""


@dataclass(frozen=True, eq=False)
class ShapedEstimate:
    """Values and the terms of their error; it holds for both signs of the error."""

    values: FloatArray
    terms: tuple[Term, ...]
    totals: FloatArray
    """Stopped, of the trajectories that were measured; the values are their mean."""
    num_applied: int
    num_incomplete: int


def shaped_estimate(problem: Apprenticeship, failure_probability: float) -> ShapedEstimate | None:
    """The estimate, or None when the training trajectories do not allow one."""
    demos = problem.demonstrations
    assert demos is not None
    training, applied = (demos.subset(episodes) for episodes in split(demos, problem.world))
    if len(training) < 2 or len(applied) < 2:
        return None
    frame = _Frame.learned(problem, training)
    if frame is None:
        return None
    return _estimate(frame, *frame.stopped_sums(applied), failure_probability)


def training_share(count: int) -> float:
    """Of the trajectories: a potential needs a few dozen of them, however many there are."""
    return 0.12 + 1 / math.sqrt(count)


def margin(num_training: int) -> float:
    """Of the limit over what the training trajectories reached: fresh ones go further, and the
    further the fewer have been seen."""
    return 1.25 + 2.2 / math.sqrt(num_training)


def split(demos: Demonstrations, world: World) -> tuple[IntArray, IntArray]:
    """Which episodes train and which are measured: those with the least digests train.

    A digest is that of all episodes, of the episode's own content, and of how many equal ones came
    before it. So the order of the episodes decides nothing, and nobody can look for one with a
    small bound; equal episodes are kept apart, or rare ones would all fall on one side; and other
    records are split anew, so that no kind of episode always falls on the same side.
    """
    pairs, ends = demos.pairs_in(world).astype("<i8"), demos.last_states.astype("<i8")
    contents = []
    for episode in range(len(demos)):
        steps = pairs[demos.offsets[episode] : demos.offsets[episode + 1]].tobytes()
        end = ends[episode].tobytes() + bytes([int(demos.terminated[episode])])
        contents.append(hashlib.sha256(steps + end).digest())
    everything = hashlib.sha256(b"".join(sorted(contents))).digest()
    copies: Counter[bytes] = Counter()
    keys = []
    for content in contents:
        place = copies[content].to_bytes(8, "little")
        keys.append(hashlib.sha256(everything + content + place).digest())
        copies[content] += 1
    order = sorted(range(len(demos)), key=keys.__getitem__)
    cut = round(training_share(len(demos)) * len(demos))
    return np.sort(order[:cut]), np.sort(order[cut:])


def _estimate(
    frame: "_Frame", sums: FloatArray, complete: BoolArray, failure_probability: float
) -> ShapedEstimate:
    count, lacking = complete.size, int((~complete).sum())
    squares = (sums**2 / frame.weights).sum(axis=1)
    moment = upper_mean(squares, frame.limit**2, MOMENT_SHARE * failure_probability)
    radius = frame.factor * hilbert_radius(
        moment, frame.limit, count, DEVIATION_SHARE * failure_probability
    )
    share = upper_frequency(lacking, count, INCOMPLETE_SHARE * failure_probability)
    source = f"{count} of the demonstrations, shaped by the others"
    seen = f"{lacking} of {count} were stopped or too short; more cannot be excluded"
    terms = (
        Term("sampling", radius, "f (sqrt(2 S2 L/n) + 2 b L/n)", source),
        Term("outliers", share * frame.trivial, "p 2 N h", seen),
        Term("truncation", frame.truncation, "2 N h discount^H", "recorded lengths"),
    )
    values, totals = frame.centre + sums.mean(axis=0), frame.centre + sums
    return ShapedEstimate(values, terms, totals, count, lacking)


@dataclass(frozen=True, eq=False)
class _Frame:
    """All that the training trajectories decide."""

    problem: Apprenticeship
    shaping: Shaping
    centre: FloatArray
    weights: FloatArray
    factor: float
    limit: float
    shortest: int | None
    """H; None when no training trajectory was truncated."""

    @classmethod
    def learned(cls, problem: Apprenticeship, training: Demonstrations) -> "_Frame | None":
        world, matrix = problem.world, problem.cost_matrix
        shaping = Shaping.learned(training, matrix, world, SMOOTHING)
        totals = shaping.totals(training, matrix, world)
        ranges = (problem.basis.highest - problem.basis.lowest) * world.effective_horizon
        spread = np.maximum(totals.std(axis=0, ddof=1), LEAST_SPREAD * ranges)
        scale = problem.cost_class.scaling(ranges.size)
        least = (LEAST_SPREAD * float((scale * ranges).max()) or 1.0) / scale
        weights, factor = _norm(problem.cost_class, np.where(ranges > 0, spread, least))
        open_ended = ~Tails.of(training, matrix, world).known
        shortest = int(training.lengths[open_ended].min()) if open_ended.any() else None
        frame = cls(problem, shaping, totals.mean(axis=0), weights, factor, np.inf, shortest)
        furthest = float(frame.furthest(training).max())
        frame = replace(frame, limit=margin(len(training)) * furthest)
        return frame if frame.size(frame.start) <= frame.limit else None

    @property
    def start(self) -> FloatArray:
        return np.asarray(self.shaping.baseline - self.centre)

    @property
    def trivial(self) -> float:
        """2 N h, costs centred: two points of the hull of h Psi differ by no more."""
        bound = centred_bound(self.problem, self.problem.cost_class)
        return 2 * bound * self.problem.world.effective_horizon

    @property
    def truncation(self) -> float:
        if self.shortest is None:
            return 0.0
        return self.trivial * self.problem.world.discount**self.shortest

    def size(self, sums: FloatArray) -> FloatArray:
        """|S| of every row."""
        return np.asarray(np.sqrt((sums**2 / self.weights).sum(axis=-1)))

    def is_recorded(self, demos: Demonstrations) -> BoolArray:
        """Tail known, or record at least H steps long."""
        known = Tails.of(demos, self.problem.cost_matrix, self.problem.world).known
        enough = False if self.shortest is None else demos.lengths >= self.shortest
        return np.asarray(known | enough)

    def stopped_sums(self, demos: Demonstrations) -> tuple[FloatArray, BoolArray]:
        """S of every episode where it was stopped or ends, and whether the episode is complete."""
        sums = np.tile(self.start, (len(demos), 1))
        going = np.ones(len(demos), dtype=bool)
        for episodes, steps in self._steps(demos):
            moved = sums[episodes] + steps
            stays = self.size(moved) <= self.limit
            going[episodes] &= stays
            inside = episodes[going[episodes]]
            sums[inside] = moved[going[episodes]]
        ended = sums + self.shaping.tails(demos, self.problem.cost_matrix, self.problem.world)
        fits = going & (self.size(ended) <= self.limit)
        sums[fits] = ended[fits]
        return sums, fits & self.is_recorded(demos)

    def furthest(self, demos: Demonstrations) -> FloatArray:
        """The largest |S_t| of every episode."""
        sums = np.tile(self.start, (len(demos), 1))
        peaks = self.size(sums)
        for episodes, steps in self._steps(demos):
            sums[episodes] += steps
            peaks[episodes] = np.maximum(peaks[episodes], self.size(sums[episodes]))
        ended = sums + self.shaping.tails(demos, self.problem.cost_matrix, self.problem.world)
        return np.maximum(peaks, self.size(ended))

    def _steps(self, demos: Demonstrations) -> Iterator[tuple[IntArray, FloatArray]]:
        """Time by time, the episodes that go on and what their sums change by."""
        world, pairs = self.problem.world, demos.pairs_in(self.problem.world)
        for t in range(int(demos.lengths.max())):
            episodes = np.flatnonzero(demos.lengths > t)
            visited = pairs[demos.offsets[episodes] + t]
            yield episodes, world.discount**t * self.shaping.costs[visited]


def _norm(cost_class: CostClass, spread: FloatArray) -> tuple[FloatArray, float]:
    """Weights s and the factor f with gap_W(x) <= f sqrt(sum_i x_i^2/s_i).

    k being the scale of the class, sum_i k_i |x_i| <= sqrt(sum_i k_i^2 s_i) |x| for the infinity
    ball, best with s_i = spread_i/k_i; the gaps of the other classes are at most |k x|_2.
    """
    scale = cost_class.scaling(spread.size)
    if isinstance(cost_class, InfinityBall):
        weights = spread / scale
        return weights, float(np.sqrt((scale**2 * weights).sum()))
    return 1 / scale**2, 1.0
