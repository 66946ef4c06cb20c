"""Trajectories of a world under a stationary policy.

Walks advance together, `CHUNK` steps at a time, and those that have come to rest in an absorbing
state drop out. Each step uses two uniform numbers, one for the action and one for the next state.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
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
        LOOPS.choose(world, alive.size, steps)(
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


class Loops:
    """Chooses between the compiled loop and NumPy's, which give the same walks to the last bit.

    Compiled code takes half a second to load and longer to compile, so the first walks of a process
    are drawn by NumPy, until that has taken about as long.
    """

    def __init__(self) -> None:
        self._work = 0

    def choose(self, world: World, walks: int, steps: int) -> Any:
        """The loop for so many walks of so many steps."""
        branches = int(np.diff(world.transition.indptr).max())
        self._work += steps * (world.pairs.max_actions + branches) * (CALLS + walks)
        if self._work <= MOST_WORK:
            return advance
        from journeyman.world.walk_kernels import advance as compiled

        return compiled


CALLS, MOST_WORK = 250, 5_000_000
"""What calling NumPy costs, in walks; and what it may do, about a fifth of a second."""
LOOPS = Loops()


def advance(
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
    """What `walk_kernels.advance` does, all walks a step at a time."""
    walks, states = np.arange(here.size), here
    taken[:] = visited.shape[1]
    for step in range(visited.shape[1]):
        chosen = draw(probabilities, offsets[states], offsets[states + 1], uniforms[walks, step, 0])
        entry = draw(data, indptr[chosen], indptr[chosen + 1], uniforms[walks, step, 1])
        pairs[walks, step] = chosen
        states = indices[entry]
        visited[walks, step] = states
        ended = absorbing[states]
        if ended.any():
            taken[walks[ended]] = step + 1
            walks, states = walks[~ended], states[~ended]
            if not walks.size:
                break


def draw(weights: FloatArray, starts: IntArray, stops: IntArray, uniforms: FloatArray) -> IntArray:
    """For each range a position in it, by its weights; in the order of sums of the compiled one."""
    chosen, left = np.array(starts, dtype=np.int64), uniforms.copy()
    open_, positions = np.arange(chosen.size), chosen.copy()
    while open_.size:
        weight = weights[positions]
        possible = weight > 0.0
        chosen[open_] = np.where(possible, positions, chosen[open_])
        left[open_] -= np.where(possible, weight, 0.0)
        going_on = (~possible | (left[open_] >= 0.0)) & (positions + 1 < stops[open_])
        open_, positions = open_[going_on], positions[going_on] + 1
    return chosen
