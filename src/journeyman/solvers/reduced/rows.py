"""Rows to learn from: tables of rows and positions in them, drawn independently of theta.

A table holds rows of Phi (one per pair) or of D (one per state), dense or sparse, with what a row
is compared to (its threshold) and its importance weight, penalty/probability. Where all rows are
known (`RowTables`) positions are drawn by the alias method, one uniform number each, in the order
(step, row, pair before state), so the stream depends on the seed alone and not on how it is cut.
Where rows can only be drawn (`DrawnBlocks`) every block of them is a table of its own, read from
its beginning to its end.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix
from journeyman.execution import Executor, seeds_of
from journeyman.features.base import DrawnFeatures
from journeyman.problem.drawn import LEARNING, REPLICA, DrawnReduced, block_stream, draw_rows
from journeyman.problem.reduced import DrawnRows, Penalties
from journeyman.problem.surrogate import Surrogate

BLOCK = 2048
"""Steps whose positions are drawn at a time."""
ALL = 1 << 62
BLOCK_ROWS = 1 << 14
"""Rows of a block, rounded down to a multiple of the batch."""
THRESHOLD, IMPORTANCE, SEEN, ACTIVE = range(4)
"""Where a record holds what its row is compared to, its importance weight, and how much weight the
row was seen and active with."""
HEADER = 4
"""How many of those there are."""
PLAIN_OUTCOMES = 4096
"""Of a law whose tables are made without a compiler: the same bits, and some milliseconds."""
NEVER = 1e-290
"""A row that is drawn with less than this probability is not drawn, and its weight no number."""


class Rows(NamedTuple):
    """A table of rows, each a record in one stretch of memory, which is slow to reach.

    Record k is `numbers[heads[k] : heads[k + 1]]`: the row's entries, its n values and, in a sparse
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
        tables = alias_tables
        if law.size > PLAIN_OUTCOMES:
            from journeyman.solvers.reduced.kernels import compiled_alias_tables

            tables = compiled_alias_tables
        return cls(*tables(law * law.size))

    def draw(self, uniforms: FloatArray) -> IntArray:
        """One outcome per uniform number."""
        places = uniforms * self.keep.size
        cells = np.minimum(places.astype(np.int64), self.keep.size - 1)
        return np.where(places - cells < self.keep[cells], cells, self.other[cells])


Drawn: TypeAlias = tuple[IntArray, IntArray, Rows, Rows]
"""Positions of pairs and states, and the tables they are positions in."""


