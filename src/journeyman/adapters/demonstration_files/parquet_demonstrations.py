"""Demonstrations as a Parquet file, the format for large ones.

One row per step, episode,t,state,action,next_state,terminated, is what is written; tables with one
row per visited state are read as well (`journeyman.demonstrations.files` has both layouts).
"""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from journeyman.adapters.demonstration_files.demonstration_reading import Allowance
from journeyman.adapters.demonstration_files.step_tables import BYTES_PER_ROW, StepTable
from journeyman.adapters.formats.arrow_numbers import filled, place, whole_numbers
from journeyman.adapters.formats.parquet_columns import open_parquet
from journeyman.arrays import IntArray
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.files import COLUMNS, NEXT_STATE, require_columns
from journeyman.errors import InvalidFile, MissingExtra
from journeyman.storage import write_atomically

EPISODE, FLAG = "episode", "terminated"
NAME_BYTES = 200
"""What the name of an episode takes beside its characters."""


def read(path: Path, allowance: Allowance) -> Demonstrations:
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


def write(demonstrations: Demonstrations, path: Path) -> None:
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
