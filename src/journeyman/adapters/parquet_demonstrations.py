"""Demonstrations as a Parquet file, the format for large ones.

One row per step, episode,t,state,action,next_state,terminated, is what is written; tables with one
row per visited state are read as well (`journeyman.demonstrations.files` has both layouts).
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.arrow_files import (
    ArrowFile,
    open_arrow,
    parquet_header,
    parquet_table,
)
from journeyman.adapters.demonstration_reading import Allowance
from journeyman.arrays import BoolArray, FloatArray, IntArray, first_true
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.files import (
    COLUMNS,
    NEXT_STATE,
    PROBABILITY,
    Source,
    known_columns,
    read_table,
    require_columns,
    state_columns,
    wrong_time,
)
from journeyman.errors import InvalidFile, MissingExtra
from journeyman.storage import write_atomically
from journeyman.tables import order_column, plain_header

BYTES_PER_ROW = 112
"""What a row takes at the peak: the columns, the flat arrays, and those of the value."""
REMEDY = (
    "Rows are episode,t,state,action,terminated with an empty action in the last row of an "
    "episode, or episode,t,state,action,next_state[,terminated]"
)


@dataclass
class DemonstrationTable:
    """A table in either layout, as columns of equal length, to be cut into episodes.

    `empty` are the rows without an action. The first row that does not fit is named; rows count
    from 0.
    """

    path: Path
    episode: IntArray
    t: IntArray
    state: IntArray
    action: IntArray
    empty: BoolArray
    terminated: BoolArray
    next_state: IntArray | None
    probabilities: FloatArray | None = None

    def demonstrations(self) -> Demonstrations:
        """The episodes, or an error that names the first wrong row."""
        if not self.t.size:
            raise InvalidFile(f"{self.path} holds no episode", "Give at least one")
        first = np.concatenate([[True], self.episode[1:] != self.episode[:-1]])
        starts = np.flatnonzero(first)
        lengths = np.diff(np.append(starts, self.t.size))
        self._require_order(starts, lengths)
        if self.state.ndim == 1:
            self._refuse_first(self.state < 0, "state is below 0")
        self._refuse_first(~self.empty & (self.action < 0), "action is below 0")
        last = starts + lengths - 1
        return self._visits(last) if self.next_state is None else self._log(starts, last)

    def _require_order(self, starts: IntArray, lengths: IntArray) -> None:
        _, where = np.unique(self.episode[starts], return_index=True)
        if where.size < starts.size:
            again = np.ones(starts.size, dtype=bool)
            again[where] = False
            raise self._refused(
                int(starts[np.argmax(again)]),
                "an episode goes on after its end",
                "Sort the rows by episode and t, and give every episode its own name",
            )
        expected = np.arange(self.t.size) - np.repeat(starts, lengths)
        if (row := first_true(self.t != expected)) is not None:
            raise self._refused(row, *wrong_time(int(self.t[row]), int(expected[row])))

    def _visits(self, last: IntArray) -> Demonstrations:
        ends = np.zeros(self.t.size, dtype=bool)
        ends[last] = True
        self._refuse_first(self.empty & ~ends, "the action is empty before the last row")
        self._refuse_first(ends & ~self.empty, "the last row of an episode has an action")
        self._refuse_first(ends & (self.t == 0), "an episode has no action")
        offsets = np.concatenate([[0], last - np.arange(last.size)])
        logged = None if self.probabilities is None else self.probabilities[~ends]
        demos = Demonstrations(
            self.state, self.action[~ends], offsets, self.terminated[last], probabilities=logged
        )
        begins = np.concatenate([[0], last[:-1] + 1])
        return demos.read_from(Source(self.path, partial(_row, begins, last)))

    def _log(self, starts: IntArray, last: IntArray) -> Demonstrations:
        assert self.next_state is not None
        self._refuse_first(self.empty, "action is empty")
        if self.state.ndim == 1:
            self._refuse_first(self.next_state < 0, "next_state is below 0")
        within = np.ones(self.t.size, dtype=bool)
        within[starts] = False
        torn = within.copy()
        moved = self.state[1:] != self.next_state[:-1]
        torn[1:] &= moved if moved.ndim == 1 else moved.any(axis=1)
        self._refuse_first(torn, "state is not where the row before led to")
        early = within.copy()
        early[1:] &= self.terminated[:-1]
        self._refuse_first(early, "an episode goes on after it terminated")
        states = np.insert(self.state, last + 1, self.next_state[last], axis=0)
        offsets = np.concatenate([[0], last + 1])
        demos = Demonstrations(
            states, self.action, offsets, self.terminated[last], probabilities=self.probabilities
        )
        return demos.read_from(Source(self.path, partial(_row, starts, last)))

    def _refuse_first(self, wrong: BoolArray, what: str) -> None:
        if wrong.any():
            raise self._refused(int(np.argmax(wrong)), what)

    def _refused(self, row: int, what: str, remedy: str = REMEDY) -> InvalidFile:
        return InvalidFile(f"{self.path}, row {row}: {what}", remedy)


def _row(first: IntArray, last: IntArray, episode: int, step: int) -> str:
    """The row of a step, or the episode's last one."""
    return f"row {min(first[episode] + step, last[episode])}"


