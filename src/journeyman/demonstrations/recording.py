"""Recording demonstrations of an expert in an explicit world."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from journeyman.arrays import IntArray, Seed, generator
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.errors import InvalidDemonstrations
from journeyman.policy import Policy
from journeyman.world import World
from journeyman.world.sampling import walk

HistoryExpert: TypeAlias = Callable[[IntArray, IntArray, np.random.Generator], int]
"""Called with the states x_0..x_t, the actions a_0..a_{t-1} and a generator; returns a_t."""


def record(
    world: World,
    expert: Policy | HistoryExpert,
    *,
    trajectories: int,
    horizon: int,
    seed: Seed,
) -> Demonstrations:
    """Independent trajectories of at most `horizon` steps.

    An episode that arrives in an absorbing state ends there as terminated; one that reaches
    `horizon` is truncated. The expert is a `Policy`, or a callable on the whole history so far.

    >>> world = World([[0, 1], [0, 1]], [1, 0], 0.9)
    >>> record(world, Policy([[1.0], [1.0]]), trajectories=3, horizon=5, seed=0)
    Demonstrations(3 episodes, 3 steps, 3 terminated)
    """
    for name, value in (("trajectories", trajectories), ("horizon", horizon)):
        if value < 1:
            raise InvalidDemonstrations(f"{name} = {value}", f"Record at least one of {name}")
    rng = generator(seed)
    if isinstance(expert, Policy):
        states, actions, lengths = walk(world, expert.on(world), trajectories, horizon, rng)
    else:
        states, actions, lengths = _follow(world, expert, trajectories, horizon, rng)
    steps = np.arange(horizon + 1)
    last = states[np.arange(trajectories), lengths]
    return Demonstrations(
        states[steps <= lengths[:, np.newaxis]],
        actions[steps[:-1] < lengths[:, np.newaxis]],
        np.concatenate([[0], np.cumsum(lengths)]),
        world.absorbing[last],
        choice_offsets=world.pairs.offsets,
    )


def _follow(
    world: World, expert: HistoryExpert, trajectories: int, horizon: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    states = np.zeros((trajectories, horizon + 1), dtype=np.int64)
    actions = np.zeros((trajectories, horizon), dtype=np.int64)
    lengths = np.full(trajectories, horizon)
    matrix = world.transition
    for k in range(trajectories):
        state = int(rng.choice(world.num_states, p=world.initial))
        states[k, 0] = state
        for t in range(horizon):
            action = expert(states[k, : t + 1], actions[k, :t], rng)
            if action not in range(world.pairs.actions_per_state[state]):
                raise InvalidDemonstrations(
                    f"the expert chose action {action} in state {state}, which has "
                    f"{world.pairs.actions_per_state[state]} actions",
                    "Return an action number from 0",
                )
            pair = world.pairs.offsets[state] + action
            row = slice(matrix.indptr[pair], matrix.indptr[pair + 1])
            state = int(rng.choice(matrix.indices[row], p=matrix.data[row]))
            actions[k, t], states[k, t + 1] = action, state
            if world.absorbing[state]:
                lengths[k] = t + 1
                break
    return states, actions, lengths
