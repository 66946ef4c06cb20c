"""Walks in a world that is only known by its callables, many at a time.

All walks take a step together, so the cost is that of `horizon` vectorised calls. Nothing ends
early: a world of callables does not say which states are absorbing.
"""

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.costs.functions import CostFunctions
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.policy.acting import StatePolicy
from journeyman.world.large_world import AnyWorld, first_states, sampled_step


def record_walks(
    world: AnyWorld, expert: StatePolicy, trajectories: int, horizon: int, rng: np.random.Generator
) -> Demonstrations:
    """Independent trajectories of exactly `horizon` steps."""
    states = np.empty((trajectories, horizon + 1), dtype=np.int64)
    actions = np.empty((trajectories, horizon), dtype=np.int64)
    states[:, 0] = first_states(world, rng, trajectories)
    for t in range(horizon):
        actions[:, t], states[:, t + 1] = _step(world, expert, states[:, t], rng)
    offsets = np.arange(trajectories + 1) * horizon
    return Demonstrations(states.ravel(), actions.ravel(), offsets)


def walk_totals(
    world: AnyWorld,
    policy: StatePolicy,
    costs: CostFunctions,
    trajectories: int,
    horizon: int,
    rng: np.random.Generator,
) -> FloatArray:
    """sum_{t < horizon} discount^t psi(x_t, a_t) of independent walks, (walks x costs)."""
    here = first_states(world, rng, trajectories)
    totals = np.zeros((trajectories, costs.num_costs))
    for t in range(horizon):
        actions, following = _step(world, policy, here, rng)
        totals += world.discount**t * costs.at(here, actions)
        here = following
    return totals


def _step(
    world: AnyWorld, policy: StatePolicy, here: IntArray, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    actions = np.asarray(policy.sample(here, rng))
    return actions, sampled_step(world, rng, here, actions)
