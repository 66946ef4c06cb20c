"""Features Phi and their builders."""

from journeyman.problem.features.cells import Bumps, HardCells, Hats, Membership
from journeyman.problem.features.features import Features, concatenate
from journeyman.problem.features.occupancies import occupancies
from journeyman.problem.features.partition import (
    BaseMeasure,
    ClonedVisits,
    Flat,
    GivenBase,
    SmoothedVisits,
    partition,
)
from journeyman.problem.features.tensor import (
    EvenKnots,
    GivenKnots,
    ProductOfVisits,
    QuantileKnots,
    tensor,
)

__all__ = [
    "BaseMeasure",
    "Bumps",
    "ClonedVisits",
    "EvenKnots",
    "Features",
    "Flat",
    "GivenBase",
    "GivenKnots",
    "HardCells",
    "Hats",
    "Membership",
    "ProductOfVisits",
    "QuantileKnots",
    "SmoothedVisits",
    "concatenate",
    "occupancies",
    "partition",
    "tensor",
]
