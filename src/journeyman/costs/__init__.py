"""What may matter: the cost basis and the classes of costs it spans."""

from journeyman.costs.basis import CostBasis
from journeyman.costs.classes import (
    CostClass,
    EuclideanBall,
    InfinityBall,
    KnownCost,
    Simplex,
)

__all__ = ["CostBasis", "CostClass", "EuclideanBall", "InfinityBall", "KnownCost", "Simplex"]
