"""What a gallery piece consists of."""

from typing import NamedTuple

from journeyman.costs import CostBasis
from journeyman.demonstrations import ExpertExpectation
from journeyman.policy import Policy
from journeyman.world import World


class Example(NamedTuple):
    """A world, the costs that may matter there, and an expert.

    The expert is a policy to record demonstrations of, or expectations from the literature.
    """

    world: World
    basis: CostBasis
    expert: Policy | ExpertExpectation
