"""What a gallery piece consists of."""

from typing import NamedTuple

from journeyman.costs import CostBasis
from journeyman.demonstrations import ExpertExpectation
from journeyman.policy import Policy
from journeyman.world import World


class Example(NamedTuple):
    """A world, the costs that may matter there, and an expert to record."""

    world: World
    basis: CostBasis
    expert: Policy


class PublishedExample(NamedTuple):
    """A world, its costs, and an expert of whom only the published expectations are known."""

    world: World
    basis: CostBasis
    expert: ExpertExpectation
