"""A process that reads Parquet and Arrow files, so that a damaged one ends it and nobody else.

pyarrow trusts its files: over some damaged footers it ends the process (measured with pyarrow 26),
and a few kilobytes may unpack to gigabytes. So files are read here, within a limit on memory, and
leave as plain whole numbers. `arrow_files` starts this module as a script, which imports nothing of
journeyman so that it starts quickly, and they exchange lines of JSON:

    in      {"path", "format", "texts", "lists",            a file
             "reals", "spelled", "memory"}
    out     {"names", "rows", "nested", "words"}            its columns; rows, or null if unknown;
                                                            columns of lists of lists; columns of
                                                            texts and moments
    in      [name, ...]                                     the columns to read
    out     {"rows", "columns", "texts"}, then bytes        a batch: see `packed`
    out     {"end": true}                                   or what is wrong: {"what", "remedy",
                                                            "row"}, {"fault", "kind"}

The process ends with its parent, and when nobody has asked for a while.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, ipc, parquet

BATCH_ROWS = 1 << 16
BUFFER = 1 << 20
FOOTER_LIMITS = {
    "thrift_string_size_limit": 1 << 24, "thrift_container_size_limit": 1 << 17,
}  # fmt: skip
"""Bytes of a text, and entries of a list, in the footer of a Parquet file."""
LONGEST_NAME = 10_000
"""Characters of a text."""
LARGEST_WHOLE = 2.0**53
"""Floats below it are exact."""
MEMORY = 200_000_000
"""Bytes for buffers of a file, beside those its reader is allowed."""
IDLE_SECONDS = 10.0
ARROW_MAGIC = b"ARROW1"
REAL = "Write finite numbers"
PLAIN = "Write numbers: states and actions from 0, flags as truth values, and no texts"


class Unusable(Exception):
    """A column, or a cell in a row, that cannot be used."""

    def __init__(self, what: str, remedy: str, row: int | None = None) -> None:
        super().__init__(what)
        self.facts = {"what": what, "remedy": remedy, "row": row}


class WithoutPandas:
    """Keeps pyarrow from loading pandas, which takes memory and is not needed here."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def main() -> None:
    """Answer until the input ends."""
    sys.meta_path.insert(0, WithoutPandas)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    while True:
        idle = threading.Timer(IDLE_SECONDS, os._exit, [0])
        idle.daemon = True
        idle.start()
        line = sys.stdin.buffer.readline()
        idle.cancel()
        if not line:
            return
        answer(json.loads(line), out)


def answer(request: dict[str, Any], out: Any) -> None:
    """Send all of one file, or what is wrong with it."""

    def send(facts: dict[str, Any], blocks: Any = ()) -> None:
        out.write(json.dumps(facts).encode() + b"\n")
        for block in blocks:
            out.write(memoryview(block).cast("B"))
        out.flush()

    try:
        limit_memory(request["memory"] + MEMORY)
        with ExitStack() as stack:
            file: Any = (ParquetTable if request["format"] == "parquet" else ArrowTable)(
                request["path"], stack
            )
            names = [name[:200] for name in file.names]
            facts = {"names": names, "rows": file.num_rows, "nested": file.nested}
            send(facts | {"words": file.words})
            names, numbers, first = json.loads(sys.stdin.buffer.readline()), TextNumbers(), 0
            if names:
                for batch in file.batches(names):
                    send(*packed(batch, names, request, numbers, first))
                    first += batch.num_rows
        send({"end": True})
    except Unusable as refusal:
        send(refusal.facts)
    except Exception as fault:  # pyarrow has many ways to say that a file is damaged
        kind = "memory" if isinstance(fault, MemoryError) else type(fault).__name__
        send({"fault": str(fault)[:200], "kind": kind})


