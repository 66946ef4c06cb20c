"""Behaviour cloning between visited states of a factored world: actions by soft cells.

    pi(a | x) = sum_j K_j(x) p_j(a),    p_j(a) ~ sum over recorded steps of K_j(x_t) 1{a_t = a}

where K_j are the tents of `factored`. A state nobody has visited is answered by its surroundings,
which in a large world is nearly every state.

Cost: a state has 2^(factors with several knots) cells around it, 256 for eight factors; so states
are worked on in blocks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidCosts
from journeyman.policy.function_policy import FunctionPolicy
from journeyman.problem.features.factored import FactoredFeatures, factored, single_actions
from journeyman.world.large_world import LargeWorld
from journeyman.world.mixed_radix import MixedRadix

BLOCK = 1 << 12
"""States whose cells are held at a time."""


@dataclass(frozen=True, eq=False)
class CellLaws:
    """A law over actions per cell, blended by the tents around a state."""

    cells: FactoredFeatures
    laws: FloatArray

    def __call__(self, states: IntArray) -> FloatArray:
        from journeyman.problem.features.factored_kernels import blended_laws

        found = np.empty((states.size, self.laws.shape[1]))
        for part, around, shares in _memberships(self.cells, states):
            found[part] = blended_laws(around, shares, self.laws)
        return found


def cloned(
    world: LargeWorld,
    radix: MixedRadix,
    demos: Demonstrations,
    num_knots: int = 5,
    *,
    smoothing: float = 0.5,
) -> FunctionPolicy:
    """The demonstrated action frequencies around a state; `smoothing` visits are spread evenly."""
    if not (np.isfinite(smoothing) and smoothing > 0):
        raise InvalidCosts(f"smoothing = {smoothing}", "Give a positive number")
    cells = factored(world, radix, demos, single_actions(world)[:1], num_knots)
    counts = np.full((cells.scales.size, world.num_actions), smoothing / world.num_actions)
    for part, around, shares in _memberships(cells, demos.step_states):
        np.add.at(counts, (around, demos.actions[part, np.newaxis]), shares)
    laws = counts / counts.sum(axis=1, keepdims=True)
    return FunctionPolicy(CellLaws(cells, laws), world.num_actions)


def _memberships(
    cells: FactoredFeatures, states: IntArray
) -> Iterator[tuple[slice, IntArray, FloatArray]]:
    """Block by block: the cells around every state and K_j there, which sum to one."""
    for first in range(0, states.size, BLOCK):
        part = slice(first, first + BLOCK)
        around, weights = cells.cells(states[part])
        weights = weights / cells.scales[around]
        yield part, around, weights / weights.sum(axis=1, keepdims=True)
