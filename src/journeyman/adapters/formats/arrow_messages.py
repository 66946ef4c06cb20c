"""Record batches of Arrow's stream and file formats, mapped and not copied, and checked.

Both formats are a sequence of messages: a schema, then batches. The file is mapped into memory, so
a batch is backed by the file itself, however long it says it is. Compressed batches, which may
unpack to anything, are refused by a look at the message; the columns that are used are validated
down to their last offset. Other columns are never looked at.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from journeyman.adapters.formats.damaged_files import told_as_damaged
from journeyman.errors import InvalidFile, MissingExtra

MAGIC, MAGIC_BYTES = b"ARROW1", 8
"""What the file format puts before the messages."""
HEADER, COMPRESSION = 2, 3
"""Fields of a message, and of a record batch, in Arrow's schema of messages."""


@contextmanager
def open_arrow(path: Path) -> Iterator[Iterator[Any]]:
    """The record batches of `path`, to be used within the block."""
    pyarrow = _pyarrow()
    with told_as_damaged(path, "Arrow"), pyarrow.memory_map(str(path)) as source:
        source.seek(MAGIC_BYTES if source.read(len(MAGIC)) == MAGIC else 0)
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
