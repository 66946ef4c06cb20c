"""One cost, known: the class behind `Forward` problems, where a gap is an expected total cost."""

import numpy as np

from journeyman.arrays import FloatArray, Matrix, dense
from journeyman.costs.cost_class import HULL, OneSided, Rate, Totals, WeightSet
from journeyman.errors import InvalidCosts


class KnownCost(OneSided):
    """W = {1}: one cost, known. The class behind `Forward` problems.

    >>> KnownCost().gap([2.5])
    2.5
    """

    name = "known-cost"
    code = HULL
    is_known = True

    def scaling(self, num_costs: int) -> FloatArray:
        if num_costs != 1:
            raise InvalidCosts(
                f"a known cost is one cost, not {num_costs}",
                "Combine the columns with known weights first",
            )
        return super().scaling(num_costs)

    def _gap(self, z: FloatArray) -> float:
        return float(z[0])

    def _row_gaps(self, matrix: Matrix) -> FloatArray:
        return dense(matrix)[:, 0]

    def _worst_case(self, z: FloatArray) -> FloatArray:
        return np.ones(1)

    def _admit(self, w: FloatArray) -> FloatArray:
        return np.ones(1)

    def _image_bound(self, matrix: FloatArray) -> float:
        return float(np.linalg.norm(matrix))

    def probes(self, num_costs: int) -> tuple[FloatArray, ...]:
        return (self.scaling(num_costs)[np.newaxis],)

    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        """None is needed: there is no expert to estimate."""
        return ()

    def _smoothed(self, z: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        return float(z[0]), np.ones(1)

    def smoothing_error(self, num_costs: int) -> float:
        return 0.5

    def weight_set(self, num_costs: int) -> WeightSet:
        return WeightSet.point(self.scaling(num_costs))

    def _points(self, scale: FloatArray) -> FloatArray:
        return scale[np.newaxis]
