"""Rows to learn from: blocks of positions in tables of rows, drawn independently of theta.

A table holds the rows of Phi (one per pair) or of D (one per state), dense or CSR, with what a row
is compared to (its threshold) and its importance weight, penalty/probability. Positions are drawn
by the alias method, one uniform number each, in the order (step, row, pair before state), so the
stream depends on the seed alone and not on how it is cut into blocks.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix
from journeyman.compiled import kernel
from journeyman.problem.surrogate import Surrogate

THRESHOLD, IMPORTANCE, SEEN, ACTIVE = range(4)
"""Columns of `Rows.scalars`, side by side so that a row's figures share a cache line."""


class Rows(NamedTuple):
    """A table of rows; without `indices` it is dense.

    `scalars` holds for each row what it is compared to, its importance weight, and how much weight
    it was seen and active with.
    """

    data: FloatArray
    indices: IntArray
    starts: IntArray
    scalars: FloatArray


@dataclass(frozen=True, eq=False)
class Alias:
    """Draws from a law over n outcomes in constant time (Walker 1977, Vose 1991)."""

    keep: FloatArray
    other: IntArray

    @classmethod
    def of(cls, law: FloatArray) -> "Alias":
        return cls(*_alias_tables(law * law.size))

    def draw(self, uniforms: FloatArray) -> IntArray:
        """One outcome per uniform number."""
        return _draw(self.keep, self.other, uniforms)


@dataclass(frozen=True, eq=False)
class RowSource:
    """The tables of a surrogate and the laws to draw from them."""

    pairs: Rows
    flow: Rows
    pair_law: Alias
    state_law: Alias

    @classmethod
    def of(cls, surrogate: Surrogate) -> "RowSource":
        reduced, laws, penalties = surrogate.reduced, surrogate.laws, surrogate.penalties
        return cls(
            _table(reduced.pair_rows, reduced.floor, penalties.pairs, laws.pair_sampling),
            _table(reduced.flow_rows, reduced.flow_target, penalties.flow, laws.state_sampling),
            Alias.of(laws.pair_sampling),
            Alias.of(laws.state_sampling),
        )

    @property
    def is_dense(self) -> bool:
        return self.pairs.indices.size == 0

    def draw(self, rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
        """Positions of `count` pairs and `count` states."""
        uniforms = rng.random((count, 2))
        return self.pair_law.draw(uniforms[:, 0]), self.state_law.draw(uniforms[:, 1])


def _table(rows: Matrix, threshold: FloatArray, penalty: float, law: FloatArray) -> Rows:
    scalars = np.zeros((law.size, 4))
    scalars[:, THRESHOLD] = threshold
    np.divide(penalty, law, out=scalars[:, IMPORTANCE], where=law > 0)
    if sparse.issparse(rows):
        parts = (np.array(rows.data), rows.indices.astype(np.int32), rows.indptr.astype(np.int64))
    else:
        starts = np.arange(rows.shape[0] + 1, dtype=np.int64) * rows.shape[1]
        parts = (np.ascontiguousarray(rows).ravel(), np.zeros(0, dtype=np.int32), starts)
    return Rows(*parts, scalars)


@kernel
def _draw(keep: FloatArray, other: IntArray, uniforms: FloatArray) -> IntArray:
    drawn = np.empty(uniforms.size, np.int64)
    for k in range(uniforms.size):
        place = uniforms[k] * keep.size
        cell = min(int(place), keep.size - 1)
        drawn[k] = cell if place - cell < keep[cell] else other[cell]
    return drawn


@kernel
def _alias_tables(scaled: FloatArray) -> tuple[FloatArray, IntArray]:
    """Split n cells of height one between the outcome itself and one other."""
    count = scaled.size
    keep, other = np.ones(count), np.arange(count)
    small, large = np.empty(count, np.int64), np.empty(count, np.int64)
    num_small, num_large = 0, 0
    height = scaled.copy()
    for k in range(count):
        if height[k] < 1.0:
            small[num_small] = k
            num_small += 1
        else:
            large[num_large] = k
            num_large += 1
    while num_small > 0 and num_large > 0:
        num_small -= 1
        low, high = small[num_small], large[num_large - 1]
        keep[low], other[low] = height[low], high
        height[high] -= 1.0 - height[low]
        if height[high] < 1.0:
            num_large -= 1
            small[num_small] = high
            num_small += 1
    for k in range(num_small):
        if scaled[small[k]] <= 0.0 and num_large > 0:
            keep[small[k]], other[small[k]] = 0.0, large[0]
    return keep, other
