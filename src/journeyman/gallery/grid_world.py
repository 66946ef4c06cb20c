"""Grid worlds with slippery floor.

A cell is left in one of four directions, or kept where staying is an action. With probability
`slip` the action is replaced by a uniformly drawn one. Walls and the border reflect. Costs are the
indicators of square macro cells, so the largest possible gap is 2/(1 - discount); the expert is
optimal for hidden weights of them.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from journeyman.arrays import Seed, generator
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery.example import Example, expert_of_hidden_cost
from journeyman.world import World

MOVES = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
STAY = {"stay": (0, 0)}


def grid(
    size: int = 16,
    *,
    macro_cells: int = 4,
    slip: float = 0.3,
    discount: float = 0.95,
    walls: Iterable[tuple[int, int]] = (),
    initial: ArrayLike | None = None,
    randomness: float = 0.3,
    stay: bool = False,
    seed: Seed = 0,
) -> Example:
    """A `size` x `size` grid with `macro_cells` x `macro_cells` costs.

    Args:
        walls: cells (row, column) that cannot be entered; they are not states.
        initial: a start cell (row, column), or a law over the free cells in reading order; uniform
            by default.
        randomness: share of uniform actions in the expert's policy.
        stay: whether staying in a cell is a fifth action.
        seed: of the expert's hidden cost weights.

    >>> world, basis, expert = grid(4, macro_cells=2)
    >>> world.num_states, world.num_pairs, basis.num_costs
    (16, 64, 4)
    """
    if size < 1 or not 1 <= macro_cells <= size or not 0 <= slip <= 1:
        raise InvalidWorld(
            f"grid(size={size}, macro_cells={macro_cells}, slip={slip})",
            "Take size >= macro_cells >= 1 and slip between 0 and 1",
        )
    state_of = _numbered_cells(size, walls)
    rows, columns = np.nonzero(state_of >= 0)
    coordinates = np.column_stack([rows, columns]).astype(float)
    actions = MOVES | STAY if stay else MOVES
    world = World(
        _transition(state_of, rows, columns, slip, tuple(actions.values())),
        _initial(initial, state_of, rows.size),
        discount,
        coordinates=coordinates,
        action_names=tuple(actions),
    )
    cell = (rows * macro_cells // size) * macro_cells + columns * macro_cells // size
    indicators = sparse.csr_array(
        (np.ones(rows.size), cell, np.arange(rows.size + 1)), shape=(rows.size, macro_cells**2)
    )
    names = [f"cell {i},{j}" for i in range(macro_cells) for j in range(macro_cells)]
    basis = CostBasis(indicators, names)
    expert = expert_of_hidden_cost(world, basis, generator(seed), randomness)
    return Example(world, basis, expert)


def _numbered_cells(size: int, walls: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """State id of each cell in reading order, -1 for walls."""
    free = np.ones((size, size), dtype=bool)
    for row, column in walls:
        if not (0 <= row < size and 0 <= column < size):
            raise InvalidWorld(
                f"the wall at ({row}, {column}) is outside the {size} x {size} grid",
                "Give (row, column) from 0",
            )
        free[row, column] = False
    if not free.any():
        raise InvalidWorld("the grid has no free cell", "Leave room between the walls")
    return np.where(free, np.cumsum(free).reshape(free.shape) - 1, -1)


def _transition(
    state_of: NDArray[np.int64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    slip: float,
    moves: tuple[tuple[int, int], ...],
) -> sparse.coo_array:
    size, num_states = len(state_of), rows.size
    here = np.arange(num_states)
    targets = []
    for down, right in moves:
        there = state_of[np.clip(rows + down, 0, size - 1), np.clip(columns + right, 0, size - 1)]
        targets.append(np.where(there >= 0, there, here))
    entries = []
    for wanted in range(len(moves)):
        for taken in range(len(moves)):
            probability = slip / len(moves) + (1 - slip) * (wanted == taken)
            entries.append(
                (here * len(moves) + wanted, targets[taken], np.full(num_states, probability))
            )
    pairs, reached, probabilities = (np.concatenate(part) for part in zip(*entries, strict=True))
    return sparse.coo_array(
        (probabilities, (pairs, reached)), shape=(num_states * len(moves), num_states)
    )


def _initial(
    initial: ArrayLike | None, state_of: NDArray[np.int64], num_states: int
) -> NDArray[np.float64]:
    if initial is None:
        return np.full(num_states, 1.0 / num_states)
    law = np.asarray(initial, dtype=float)
    if law.shape != (2,) or num_states == 2:
        return law
    row, column = int(law[0]), int(law[1])
    inside = 0 <= row < len(state_of) and 0 <= column < len(state_of)
    if not inside or state_of[row, column] < 0:
        raise InvalidWorld(
            f"the start ({row}, {column}) is not a free cell", "Start in a cell without a wall"
        )
    start = np.zeros(num_states)
    start[state_of[row, column]] = 1.0
    return start
