"""What a gallery piece consists of."""

from typing import NamedTuple

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs import CostBasis
from journeyman.demonstrations import ExpertExpectation
from journeyman.policy import Policy, plan, soft_plan
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


class HiddenCostExample(NamedTuple):
    """A world, component features of costs, an expert, and the expert's own cost."""

    world: World
    basis: CostBasis
    expert: Policy
    cost: FloatArray
    """Of every state. Methods do not see it, and no combination of the basis need be equal to
    it."""


def expert_of_cost(world: World, cost: FloatArray, temperature: float) -> Policy:
    """The optimal expert for a cost, or at a temperature above 0 the soft-optimal one."""
    if temperature == 0:
        return plan(world, cost).policy
    return soft_plan(world, cost, temperature=temperature).policy


def expert_of_hidden_cost(
    world: World, basis: CostBasis, rng: np.random.Generator, randomness: float
) -> Policy:
    """An expert that follows a cost which the apprentice does not know: optimal for weights drawn
    from U[-1, 1], mixed with a share of uniform actions."""
    weights = rng.uniform(-1.0, 1.0, basis.num_costs)
    best = plan(world, basis.on(world) @ weights).policy
    return best.mixed_with(Policy.uniform(world), randomness)
