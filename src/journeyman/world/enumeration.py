"""A large world written out as an explicit one, when it is not that large after all."""

from itertools import pairwise
from typing import Any, cast

import numpy as np
from scipy import sparse

from journeyman.arrays import IntArray, SparseMatrix
from journeyman.errors import InvalidWorld
from journeyman.world.large_world import LargeWorld
from journeyman.world.world import World

BLOCK = 1 << 16
"""States whose successors are asked for at a time."""
MOST_PAIRS = 20_000_000
"""With five branches each, transition matrices beyond this have more than a gigabyte."""


def enumerate_world(world: LargeWorld, **more: Any) -> World:
    """The same world with a transition matrix; `more` is what else `World` takes.

    Cost: every pair once. Peak memory is about four times that of the matrix.
    """
    require_few_pairs(world)
    initial = np.concatenate([world.initial_probability(states) for states in _blocks(world)])
    return World(transition_matrix_of(world), initial, world.discount, **more)


def require_few_pairs(world: LargeWorld) -> None:
    """Refuse to list a world that is too large for it."""
    num_pairs = world.num_states * world.num_actions
    if num_pairs > MOST_PAIRS:
        raise InvalidWorld(
            f"the world has {num_pairs:.3g} state-action pairs, too many to list",
            f"Take a smaller one (up to {MOST_PAIRS:.0e} pairs), or work with its callables",
        )


def transition_matrix_of(world: LargeWorld) -> SparseMatrix:
    """(pairs x states), state-major."""
    actions = np.arange(world.num_actions)
    data, reached, counts = [], [], []
    for states in _blocks(world):
        following = world.successors(np.repeat(states, actions.size), np.tile(actions, states.size))
        used = following.probabilities > 0
        data.append(following.probabilities[used])
        reached.append(following.states[used].astype(_index(world.num_states)))
        counts.append(used.sum(axis=1))
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    starts = starts.astype(_index(int(starts[-1])))
    return sparse.csr_array(
        (np.concatenate(data), np.concatenate(reached), starts),
        shape=(world.num_states * world.num_actions, world.num_states),
    )


def _index(largest: int) -> type[np.integer[Any]]:
    """32 bits where they suffice."""
    return cast(type[np.integer[Any]], sparse.get_index_dtype(maxval=largest))


def _blocks(world: LargeWorld) -> list[IntArray]:
    ends = [*range(0, world.num_states, BLOCK), world.num_states]
    return [np.arange(first, last) for first, last in pairwise(ends)]
