"""Which worlds are drawn as maps: states on the points of a plane grid, one on each.

Large maps are drawn in squares of several cells, each with the sum of their visits and the mean of
their directions.
"""

import math
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.world import World

DIRECTIONS = {
    "up": (-1.0, 0.0), "right": (0.0, 1.0), "down": (1.0, 0.0), "left": (0.0, -1.0),
    "north": (-1.0, 0.0), "east": (0.0, 1.0), "south": (1.0, 0.0), "west": (0.0, -1.0),
    "stay": (0.0, 0.0),
}  # fmt: skip
MOST_SQUARES = 24
"""Along a side."""
LARGEST_SIDE = 1000
SPARSEST = 0.2
"""Share of cells that are states, below which a world is no map."""
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class GridLayout:
    """Squares of a map; several cells to a square where there are many."""

    world: World
    states: IntArray
    """Those with a place on the map."""
    cells: IntArray
    """(states x 2): row and column."""
    step: int
    """Cells along the side of a square."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of squares."""
        rows, columns = self.cells.max(axis=0) // self.step + 1
        return int(rows), int(columns)

    @property
    def squares(self) -> IntArray:
        """The square of every state on the map."""
        return np.asarray(np.ravel_multi_index((self.cells // self.step).T, self.shape))

    def total(self, values: FloatArray) -> FloatArray:
        """Sums over squares of a figure per state of the world."""
        size = math.prod(self.shape)
        sums = np.bincount(self.squares, weights=values[self.states], minlength=size)
        return np.asarray(sums, dtype=float)

    def inhabited(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Squares that hold a state."""
        return self.total(np.ones(self.world.num_states)) > 0

    def arrows(self, law: FloatArray, weights: FloatArray) -> FloatArray:
        """(squares x 2): the mean direction of a law per pair, cells counting by their weight."""
        pairs = self.world.pairs
        steps = directions(self.world)
        means = [pairs.total(law * steps[:, axis]) * weights for axis in (0, 1)]
        mass = self.total(weights)
        whole = np.column_stack([self.total(mean) for mean in means])
        return np.divide(whole, mass[:, None], out=np.zeros_like(whole), where=mass[:, None] > 0)


def grid_of(world: World | None) -> GridLayout | None:
    """The layout of a world whose coordinates are those of a plane grid, otherwise None."""
    if world is None or world.coordinates is None or world.coordinates.shape[1] != 2:
        return None
    states = np.arange(world.num_states)
    if world.sink is not None:
        states = np.delete(states, world.sink)
    places = world.coordinates[states]
    cells = np.rint(places)
    if not states.size or (np.abs(places - cells) > ROUNDING).any():
        return None
    cells = (cells - cells.min(axis=0)).astype(np.int64)
    sides = cells.max(axis=0) + 1
    if sides.max() > LARGEST_SIDE or len(np.unique(cells, axis=0)) < len(cells):
        return None
    if len(cells) < SPARSEST * sides.prod():
        return None
    return GridLayout(world, states, cells, math.ceil(int(sides.max()) / MOST_SQUARES))


def directions(world: World) -> FloatArray:
    """(pairs x 2): where each action leads, by its name or, without one, by the law of the step."""
    names = world.action_names
    if names is not None and all(name.lower() in DIRECTIONS for name in names):
        return np.array([DIRECTIONS[name.lower()] for name in names])[world.pairs.actions]
    assert world.coordinates is not None
    moved = world.transition @ world.coordinates - world.coordinates[world.pairs.states]
    sizes = np.linalg.norm(moved, axis=1, keepdims=True)
    unit = np.divide(moved, sizes, out=np.zeros_like(moved), where=sizes > ROUNDING)
    return np.asarray(unit)
