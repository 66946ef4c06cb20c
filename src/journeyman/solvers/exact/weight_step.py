"""The step of the weights: a concave quadratic over the dual set, by an interior-point method.

    maximise  <gradient, y - y0> - (y - y0)' curvature (y - y0)/2     over y in Y

where Y is the set of weights and prices (`dual_set.DualSet`), in as many dimensions as there are
costs and budgets. The unknown is the step y - y0, so that short steps are as exact as long ones.

Cost per iteration: one Cholesky factor of (costs + budgets)^2.

Reference: Mehrotra, "On the implementation of a primal-dual interior point method", 1992.
"""

import numpy as np
from scipy.linalg import LinAlgError

from journeyman.arrays import FloatArray
from journeyman.solvers.exact.dual_interior import InteriorWeights, WeightChange, WeightSystem
from journeyman.solvers.exact.dual_set import DualSet

MOST_ITERATIONS = 60
TO_THE_BOUNDARY = 0.995
SMALL = 1e-12


def weight_step(
    duals: DualSet, start: FloatArray, gradient: FloatArray, curvature: FloatArray, accuracy: float
) -> FloatArray:
    """The maximiser, to within `accuracy` of the value. Both it and `start` are the coordinates v
    of a point of Y (`DualSet.lifted`); gradient and curvature are those of weights and prices."""
    return _QuadraticProgram(duals, start, gradient, curvature).solve(accuracy)


class _QuadraticProgram:
    """The step from `start`, and the point that it leads to with its multipliers."""

    def __init__(
        self, duals: DualSet, start: FloatArray, gradient: FloatArray, curvature: FloatArray
    ) -> None:
        self.start, self.first = start, duals.lifted(gradient)
        self.matrix = duals.lifted(duals.lifted(curvature).T)
        self.step = duals.middle() - start
        slope = self._slope()
        self.point = InteriorWeights.start(duals, slope, float(np.abs(slope).mean()) + SMALL)
        self.width = duals.upper - duals.lower

    def _slope(self) -> FloatArray:
        return np.asarray(self.first - self.matrix @ self.step)

    def solve(self, accuracy: float) -> FloatArray:
        with np.errstate(all="ignore"):  # bounds may be reached; what is not finite ends the loop
            for _ in range(MOST_ITERATIONS):
                if self._missed() <= accuracy or not self._advance():
                    break
        return self.start + self.step

    def _missed(self) -> float:
        point = self.point
        missed = float(np.abs(point.balance(self._slope())) @ self.width)
        missed += float(np.abs(point.left).sum() * (1 + np.abs(point.total).max(initial=0.0)))
        return max(point.product, missed)

    def _advance(self) -> bool:
        """One step of predictor and corrector; False when the arithmetic has given out."""
        point, nothing = self.point, np.zeros_like(self.step)
        try:
            system = WeightSystem(point, self._slope(), self.matrix)
            first = system.change(point.emptied(), nothing, repair=True)
            length = min(point.reach(first))
            after = point.moved(first, length, length).product
            mean = point.product / point.num_products
            goal = mean * min(1.0, max(after, 0.0) / point.product) ** 3
            second = system.change(system.raised(goal, first), nothing, repair=False)
        except (LinAlgError, ValueError, ZeroDivisionError):  # no factor, or nothing finite
            return False
        step: WeightChange = first.plus(second)
        length = TO_THE_BOUNDARY * min(point.reach(step))
        if not np.isfinite(step.v).all() or length < 1e-10:
            return False
        self.step = self.step + length * step.v
        self.point = point.moved(step, length, length)
        return True
