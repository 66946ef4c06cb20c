"""Columns of a Parquet file in batches, after its footer and its page headers were looked at.

A file of some kilobytes may hold 10^8 rows, or one page that unpacks to gigabytes. So the footer's
number of rows and the page headers are compared with what is allowed before anything is unpacked.
Nothing but the columns asked for is read.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from journeyman.arrays import BoolArray, IntArray
from journeyman.errors import InvalidFile, JourneymanError, MissingExtra

BATCH_ROWS = 1 << 16
BUFFER = 1 << 20
LONGEST_TEXT, LONGEST_LIST = 1 << 24, 1 << 17
"""What a footer may hold: bytes of a text, entries of a list."""
LIMITS = {
    "thrift_string_size_limit": LONGEST_TEXT, "thrift_container_size_limit": LONGEST_LIST,
}  # fmt: skip


@contextmanager
def open_parquet(
    path: Path,
    names: Sequence[str],
    allow_rows: Callable[[int], None],
    as_codes: Sequence[str] = (),
) -> Iterator["ParquetColumns"]:
    """The columns called `names`, as far as the file has them.

    `allow_rows` is told how many rows there are, before any is read, and may raise. Text in the
    columns `as_codes` is read as codes of a dictionary.
    """
    parquet = _parquet()
    with told_as_damaged(path, "Parquet"):
        num_rows = announced_rows(path, names)
        allow_rows(num_rows)
        present = _column_names(parquet, path)
        codes = [name for name in as_codes if name in present]
        with parquet.ParquetFile(
            path, read_dictionary=codes, buffer_size=BUFFER, pre_buffer=False, **LIMITS
        ) as file:
            yield ParquetColumns(path, file, num_rows)


def _column_names(parquet: Any, path: Path) -> set[str]:
    with parquet.ParquetFile(path, pre_buffer=False, **LIMITS) as file:
        return set(file.schema_arrow.names)


@dataclass(frozen=True)
class ParquetColumns:
    """An open file."""

    path: Path
    file: Any
    num_rows: int

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.file.schema_arrow.names]

    def batches(self, names: Sequence[str]) -> Iterator[Any]:
        """The named columns in batches, as long as there are not more rows than announced."""
        seen = 0
        for batch in self.file.iter_batches(BATCH_ROWS, columns=list(names), use_threads=False):
            seen += batch.num_rows
            if seen > self.num_rows:
                break
            yield batch
        if seen != self.num_rows:
            raise InvalidFile(
                f"{self.path} announces {self.num_rows} rows and holds others",
                "Write the file again",
            )


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    return pyarrow.parquet


# Record batches of Arrow's stream and file formats, mapped and not copied, and checked.
#
# Both formats are a sequence of messages: a schema, then batches. The file is mapped into memory,
# so
# a batch is backed by the file itself, however long it says it is. Compressed batches, which may
# unpack to anything, are refused by a look at the message; the columns that are used are validated
# down to their last offset. Other columns are never looked at.

ARROW_MAGIC, MAGIC_BYTES = b"ARROW1", 8
"""What the file format puts before the messages."""
HEADER, COMPRESSION = 2, 3
"""Fields of a message, and of a record batch, in Arrow's schema of messages."""


@contextmanager
def open_arrow(path: Path) -> Iterator[Iterator[Any]]:
    """The record batches of `path`, to be used within the block."""
    pyarrow = _pyarrow()
    with told_as_damaged(path, "Arrow"), pyarrow.memory_map(str(path)) as source:
        source.seek(MAGIC_BYTES if source.read(len(ARROW_MAGIC)) == ARROW_MAGIC else 0)
        yield _batches(path, source)


def column(path: Path, batch: Any, name: str) -> Any:
    """A column of a batch, validated."""
    if batch.schema.names.count(name) != 1:
        raise InvalidFile(
            f"{path} has no column {name}; it has {', '.join(batch.schema.names)[:200]}",
            "Check that it is a file of demonstrations",
        )
    found = batch.column(name)
    found.validate(full=True)
    return found


def _batches(path: Path, source: Any) -> Iterator[Any]:
    pyarrow = _pyarrow()
    messages = pyarrow.ipc.MessageReader.open_stream(source)
    schema = None
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            break
        if message.type == "schema" and schema is None:
            schema = pyarrow.ipc.read_schema(message)
        elif message.type == "record batch" and schema is not None:
            _refuse_compressed(path, message.metadata.to_pybytes())
            yield pyarrow.ipc.read_record_batch(message, schema)
        else:
            raise InvalidFile(
                f"{path} has a part of type {message.type}", "Write plain columns, uncompressed"
            )
    if schema is None:
        raise InvalidFile(f"{path} has no schema", "Write it again")


def _refuse_compressed(path: Path, message: bytes) -> None:
    """Follow the offsets of the message to its record batch, and look for a compression there."""
    root = struct.unpack_from("<I", message, 0)[0]
    at = _field(message, root, HEADER)
    batch = at + struct.unpack_from("<I", message, at)[0]
    if not at or _field(message, batch, COMPRESSION):
        raise InvalidFile(f"{path} is compressed", "Write it without compression")


