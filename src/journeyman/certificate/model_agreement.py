"""Whether demonstrations can come from the world that a model was estimated from.

The expert acts in the true world, and so did whoever made the record behind the model. Frequencies
that are further apart, in the 1-norm, than both errors allow have not one law in common:

    l1(demonstrated, model) > err(model) + err(demonstrated)

for some pair or, where the initial law is an estimate, for the starts. A step outside of the
known support is impossible whatever was counted.

*Guarantee*: a true premise is refuted with probability `level` at most: half of it is for the
distances of the model, half for those of the demonstrations, both as in `model_error`. Record and
demonstrations may overlap. Few steps per pair allow large distances, so much goes unnoticed;
demonstrations that were simulated in the model agree with it best of all.

*Cost*: sorting the steps, and the rows of the pairs they visit.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from journeyman.certificate.model_error import (
    l1_radius,
    num_laws,
    support_sizes,
    transition_radii,
)
from journeyman.demonstrations import Demonstrations
from journeyman.world import World

ROUNDING = 1e-9
"""Of a distance: less than this above the limit is not held against a premise."""


@dataclass(frozen=True)
class Agreement:
    """What is closest to the limit."""

    place: str
    draws: int
    distance: float
    allowed: float

    @property
    def is_refuted(self) -> bool:
        return self.distance > self.allowed + ROUNDING

    def __str__(self) -> str:
        return (
            f"closest to the limit is {self.place}: {self.draws} draws at distance "
            f"{self.distance:.3g}, {self.allowed:.3g} is allowed"
        )


def agreement(world: World, demos: Demonstrations, level: float) -> Agreement:
    """What is closest to the limit in an estimated `world`, starts or a pair.

    >>> world = World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9, transition_counts=1000)
    >>> print(agreement(world, Demonstrations([0] * 301, [0] * 300, [0, 300]), 1e-3))
    closest to the limit is state 0, action 0: 300 draws at distance 1, 0.582 is allowed
    """
    starts_known = world.initial_error is None and world.initial_count is None
    steps_known = world.transition_error is None and world.transition_counts is None
    known = transition_radii(world, level / 2)
    part = level / 2 if starts_known or steps_known else level / 4
    found = []
    if not starts_known:
        found.append(_of_starts(world, demos.first_states, known.initial, part))
    if not steps_known and demos.num_steps:
        found.append(_of_steps(world, demos, known.transition, part))
    if not found:
        return Agreement("nothing", 0, 0.0, 0.0)
    return max(found, key=lambda one: one.distance - one.allowed)


def num_unobserved(world: World, demos: Demonstrations) -> int | None:
    """How many demonstrated steps are not among those that `world` was estimated from; None where
    it was not estimated from a record."""
    if world.transition_counts is None:
        return None
    return int((~_reached(world.transition, demos.pairs_in(world), demos.next_states)).sum())


def _of_starts(world: World, starts: IntArray, error: float, delta: float) -> Agreement:
    frequencies = np.bincount(starts, minlength=world.num_states) / starts.size
    distance = float(np.abs(frequencies - world.initial).sum())
    own = float(l1_radius([starts.size], [world.num_states], 1, delta)[0])
    return Agreement("the law of the starts", starts.size, distance, error + own)


def _of_steps(world: World, demos: Demonstrations, error: FloatArray, delta: float) -> Agreement:
    pairs, following = demos.pairs_in(world), demos.next_states
    visited, place, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    shape = (visited.size, world.num_states)
    tally = sparse.csr_array((1.0 / counts[place], (place, following)), shape=shape)
    distance = np.asarray(abs(tally - world.transition[visited]).sum(axis=1)).ravel()
    own = l1_radius(counts, support_sizes(world)[visited], num_laws(world), delta)
    allowed = error[visited] + own
    if world.support is not None:
        outside = ~_reached(world.support, pairs, following)
        allowed[np.unique(place[outside])] = 0.0
    sure = (allowed <= 0) & (distance <= ROUNDING)
    worst = int(np.argmax(np.where(sure & ~sure.all(), -np.inf, distance - allowed)))
    where = world.describe_pair(int(visited[worst]))
    return Agreement(where, int(counts[worst]), float(distance[worst]), float(allowed[worst]))


def _reached(laws: SparseMatrix, pairs: IntArray, following: IntArray) -> BoolArray:
    """Whether each step is among those that `laws` allow."""
    return np.asarray(laws[pairs, following]).ravel() > 0
