"""Behaviour cloning: the policy that repeats the demonstrated action frequencies."""

from dataclasses import dataclass
from typing import overload

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
from journeyman.policy import Policy
from journeyman.policy.acting import Predicting, StatePolicy
from journeyman.world import World
from journeyman.world.large_world import AnyWorld, require_sampled_world


@overload
def clone(
    demos: Demonstrations, world: World | None = None, *, smoothing: float = 0.1
) -> Policy: ...


@overload
def clone(demos: Demonstrations, world: AnyWorld, *, smoothing: float = 0.1) -> StatePolicy: ...


def clone(
    demos: Demonstrations, world: World | AnyWorld | None = None, *, smoothing: float = 0.1
) -> StatePolicy:
    """Smoothed action frequencies.

        pi(a | x) = (count(x, a) + smoothing) / sum_b (count(x, b) + smoothing)

    A state that was never visited gets the uniform law. Cloning looks at single decisions only:
    small errors lead to states the expert never showed (the cascading errors that the exact
    program avoids by matching whole occupancies). With `world`, every step is checked against it;
    recorded demonstrations know their action sets and can be cloned without. In a `LargeWorld`
    laws are kept for visited states only, and of every step nothing but its ids is checked.
    """
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise InvalidDemonstrations(f"smoothing = {smoothing}", "Give a finite number from 0")
    if world is not None and not isinstance(world, World):
        return clone_visited(demos, world, smoothing)
    pairs = demos.pairs if world is None else world.pairs
    if pairs is None:
        raise InvalidDemonstrations(
            "these demonstrations do not say how many states and actions there are",
            "Give the world: clone(demos, world)",
        )
    visited = (
        pairs.index(demos.step_states, demos.actions, InvalidDemonstrations)
        if world is None
        else demos.pairs_in(world)
    )
    counts = np.bincount(visited, minlength=len(pairs)).astype(np.float64) + smoothing
    totals = pairs.spread(pairs.total(counts))
    probabilities = np.divide(counts, totals, out=pairs.uniform.copy(), where=totals > 0)
    return Policy(probabilities, pairs)


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