def _field(message: bytes, table: int, number: int) -> int:
    """Where a field of a table is, 0 if the table has none."""
    fields = table - struct.unpack_from("<i", message, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", message, fields)[0]:
        return 0
    offset: int = struct.unpack_from("<H", message, fields + 4 + 2 * number)[0]
    return table + offset if offset else 0


def _pyarrow() -> Any:
    try:
        import pyarrow.ipc
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    return pyarrow


# Arrow columns as vectors of whole numbers; empty cells are told apart.

LARGEST_WHOLE = 2.0**53
"""Floats below it are exact."""


def whole_numbers(
    path: Path, name: str, column: Any, first_row: int | None = None
) -> tuple[IntArray, BoolArray]:
    """(values, empty): the column as int64, with 0 in empty cells.

    What is wrong is named by its row, if that of the first cell is given.
    """
    import pyarrow

    kind = pyarrow.types
    number = kind.is_integer(column.type) or kind.is_floating(column.type)
    if not (number or kind.is_boolean(column.type)):
        raise InvalidFile(
            f"{path}: {name} holds {str(column.type)[:80]}, expected whole numbers",
            "Number states and actions from 0, and write the numbers",
        )
    empty = column.is_null(nan_is_null=kind.is_floating(column.type))
    empty = empty.to_numpy(zero_copy_only=False)
    values = column.fill_null(pyarrow.scalar(False).cast(column.type)).to_numpy(
        zero_copy_only=False
    )
    if kind.is_floating(column.type):
        values = np.where(empty, 0, values).astype(np.float64)
        wrong = ~(np.abs(values) < LARGEST_WHOLE) | (values != np.floor(values))
        if wrong.any():
            raise InvalidFile(
                f"{place(path, wrong, first_row)}: {name} is {values[wrong][0]}, expected a whole "
                "number",
                "Number states and actions from 0",
            )
    if column.type == pyarrow.uint64() and values.size and values.max() >= 2**63:
        raise InvalidFile(f"{path}: {name} is {values.max()}, which is no id", "Number from 0")
    return values.astype(np.int64), empty


def filled(path: Path, name: str, column: Any, first_row: int | None = None) -> IntArray:
    """A column without empty cells."""
    values, empty = whole_numbers(path, name, column, first_row)
    if empty.any():
        raise InvalidFile(f"{place(path, empty, first_row)}: {name} is empty", "Fill it in")
    return values


def place(path: Path, wrong: BoolArray, first_row: int | None) -> str:
    """The file and, if the row of the first cell is known, that of the first wrong one."""
    return f"{path}" if first_row is None else f"{path}, row {first_row + int(np.argmax(wrong))}"


# Thrift's compact protocol, as far as it takes to look into a Parquet file.
#
# Structs are read field by field; only the fields asked for are kept, the others are stepped over,
# so
# that nothing grows beyond what was asked for. `IndexError` says that the data end too early or
# make
# no sense.

Wanted: TypeAlias = Mapping[int, Any]
"""Numbers of fields; those of structs, and of lists of structs, map to what is wanted of these."""
DEEPEST = 12
"""Structs within structs."""
MOST_ITEMS = 1 << 17
"""Items of a list that is kept."""
LONGEST = 64
"""Bits of a whole number."""
STOP, TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
"""Kinds of values."""


class CompactReader:
    """Reads `data` from its beginning; `at` is where it has come to."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def struct(self, wanted: Wanted, depth: int = 0) -> dict[int, Any]:
        """The fields that are wanted of a struct, and are there."""
        found: dict[int, Any] = {}
        number = 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._signed()
            if number in wanted:
                found[number] = self._value(kind & 15, wanted[number], depth + 1)
            else:
                self._skip(kind & 15, depth + 1)
        return found

    def _value(self, kind: int, wanted: Wanted, depth: int) -> Any:
        if kind in (SHORT, INT, LONG):
            return self._signed()
        if kind == BINARY:
            length = self._varint()
            self.at += length
            return self._data[self.at - length : self.at]
        if kind == LIST and depth < DEEPEST:
            kind, count = self._list_head()
            if count > MOST_ITEMS:
                raise IndexError
            return [self._value(kind, wanted, depth + 1) for _ in range(count)]
        if kind == STRUCT and depth < DEEPEST:
            return self.struct(wanted, depth)
        raise IndexError

    def _skip(self, kind: int, depth: int) -> None:
        if kind in (TRUE, FALSE):  # the value of a flag is its kind
            return
        if kind == BYTE:
            self.at += 1
        elif kind in (SHORT, INT, LONG):
            self._varint()
        elif kind == DOUBLE:
            self.at += 8
        elif kind == BINARY:
            length = self._varint()
            self.at += length
        elif kind in (LIST, SET) and depth < DEEPEST:
            kind, count = self._list_head()
            for _ in range(count):
                self._skip(BYTE if kind in (TRUE, FALSE) else kind, depth + 1)
        elif kind == STRUCT and depth < DEEPEST:
            self.struct({}, depth)
        else:
            raise IndexError

    def _list_head(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._data) - self.at:  # every item takes a byte
            raise IndexError
        return head & 15, count

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value, shift = 0, 0
        while shift <= LONGEST:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
        raise IndexError

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


# The headers of a Parquet file's pages: what each page takes when it is unpacked.
#
# The footer of a file says what its columns take, and may lie; a page's buffer is made as large as
# the page's own header says. So these headers are walked through before anything is unpacked.
# Footer
# and headers are read here, and not by pyarrow, which ends the process over some damaged footers.

PAGE_LIMIT = 32 << 20
"""Bytes of a page; writers make them of one megabyte or so."""
FOOTER_LIMIT = 4 << 20
WINDOWS = (1 << 9, 1 << 17)
"""Bytes in which the header of a page is looked for, first and at most."""
MAGIC = b"PAR1"
UNPACKED_SIZE, PACKED_SIZE = 2, 3
"""Fields of a page header."""
FILE_ROWS, ROW_GROUPS, COLUMNS, OTHER_FILE, FACTS = 3, 4, 1, 1, 3
"""Fields of the footer, of its row groups, and of their columns."""
NAME, LENGTH, DATA_START, CODES_START = 3, 7, 9, 11
"""Fields of a column's facts."""
WANTED: Wanted = {
    FILE_ROWS: {},
    ROW_GROUPS: {
        COLUMNS: {OTHER_FILE: {}, FACTS: {NAME: {}, LENGTH: {}, DATA_START: {}, CODES_START: {}}}
    },
}


def announced_rows(path: Path, names: Sequence[str]) -> int:
    """The rows of a file, after the pages of the named columns were found to be small."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        footer = _footer(path, stream, size)
        for start, length in _chunks(path, footer, names) if footer[FILE_ROWS] else ():
            if start < len(MAGIC) or length < 0 or start + length > size:
                raise _refused(path, f"a column lies at {start}, outside the file")
            for unpacked, packed in _pages(path, stream, start, start + length):
                if not (0 <= unpacked <= PAGE_LIMIT and 0 <= packed <= PAGE_LIMIT):
                    raise _refused(path, f"a page would take {max(unpacked, packed)} bytes")
    return int(footer[FILE_ROWS])


def _footer(path: Path, stream: BinaryIO, size: int) -> dict[int, Any]:
    stream.seek(max(0, size - 8))
    tail = stream.read()
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or not 0 < length <= min(FOOTER_LIMIT, size - 12):
        raise _refused(path, "it has no footer of a Parquet file, or a very long one")
    stream.seek(size - 8 - length)
    try:
        footer = CompactReader(stream.read(length)).struct(WANTED)
        if footer[FILE_ROWS] < 0:
            raise IndexError
    except (IndexError, KeyError, TypeError):
        raise _refused(path, "its footer is damaged") from None
    return footer


def _chunks(path: Path, footer: dict[int, Any], names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where each of the named columns lies in each row group: its start, and its length."""
    wanted = {name.encode() for name in names}
    for group in footer.get(ROW_GROUPS, []):
        for column in group.get(COLUMNS, []):
            if column.get(OTHER_FILE):
                raise _refused(path, "a column lies in another file")
            facts = column.get(FACTS, {})
            if facts.get(NAME, [b""])[0] in wanted:
                start = facts.get(DATA_START, -1)
                codes = facts.get(CODES_START, 0)
                yield min(start, codes) if codes > 0 else start, facts.get(LENGTH, -1)


def _pages(path: Path, stream: BinaryIO, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Unpacked and packed size of each page between `start` and `stop`."""
    fields: dict[int, Any] = {UNPACKED_SIZE: {}, PACKED_SIZE: {}}
    at = start
    while at < stop:
        for window in WINDOWS:
            stream.seek(at)
            reader = CompactReader(stream.read(min(window, stop - at)))
            try:
                header = reader.struct(fields)
                unpacked, packed = int(header[UNPACKED_SIZE]), int(header[PACKED_SIZE])
                break
            except (IndexError, KeyError, TypeError):
                continue
        else:
            raise _refused(path, f"there is no page at {at}")
        yield unpacked, packed
        at += reader.at + packed


def _refused(path: Path, what: str) -> InvalidFile:
    return InvalidFile(
        f"{path}: {what}", "Write it again, and do not open files of doubtful origin"
    )


# Whatever pyarrow says of a file it cannot read, in the words of this house.


@contextmanager
def told_as_damaged(path: Path, kind: str) -> Iterator[None]:
    """Around the reading of `path`; pyarrow has many ways to say that a file is damaged."""
    try:
        yield
    except JourneymanError:
        raise
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except Exception as fault:
        raise InvalidFile(
            f"{path} is not a whole {kind} file: {str(fault)[:200]}", "Write it again"
        ) from fault
