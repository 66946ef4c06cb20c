"""Features Phi and their builders."""

from journeyman.features.base import (
    DrawnFeatures,
    Features,
    JoinedFeatures,
    concatenate,
    occupancies,
)
from journeyman.features.cells import Bumps, HardCells, Hats, Membership
from journeyman.features.factored import (
    FactoredFeatures,
    cloned,
    factored,
    marginals,
    single_actions,
)
from journeyman.features.partition import (
    BaseMeasure,
    ClonedVisits,
    Flat,
    GivenBase,
    SmoothedVisits,
    partition,
)
from journeyman.features.tensor import (
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
    "DrawnFeatures",
    "EvenKnots",
    "FactoredFeatures",
    "Features",
    "Flat",
    "GivenBase",
    "GivenKnots",
    "HardCells",
    "Hats",
    "JoinedFeatures",
    "Membership",
    "ProductOfVisits",
    "QuantileKnots",
    "SmoothedVisits",
    "cloned",
    "concatenate",
    "factored",
    "marginals",
    "occupancies",
    "partition",
    "single_actions",
    "tensor",
]
