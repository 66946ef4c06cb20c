"""Demonstrations as comma-separated text, in one of two layouts.

One row per visited state; the last row of an episode has an empty action, it is the state where the
record ends, and `terminated` is read from it:

    episode,t,state,action,terminated
    0,0,5,2,
    0,1,6,,1

A log, one row per step, when there is a column `next_state`; `terminated` may be left out, and is
read from the last step of an episode:

    episode,t,state,action,next_state,terminated
    0,0,5,2,6,1

Flags are 1/0, true/false or yes/no; empty means truncated. Columns may stand in any order and
further columns are ignored; rows of an episode must be consecutive, with t counting from 0. Rows
are read one at a time, and kept as flat arrays.
"""

import csv
import io
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from journeyman.arrays import BoolArray, IntArray
from journeyman.demonstrations.origin import Source
from journeyman.demonstrations.table_rows import COLUMNS, NEXT_STATE, Log, Visits
from journeyman.errors import InvalidFile
from journeyman.storage import PathLike, write_atomically

LONGEST_ROW = 1 << 20
"""Characters of a row; a file without line ends is refused before it fills the memory."""
ROWS_BETWEEN_CHECKS = 4096
FOREIGN_SUFFIXES = {".parquet", ".pq", ".hdf5", ".h5", ".arrow"}
"""Formats that `read_demonstrations` knows and `Demonstrations.load` does not."""


def is_csv(path: PathLike) -> bool:
    return Path(path).suffix.lower() == ".csv"


def refuse_foreign(path: PathLike) -> None:
    """Send those who bring a format of another package to the door that is meant for it."""
    if Path(path).suffix.lower() in FOREIGN_SUFFIXES or Path(path).is_dir():
        raise InvalidFile(
            f"{path} is not in the native format",
            "Read files and directories of other packages with jm.read_demonstrations(path)",
        )


def write_csv(
    path: PathLike, states: IntArray, actions: IntArray, offsets: IntArray, terminated: BoolArray
) -> None:
    def write(stream: BinaryIO) -> None:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(COLUMNS)
        for episode, (start, stop) in enumerate(pairwise(offsets)):
            for t, step in enumerate(range(start, stop)):
                rows.writerow((episode, t, states[step + episode], actions[step], ""))
            last = states[stop + episode]
            rows.writerow((episode, stop - start, last, "", int(terminated[episode])))
        text.flush()
        text.detach()

    write_atomically(path, write)


def no_limit(num_bytes: int) -> None:
    """Allow any amount of memory."""


def read_csv(path: PathLike, allow: Callable[[int], None] = no_limit) -> tuple[Any, Any, Any, Any]:
    """(states, actions, offsets, terminated); the first wrong line is named.

    `allow` is told now and then how many bytes the demonstrations take, and may raise.
    """
    with _opened(path) as stream:
        rows = _rows(path, stream)
        header = _header(rows)
        reader = (Log if NEXT_STATE in header else Visits)(path, header)
        for count, (line, row) in enumerate(rows, 1):
            reader.take(line, row)
            if count % ROWS_BETWEEN_CHECKS == 0:
                allow(reader.num_bytes)
        allow(reader.num_bytes)
    return reader.finish()


def source(path: PathLike) -> Source:
    """The file as it is now, with the lines of its steps; after a change none are named."""
    return Source(path, partial(_line, path, _stamp(path)))


def recorded_step(episode: int, step: int) -> str:
    """The place of a step in files that have no lines."""
    return f"episode {episode}, step {step}"


def _line(path: PathLike, stamp: tuple[int, int] | None, episode: int, step: int) -> str:
    if stamp is None or _stamp(path) != stamp:
        return "as it was when it was read"
    return f"line {line_of(path, episode, step)}"


def _stamp(path: PathLike) -> tuple[int, int] | None:
    """What changes when a file is written again."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def line_of(path: PathLike, episode: int, step: int) -> int:
    """The line that holds a step, 0 for the first, of an episode, 0 for the first, of a sound file.

    The step behind the last one is the row where the record ends; a log has none, and shows it in
    the row of the last step.
    """
    with _opened(path) as stream:
        rows = _rows(path, stream)
        place, before, found, number, t = _header(rows).index(COLUMNS[0]), None, 0, -1, 0
        for line, row in rows:
            name = "".join(row[place : place + 1]).strip()
            number, t = (number, t + 1) if name == before else (number + 1, 0)
            before = name
            if number > episode:
                break
            if number == episode and t <= step:
                found = line
    return found


def _opened(path: PathLike) -> TextIO:
    try:
        return Path(path).open(encoding="utf-8-sig", newline="")
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except OSError as fault:
        raise InvalidFile(f"{path} is not readable text: {fault}", "Write UTF-8 CSV") from fault


def _header(rows: Iterator[tuple[int, list[str]]]) -> list[str]:
    _, names = next(rows, (0, []))
    return [name.strip() for name in names]


def _rows(path: PathLike, stream: TextIO) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the number of its last line."""
    lines = _Lines(stream)
    rows = csv.reader(lines)
    try:
        for row in rows:
            lines.held = 0
            if row:
                yield rows.line_num, row
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise InvalidFile(f"{path} is not readable text: {fault}", "Write UTF-8 CSV") from fault


class _Lines:
    """The lines of a file, as long as a row is not too long."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.held = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.stream.readline(LONGEST_ROW)
        self.held += len(line)
        if not line:
            raise StopIteration
        if self.held >= LONGEST_ROW:
            raise csv.Error(f"a row has more than {LONGEST_ROW - 1} characters")
        return line
