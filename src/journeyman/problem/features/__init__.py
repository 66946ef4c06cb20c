"""Features Phi and their builders."""

from journeyman.problem.features.cell_cloning import cloned
from journeyman.problem.features.cells import Bumps, HardCells, Hats, Membership
from journeyman.problem.features.factored import (
    FactoredFeatures,
    factored,
    marginals,
    single_actions,
)
from journeyman.problem.features.features import Features, concatenate
from journeyman.problem.features.joined import JoinedFeatures
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
