"""The headers of a Parquet file's pages: what each page takes when it is unpacked.

The footer of a file says what its columns take, and may lie; a page's buffer is made as large as
the page's own header says. So these headers are walked through before anything is unpacked. Footer
and headers are read here, and not by pyarrow, which ends the process over some damaged footers.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from journeyman.adapters.formats.compact_thrift import CompactReader, Wanted
from journeyman.errors import InvalidFile

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
