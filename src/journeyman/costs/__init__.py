"""What may matter: the cost basis and the classes of costs it spans."""

from journeyman.costs.basis import CostBasis
from journeyman.costs.classes import (
    CostClass,
    EuclideanBall,
    InfinityBall,
    KnownCost,
    Simplex,
)
from journeyman.costs.functions import CostFunctions

__all__ = [
    "CostBasis", "CostClass", "CostFunctions", "EuclideanBall", "InfinityBall", "KnownCost",
    "Simplex",
]  # fmt: skip