def limit_memory(num_bytes: int) -> None:
    """Let this process take so many bytes more than it has now, where the system can do that."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        (held,) = [int(line.split()[1]) for line in lines if line.startswith("VmData")]
        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (held * 1024 + num_bytes, most))


class ParquetTable:
    """A Parquet file; nothing but the columns asked for is read."""

    def __init__(self, path: str, stack: ExitStack) -> None:
        opened = parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False, **FOOTER_LIMITS)
        self._file = stack.enter_context(opened)
        self.names = [str(name) for name in self._file.schema_arrow.names]
        self.nested = nested_in(self._file.schema_arrow)
        self.words = words_in(self._file.schema_arrow)
        self.num_rows: int | None = self._file.metadata.num_rows

    def batches(self, names: list[str]) -> Iterator[Any]:
        footer = self._file.metadata
        for group in map(footer.row_group, range(footer.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                if column.path_in_schema in names and column.file_path:
                    raise Unusable(
                        f"{column.path_in_schema} lies in another file", "Join the files"
                    )
        batches: Iterator[Any] = self._file.iter_batches(
            BATCH_ROWS, columns=names, use_threads=False
        )
        return batches


class ArrowTable:
    """A file of record batches in Arrow's stream or file format, mapped and not copied."""

    def __init__(self, path: str, stack: ExitStack) -> None:
        self._source, self._stack = stack.enter_context(pa.memory_map(path)), stack
        is_file = self._source.read(len(ARROW_MAGIC)) == ARROW_MAGIC
        self._open = ipc.open_file if is_file else ipc.open_stream
        schema = self._opened(ipc.IpcReadOptions()).schema
        self.names, self.nested = [str(name) for name in schema.names], nested_in(schema)
        self.words = words_in(schema)
        self.num_rows: int | None = None

    def _opened(self, options: Any) -> Any:
        self._source.seek(0)
        return self._stack.enter_context(self._open(self._source, options=options))

    def batches(self, names: list[str]) -> Iterator[Any]:
        """The named columns, validated down to their last offset; others are not unpacked."""
        wanted = [self.names.index(name) for name in names]
        reader = self._opened(ipc.IpcReadOptions(included_fields=wanted, use_threads=False))
        if self._open is ipc.open_file:
            reader = map(reader.get_batch, range(reader.num_record_batches))
        for batch in reader:
            batch.validate(full=True)
            yield batch


def nested_in(schema: Any) -> list[str]:
    """Columns of lists of lists."""
    return [one.name[:200] for one in schema if is_list(one.type) and is_list(one.type.value_type)]


def words_in(schema: Any) -> list[str]:
    """Columns that hold texts or moments."""
    return [one.name[:200] for one in schema if is_word(plain_type(one.type))]


