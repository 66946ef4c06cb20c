"""What a gallery piece consists of."""

from typing import NamedTuple

import numpy as np

from journeyman.costs import CostBasis
from journeyman.demonstrations import ExpertExpectation
from journeyman.policy import Policy, plan
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


def expert_of_hidden_cost(
    world: World, basis: CostBasis, rng: np.random.Generator, randomness: float
) -> Policy:
    """An expert that follows a cost which the apprentice does not know: optimal for weights drawn
    from U[-1, 1], mixed with a share of uniform actions."""
    weights = rng.uniform(-1.0, 1.0, basis.num_costs)
    best = plan(world, basis.on(world) @ weights).policy
    return best.mixed_with(Policy.uniform(world), randomness)
