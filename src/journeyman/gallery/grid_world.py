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
    if not 1 <= macro_cells <= size:
        raise InvalidWorld(
            f"grid(size={size}, macro_cells={macro_cells}, slip={slip})",
            "Take size >= macro_cells >= 1 and slip between 0 and 1",
        )
    world = floor(size, slip=slip, discount=discount, walls=walls, initial=initial, stay=stay)
    assert world.coordinates is not None
    rows, columns = world.coordinates.astype(int).T
    cell = (rows * macro_cells // size) * macro_cells + columns * macro_cells // size
    indicators = sparse.csr_array(
        (np.ones(rows.size), cell, np.arange(rows.size + 1)), shape=(rows.size, macro_cells**2)
    )
    names = [f"cell {i},{j}" for i in range(macro_cells) for j in range(macro_cells)]
    basis = CostBasis(indicators, names)
    expert = expert_of_hidden_cost(world, basis, generator(seed), randomness)
    return Example(world, basis, expert)


def floor(
    size: int,
    *,
    slip: float = 0.3,
    discount: float = 0.95,
    walls: Iterable[tuple[int, int]] = (),
    goals: Iterable[tuple[int, int]] = (),
    initial: ArrayLike | None = None,
    stay: bool = False,
) -> World:
    """The world of `grid` without costs and expert.

    Args:
        goals: cells (row, column) in which an episode ends: they are absorbing.

    >>> floor(3, walls=[(0, 0)], goals=[(2, 2)]).absorbing.tolist()
    [False, False, False, False, False, False, False, True]
    """
    if size < 1 or not 0 <= slip <= 1:
        raise InvalidWorld(
            f"a grid with size={size}, slip={slip}",
            "Take at least one cell and slip between 0 and 1",
        )
    state_of = _numbered_cells(size, walls)
    rows, columns = np.nonzero(state_of >= 0)
    actions = MOVES | STAY if stay else MOVES
    transition = _transition(state_of, rows, columns, slip, tuple(actions.values())).tocsr()
    resting = [_free_cell(state_of, "goal", *cell) for cell in goals]
    if resting:
        pairs = (np.array(resting)[:, np.newaxis] * len(actions) + np.arange(len(actions))).ravel()
        kept = np.ones(transition.shape[0])
        kept[pairs] = 0.0
        loops = sparse.csr_array(
            (np.ones(pairs.size), (pairs, pairs // len(actions))), shape=transition.shape
        )
        transition = sparse.diags_array(kept) @ transition + loops
    return World(
        transition,
        _initial(initial, state_of, rows.size),
        discount,
        coordinates=np.column_stack([rows, columns]).astype(float),
        action_names=tuple(actions),
    )


def _free_cell(state_of: NDArray[np.int64], what: str, row: int, column: int) -> int:
    """The state of a cell that is not a wall."""
    inside = 0 <= row < len(state_of) and 0 <= column < len(state_of)
    if not inside or state_of[row, column] < 0:
        remedy = "Start in a cell without a wall" if what == "start" else "Take a cell without one"
        raise InvalidWorld(f"the {what} ({row}, {column}) is not a free cell", remedy)
    return int(state_of[row, column])


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
    start = np.zeros(num_states)
    start[_free_cell(state_of, "start", int(law[0]), int(law[1]))] = 1.0
    return start
