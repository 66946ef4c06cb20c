"""Bellman flow: the linear map whose fixed right-hand side makes a measure an occupancy measure.

    F = { mu >= 0 : (B - discount P)' mu = initial }

where B spreads a state's value over its pairs and P is the transition matrix. Proposition 1 of the
paper: F is exactly the set of occupancy measures of stationary policies.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix, freeze_rows
from journeyman.world.pairs import Pairs


@dataclass(frozen=True, eq=False)
class Flow:
    """The operator E = B - discount P of a world, its transpose, and single columns."""

    transition: SparseMatrix
    pairs: Pairs
    initial: FloatArray
    discount: float

    def apply(self, measure: FloatArray) -> FloatArray:
        """E' measure: what leaves each state minus the discounted mass that enters it."""
        incoming = self.transition.T @ measure
        return np.asarray(self.pairs.total(measure) - self.discount * incoming)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """E values = B values - discount P values, per pair."""
        return np.asarray(self.pairs.spread(values) - self.discount * (self.transition @ values))

    def residual(self, measure: FloatArray) -> FloatArray:
        """initial - E' measure; its 1-norm bounds the distance to an occupancy (Lemma 2)."""
        return np.asarray(self.initial - self.apply(measure))

    def column(self, state: int) -> tuple[IntArray, FloatArray]:
        """Pairs and entries of column `state` of E (entries that cancel are kept)."""
        own = np.arange(self.pairs.offsets[state], self.pairs.offsets[state + 1])
        lower, upper = self._columns.indptr[state : state + 2]
        entering = self._columns.indices[lower:upper]
        rows = np.union1d(own, entering)
        entries = np.zeros(rows.size)
        entries[np.searchsorted(rows, own)] = 1.0
        entries[np.searchsorted(rows, entering)] -= self.discount * self._columns.data[lower:upper]
        return rows, entries

    @cached_property
    def _columns(self) -> SparseMatrix:
        return self.transition.tocsc()

    def matrix(self) -> SparseMatrix:
        """E as a new CSR matrix (pairs x states)."""
        num_pairs, index = len(self.pairs), self.transition.indices.dtype
        states, starts = self.pairs.states.astype(index), np.arange(num_pairs + 1, dtype=index)
        ones = (np.ones(num_pairs), states, starts)
        spreading = sparse.csr_array(ones, shape=self.transition.shape)
        return freeze_rows((spreading - self.discount * self.transition).tocsr())
