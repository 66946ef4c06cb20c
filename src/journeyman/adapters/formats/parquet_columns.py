"""Columns of a Parquet file in batches, after its footer and its page headers were looked at.

A file of some kilobytes may hold 10^8 rows, or one page that unpacks to gigabytes. So the footer's
number of rows and the page headers are compared with what is allowed before anything is unpacked.
Nothing but the columns asked for is read.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from journeyman.adapters.formats.damaged_files import told_as_damaged
from journeyman.adapters.formats.parquet_pages import announced_rows
from journeyman.errors import InvalidFile, MissingExtra

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
