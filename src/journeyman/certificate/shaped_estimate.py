"""The expert's expectations from shaped totals, with a radius that follows their small spread.

A potential V is learned from a `TRAINING_SHARE` of the trajectories (see `ControlVariate`), the
others are measured with it. In the norm |x|^2 = sum_i x_i^2/s_i, with a centre c, a limit b and a
length H that the training trajectories decide, a trajectory is *kept* when all its partial sums

    S_t = <initial, V> - c + sum_{k<t} discount^k (psi + discount P V - V)(x_k, a_k)

stay within |S_t| <= b and its tail is known or begins after H steps. The estimate is
c + mean of S 1{kept}. With gap_W(x) <= f |x| for the cost class, its error is at most

    f [ sqrt(2 S2 log(2/d1)/n) + 2 b log(2/d1)/n ]        mean of the kept sums (Pinelis)
    + p Y,    Y = f b + N(psi + discount P V - V) + 2 N h      what was not kept
    + 2 N h discount^H                                    what was kept but not recorded to its end

with probability 1 - d1 - d2 - d3, where S2 is an upper bound on E |S|^2 1{kept} that holds with
probability 1 - d2 and p one on the probability of not being kept that holds with 1 - d3.

*Why*: switch the control variate off when a trajectory leaves the ball or its record ends: what
follows enters as the plain tail instead of V. V(x_0) and each V(x_{t+1}) were replaced by their
conditional means up to a stopping time, so the result still has expectation e (optional stopping),
and it differs from c by at most Y: up to there f b and one more step, then the tail against V, two
points of the hull of h Psi. Kept trajectories miss only discount^H (tail - V(x_T)).
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.certificate.concentration import hilbert_radius, upper_frequency, upper_mean
from journeyman.certificate.sample_sizes import centred_bound
from journeyman.certificate.terms import Term
from journeyman.costs import CostClass, InfinityBall
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.control_variate import Shaping
from journeyman.demonstrations.totals import Tails
from journeyman.problem import Apprenticeship

TRAINING_SHARE = 0.3
SMOOTHING = 0.1
MARGIN = 1.4
"""Of the limit over what the training trajectories reached: fresh ones go further."""
DEVIATION_SHARE, MOMENT_SHARE, DROPPED_SHARE = 0.6, 0.2, 0.2
"""Of the failure probability: d1, d2, d3."""
LEAST_SPREAD = 1e-3
"""Of a cost's range: smaller spreads are not believed when weights are chosen."""


@dataclass(frozen=True, eq=False)
class ShapedEstimate:
    """Values and the terms of their error; it holds for both signs of the error."""

    values: FloatArray
    terms: tuple[Term, ...]
    num_applied: int
    num_dropped: int


def shaped_estimate(problem: Apprenticeship, failure_probability: float) -> ShapedEstimate | None:
    """The estimate, or None when the training trajectories do not allow one."""
    demos = problem.demonstrations
    assert demos is not None
    trains = np.arange(len(demos)) % 10 < round(10 * TRAINING_SHARE)
    training, applied = demos.subset(np.flatnonzero(trains)), demos.subset(np.flatnonzero(~trains))
    if len(training) < 2 or len(applied) < 2:
        return None
    frame = _Frame.learned(problem, training)
    if frame is None:
        return None
    sums, peaks = frame.partial_sums(applied)
    kept = (peaks <= frame.limit) & frame.is_recorded(applied)
    return _estimate(frame, np.where(kept[:, np.newaxis], sums, 0.0), kept, failure_probability)


def _estimate(
    frame: "_Frame", sums: FloatArray, kept: BoolArray, failure_probability: float
) -> ShapedEstimate:
    count, dropped = kept.size, int((~kept).sum())
    squares = (sums**2 / frame.weights).sum(axis=1)
    moment = upper_mean(squares, frame.limit**2, MOMENT_SHARE * failure_probability)
    radius = frame.factor * hilbert_radius(
        moment, frame.limit, count, DEVIATION_SHARE * failure_probability
    )
    share = upper_frequency(dropped, count, DROPPED_SHARE * failure_probability)
    source = f"{count} of the demonstrations, shaped by the others"
    terms = (
        Term("sampling", radius, "f (sqrt(2 S2 L/n) + 2 b L/n)", source),
        Term("outliers", share * frame.largest, "p Y", f"{dropped} of {count} were outliers"),
        Term("truncation", frame.truncation, "2 N h discount^H", "recorded lengths"),
    )
    return ShapedEstimate(frame.centre + sums.mean(axis=0), terms, count, dropped)


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
        weights, factor = _norm(problem.cost_class, np.where(ranges > 0, spread, 1.0))
        open_ended = ~Tails.of(training, matrix, world).known
        shortest = int(training.lengths[open_ended].min()) if open_ended.any() else None
        rough = cls(
            problem, shaping, totals.mean(axis=0), weights, factor, np.inf, shortest
        )  # fmt: skip
        _, peaks = rough.partial_sums(training)
        frame = cls(
            problem, shaping, rough.centre, weights, factor, MARGIN * float(peaks.max()), shortest
        )  # fmt: skip
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
    def largest(self) -> float:
        """Y."""
        step = self.problem.cost_class.pointwise_bound(self.shaping.costs)
        return self.factor * self.limit + step + self.trivial

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

    def partial_sums(self, demos: Demonstrations) -> tuple[FloatArray, FloatArray]:
        """The last S of every episode, and the largest |S_t| on the way."""
        world = self.problem.world
        order = np.argsort(-demos.lengths, kind="stable")
        starts, lengths = demos.offsets[:-1][order], demos.lengths[order]
        pairs = demos.pairs_in(world)
        sums = np.tile(self.start, (len(demos), 1))
        peaks = self.size(sums)
        for t in range(int(lengths[0])):
            going = int(np.searchsorted(-lengths, -t, side="left"))
            sums[:going] += world.discount**t * self.shaping.costs[pairs[starts[:going] + t]]
            peaks[:going] = np.maximum(peaks[:going], self.size(sums[:going]))
        back = _inverse(order)
        ended = sums[back] + self.shaping.tails(demos, self.problem.cost_matrix, world)
        return ended, np.maximum(peaks[back], self.size(ended))


def _inverse(order: IntArray) -> IntArray:
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return back


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
