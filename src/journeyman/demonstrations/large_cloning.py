"""Behaviour cloning in a world too large to enumerate: counts in visited states only."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    FloatArray,
    IntArray,
    integer_array,
    read_only,
    require_in_range,
)
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.errors import InvalidDemonstrations, InvalidPolicy
from journeyman.policy.acting import Predicting
from journeyman.world.large_world import AnyWorld, require_sampled_world


@dataclass(frozen=True, eq=False, repr=False)
class ClonedPolicy(Predicting):
    """Laws in the states that were demonstrated, the uniform law in all others."""

    states: IntArray
    """In order, each once."""
    laws: FloatArray
    """One row per demonstrated state, and the uniform law in the last."""

    @property
    def num_actions(self) -> int:
        return int(self.laws.shape[1])

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws."""
        asked = integer_array("states", states, refusal=InvalidPolicy)
        place = np.searchsorted(self.states, asked)
        known = self.states[np.minimum(place, self.states.size - 1)] == asked
        return np.asarray(self.laws[np.where(known, place, self.states.size)])

    def __repr__(self) -> str:
        return f"ClonedPolicy({self.states.size} visited states, {self.num_actions} actions)"


def clone_visited(demos: Demonstrations, world: AnyWorld, smoothing: float) -> ClonedPolicy:
    """Smoothed action frequencies, state by state; ids are checked against the world."""
    require_sampled_world(world)
    count, steps, actions = world.num_actions, demos.step_states, demos.actions
    require_in_range("states", steps, world.num_states, InvalidDemonstrations)
    require_in_range("actions", actions, count, InvalidDemonstrations)
    if not steps.size:
        raise InvalidDemonstrations("there is no step to clone", "Record at least one")
    states, rows = np.unique(steps, return_inverse=True)
    counts = np.full((states.size + 1, count), float(smoothing))
    np.add.at(counts, (rows, actions), 1.0)
    counts[-1] = 1.0
    laws = counts / counts.sum(axis=1, keepdims=True)
    return ClonedPolicy(read_only(states), read_only(laws))
