"""The frozen lake: a world that Gymnasium can play and journeyman can evaluate exactly."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

import journeyman as jm

LIMIT = 100
"""Steps after which Gymnasium ends an episode of FrozenLake-v1."""


@pytest.fixture(scope="session")
def lake():
    """World, rewards per pair and two policies, of which one gets somewhere and one hardly ever."""
    environment = gymnasium.make("FrozenLake-v1")
    world = jm.World.from_gymnasium(environment, discount=0.95)
    reward = jm.expected_rewards(environment)
    uniform = jm.Policy.uniform(world)
    skilled = jm.plan(world, -reward).policy.mixed_with(uniform, 0.1)
    return SimpleNamespace(world=world, reward=reward, skilled=skilled, lost=uniform)


@pytest.fixture(scope="session")
def exact(lake):
    """The expected undiscounted return of a policy within the time limit, by recursion."""

    def within_the_limit(policy):
        values = np.zeros(lake.world.num_states)
        for _ in range(LIMIT):
            later = lake.reward + lake.world.transition @ values
            values = lake.world.pairs.total(policy.on(lake.world) * later)
        return float(lake.world.initial @ values)

    return within_the_limit
