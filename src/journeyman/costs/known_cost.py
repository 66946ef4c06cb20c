"""One cost, known: the class behind `Forward` problems, where a gap is an expected total cost."""

import numpy as np

from journeyman.arrays import FloatArray, Matrix
from journeyman.costs.cost_class import HULL, KernelForm, Rate, ScaledClass, Totals, WeightSet
from journeyman.errors import InvalidCosts


class KnownCost(ScaledClass):
    """W = {1}: one cost, known. The class behind `Forward` problems.

    >>> KnownCost().gap([2.5])
    2.5
    """

    name = "known-cost"
    is_known = True

    @property
    def contains_zero(self) -> bool:
        return False

    def scaling(self, num_costs: int) -> FloatArray:
        if num_costs != 1:
            raise InvalidCosts(
                f"a known cost is one cost, not {num_costs}",
                "Combine the columns with known weights first",
            )
        return super().scaling(num_costs)

    def _gap(self, z: FloatArray) -> float:
        return float(z[0])

    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(high)

    def _least_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(low)

    def easiest(self, low: FloatArray, high: FloatArray) -> FloatArray:
        return low

    def _worst_case(self, z: FloatArray) -> FloatArray:
        return np.ones(1)

    def _admit(self, w: FloatArray) -> FloatArray:
        return np.ones(1)

    def _pointwise_bound(self, matrix: Matrix) -> float:
        return float(abs(matrix).max())

    def _image_bound(self, matrix: FloatArray) -> float:
        return float(np.linalg.norm(matrix))

    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        """None is needed: there is no expert to estimate."""
        return ()

    def _smoothed(self, z: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        return float(z[0]), np.ones(1)

    def smoothing_error(self, num_costs: int) -> float:
        return 0.5

    def weight_set(self, num_costs: int) -> WeightSet:
        return WeightSet.point(self.scaling(num_costs))

    def kernel_form(self, num_costs: int) -> KernelForm:
        scale = self.scaling(num_costs)
        return KernelForm(HULL, scale, np.zeros(1), scale[np.newaxis])
