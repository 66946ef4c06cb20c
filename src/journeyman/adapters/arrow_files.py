"""Columns of Parquet and Arrow files as numbers, read by a process that may die of them.

The process (`arrow_worker`) is started when it is first needed, and again after a file has ended
it. How many rows and numbers there are is known before the memory for them is taken.
"""

import atexit
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.arrays import BoolArray, IntArray
from journeyman.errors import InvalidFile, MissingExtra, TooLarge
from journeyman.execution import ONE_THREAD
from journeyman.tables import Table, csv_table, frame_table, is_frame, plain_name

WORKER = Path(__file__).with_name("arrow_worker.py")
LONGEST_LINE = 1 << 26
"""Bytes of a line of the worker's: names of columns, or texts of a batch."""
KEPT_SECONDS = 5.0
"""How long an idle worker is used again; it leaves by itself after twice that time."""
BYTES_PER_TEXT, BYTES_PER_CELL = 150, 8
"""What a text takes beside its characters, and each cell that has it."""
PARQUET = (".parquet", ".pq")
DOUBTFUL = "Write it again, and do not open files of doubtful origin"


@dataclass(frozen=True, eq=False)
class Column:
    """Whole numbers, or those of a real column; 0 stands in empty cells."""

    values: IntArray
    empty: BoolArray | None
    """Marks of empty cells, None if there are none."""
    lengths: IntArray | None
    """How many numbers each row has, None if it has one each."""
    is_text: bool
    """Whether the numbers are those of the texts of the file."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of a file; `first` is the number of the first of them."""

    file: "ArrowFile"
    first: int
    num_rows: int
    columns: dict[str, Column]

    def filled(self, name: str) -> IntArray:
        """A column without empty cells."""
        column = self.columns[name]
        if column.empty is not None:
            where = self.first + int(np.argmax(column.empty)) if column.lengths is None else None
            raise self.file.refused(f"{name} is empty", "Fill it in", where)
        return column.values


@dataclass(eq=False)
class ArrowFile:
    """An open file."""

    path: Path
    kind: str
    worker: "_Worker"
    names: list[str] = field(default_factory=list)
    num_rows: int | None = None
    """None in Arrow files, whose rows are known batch by batch."""
    reals: Sequence[str] = ()
    """Columns whose numbers need not be whole."""
    nested: list[str] = field(default_factory=list)
    """Columns that hold lists of lists: observations of several numbers, for instance."""
    words: list[str] = field(default_factory=list)
    """Columns that hold texts or moments."""
    texts: list[str] = field(default_factory=list)
    """The texts that have come so far, by their numbers."""

    def batches(
        self, names: Sequence[str], allow: Callable[[int, int], None] | None = None
    ) -> Iterator[Batch]:
        """The named columns. `allow` is given the rows of a batch, and the numbers in its longest
        column, before memory is taken for them, and may raise."""
        for name in names:
            if self.names.count(name) != 1:
                found = ", ".join(self.names)[:200]
                raise InvalidFile(
                    f"{self.path} has no column {name}; it has {found}",
                    "Check that it is a file of demonstrations",
                )
        self.worker.send(list(names))
        first = 0
        while "end" not in (facts := self.worker.heard(self)):
            rows = int(facts["rows"])
            if allow is not None:
                allow(rows, max(count for _, count, *_ in facts["columns"]))
            columns = {name: self._column(name, rows, *form) for name, *form in facts["columns"]}
            self.texts += facts["texts"]
            yield Batch(self, first, rows, columns)
            first += rows
        if self.num_rows not in (None, first):
            raise InvalidFile(
                f"{self.path} announces {self.num_rows} rows and holds {first}",
                "Write the file again",
            )

    def refused(self, what: str, remedy: str, row: int | None = None) -> InvalidFile:
        """What is wrong, with its row where that is known and the file counts its rows."""
        shown = f", row {row}" if row is not None and self.num_rows is not None else ""
        return InvalidFile(f"{self.path}{shown}: {what}", remedy)

    def damaged(self, fault: str) -> InvalidFile:
        return InvalidFile(f"{self.path} is not a whole {self.kind} file: {fault}", DOUBTFUL)

    def _column(
        self, name: str, rows: int, count: int, empty: bool, lists: bool, is_text: bool
    ) -> Column:
        return Column(
            self.worker.numbers(self, count, np.float64 if name in self.reals else np.int64),
            self.worker.numbers(self, count, np.bool_) if empty else None,
            self.worker.numbers(self, rows, np.int64) if lists else None,
            is_text,
        )


@contextmanager
def open_arrow(
    path: Path,
    kind: str,
    *,
    memory: int,
    texts: Sequence[str] = (),
    lists: Sequence[str] = (),
    reals: Sequence[str] = (),
    spelled: Sequence[str] = (),
) -> Iterator[ArrowFile]:
    """A file of the kind "Parquet" or "Arrow", whose reader may take `memory` bytes.

    The columns `texts` may hold texts, which are numbered from 0; the columns `lists` hold lists,
    of numbers or of lists of as many numbers each, which then follow one another; numbers of the
    columns `reals` need not be whole. The columns `spelled` are texts, whatever they hold.
    """
    if not _has_pyarrow():
        raise MissingExtra("pyarrow", "parquet")
    if not path.is_file():
        raise InvalidFile(f"{path} does not exist", "Check the path")
    request = {
        "path": str(path), "format": kind.lower(), "texts": list(texts), "lists": list(lists),
        "reals": list(reals), "spelled": list(spelled), "memory": memory,
    }  # fmt: skip
    with _Worker.lock:
        worker = _Worker.asked(request)
        file = ArrowFile(path, kind, worker, reals=reals)
        try:
            facts = worker.heard(file)
            file.names, file.num_rows = list(facts["names"]), facts["rows"]
            file.nested, file.words = list(facts["nested"]), list(facts["words"])
            yield file
        finally:
            if worker.is_busy:
                worker.end()


