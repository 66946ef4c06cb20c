"""Recording demonstrations of an expert in an explicit world."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from journeyman.arrays import IntArray, Seed, generator, read_only, require_whole
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.errors import InvalidDemonstrations
from journeyman.policy import Policy
from journeyman.policy.acting import StatePolicy
from journeyman.world import World
from journeyman.world.large_world import AnyWorld, require_sampled_world
from journeyman.world.sampling import Walks, walk

HistoryExpert: TypeAlias = Callable[[IntArray, IntArray, np.random.Generator], int]
"""Called with the states x_0..x_t, the actions a_0..a_{t-1} and a generator; returns a_t."""


def record(
    world: World | AnyWorld,
    expert: Policy | StatePolicy | HistoryExpert,
    *,
    trajectories: int,
    horizon: int | None = None,
    seed: Seed,
) -> Demonstrations:
    """Independent trajectories of at most `horizon` steps, which need not be given in a world that
    has a horizon of its own, nor for a policy that has one: that acts by the step also in a world
    without. Of a world of average costs they are those of its base world.

    An episode that arrives in an absorbing state ends there as terminated; one that reaches
    `horizon` is truncated. The expert is a `Policy`, or a callable on the whole history so far. In
    a `LargeWorld` it is a policy that is asked state by state, and every walk is truncated.

    >>> world = World([[0, 1], [0, 1]], [1, 0], 0.9)
    >>> record(world, Policy([[1.0], [1.0]]), trajectories=3, horizon=5, seed=0)
    Demonstrations(3 episodes, 3 steps, 3 terminated)
    """
    layers = getattr(world, "layers", None)
    steps = layers.horizon if layers is not None else getattr(expert, "horizon", None)
    horizon = steps if horizon is None else horizon
    for name, value in (("trajectories", trajectories), ("horizon", horizon)):
        require_whole(name, value, 1, InvalidDemonstrations)
    assert horizon is not None
    rng = generator(seed)
    if not isinstance(world, World):
        return _in_large_world(world, expert, trajectories, horizon, rng)
    if world.averages is not None and isinstance(expert, Policy):
        expert = world.averages.policy(expert)
    world = world.of_records
    if isinstance(expert, Policy) and expert.horizon is not None and layers is None:
        expert = _by_step(expert, world, horizon)
    if isinstance(expert, Policy):
        walks = walk(world, expert.on(world), trajectories, horizon, rng)
    elif callable(expert):
        walks = _follow(world, expert, trajectories, horizon, rng)
    else:
        raise InvalidDemonstrations(
            f"the expert is a {type(expert).__name__}",
            "Give a Policy, or a function of (states, actions, generator) that returns an action",
        )
    offsets = np.concatenate([[0], np.cumsum(walks.lengths)])
    last = walks.states[offsets[1:] + np.arange(trajectories)]
    return Demonstrations(
        walks.states,
        walks.actions,
        offsets,
        world.absorbing[last],
        choice_offsets=world.pairs,
    )


def _by_step(policy: Policy, world: World, horizon: int) -> HistoryExpert:
    """A policy that depends on time, in the world without its horizon."""
    first, steps = policy.at_step(0), policy.horizon
    if first.pairs != world.pairs or steps is None or horizon > steps:
        raise InvalidDemonstrations(
            f"the expert is a policy for {steps} steps in {first.num_states} states, asked for "
            f"{horizon} steps in {world.num_states} states",
            f"Record it in its own world, with horizon={steps} at most",
        )

    def act(states: IntArray, actions: IntArray, rng: np.random.Generator) -> int:
        return int(policy.sample([actions.size * world.num_states + states[-1]], rng)[0])

    return act


def _in_large_world(
    world: AnyWorld, expert: Any, trajectories: int, horizon: int, rng: np.random.Generator
) -> Demonstrations:
    from journeyman.demonstrations.row_by_row import require_row_by_row
    from journeyman.demonstrations.simulation import record_walks

    if not (hasattr(expert, "sample") and hasattr(expert, "probabilities")):
        raise InvalidDemonstrations(
            f"the expert is a {type(expert).__name__}",
            "Give a policy with probabilities(states) and sample(states, seed), for example "
            "jm.FunctionPolicy(function, num_actions)",
        )
    require_row_by_row(expert, require_sampled_world(world))
    return record_walks(world, expert, trajectories, horizon, rng)


def _follow(
    world: World, expert: HistoryExpert, trajectories: int, horizon: int, rng: np.random.Generator
) -> Walks:
    all_states, all_actions, all_pairs, lengths = [], [], [], np.empty(trajectories, dtype=np.int64)
    for k in range(trajectories):
        states, actions = np.zeros(horizon + 1, np.int64), np.zeros(horizon, np.int64)
        pairs = np.zeros(horizon, np.int64)
        states[0] = rng.choice(world.num_states, p=world.initial)
        length = 0
        while length < horizon and not (world.absorbing[states[length]] and length > 0):
            state = int(states[length])
            history = read_only(states[: length + 1].copy()), read_only(actions[:length].copy())
            pair = _chosen_pair(world, state, expert(*history, rng))
            row = world.transition[[pair]]
            pairs[length], actions[length] = pair, world.pairs.actions[pair]
            states[length + 1] = rng.choice(row.indices, p=row.data)
            length += 1
        lengths[k] = length
        all_states.append(states[: length + 1])
        all_actions.append(actions[:length])
        all_pairs.append(pairs[:length])
    return Walks(
        np.concatenate(all_states),
        np.concatenate(all_actions),
        lengths,
        np.concatenate(all_pairs),
    )


def _chosen_pair(world: World, state: int, chosen: object) -> int:
    number = int(chosen) if isinstance(chosen, int | np.integer) else -1
    number, pairs = min(number, world.pairs.width), world.pairs
    if not pairs.offers(np.array([state]), np.array([number]))[0]:
        raise InvalidDemonstrations(
            f"the expert chose action {chosen!r} in state {state}, which has "
            f"{pairs.actions_per_state[state]} of them, {pairs.actions_in_words(state)}",
            "Return an action number from 0"
            if pairs.numbers is None
            else "Return the number of an action that the state has",
        )
    return int(pairs.index([state], [number])[0])
