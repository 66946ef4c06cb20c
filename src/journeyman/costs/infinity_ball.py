"""The infinity ball, the paper's C_lin: match the expert in every cost, in both directions."""

import math
from itertools import product

import numpy as np

from journeyman.arrays import FloatArray, Matrix
from journeyman.costs.cost_class import (
    BOX,
    Ball,
    Rate,
    Totals,
    WeightSet,
    quadratic_smoothing,
)
from journeyman.costs.euclidean_ball import EuclideanBall

ENUMERATION_LIMIT = 20
"""Up to this many costs the constant K_psi is computed exactly."""
MOST_SIGNS = 16
"""Costs of which all patterns of signs are probed together."""


class InfinityBall(Ball):
    """|w_i| <= scale_i: match the expert in every cost, in both directions.

    >>> InfinityBall().gap([1.0, -2.0])
    3.0
    """

    name = "infinity-ball"
    code = BOX

    def _gap(self, z: FloatArray) -> float:
        return float(np.abs(z).sum())

    def _worst_case(self, z: FloatArray) -> FloatArray:
        return np.sign(z)

    def _admit(self, w: FloatArray) -> FloatArray:
        return np.clip(w, -1.0, 1.0)

    def _norm(self, w: FloatArray) -> float:
        return float(np.abs(w).max())

    def _row_gaps(self, matrix: Matrix) -> FloatArray:
        return np.asarray(abs(matrix).sum(axis=1))

    def _image_bound(self, matrix: FloatArray) -> float:
        """The largest norm over all signs; beyond 20 costs the sum of the column norms."""
        num_costs = matrix.shape[1]
        if num_costs > ENUMERATION_LIMIT:
            return float(np.linalg.norm(matrix, axis=0).sum())
        gram = matrix.T @ matrix
        half = min(num_costs, 12)
        inner = np.array(list(product((-1.0, 1.0), repeat=half)))
        largest = 0.0
        for outer in product((-1.0, 1.0), repeat=num_costs - half):
            signs = np.hstack([inner, np.tile(outer, (len(inner), 1))])
            largest = max(largest, float(np.einsum("ki,ij,kj->k", signs, gram, signs).max()))
        return float(np.sqrt(largest))

    def quadratic_bound(self, spread: FloatArray) -> tuple[FloatArray, float]:
        """sum_i k_i |x_i| <= sqrt(sum_i k_i^2 s_i) sqrt(sum_i x_i^2/s_i), k the scale; best with
        s_i = spread_i/k_i."""
        scale = self.scaling(spread.size)
        weights = spread / scale
        return weights, float(np.sqrt((scale**2 * weights).sum()))

    def deviation(self, errors: FloatArray) -> float:
        return float((self.scaling(errors.size) * errors).sum())

    def probes(self, num_costs: int) -> tuple[FloatArray, ...]:
        """All patterns of signs; of more than 16 costs those of each of several parts."""
        scale, parts = np.diag(self.scaling(num_costs)), math.ceil(num_costs / MOST_SIGNS)
        return tuple(
            _signs(len(part)) @ scale[part] for part in np.array_split(np.arange(num_costs), parts)
        )

    def combined(self, tops: FloatArray) -> float:
        return float(tops.sum())

    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        """Hoeffding for every cost; for every sign pattern, whose total lies within +-N h; and
        McDiarmid, since a trajectory moves the gap of the error by at most 2 N h/m and the mean
        error, sqrt(n) times its Euclidean norm, is at most sqrt(n/m) N2 h."""
        n, scale = totals.num_costs, self.scaling(totals.num_costs)
        width = 2 * totals.norm(self)
        union = float(totals.ranges(scale).sum()) * math.sqrt(math.log(2 * n / delta) / 2)
        signs = width * math.sqrt((n * math.log(2) + math.log(1 / delta)) / 2)
        mean = math.sqrt(n) * totals.norm(EuclideanBall(scale))
        mcdiarmid = mean + width * math.sqrt(math.log(1 / delta) / 2)
        return (
            Rate("union", union, "sum_i R_i sqrt(log(2n/delta)/(2m))"),
            Rate("signs", signs, "2 N h sqrt((n log 2 + log(1/delta))/(2m))"),
            Rate("McDiarmid", mcdiarmid, "sqrt(n/m) N2 h + 2 N h sqrt(log(1/delta)/(2m))"),
        )

    def _smoothed(self, z: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """r = |w|^2/2: z/t, cut off at +-1."""
        return quadratic_smoothing(z, np.clip(z / temperature, -1.0, 1.0), temperature)

    def smoothing_error(self, num_costs: int) -> float:
        return num_costs / 2

    def weight_set(self, num_costs: int) -> WeightSet:
        return WeightSet.box(self.scaling(num_costs))


def _signs(count: int) -> FloatArray:
    """All patterns, one a row."""
    bits = np.arange(1 << count)[:, np.newaxis] >> np.arange(count)
    return np.asarray(2 * (bits & 1) - 1, dtype=float)