def parquet_header(path: Path, memory: int) -> tuple[list[str], list[str]]:
    """The columns of a Parquet file, and those that hold texts or moments."""
    with open_arrow(path, "Parquet", memory=memory) as file:
        return file.names, file.words


def parquet_table(path: Path, memory: int, wanted: Callable[[str], bool]) -> Table:
    """A Parquet file as rows of text, as a CSV file would have them; of the columns that are wanted
    by their plain names.

    Tables of numbers are read faster as numbers; this is for names and timestamps.
    """
    header, _ = parquet_header(path, memory)
    names = [name for name in header if wanted(plain_name(name))]
    for name in names:
        if header.count(name) > 1:
            raise InvalidFile(f"{path} has two columns {name!r}", "Give each its own name")
    codes: list[list[IntArray]] = []
    with open_arrow(path, "Parquet", memory=memory, spelled=names) as file:
        for batch in file.batches(names):
            codes.append([batch.columns[name].values for name in names])
            cells = BYTES_PER_CELL * len(names) * (batch.first + batch.num_rows)
            need = cells + sum(BYTES_PER_TEXT + len(text) for text in file.texts)
            if need > memory:
                raise TooLarge(
                    f"{path} takes more than {need / 1e6:,.0f} MB of memory, and is allowed "
                    f"{memory / 1e6:,.0f} MB",
                    "Raise the limit on memory, or write numbers of states and actions, and t",
                )
    texts = [text.strip() for text in file.texts]
    return Table(str(path), [name.strip() for name in names], _rows(codes, texts), "row")


def _rows(codes: list[list[IntArray]], texts: list[str]) -> Iterator[tuple[int, list[str]]]:
    number = 0
    for batch in codes:
        for row in zip(*(column.tolist() for column in batch), strict=True):
            yield number, [texts[code] for code in row]
            number += 1


def open_table(source: Any, memory: int, wanted: Callable[[str], bool]) -> Table:
    """A CSV or Parquet file, or a data frame, as rows of text."""
    if isinstance(source, Table):
        return source
    if is_frame(source):
        return frame_table(source)
    if str(source).lower().endswith(PARQUET):
        return parquet_table(Path(source), memory, wanted)
    return csv_table(source)


class _Worker:
    """The process of `arrow_worker`, one for this process."""

    lock = threading.Lock()
    current: "_Worker | None" = None

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        )  # fmt: skip
        self.owner, self.is_busy, self.used = os.getpid(), False, time.monotonic()
        atexit.register(self.end)

    @classmethod
    def asked(cls, request: dict[str, Any]) -> "_Worker":
        """The worker, with a request."""
        worker, now = cls.current, time.monotonic()
        if worker is not None and now > worker.used + KEPT_SECONDS:  # it may be about to leave
            worker.end()
        if worker is None or worker.owner != os.getpid() or worker.process.poll() is not None:
            worker = cls.current = cls()
        worker.send(request)
        return worker

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.is_busy = True
        with suppress(BrokenPipeError):  # whoever waits for the answer of a dead worker notices
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def heard(self, file: ArrowFile) -> dict[str, Any]:
        """What the worker says next of a file; what is wrong with the file is raised."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise self._lost(file)
        facts: dict[str, Any] = json.loads(line)
        self.is_busy, self.used = not facts.keys() & {"end", "what", "fault"}, time.monotonic()
        if "what" in facts:
            raise file.refused(facts["what"], facts["remedy"], facts["row"])
        if facts.get("kind") == "memory":
            raise TooLarge(
                f"{file.path} unpacks to more memory than it is allowed",
                f"{DOUBTFUL}; if it is as large as you expect, raise the limit on memory",
            )
        if "fault" in facts:
            raise file.damaged(facts["fault"])
        return facts

    def numbers(self, file: ArrowFile, count: int, dtype: type[np.generic]) -> NDArray[Any]:
        """The next numbers that the worker sends."""
        assert self.process.stdout is not None
        size = count * np.dtype(dtype).itemsize
        data = self.process.stdout.read(size)
        if len(data) != size:
            raise self._lost(file)
        return np.frombuffer(data, dtype=dtype)

    def _lost(self, file: ArrowFile) -> InvalidFile:
        code = self.process.wait()
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return file.damaged(f"the process that read it ended by {cause}")

    def end(self) -> None:
        """Kill the process, if it is ours."""
        atexit.unregister(self.end)
        if self.owner == os.getpid():
            self.process.kill()
            with suppress(BrokenPipeError):
                self.process.communicate()
        _Worker.current = None


def _has_pyarrow() -> bool:
    try:
        return importlib.util.find_spec("pyarrow") is not None
    except ValueError:  # it was taken out of sys.modules
        return False
