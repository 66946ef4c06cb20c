"""Code that saved runs of these tests name by reference."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import journeyman as jm
from mixtures import OnlySteps, random_policies, small_world


def small(seed=0, discount=0.8):
    """An explicit world as a world of callables, three costs, and four policies."""
    world, costs, _ = small_world(seed, discount)
    members = [
        jm.FunctionPolicy(Looked(one), world.num_actions)
        for one in random_policies(world, 4, seed=seed)
    ]
    return {"world": world, "costs": costs, "members": members, "stepped": OnlySteps(world)}


class Looked:
    """A function of states from a table."""

    def __init__(self, policy):
        self.policy = policy

    def __call__(self, states):
        return self.policy.probabilities(states)


def crowded(share=0.5):
    """Costs that exclude each other, with ranges around zero."""
    network = jm.gallery.queues(4, buffers=(2, 1, 1, 2), discount=0.8)

    def costs(states, actions):
        shares = (states % 3)[:, np.newaxis] == np.arange(3)
        return np.where(actions[:, np.newaxis] % 2, -share, 1.0) * shares

    exclusive = jm.CostFunctions(costs, list("abc"), lowest=-share, highest=1, largest=1)
    return SimpleNamespace(world=network.world, costs=exclusive, expert=network.longer)


class Always:
    """A rule that is asked by being called, with a share of chance."""

    def __init__(self, share):
        self.share = share

    def __call__(self, observations, rng):
        return (rng.random(len(observations)) < self.share).astype(int)


class Remembering:
    """A policy with `predict` and a state: it repeats its first action."""

    def __init__(self, rng=None):
        self.rng = rng

    def seeded(self, rng):
        return Remembering(rng)

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        first = self.rng.integers(2, size=len(observation)) if state is None else state
        return first, first


@dataclass(frozen=True, eq=False)
class Coins:
    """A simulator of coins: an action wins with its own chance, and may end the episode."""

    chance: float = 0.3
    discount: float = 0.8
    names: tuple[str, ...] = ("lost", "time")
    observation_axes: int = 0
    lowest: Any = (0.0, 0.0)
    highest: Any = (1.0, 1.0)

    def __post_init__(self):
        for name in ("lowest", "highest"):
            object.__setattr__(self, name, np.array(getattr(self, name)))

    def totals(self, policy, trajectories, horizon, rng):
        policy = policy.seeded(rng) if hasattr(policy, "seeded") else policy
        totals, state = np.zeros((trajectories, 2)), None
        ends = rng.integers(1, horizon + 1, size=trajectories)
        for t in range(horizon):
            seen = np.full(trajectories, t)
            if hasattr(policy, "predict"):
                actions, state = policy.predict(seen, state=state)
            else:
                actions = policy(seen, rng)
            lost = rng.random(trajectories) < self.chance * (1 + actions)
            running = t < ends
            totals += self.discount**t * running[:, np.newaxis] * np.column_stack([lost, running])
        unrecorded = np.where(ends < horizon, 0.0, self.discount**horizon / (1 - self.discount))
        return jm.EpisodeTotals(totals, unrecorded)


def simulated(chance=0.3):
    return SimpleNamespace(simulator=Coins(chance), rules=[Always(0.2), Always(0.9), Remembering()])
