"""Figures of every episode, computed by shards of episodes.

A figure of an episode depends on nothing but the episode, so shards are computed anywhere and put
together in their order. Their size is a constant and their number that of the data, so no bit
depends on the executor, nor on how many workers it has.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from journeyman.arrays import FloatArray, Matrix
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.execution import Executor, Serial, ranges_of
from journeyman.world import World

SHARD = 1 << 10
"""Episodes of one shard."""

EpisodeFigures: TypeAlias = Callable[[Demonstrations, Matrix, World], FloatArray]
"""Demonstrations, costs per pair and a world to one row per episode."""
_Shared: TypeAlias = tuple[EpisodeFigures, Demonstrations, Matrix, World]


def by_shards(
    figures: EpisodeFigures,
    demos: Demonstrations,
    matrix: Matrix,
    world: World,
    executor: Executor | None = None,
) -> FloatArray:
    """`figures(demos, matrix, world)`, a row per episode, from shards of episodes."""
    run = Serial() if executor is None else executor
    shared = figures, demos, matrix, world
    return np.concatenate(run.map(_shard, ranges_of(len(demos), SHARD), shared=shared))


def _shard(span: tuple[int, int], shared: _Shared) -> FloatArray:
    figures, demos, matrix, world = shared
    part = demos if span == (0, len(demos)) else demos.subset(np.arange(*span))
    return figures(part, matrix, world)
