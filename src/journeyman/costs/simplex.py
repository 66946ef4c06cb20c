"""The simplex, the paper's C_convex: cost at most as much as the expert in every single cost."""

import math

import numpy as np

from journeyman.arrays import FloatArray, Matrix, dense
from journeyman.costs.cost_class import (
    LARGEST,
    OneSided,
    Rate,
    Totals,
    WeightSet,
    in_simplex,
    soft_maximum,
)


class Simplex(OneSided):
    """w / scale is a mixture of the basis costs: be at most as bad as the expert in each of them.

    One-sided: gap(z) < 0 when the policy does better than the expert in every cost. Of the policies
    of least gap solvers take one whose costs, scaled and summed, are smallest.

    >>> Simplex().gap([-1.0, -2.0])
    -1.0
    """

    name = "simplex"
    code = LARGEST
    has_surplus = True

    def _gap(self, z: FloatArray) -> float:
        return float(z.max())

    def _row_gaps(self, matrix: Matrix) -> FloatArray:
        return np.asarray(dense(matrix).max(axis=1))

    def _worst_case(self, z: FloatArray) -> FloatArray:
        weights = np.zeros_like(z)
        weights[np.argmax(z)] = 1.0
        return weights

    def _admit(self, w: FloatArray) -> FloatArray:
        return in_simplex(w)

    def _image_bound(self, matrix: FloatArray) -> float:
        return float(np.linalg.norm(matrix, axis=0).max())

    def probes(self, num_costs: int) -> tuple[FloatArray, ...]:
        """The vertices."""
        return (np.diag(self.scaling(num_costs)),)

    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        """Hoeffding for every cost."""
        events, name, count = (2, "two-sided", "2n") if two_sided else (1, "one-sided", "n")
        widest = float(totals.ranges(self.scaling(totals.num_costs)).max())
        scale = widest * math.sqrt(math.log(events * totals.num_costs / delta) / 2)
        return (Rate(name, scale, f"max_i R_i sqrt(log({count}/delta)/(2m))"),)

    def _smoothed(self, z: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """r = sum_i w_i log w_i: softmax(z/t)."""
        return soft_maximum(z, temperature)

    def smoothing_error(self, num_costs: int) -> float:
        return max(float(np.log(num_costs)), 0.1)

    def weight_set(self, num_costs: int) -> WeightSet:
        return WeightSet.hull(self.scaling(num_costs))
