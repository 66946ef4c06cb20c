"""A grid with wind: a wall of obstacles, a row of goals behind it, and gusts to one side.

With probability `wind` a move is followed by one more step to the left. Obstacles are entered at a
cost of 1, goals end the journey and pay 1 a step. Every cell is a cost of its own, so the basis
says nothing about which cells matter: what is known beforehand is a matter of a prior.

Reference: Junca, Leiva, "Apprenticeship learning with prior beliefs using inverse optimization",
2025 (section on the windy grid).
"""

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, require_whole
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery.example import Example
from journeyman.gallery.grid_world import floor
from journeyman.policy import plan
from journeyman.world import World

REACH = 1.2
"""Obstacles and goals fill so large a part of their columns: size/REACH cells from the top."""


def windy_grid(size: int = 10, *, wind: float = 0.2, discount: float = 0.7) -> Example:
    """A `size` x `size` grid, started anywhere, with an expert who is optimal for the costs above.

    >>> world, basis, expert = windy_grid()
    >>> world.num_states, basis.num_costs, world.absorbing.sum()
    (100, 100, np.int64(8))
    """
    side = require_whole("size", size, 2, InvalidWorld)
    if not 0 <= wind < 1:
        raise InvalidWorld(f"wind = {wind!r}", "Give a probability below 1")
    goals = [(row, side - 1) for row in range(int(side / REACH))]
    calm = floor(side, slip=0.0, discount=discount, goals=goals)
    cells = np.arange(side * side)
    left = np.where(cells % side > 0, cells - 1, cells)
    left = np.where(calm.absorbing, cells, left)
    push = sparse.csr_array((np.ones(cells.size), (cells, left)), shape=(cells.size, cells.size))
    resting = np.repeat(calm.absorbing, 4)
    moved = sparse.diags_array(np.where(resting, 0.0, wind)) @ calm.transition @ push
    kept = sparse.diags_array(np.where(resting, 1.0, 1 - wind)) @ calm.transition
    world = World(
        moved + kept, calm.initial, discount,
        coordinates=calm.coordinates, action_names=calm.action_names,
    )  # fmt: skip
    names = [f"cell {row},{column}" for row in range(side) for column in range(side)]
    basis = CostBasis(sparse.eye_array(cells.size, format="csr"), names)
    return Example(world, basis, plan(world, basis.on(world) @ windy_costs(side)).policy)


def windy_costs(size: int = 10) -> FloatArray:
    """The weights that the expert of `windy_grid` follows: 1 for obstacles, -1 for goals.

    >>> windy_costs(4).reshape(4, 4)[0].tolist()
    [0.0, 0.0, 1.0, -1.0]
    """
    weights = np.zeros((size, size))
    weights[: int(size / REACH), size // 2] = 1.0
    weights[: int(size / REACH), size - 1] = -1.0
    return weights.ravel()
