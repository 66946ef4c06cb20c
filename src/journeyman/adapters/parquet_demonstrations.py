"""Demonstrations as a Parquet file, the format for large ones.

One row per step, episode,t,state,action,next_state,terminated, is what is written; tables with one
row per visited state are read as well (`journeyman.demonstrations.files` has both layouts).
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from journeyman.adapters.arrow_files import filled, open_parquet, place, whole_numbers
from journeyman.adapters.demonstration_reading import Allowance
from journeyman.arrays import BoolArray, IntArray
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.files import COLUMNS, NEXT_STATE, Source, require_columns, wrong_time
from journeyman.errors import InvalidFile, MissingExtra
from journeyman.storage import write_atomically

# A table of demonstrations, as columns, cut into episodes.
#
# The columns are those of `journeyman.demonstrations.files`, in either layout. The first row that
# does not fit is named, counted from 0.

BYTES_PER_ROW = 112
"""What a row takes at the peak: the columns, the flat arrays, and those of the value."""
REMEDY = (
    "Rows are episode,t,state,action,terminated with an empty action in the last row of an "
    "episode, or episode,t,state,action,next_state[,terminated]"
)


@dataclass
class StepTable:
    """Columns of equal length; `empty` are the rows without an action."""

    path: Path
    episode: IntArray
    t: IntArray
    state: IntArray
    action: IntArray
    empty: BoolArray
    terminated: BoolArray
    next_state: IntArray | None

    def demonstrations(self) -> Demonstrations:
        """The episodes, or an error that names the first wrong row."""
        if not self.t.size:
            raise InvalidFile(f"{self.path} holds no episode", "Give at least one")
        first = np.concatenate([[True], self.episode[1:] != self.episode[:-1]])
        starts = np.flatnonzero(first)
        lengths = np.diff(np.append(starts, self.t.size))
        self._require_order(starts, lengths)
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
        wrong = self.t != expected
        if wrong.any():
            row = int(np.argmax(wrong))
            raise self._refused(row, *wrong_time(int(self.t[row]), int(expected[row])))

    def _visits(self, last: IntArray) -> Demonstrations:
        ends = np.zeros(self.t.size, dtype=bool)
        ends[last] = True
        self._refuse_first(self.empty & ~ends, "the action is empty before the last row")
        self._refuse_first(ends & ~self.empty, "the last row of an episode has an action")
        self._refuse_first(ends & (self.t == 0), "an episode has no action")
        offsets = np.concatenate([[0], last - np.arange(last.size)])
        demos = Demonstrations(self.state, self.action[~ends], offsets, self.terminated[last])
        begins = np.concatenate([[0], last[:-1] + 1])
        return demos.read_from(Source(self.path, partial(_row, begins, last)))

    def _log(self, starts: IntArray, last: IntArray) -> Demonstrations:
        assert self.next_state is not None
        self._refuse_first(self.empty, "action is empty")
        self._refuse_first(self.next_state < 0, "next_state is below 0")
        within = np.ones(self.t.size, dtype=bool)
        within[starts] = False
        torn = within.copy()
        torn[1:] &= self.state[1:] != self.next_state[:-1]
        self._refuse_first(torn, "state is not where the row before led to")
        early = within.copy()
        early[1:] &= self.terminated[:-1]
        self._refuse_first(early, "an episode goes on after it terminated")
        states = np.insert(self.state, last + 1, self.next_state[last])
        offsets = np.concatenate([[0], last + 1])
        demos = Demonstrations(states, self.action, offsets, self.terminated[last])
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
NAME_BYTES = 200
"""What the name of an episode takes beside its characters."""


def read_parquet(path: Path, allowance: Allowance) -> Demonstrations:
    """The demonstrations in a Parquet file."""

    def allow(rows: int) -> None:
        allowance.require(BYTES_PER_ROW * rows)

    with open_parquet(path, [*COLUMNS, NEXT_STATE], allow, as_codes=[EPISODE]) as columns:
        require_columns(path, columns.names)
        names = [name for name in (*COLUMNS, NEXT_STATE) if name in columns.names]
        return _table(
            path, columns.batches(names), columns.num_rows, names, allowance
        ).demonstrations()


def _table(
    path: Path, batches: Any, num_rows: int, names: list[str], allowance: Allowance
) -> StepTable:
    columns = {name: np.zeros(num_rows, dtype=np.int64) for name in names if name != FLAG}
    empty, terminated = np.zeros(num_rows, dtype=bool), np.zeros(num_rows, dtype=bool)
    codes = _Codes(path, allowance, BYTES_PER_ROW * num_rows)
    at = 0
    for batch in batches:
        part = slice(at, at + batch.num_rows)
        at = part.stop
        columns[EPISODE][part] = codes.of(batch.column(EPISODE), part.start)
        for name in ("t", "state", *([NEXT_STATE] if NEXT_STATE in names else [])):
            columns[name][part] = filled(path, name, batch.column(name), part.start)
        columns["action"][part], empty[part] = whole_numbers(
            path, "action", batch.column("action"), part.start
        )
        if FLAG in names:
            terminated[part] = _flags(path, batch.column(FLAG), part.start)
    return StepTable(
        path, columns[EPISODE], columns["t"], columns["state"], columns["action"], empty,
        terminated, columns.get(NEXT_STATE),
    )  # fmt: skip


class _Codes:
    """Names of episodes as numbers: whole numbers stand for themselves."""

    def __init__(self, path: Path, allowance: Allowance, taken: int) -> None:
        self.path, self.allowance, self.taken = path, allowance, taken
        self.numbers: dict[str, int] = {}

    def of(self, column: Any, first_row: int) -> IntArray:
        """The numbers of a batch."""
        import pyarrow

        if not pyarrow.types.is_dictionary(column.type):
            return filled(self.path, EPISODE, column, first_row)
        if column.null_count:
            empty = column.is_null().to_numpy(zero_copy_only=False)
            raise InvalidFile(
                f"{place(self.path, empty, first_row)}: {EPISODE} is empty", "Fill it in"
            )
        if not pyarrow.types.is_string(column.type.value_type):
            raise InvalidFile(
                f"{self.path}: {EPISODE} holds {str(column.type)[:80]}", "Give numbers or names"
            )
        used, places = np.unique(column.indices.to_numpy(), return_inverse=True)
        names = column.dictionary.take(pyarrow.array(used)).to_pylist()
        return np.array([self._number(name) for name in names], dtype=np.int64)[places]

    def _number(self, name: str) -> int:
        if name not in self.numbers:
            self.taken += NAME_BYTES + len(name)
            self.allowance.require(self.taken)
            self.numbers[name] = len(self.numbers)
        return self.numbers[name]


def _flags(path: Path, column: Any, first_row: int) -> Any:
    import pyarrow

    if pyarrow.types.is_string(column.type):
        raise InvalidFile(f"{path}: {FLAG} holds text", "Write true or false as truth values")
    values, _ = whole_numbers(path, FLAG, column, first_row)
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        raise InvalidFile(
            f"{place(path, wrong, first_row)}: {FLAG} is {values[wrong][0]}", "Give true or false"
        )
    return values


def write_parquet(demonstrations: Demonstrations, path: Path) -> None:
    """Write one row per step."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    ends = np.zeros(demonstrations.num_steps, dtype=bool)
    ends[demonstrations.offsets[1:] - 1] = demonstrations.terminated
    table = pyarrow.table({
        EPISODE: demonstrations.step_episodes, "t": demonstrations.step_times,
        "state": demonstrations.step_states, "action": demonstrations.actions,
        NEXT_STATE: demonstrations.next_states, FLAG: ends,
    })  # fmt: skip

    def save(stream: BinaryIO) -> None:
        parquet.write_table(table, stream, compression="zstd")

    write_atomically(path, save)
