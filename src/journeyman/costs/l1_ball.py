"""The l1 ball: one cost at a time can matter, in either direction."""

import math

import numpy as np

from journeyman.arrays import FloatArray, Matrix, dense
from journeyman.costs.cost_class import (
    HULL,
    Ball,
    Rate,
    Totals,
    WeightSet,
    soft_maximum,
)


class L1Ball(Ball):
    """sum_i |w_i / scale_i| <= 1: match the expert in every cost; only the worst of them counts.

    The gap is the largest difference of a single cost, where `InfinityBall` adds all of them up and
    `Simplex` counts only those in which the policy is worse.

    >>> L1Ball().gap([1.0, -2.0])
    2.0
    """

    name = "l1-ball"
    code = HULL

    def _gap(self, z: FloatArray) -> float:
        return float(np.abs(z).max())

    def _norm(self, w: FloatArray) -> float:
        return float(np.abs(w).sum())

    def _worst_case(self, z: FloatArray) -> FloatArray:
        weights, most = np.zeros_like(z), np.argmax(np.abs(z))
        weights[most] = np.sign(z[most])
        return weights

    def _admit(self, w: FloatArray) -> FloatArray:
        return np.asarray(w / max(1.0, self._norm(w)))

    def _row_gaps(self, matrix: Matrix) -> FloatArray:
        return np.asarray(np.abs(dense(matrix)).max(axis=1))

    def _pointwise_bound(self, matrix: Matrix) -> float:
        return float(abs(matrix).max())

    def _image_bound(self, matrix: FloatArray) -> float:
        return float(np.linalg.norm(matrix, axis=0).max())

    def probes(self, num_costs: int) -> tuple[FloatArray, ...]:
        """The vertices: both signs of every cost."""
        points = np.diag(self.scaling(num_costs))
        return (np.vstack([points, -points]),)

    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        """Hoeffding for both signs of every cost; the gap has the same two signs."""
        widest = float(totals.ranges(self.scaling(totals.num_costs)).max())
        scale = widest * math.sqrt(math.log(2 * totals.num_costs / delta) / 2)
        return (Rate("union", scale, "max_i R_i sqrt(log(2n/delta)/(2m))"),)

    def _smoothed(self, z: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Softmax over z/t and -z/t."""
        value, shares = soft_maximum(np.concatenate([z, -z]), temperature)
        return value, shares[: z.size] - shares[z.size :]

    def smoothing_error(self, num_costs: int) -> float:
        return float(np.log(2 * num_costs))

    def weight_set(self, num_costs: int) -> WeightSet:
        """Mixtures of +-scale_i e_i and zero."""
        points = np.diag(self.scaling(num_costs))
        return WeightSet.hull(np.hstack([points, -points, np.zeros((num_costs, 1))]))

    def _points(self, scale: FloatArray) -> FloatArray:
        return np.vstack([np.diag(scale), -np.diag(scale)])