class RowSource(ABC):
    """Hands out the rows of the steps, which do not depend on the coefficients."""

    is_dense = False
    """Whether rows are stored with their zeros."""

    @abstractmethod
    def stride(self, step: int) -> int:
        """How many steps after the first `step` are best taken at a time."""

    @abstractmethod
    def draw(self, step: int, count: int) -> Iterator[Drawn]:
        """The rows of `count` steps after the first `step`: tables, and positions in them."""

    @property
    @abstractmethod
    def state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Arrays and facts that change as rows are drawn; whoever puts them back goes on there."""

    @abstractmethod
    def put_back(self, arrays: Mapping[str, FloatArray], facts: Mapping[str, Any]) -> None:
        """Go on from a `state`."""


class RowTables(RowSource):
    """All rows of a surrogate, drawn by position from its laws; a row counts when it was active."""

    def __init__(
        self, surrogate: Surrogate, batch: int, seed: int | np.random.SeedSequence
    ) -> None:
        reduced, laws, penalties = surrogate.reduced, surrogate.laws, surrogate.penalties
        self.batch, self.rng = batch, np.random.Generator(np.random.PCG64(seed))
        self.pairs = table_of(reduced.pair_rows, reduced.floor, penalties.pairs, laws.pair_sampling)
        self.flow = table_of(
            reduced.flow_rows, reduced.flow_target, penalties.flow, laws.state_sampling
        )
        self.pair_law = Alias.of(laws.pair_sampling)
        self.state_law = Alias.of(laws.state_sampling)
        self.is_dense = not self.pairs.is_sparse

    def stride(self, step: int) -> int:
        return BLOCK

    def draw(self, step: int, count: int) -> Iterator[Drawn]:
        yield *self.positions(self.rng, count * self.batch), self.pairs, self.flow

    def positions(self, rng: np.random.Generator, count: int) -> tuple[IntArray, IntArray]:
        """Of `count` pairs and `count` states."""
        uniforms = rng.random((count, 2))
        return self.pair_law.draw(uniforms[:, 0]), self.state_law.draw(uniforms[:, 1])

    @property
    def state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        arrays = {"pairs": self.pairs.counts, "flow": self.flow.counts}
        return arrays, {"rng": self.rng.bit_generator.state}

    def put_back(self, arrays: Mapping[str, FloatArray], facts: Mapping[str, Any]) -> None:
        self.pairs.recount(arrays["pairs"])
        self.flow.recount(arrays["flow"])
        self.rng.bit_generator.state = facts["rng"]


class DrawnBlocks(RowSource):
    """Rows of a stepped world, drawn block by block and never seen again.

    A block has its number in a stream, so steps are the same however a run is cut; an executor may
    draw all blocks of a request at once.
    """

    def __init__(
        self,
        reduced: DrawnReduced,
        penalties: Penalties,
        batch: int,
        stream: Sequence[int] = (LEARNING,),
        executor: Executor | None = None,
    ) -> None:
        self.reduced, self.penalties, self.batch = reduced, penalties, batch
        self.stream, self.executor = tuple(stream), executor
        self.steps_per_block = max(1, BLOCK_ROWS // batch)

    def stride(self, step: int) -> int:
        """To the end of a block; an executor is given all blocks up to the next evaluation."""
        left = self.steps_per_block - step % self.steps_per_block
        return left if self.executor is None else ALL

    def draw(self, step: int, count: int) -> Iterator[Drawn]:
        first, last = step // self.steps_per_block, -(-(step + count) // self.steps_per_block)
        size = self.steps_per_block * self.batch
        tasks = [(self.reduced.seed, size, *self.stream, number) for number in range(first, last)]
        features = self.reduced.features
        blocks = (
            (_block(task, features) for task in tasks)
            if self.executor is None
            else self.executor.map(_block, tasks, shared=features)
        )
        for number, rows in zip(range(first, last), blocks, strict=True):
            start = number * self.steps_per_block
            places = np.arange(
                max(step - start, 0) * self.batch,
                min(step + count - start, self.steps_per_block) * self.batch,
            )
            pairs, flow = rows_to_tables(rows, self.penalties)
            yield places, places, pairs, flow

    @property
    def state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        return {}, {}

    def put_back(self, arrays: Mapping[str, FloatArray], facts: Mapping[str, Any]) -> None:
        """Nothing: rows follow from the number of the step."""


def source_of(
    surrogate: Surrogate, batch: int, seed: int, replica: int | None, executor: Executor | None
) -> RowSource:
    """The rows that a descent learns from, or one of its replicas."""
    reduced = surrogate.reduced
    if isinstance(reduced, DrawnReduced):
        stream = (LEARNING,) if replica is None else (REPLICA, replica)
        return DrawnBlocks(reduced, surrogate.penalties, batch, stream, executor)
    return RowTables(surrogate, batch, seed if replica is None else seeds_of(seed, replica + 1)[-1])


def _block(task: tuple[int, ...], features: DrawnFeatures) -> DrawnRows:
    seed, size, *block = task
    return draw_rows(features, size, block_stream(seed, *block))


def rows_to_tables(rows: DrawnRows, penalties: Penalties) -> tuple[Rows, Rows]:
    """RowTables of drawn pairs and states."""
    return (
        table_of(rows.pair_rows, rows.floor, penalties.pairs, rows.pair_law),
        table_of(rows.flow_rows, rows.flow_target, penalties.flow, rows.flow_law),
    )


def table_of(rows: Matrix, threshold: FloatArray, penalty: float, law: FloatArray) -> Rows:
    is_sparse = sparse.issparse(rows)
    if is_sparse:
        counts = np.diff(rows.indptr)
        lengths = HEADER + (counts + counts % 2) // 2 * 3
    else:
        lengths = np.full(rows.shape[0], HEADER + rows.shape[1])
    heads = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    numbers = np.zeros(heads[-1])
    numbers[heads[:-1] + THRESHOLD] = threshold
    weights = np.divide(penalty, law, out=np.zeros(law.size), where=law > NEVER)
    numbers[heads[:-1] + IMPORTANCE] = weights
    table = Rows(numbers, numbers.view(np.int32), heads, is_sparse)
    if is_sparse:
        _fill_sparse(table, rows.data, rows.indices, rows.indptr)
    else:
        numbers.reshape(rows.shape[0], -1)[:, HEADER:] = rows
    return table


def _fill_sparse(table: Rows, data: FloatArray, indices: IntArray, starts: IntArray) -> None:
    counts, values = np.diff(starts), table.heads[:-1] + HEADER
    padded = (table.heads[1:] - values) // 3 * 2
    inside = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    table.numbers[np.repeat(values, counts) + inside] = data
    table.integers[np.repeat(2 * (values + padded), counts) + inside] = indices


def alias_tables(scaled: FloatArray) -> tuple[FloatArray, IntArray]:
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
