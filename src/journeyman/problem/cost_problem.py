"""What statistics and penalties need to know of a problem, whatever kind its world is of."""

from typing import Protocol

from journeyman.arrays import FloatArray, Matrix
from journeyman.costs import CostBasis, CostClass


class CostProblem(Protocol):
    """Costs with their range, the class of their weights, a target and the horizon."""

    @property
    def basis(self) -> CostBasis: ...

    @property
    def cost_matrix(self) -> Matrix: ...

    @property
    def cost_class(self) -> CostClass: ...

    @property
    def target(self) -> FloatArray: ...

    @property
    def effective_horizon(self) -> float: ...

    @property
    def gap_scale(self) -> float: ...

    @property
    def trivial_bound(self) -> float: ...
