"""Where generated policies take over: blocks of start states, or the exits of a small core.

Expected costs are linear in the start law, so from each part of it another mixture of policies may
be followed. The finer the parts, the fewer policies have to be generated: a policy then offers one
column per part instead of one.

`Blocks` splits the initial law into parts whose values under a first policy are alike. A law on few
states cannot be split; there a `Core` of states around the start keeps the explicit variables
mu(x, a) of the exact program, and policies take over at its exits, one part per exit state:

    sum_a mu(x, a) - discount sum mu(x', a') P(x | x', a') = initial(x)      x in the core
    sum_k theta_yk - discount sum mu(x', a') P(y | x', a') = initial(y)      y an exit

where theta_yk is the mass that leaves the core at y and follows policy k from then on. The result
is an occupancy measure in both cases (Proposition 1), so nothing is approximated.
"""

from abc import ABC, abstractmethod
from heapq import heappop, heappush

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.world import World


class StartRows(ABC):
    """Rows of the master problem and what lies before the generated policies."""

    starts: SparseMatrix
    """(rows x states): the start measure of each row, from which policies are evaluated."""
    right: FloatArray
    pairs: IntArray
    """The pairs with a variable of their own; their columns come first."""
    coupling: SparseMatrix
    """(rows x those pairs)."""

    @property
    def num_rows(self) -> int:
        return self.right.size

    @abstractmethod
    def feasible(self, x: FloatArray, rows: IntArray) -> FloatArray:
        """Positive `x` repaired; `rows` are those of the generated columns."""


class Blocks(StartRows):
    """One row per block of start states, all of its mass."""

    def __init__(self, world: World, blocks: IntArray) -> None:
        started = np.flatnonzero(world.initial > 0)
        count = int(blocks.max()) + 1
        self.starts = sparse.csr_array(
            (world.initial[started], (blocks, started)), shape=(count, world.num_states)
        )
        self.right = np.ones(count)
        self.pairs = np.zeros(0, dtype=np.int64)
        self.coupling = sparse.csr_array((count, 0))

    def feasible(self, x: FloatArray, rows: IntArray) -> FloatArray:
        positive = np.maximum(x, 0.0)
        totals = np.bincount(rows, positive, self.num_rows)
        return np.asarray(positive / totals[rows])


class Core(StartRows):
    """One row per state of the core, then one per exit."""

    def __init__(self, world: World, core: IntArray) -> None:
        member = np.zeros(world.num_states, dtype=bool)
        member[core] = True
        self.pairs = np.flatnonzero(member[world.pairs.states])
        steps = world.transition[self.pairs]
        exits = np.setdiff1d(np.unique(steps.indices), core)
        places = np.concatenate([core, exits])
        self._onwards = (world.discount * steps[:, places]).tocsr()
        row_of = np.full(world.num_states, -1)
        row_of[places] = np.arange(places.size)
        self._states = row_of[world.pairs.states[self.pairs]]
        own = sparse.csr_array(
            (np.ones(self.pairs.size), self._states, np.arange(self.pairs.size + 1)),
            shape=self._onwards.shape,
        )
        self.coupling = (own - self._onwards).T.tocsr()
        self.right = world.initial[places]
        self._size = core.size
        self.starts = sparse.csr_array(
            (np.ones(exits.size), (core.size + np.arange(exits.size), exits)),
            shape=(places.size, world.num_states),
        )

    def feasible(self, x: FloatArray, rows: IntArray) -> FloatArray:
        """The flow of the core's policy, and the mass of each exit in the proportions of `x`."""
        count, size = self.pairs.size, self._size
        inner = np.maximum(x[:count], 1e-300)
        law = inner / np.bincount(self._states, inner)[self._states]
        policy = sparse.csr_array((law, (self._states, np.arange(count))), shape=(size, count))
        moves = (policy @ self._onwards).toarray()
        matrix = np.eye(size) - moves[:, :size]
        visits = np.maximum(np.linalg.solve(matrix.T, self.right[:size]), 0.0)
        leaving = self.right[size:] + visits @ moves[:, size:]
        outer = np.maximum(x[count:], 1e-300)
        shares = outer / np.bincount(rows, outer, self.num_rows)[rows]
        return np.concatenate([visits[self._states] * law, shares * leaving[rows - size]])


def value_blocks(values: FloatArray, initial: FloatArray, count: int) -> IntArray:
    """A block for each state of positive mass: cells of a tree that halves the widest spread.

    `values` (states x features) tells which states have a similar future.
    """
    started = np.flatnonzero(initial > 0)
    mass, features = initial[started], values[started]
    cells: list[IntArray] = []
    queue: list[tuple[float, int, int]] = []

    def enter(cell: IntArray) -> None:
        weights = mass[cell]
        mean = weights @ features[cell] / weights.sum()
        spread = weights @ (features[cell] - mean) ** 2
        axis = int(spread.argmax())
        heappush(queue, (-float(spread[axis]) if cell.size > 1 else 0.0, len(cells), axis))
        cells.append(cell)

    enter(np.arange(started.size))
    while len(queue) < count and queue[0][0] < 0:
        _, index, axis = heappop(queue)
        cell = cells[index]
        ordered = cell[np.argsort(features[cell, axis], kind="stable")]
        reached = np.cumsum(mass[ordered])
        middle = int(np.searchsorted(reached, reached[-1] / 2)) + 1
        middle = min(max(middle, 1), cell.size - 1)
        enter(ordered[:middle])
        enter(ordered[middle:])
    blocks = np.zeros(started.size, dtype=np.int64)
    for block, (_, index, _) in enumerate(queue):
        blocks[cells[index]] = block
    return blocks


def core_around(world: World, size: int) -> IntArray:
    """The start states and those reached first, `size` of them or all that can be reached."""
    core = np.flatnonzero(world.initial > 0)
    member = np.zeros(world.num_states, dtype=bool)
    member[core] = True
    while True:
        steps = world.transition[np.flatnonzero(member[world.pairs.states])]
        fresh = np.unique(steps.indices[~member[steps.indices]])
        if fresh.size == 0 or core.size + fresh.size > size:
            return core
        member[fresh] = True
        core = np.concatenate([core, fresh])
