"""Rows to learn from: blocks of positions in tables of rows, drawn independently of theta.

A table holds the rows of Phi (one per pair) or of D (one per state), dense or sparse, with what a
row is compared to (its threshold) and its importance weight, penalty/probability. Positions are
drawn by the alias method, one uniform number each, in the order (step, row, pair before state), so
the stream depends on the seed alone and not on how it is cut into blocks.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix, SparseMatrix
from journeyman.compiled import kernel
from journeyman.features.base import LargeFeatures
from journeyman.problem.surrogate import Surrogate

THRESHOLD, IMPORTANCE, SEEN, ACTIVE = range(4)
"""Where a record holds what its row is compared to, its importance weight, and how much weight the
row was seen and active with."""
FIGURES = 4
"""How many of those there are."""
NEVER = 1e-290
"""A row that is drawn with less than this probability is not drawn, and its weight no number."""


class Rows(NamedTuple):
    """A table of rows, each a record in one stretch of memory, which is slow to reach.

    Record k is `numbers[heads[k] : heads[k + 1]]`: the row's figures, its n values and, in a sparse
    table, its n indices (n is even, two indices take the place of a number; `integers` shows the
    same memory as integers).
    """

    numbers: FloatArray
    integers: IntArray
    heads: IntArray
    is_sparse: bool

    @property
    def counts(self) -> FloatArray:
        """What each row was seen and active with, (rows, 2)."""
        return self.numbers[self._counters]

    def recount(self, counts: FloatArray) -> None:
        """Put back what `counts` gave."""
        self.numbers[self._counters] = counts

    @property
    def _counters(self) -> IntArray:
        return np.asarray(self.heads[:-1, None] + np.array([SEEN, ACTIVE]))


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
            table_of(reduced.pair_rows, reduced.floor, penalties.pairs, laws.pair_sampling),
            table_of(reduced.flow_rows, reduced.flow_target, penalties.flow, laws.state_sampling),
            Alias.of(laws.pair_sampling),
            Alias.of(laws.state_sampling),
        )

    @property
    def is_dense(self) -> bool:
        return not self.pairs.is_sparse

    def draw(self, rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
        """Positions of `count` pairs and `count` states."""
        uniforms = rng.random((count, 2))
        return self.pair_law.draw(uniforms[:, 0]), self.state_law.draw(uniforms[:, 1])


def table_of(rows: Matrix, threshold: FloatArray, penalty: float, law: FloatArray) -> Rows:
    is_sparse = sparse.issparse(rows)
    if is_sparse:
        counts = np.diff(rows.indptr)
        lengths = FIGURES + (counts + counts % 2) // 2 * 3
    else:
        lengths = np.full(rows.shape[0], FIGURES + rows.shape[1])
    heads = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    numbers = np.zeros(heads[-1])
    numbers[heads[:-1] + THRESHOLD] = threshold
    weights = np.divide(penalty, law, out=np.zeros(law.size), where=law > NEVER)
    numbers[heads[:-1] + IMPORTANCE] = weights
    table = Rows(numbers, numbers.view(np.int32), heads, is_sparse)
    if is_sparse:
        _fill_sparse(table, rows.data, rows.indices, rows.indptr)
    else:
        numbers.reshape(rows.shape[0], -1)[:, FIGURES:] = rows
    return table


@kernel
def _fill_sparse(table: Rows, data: FloatArray, indices: IntArray, starts: IntArray) -> None:
    for k in range(table.heads.size - 1):
        values = table.heads[k] + FIGURES
        padded = (table.heads[k + 1] - values) // 3 * 2
        for entry in range(starts[k + 1] - starts[k]):
            table.numbers[values + entry] = data[starts[k] + entry]
            table.integers[2 * (values + padded) + entry] = indices[starts[k] + entry]


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


# Rows of a world too large to enumerate, drawn block by block.
#
# A block is a function of the features and of its seed alone, whoever draws it and when: descents
# consume blocks one after the other, the sampled program keeps one, and an executor may draw many
# at once without changing a bit.

LEARNING, FRESH, MATCHING = 1, 2, 3
"""Streams of a seed: rows to learn from, rows to estimate the loss on, pairs for Psi' Phi."""


class DrawnRows(NamedTuple):
    """Pairs from q1 and states from q2 with their rows and probabilities."""

    pair_rows: SparseMatrix
    pair_law: FloatArray
    flow_rows: SparseMatrix
    flow_law: FloatArray
    initial: FloatArray
    """Initial probabilities of the states."""


def block_stream(seed: int, stream: int, block: int) -> np.random.Generator:
    """The generator of one block, independent of all the others."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, block)))


def draw_rows(features: LargeFeatures, count: int, rng: np.random.Generator) -> DrawnRows:
    """`count` rows of Phi and as many of D."""
    pair_rows = features.rows(*features.draw(rng, count))
    states = features.draw_flow(rng, count)
    flow = features.flow(states)
    return DrawnRows(
        pair_rows, features.pair_law(pair_rows), flow.rows, flow.law,
        initial_at(features, states),
    )  # fmt: skip


def initial_at(features: LargeFeatures, states: IntArray) -> FloatArray:
    """Initial probabilities."""
    return np.asarray(features.world.initial_probability(states), dtype=float)
