"""The Euclidean ball, the paper's C_lin,2."""

import math

import numpy as np

from journeyman.arrays import FloatArray, Matrix
from journeyman.costs.cost_class import (
    BALL,
    Ball,
    Rate,
    Totals,
    WeightSet,
    quadratic_smoothing,
)


class EuclideanBall(Ball):
    """|w / scale|_2 <= 1.

    >>> EuclideanBall().gap([3.0, -4.0])
    5.0
    """

    name = "euclidean-ball"
    is_round = True
    code = BALL

    def _gap(self, z: FloatArray) -> float:
        return float(np.linalg.norm(z))

    def _worst_case(self, z: FloatArray) -> FloatArray:
        norm = float(np.linalg.norm(z))
        return z / norm if norm > 0 else np.zeros_like(z)

    def _admit(self, w: FloatArray) -> FloatArray:
        return np.asarray(w / max(1.0, float(np.linalg.norm(w))))

    def _norm(self, w: FloatArray) -> float:
        return float(np.linalg.norm(w))

    def _row_gaps(self, matrix: Matrix) -> FloatArray:
        return np.asarray(np.sqrt((matrix * matrix).sum(axis=1)))

    def _image_bound(self, matrix: FloatArray) -> float:
        return float(np.linalg.norm(matrix, ord=2))

    def probes(self, num_costs: int) -> tuple[FloatArray, ...]:
        """None: all of it is round."""
        return ()

    def combined(self, tops: FloatArray) -> float:
        return 0.0

    def axes(self, num_costs: int) -> FloatArray:
        return self.scaling(num_costs)

    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        """McDiarmid: a trajectory moves |error|_2 by at most 2 N2 h/m; its mean is below N2 h."""
        euclidean = totals.norm(EuclideanBall(self.scaling(totals.num_costs)))
        scale = euclidean * (1 + math.sqrt(2 * math.log(1 / delta)))
        return (Rate("McDiarmid", scale, "N2 h (1 + sqrt(2 log(1/delta)))/sqrt(m)"),)

    def _smoothed(self, z: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """r = |w|^2/2: z/max(|z|, t)."""
        return quadratic_smoothing(z, z / max(float(np.linalg.norm(z)), temperature), temperature)

    def smoothing_error(self, num_costs: int) -> float:
        return 0.5

    def weight_set(self, num_costs: int) -> WeightSet:
        return WeightSet.ball(self.scaling(num_costs))
