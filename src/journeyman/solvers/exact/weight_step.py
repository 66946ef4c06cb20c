"""The step of the weights: a concave quadratic over the dual set, by an interior-point method.

    maximise  <gradient, y - y0> - (y - y0)' curvature (y - y0)/2     over y in Y

where Y is the set of weights and prices (`dual_set.DualSet`), in as many dimensions as there are
costs and budgets. The unknown is the step y - y0, so that short steps are as exact as long ones.

Cost per iteration: one Cholesky factor of (costs + budgets)^2.

Reference: Mehrotra, "On the implementation of a primal-dual interior point method", 1992.
"""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from journeyman.arrays import FloatArray
from journeyman.solvers.exact.dual_set import DualSet
from journeyman.solvers.norm_cone import ConePoint, ConeStep, Scaling, centre

MOST_ITERATIONS = 60
TO_THE_BOUNDARY = 0.995
RIDGE = 1e-14
LEAST_SLACK = 1e-300
SMALL = 1e-12


def weight_step(
    duals: DualSet, start: FloatArray, gradient: FloatArray, curvature: FloatArray, accuracy: float
) -> FloatArray:
    """The maximiser, to within `accuracy` of the value. Both it and `start` are the coordinates v
    of a point of Y (`DualSet.lifted`); gradient and curvature are those of weights and prices."""
    return _QuadraticProgram(duals, start, gradient, curvature).solve(accuracy)


class _QuadraticProgram:
    """The step of v, the multipliers of its bounds (high, low), of its equations and its ball."""

    def __init__(
        self, duals: DualSet, start: FloatArray, gradient: FloatArray, curvature: FloatArray
    ) -> None:
        self.set, self.start = duals, start
        self.slope = duals.lifted(gradient)
        self.matrix = duals.lifted(duals.lifted(curvature).T)
        self.ball = ball = slice(0, duals.num_lifted if duals.is_ball else 0)
        self.step = duals.middle() - start
        pressure = self._gradient(self.step)
        size = float(np.abs(pressure).mean()) + SMALL
        self.cone: ConePoint = centre(-pressure[ball], size)
        self.total = np.zeros_like(duals.right)
        pressure[ball] = 0.0
        self.high, self.low = np.maximum(pressure, 0.0) + size, np.maximum(-pressure, 0.0) + size

    def _gradient(self, step: FloatArray) -> FloatArray:
        return np.asarray(self.slope - self.matrix @ step)

    def solve(self, accuracy: float) -> FloatArray:
        with np.errstate(all="ignore"):  # bounds may be reached; what is not finite ends the loop
            for _ in range(MOST_ITERATIONS):
                self._measure()
                if max(self.gap, self.missed) <= accuracy or not self._advance():
                    break
        return self.start + self.step

    def _measure(self) -> None:
        here = self.start + self.step
        self.above = np.maximum(self.set.upper - self.start - self.step, LEAST_SLACK)
        self.below = np.maximum(self.start - self.set.lower + self.step, LEAST_SLACK)
        self.balance = -(self._gradient(self.step) - self.high + self.low)
        self.balance[self.ball] -= self.cone.z[1:]
        self.left = np.zeros(0)
        if self.set.right.size:
            self.balance += self.set.spread(self.total)
            self.left = self.set.totals(here) - self.set.right
        self.count = 2 * here.size + self.set.is_ball
        self.gap = float(self.high @ self.above + self.low @ self.below) + self.cone.product
        self.missed = float(np.abs(self.balance) @ (self.set.upper - self.set.lower))
        self.missed += float(np.abs(self.left).sum() * (1 + np.abs(self.total).max(initial=0.0)))

    def _advance(self) -> bool:
        """One step of predictor and corrector; False when the arithmetic has given out."""
        mean = self.gap / self.count
        try:
            self._factorise()
            first = self._direction(0.0, None)
            after = self._gap_after(first, self._length(first))
            goal = mean * min(1.0, max(after, 0.0) / self.gap) ** 3
            step = self._direction(goal, first)
        except (LinAlgError, ValueError, ZeroDivisionError):  # no factor, or nothing finite
            return False
        length = TO_THE_BOUNDARY * self._length(step)
        if not np.isfinite(step.y).all() or length < 1e-10:
            return False
        self.step = self.step + length * step.y
        self.high = self.high + length * step.high
        self.low = self.low + length * step.low
        self.total = self.total + length * step.total
        self.cone = self.cone.moved(step.cone, length, length)
        return True

    def _factorise(self) -> None:
        matrix = self.matrix.copy()
        diagonal = np.diag_indices_from(matrix)
        matrix[diagonal] += self.high / self.above + self.low / self.below
        self.scaling = Scaling(self.cone)
        if self.set.is_ball:
            self.stiffness = self.scaling.softened(np.eye(self.set.num_lifted), -1.0)
            matrix[self.ball, self.ball] += self.stiffness
        self.scale = 1 / np.sqrt(np.maximum(matrix[diagonal], np.finfo(float).tiny))
        matrix *= self.scale * self.scale[:, np.newaxis]
        matrix[diagonal] += RIDGE
        self.factor = cho_factor(matrix, overwrite_a=True)

    def _solved(self, right: FloatArray) -> FloatArray:
        scale = self.scale if right.ndim == 1 else self.scale[:, np.newaxis]
        return np.asarray(scale * cho_solve(self.factor, scale * right))

    def _direction(self, goal: float, first: "_Direction | None") -> "_Direction":
        """Newton towards products of `goal`, less what a `first` step of this kind would miss."""
        high, low = (np.full(self.high.size, goal) for _ in range(2))
        cone = self.cone.z
        if self.cone.is_there:
            cone = goal * self.cone.inverse - self.cone.z
        if first is not None:
            high, low = high + first.high * first.y, low - first.low * first.y
            if self.cone.is_there:
                cone = cone - self.scaling.second_order(first.cone)
        right = self.high - self.low - self.balance - high / self.above + low / self.below
        right[self.ball] += cone[1:]
        y = self._solved(right)
        total = np.zeros_like(self.set.right)
        if total.size:
            answers = self._solved(self.set.spread(np.eye(total.size)))
            total[:] = np.linalg.lstsq(
                np.atleast_2d(self.set.totals(answers)), self.set.totals(y) + self.left, rcond=None
            )[0]
            y = y - answers @ total
        pressure = self.stiffness @ y[self.ball] if self.set.is_ball else y[self.ball]
        return _Direction(
            y,
            high / self.above - self.high + self.high / self.above * y,
            low / self.below - self.low - self.low / self.below * y,
            self.scaling.step(cone, pressure),
            total,
        )

    def _length(self, step: "_Direction") -> float:
        lengths = (
            _longest(self.above, -step.y), _longest(self.below, step.y),
            _longest(self.high, step.high), _longest(self.low, step.low),
        )  # fmt: skip
        return min(*lengths, *self.cone.reach(step.cone))

    def _gap_after(self, step: "_Direction", length: float) -> float:
        products = (self.high + length * step.high) @ (self.above - length * step.y)
        products += (self.low + length * step.low) @ (self.below + length * step.y)
        return float(products) + self.cone.moved(step.cone, length, length).product


class _Direction:
    """A step of all variables."""

    def __init__(
        self, y: FloatArray, high: FloatArray, low: FloatArray, cone: ConeStep, total: FloatArray
    ) -> None:
        self.y, self.high, self.low, self.cone, self.total = y, high, low, cone, total


def _longest(values: FloatArray, step: FloatArray) -> float:
    """The largest part of a step, up to 1, that keeps values nonnegative."""
    shrinking = step < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, float((-values[shrinking] / step[shrinking]).min()))
