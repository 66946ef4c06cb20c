"""Trajectories of a world under a stationary policy, by one compiled kernel.

Walks advance together, `CHUNK` steps at a time, and those that have come to rest in an absorbing
state drop out. Each step uses two uniform numbers, one for the action and one for the next state.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.compiled import kernel
from journeyman.world.world import World

CHUNK = 128
"""Steps drawn at a time. Part of the meaning of a seed: another value gives other walks."""


@dataclass(frozen=True, eq=False)
class Walks:
    """Flat states (one more than steps per walk), actions and pairs, and the length of each."""

    states: IntArray
    actions: IntArray
    lengths: IntArray
    pairs: IntArray


def walk(
    world: World,
    probabilities: FloatArray,
    trajectories: int,
    horizon: int,
    rng: np.random.Generator,
) -> Walks:
    """Independent walks of at most `horizon` steps; one that is absorbed ends there."""
    start = rng.choice(world.num_states, size=trajectories, p=world.initial)
    lengths = np.zeros(trajectories, dtype=np.int64)
    alive, here, pieces = np.arange(trajectories), start, []
    for first in range(0, horizon, CHUNK):
        if not alive.size:
            break
        steps = min(CHUNK, horizon - first)
        visited = np.empty((alive.size, steps), dtype=np.int64)
        pairs = np.empty((alive.size, steps), dtype=np.int64)
        taken = np.empty(alive.size, dtype=np.int64)
        matrix, uniforms = world.transition, rng.random((alive.size, steps, 2))
        _walk(
            here, visited, pairs, taken, uniforms, probabilities, world.pairs.offsets,
            matrix.data, matrix.indices, matrix.indptr, world.absorbing,
        )  # fmt: skip
        pieces.append((alive, first, visited, pairs, taken))
        lengths[alive] += taken
        here = visited[np.arange(alive.size), taken - 1]
        going_on = ~world.absorbing[here]
        alive, here = alive[going_on], here[going_on]
    states, pairs_taken = _join(start, lengths, pieces)
    return Walks(states, np.asarray(world.pairs.actions[pairs_taken]), lengths, pairs_taken)


def _join(
    start: IntArray,
    lengths: IntArray,
    pieces: list[tuple[IntArray, int, IntArray, IntArray, IntArray]],
) -> tuple[IntArray, IntArray]:
    """Put the chunks of every walk one behind the other."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    states = np.empty(int(lengths.sum()) + lengths.size, dtype=np.int64)
    pairs = np.empty(int(lengths.sum()), dtype=np.int64)
    states[offsets[:-1] + np.arange(lengths.size)] = start
    for walks, first, visited, chosen, taken in pieces:
        done = np.arange(visited.shape[1]) < taken[:, np.newaxis]
        place = (offsets[walks] + first)[:, np.newaxis] + np.arange(visited.shape[1])
        pairs[place[done]] = chosen[done]
        states[(place + walks[:, np.newaxis] + 1)[done]] = visited[done]
    return states, pairs


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
    here: IntArray,
    visited: IntArray,
    pairs: IntArray,
    taken: IntArray,
    uniforms: FloatArray,
    probabilities: FloatArray,
    offsets: IntArray,
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    absorbing: BoolArray,
) -> None:
    """From `here` until absorption or the end of the chunk, at least one step."""
    for k in range(visited.shape[0]):
        state = here[k]
        step = 0
        while step < visited.shape[1] and not (absorbing[state] and step > 0):
            pair = _draw(probabilities, offsets[state], offsets[state + 1], uniforms[k, step, 0])
            pairs[k, step] = pair
            state = indices[_draw(data, indptr[pair], indptr[pair + 1], uniforms[k, step, 1])]
            visited[k, step] = state
            step += 1
        taken[k] = step
