"""The columns that were generated: policies, and their figures from every row of the opening.

A policy is stored as one small integer per state. A column that has long been worth nothing in the
master problem is retired; a policy without columns is forgotten.
"""

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray
from journeyman.solvers.column_master import Master, MasterPoint
from journeyman.solvers.dual_set import DualSet
from journeyman.solvers.opening import Opening
from journeyman.world import World

COLUMNS, KEPT = 12, 8
"""Columns are retired when there are more than so many times the size of the master; so many are
left."""
FIGURES_COUNT = 3
"""The size of a master is the number of its rows, or so many times that of its figures."""
UNUSED = 0.01
"""Only columns with a smaller share of their row are retired."""


class ColumnPool:
    """Columns in the units of the master, ordered by policy and row, after the opening's own."""

    def __init__(self, world: World, opening: Opening, own_figures: FloatArray) -> None:
        self.world, self.opening = world, opening
        self._own = own_figures
        self._rows = np.flatnonzero(np.diff(opening.starts.indptr) > 0)
        self._choices: dict[int, IntArray] = {}
        self._figures = np.zeros((0, own_figures.shape[1]))
        self._policy_of = np.zeros(0, dtype=np.int64)
        self._row_of = np.zeros(0, dtype=np.int64)
        self._count = 0

    @property
    def held_bytes(self) -> int:
        """Of policies and figures."""
        return int(self._figures.nbytes + sum(kept.nbytes for kept in self._choices.values()))

    def add(self, choice: IntArray, figures: FloatArray) -> None:
        """A policy (the pair of each state) with its figures from every row of the opening."""
        largest = self.world.pairs.max_actions - 1
        actions = choice - self.world.pairs.offsets[:-1]
        self._choices[self._count] = actions.astype(np.min_scalar_type(largest))
        self._figures = np.concatenate([self._figures, figures[self._rows]])
        self._row_of = np.concatenate([self._row_of, self._rows])
        own = np.full(self._rows.size, self._count)
        self._policy_of = np.concatenate([self._policy_of, own])
        self._count += 1

    def master(self, target: FloatArray, duals: DualSet, part: slice = slice(None)) -> Master:
        """The master problem over all columns; `part` selects figures."""
        rows, number = self._row_of, self._row_of.size
        generated = sparse.csr_array(
            (np.ones(number), (rows, np.arange(number))), shape=(self.opening.num_rows, number)
        )
        figures = np.concatenate([self._own, self._figures])[:, part]
        return Master(
            columns=np.ascontiguousarray(figures),
            coupling=sparse.hstack([self.opening.coupling, generated], format="csr"),
            right=self.opening.right,
            target=target[part],
            duals=duals,
            feasible=lambda x: self.opening.feasible(x, rows),
        )

    def retire(self, point: MasterPoint) -> None:
        """Drop the columns worth least when there are too many; the newest two rounds are kept."""
        number = self._row_of.size
        size = max(self._rows.size, FIGURES_COUNT * self._own.shape[1])
        if number <= COLUMNS * size:
            return
        own = self.opening.pairs.size
        shares = point.mixture[own:]
        totals = np.bincount(self._row_of, shares, self.opening.num_rows)
        idle = shares <= UNUSED * totals[self._row_of]
        idle &= self._policy_of < self._count - 2
        worth = np.where(idle, -point.reduced_costs[own:], np.inf)
        surplus = min(number - KEPT * size, int(idle.sum()))
        kept = np.ones(number, dtype=bool)
        kept[np.argsort(worth, kind="stable")[:surplus]] = False
        self._figures = self._figures[kept]
        self._row_of, self._policy_of = self._row_of[kept], self._policy_of[kept]
        for index in set(self._choices) - set(self._policy_of.tolist()):
            del self._choices[index]

    def snapshot(self, mixture: FloatArray, crumbs: float) -> "Mixture":
        """A mixture that survives what happens to the pool; shares below `crumbs` are left out."""
        own = self.opening.pairs.size
        totals = np.bincount(self._row_of, mixture[own:], self.opening.num_rows)[self._row_of]
        used = np.concatenate([np.ones(own, dtype=bool), mixture[own:] >= crumbs * totals])
        mixture = self.opening.feasible(mixture * used, self._row_of)
        parts: list[tuple[IntArray, FloatArray]] = []
        for index, actions in self._choices.items():
            shares = mixture[own:] * (self._policy_of == index)
            weights = np.zeros(self.opening.num_rows)
            np.add.at(weights, self._row_of, shares)
            if weights.any():
                parts.append((actions, weights))
        return Mixture(self.opening, mixture[:own].copy(), parts)


class Mixture:
    """Which policies are followed from which rows, with which mass."""

    def __init__(
        self, opening: Opening, own: FloatArray, parts: list[tuple[IntArray, FloatArray]]
    ) -> None:
        self.opening, self.own, self.parts = opening, own, parts

    def starts(self, world: World) -> list[tuple[IntArray, FloatArray]]:
        """Policies (the pair of each state) with the start measures that follow them."""
        return [
            (world.pairs.offsets[:-1] + actions, np.asarray(self.opening.starts.T @ weights))
            for actions, weights in self.parts
        ]
