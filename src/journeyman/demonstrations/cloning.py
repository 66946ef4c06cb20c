"""Behaviour cloning: the policy that repeats the demonstrated action frequencies."""

from typing import overload

import numpy as np

from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.demonstrations.large_cloning import clone_visited
from journeyman.errors import InvalidDemonstrations
from journeyman.policy import Policy
from journeyman.policy.acting import StatePolicy
from journeyman.world import World
from journeyman.world.large_world import AnyWorld


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