def plain_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_word(kind: Any) -> bool:
    return bool(is_string(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def is_string(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def spelled(column: Any, name: str) -> Any:
    """A column as texts, as a CSV file would have them; what is missing is empty."""
    kind = column.type
    if pa.types.is_floating(kind):
        column = compute.if_else(compute.is_nan(column), pa.scalar(None, kind), column)
    elif pa.types.is_nested(kind) or pa.types.is_binary(kind):
        raise Unusable(f"{name} holds {str(kind)[:80]}", "Write numbers, texts and timestamps")
    return column.cast(pa.string()).fill_null("")


class TextNumbers:
    """Texts as numbers, in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, column: Any, name: str, first: int) -> Any:
        """A number for every text."""
        if column.null_count:
            row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise Unusable(f"{name} is empty", "Fill it in", row)
        codes = column.dictionary_encode()
        lengths = compute.utf8_length(codes.dictionary).to_numpy(zero_copy_only=False)
        if lengths.max(initial=0) > LONGEST_NAME:
            what = f"{name} holds a text of {lengths.max()} characters"
            raise Unusable(what, f"Give names of at most {LONGEST_NAME}")
        for text in codes.dictionary.to_pylist():
            self._numbers.setdefault(text, len(self._numbers))
        known = [self._numbers[text] for text in codes.dictionary.to_pylist()]
        return np.array(known, dtype=np.int64)[codes.indices.to_numpy()]

    def new(self, before: int) -> list[str]:
        """The texts that came after so many."""
        return list(self._numbers)[before:]

    def __len__(self) -> int:
        return len(self._numbers)


def packed(
    batch: Any, names: list[str], request: dict[str, Any], numbers: TextNumbers, first: int
) -> tuple[dict[str, Any], list[Any]]:
    """A batch whose first row has the number `first`: what it holds, and its bytes.

    `columns` are [name, number of entries, are some empty, are they lists, are they texts], one a
    column; its bytes are the entries as int64 (those of `reals` as float64), then marks of empty
    ones and the lengths of lists if there are such. `texts` are those that had not come before.
    """
    columns: list[Any] = []
    blocks: list[Any] = []
    before = len(numbers)
    for name in names:
        column, lengths = batch.column(name), None
        kind = pa.types
        if kind.is_dictionary(column.type):
            column = column.dictionary_decode()
        elif kind.is_null(column.type):
            column = column.cast(pa.int64())
        if name in request["lists"]:
            column, lengths = unpacked(column, name)
            if is_list(column.type):
                column, width = unpacked(column, name)
                if not width.all() or (width != width[:1]).any():
                    what = f"{name} holds lists of {width.min()} and of {width.max()} numbers"
                    raise Unusable(what, "Give all observations one shape")
        if name in request["spelled"]:
            column = spelled(column, name)
        is_text = is_string(column.type)
        if is_text and name in {*request["texts"], *request["spelled"]}:
            values, empty = numbers.of(column.cast(pa.string()), name, first), None
        else:
            is_text = False
            read = real_numbers if name in request["reals"] else whole_numbers
            values, empty = read(column, name, first if lengths is None else None)
        columns.append([name, values.size, empty is not None, lengths is not None, is_text])
        blocks += [block for block in (values, empty, lengths) if block is not None]
    new = list(numbers.new(before)) if len(numbers) > before else []
    return {"rows": batch.num_rows, "columns": columns, "texts": new}, blocks


def is_list(kind: Any) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def unpacked(column: Any, name: str) -> tuple[Any, Any]:
    """What the lists of a column hold, one after the other, and how much each of them does."""
    if not is_list(column.type) or column.null_count:
        what = f"{name} holds {str(column.type)[:80]}, expected a list in every row"
        raise Unusable(what, PLAIN)
    if pa.types.is_fixed_size_list(column.type):
        return column.flatten(), np.full(len(column), column.type.list_size, dtype=np.int64)
    return column.flatten(), column.value_lengths().to_numpy().astype(np.int64)


def real_numbers(column: Any, name: str, first: int | None) -> tuple[Any, Any]:
    """(values as float64 with 0 in empty cells, marks of empty cells or None)."""
    kind = pa.types
    floating = kind.is_floating(column.type)
    if not (floating or kind.is_integer(column.type) or kind.is_boolean(column.type)):
        raise Unusable(f"{name} holds {str(column.type)[:80]}, expected numbers", REAL)
    empty = column.is_null(nan_is_null=floating).to_numpy(zero_copy_only=False)
    if empty.any():
        column = column.fill_null(pa.scalar(False).cast(column.type))
    values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    values[empty] = 0.0
    if floating and not np.isfinite(values).all():
        wrong = ~np.isfinite(values)
        row = None if first is None else first + int(np.argmax(wrong))
        raise Unusable(f"{name} is {values[wrong][0]}, expected a finite number", REAL, row)
    return values, empty if empty.any() else None


def whole_numbers(column: Any, name: str, first: int | None) -> tuple[Any, Any]:
    """(values as int64 with 0 in empty cells, marks of empty cells or None)."""
    kind = pa.types
    floating = kind.is_floating(column.type)
    if not (floating or kind.is_integer(column.type) or kind.is_boolean(column.type)):
        what = f"{name} holds {str(column.type)[:80]}, expected whole numbers"
        raise Unusable(what, PLAIN)
    empty = column.is_null(nan_is_null=floating).to_numpy(zero_copy_only=False)
    filled = column.fill_null(pa.scalar(False).cast(column.type))
    values = filled.to_numpy(zero_copy_only=False)
    wrong = np.zeros(0, dtype=bool)
    if floating:
        values = np.where(empty, 0, values).astype(np.float64)
        wrong = ~(np.abs(values) < LARGEST_WHOLE) | (values != np.floor(values))
    elif values.dtype == np.uint64:
        wrong = values >= 2**63
    if wrong.any():
        row = None if first is None else first + int(np.argmax(wrong))
        raise Unusable(f"{name} is {values[wrong][0]}, expected a whole number", PLAIN, row)
    return values.astype(np.int64), empty if empty.any() else None


if __name__ == "__main__":
    main()