EPISODE, FLAG = "episode", "terminated"
MOST_AXES = 1024
"""Numbers of an observation in columns of their own."""
NAME_BYTES = 200
"""What the name of an episode takes beside its characters."""


def read_parquet(path: Path, allowance: Allowance) -> Demonstrations:
    """The demonstrations in a Parquet file."""
    header, words = parquet_header(path, allowance.limit)
    if _is_read_as_text(header, words):
        table = parquet_table(path, allowance.limit, _is_wanted)
        *parts, logged, source = read_table(table, allowance.require, allowance.names)
        return Demonstrations(*parts, probabilities=logged).read_from(source)
    reals = [f"{name}_{k}" for name in ("state", NEXT_STATE) for k in range(MOST_AXES)]
    with open_arrow(
        path, "Parquet", memory=allowance.limit, texts=[EPISODE], reals=[*reals, PROBABILITY]
    ) as file:
        require_columns(path, file.names)
        return _table(file, allowance).demonstrations()


def _is_read_as_text(header: list[str], words: list[str]) -> bool:
    """Whether columns hold names or moments, or have other names than those of numbers."""
    used = {"state", "action", NEXT_STATE, "t"}
    if used & set(words):
        return True
    plain = plain_header(header, known_columns(header))
    return plain != header or ("t" not in header and order_column(header) is not None)


def _is_wanted(name: str) -> bool:
    return name in known_columns([name])


def _table(file: ArrowFile, allowance: Allowance) -> DemonstrationTable:
    num_rows = file.num_rows or 0
    axes = state_columns(file.names)
    after = state_columns(file.names, NEXT_STATE) if axes else []
    if len(axes) > MOST_AXES or (after and len(after) != len(axes)):
        raise file.refused(
            f"it has {len(axes)} columns of observations and {len(after)} of next ones",
            f"Give as many of both, and at most {MOST_AXES}",
        )
    bytes_per_row = BYTES_PER_ROW + 48 * len(axes)
    allowance.require(bytes_per_row * num_rows)
    known = (*COLUMNS, NEXT_STATE, PROBABILITY)
    names = [*(name for name in known if name in file.names), *axes, *after]
    columns: dict[str, Any] = {
        name: np.zeros(num_rows, dtype=np.float64 if name in file.reals else np.int64)
        for name in names
    }
    empty = np.zeros(num_rows, dtype=bool)
    for batch in file.batches(names):
        named = sum(NAME_BYTES + len(name) for name in file.texts)
        allowance.require(bytes_per_row * num_rows + named)
        part = slice(batch.first, batch.first + batch.num_rows)
        for name in names:
            may_be_empty = name in ("action", FLAG, PROBABILITY)
            columns[name][part] = batch.columns[name].values if may_be_empty else batch.filled(name)
        without = batch.columns["action"].empty
        empty[part] = False if without is None else without
        wrong = (columns[FLAG][part] >> 1) != 0 if FLAG in names else empty[part][:0]
        if wrong.any():
            row = batch.first + int(np.argmax(wrong))
            raise file.refused(f"{FLAG} is {columns[FLAG][row]}", "Give true or false", row)
    terminated = columns[FLAG] == 1 if FLAG in names else np.zeros(num_rows, dtype=bool)
    state = np.column_stack([columns[name] for name in axes]) if axes else columns["state"]
    following = np.column_stack([columns[name] for name in after]) if after else None
    return DemonstrationTable(
        file.path, columns[EPISODE], columns["t"], state, columns["action"], empty,
        terminated, columns.get(NEXT_STATE) if following is None else following,
        columns.get(PROBABILITY),
    )  # fmt: skip


def write_parquet(demonstrations: Demonstrations, path: Path) -> None:
    """Write one row per step."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    table = pyarrow.table(demonstrations.to_columns())
    write_atomically(path, lambda stream: parquet.write_table(table, stream, compression="zstd"))
