"""Trajectories of a world under a stationary policy, by one compiled kernel.

Each step uses two uniform numbers, one for the action and one for the next state, drawn in the
order (trajectory, step). The result depends on the seed alone, not on how the work is cut.
"""

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.compiled import kernel
from journeyman.world.world import World

BLOCK = 1 << 22
"""Uniform numbers held at a time."""


def walk(
    world: World,
    probabilities: FloatArray,
    trajectories: int,
    horizon: int,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray, IntArray]:
    """(states, actions, lengths) with padded rows; a walk ends on arrival in an absorbing state."""
    states = np.empty((trajectories, horizon + 1), dtype=np.int64)
    actions = np.empty((trajectories, horizon), dtype=np.int64)
    lengths = np.empty(trajectories, dtype=np.int64)
    states[:, 0] = rng.choice(world.num_states, size=trajectories, p=world.initial)
    matrix = world.transition
    block = max(1, BLOCK // (2 * horizon))
    for first in range(0, trajectories, block):
        rows = slice(first, min(first + block, trajectories))
        uniforms = rng.random((rows.stop - rows.start, horizon, 2))
        _walk(
            states[rows], actions[rows], lengths[rows], uniforms, probabilities,
            world.pairs.offsets, matrix.data, matrix.indices, matrix.indptr, world.absorbing,
        )  # fmt: skip
    return states, actions, lengths


@kernel
def _draw(weights: FloatArray, start: int, stop: int, uniform: float) -> int:
    """Position in weights[start:stop], which sums to one; never one of weight zero."""
    last = start
    for position in range(start, stop):
        if weights[position] > 0.0:
            last = position
            uniform -= weights[position]
            if uniform < 0.0:
                break
    return last


@kernel
def _walk(
    states: IntArray,
    actions: IntArray,
    lengths: IntArray,
    uniforms: FloatArray,
    probabilities: FloatArray,
    offsets: IntArray,
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    absorbing: BoolArray,
) -> None:
    for k in range(states.shape[0]):
        state = states[k, 0]
        length = 0
        while length < actions.shape[1] and not (absorbing[state] and length > 0):
            pair = _draw(probabilities, offsets[state], offsets[state + 1], uniforms[k, length, 0])
            actions[k, length] = pair - offsets[state]
            state = indices[_draw(data, indptr[pair], indptr[pair + 1], uniforms[k, length, 1])]
            length += 1
            states[k, length] = state
        lengths[k] = length
