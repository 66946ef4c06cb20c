"""Columns of whole numbers from a Parquet file, the form in which long logs are kept."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.formats.memory_limit import require_memory
from journeyman.adapters.formats.parquet_columns import open_parquet
from journeyman.adapters.world_files.log_tables import (
    EPISODE,
    PER_ENTRY,
    ROW,
    Columns,
    EpisodeNames,
    places_of,
)
from journeyman.arrays import IntArray
from journeyman.errors import InvalidFile

EXACT = 2.0**53
"""Whole numbers below this are exact as floating-point numbers."""


def read_parquet_columns(
    path: str, required: Collection[str], optional: Collection[str], limit: int
) -> Columns:
    """The named columns; how many rows there are is known before they are unpacked."""
    known = [*required, *optional]

    def allow_rows(count: int) -> None:
        if not count:
            raise InvalidFile(f"{path} holds no step", "Give one row per step")
        require_memory(f"{path}, with {count} rows,", PER_ENTRY * count * len(known), limit)

    with open_parquet(Path(path), known, allow_rows, as_codes=[EPISODE]) as file:
        names = list(places_of(path, file.names, required, optional))
        parts: dict[str, list[IntArray]] = {name: [] for name in names}
        first, episodes = 0, EpisodeNames()
        for batch in file.batches(names):
            for name in names:
                column = batch.column(name)
                if name == EPISODE and _is_text(column):
                    parts[name].append(_numbered(column, episodes))
                    needed = PER_ENTRY * file.num_rows * len(known) + episodes.num_bytes
                    require_memory(path, needed, limit)
                else:
                    parts[name].append(_whole(path, name, column, first))
            first += batch.num_rows
        columns = {name: np.concatenate(parts[name]) for name in names}
        return Columns({**columns, ROW: np.arange(columns[names[0]].size)}, episodes)


def _is_text(column: Any) -> bool:
    """Whether names are given as codes of a dictionary, and none is empty."""
    kind = getattr(column.type, "value_type", None)
    return not column.null_count and str(kind) in ("string", "large_string")


def _numbered(column: Any, episodes: EpisodeNames) -> IntArray:
    used, places = np.unique(column.indices.to_numpy(), return_inverse=True)
    names = column.dictionary.take(used).to_pylist()
    return np.array([episodes.number(name) for name in names], dtype=np.int64)[places]


def _whole(path: str, name: str, column: Any, first: int) -> IntArray:
    """Whole numbers of a part of the table that begins with row `first`."""
    if column.null_count:
        row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InvalidFile(
            f"{path}: {name} has {column.null_count} empty cells, the first in row {row}",
            "Fill them in",
        )
    values = column.to_numpy(zero_copy_only=False)
    kind = values.dtype.kind
    whole = kind in "bi" or (kind in "uf" and bool((np.abs(values) < EXACT).all()))
    if not whole or (kind == "f" and (values != np.floor(values)).any()):
        odd = values != np.floor(values) if kind == "f" else np.zeros(0, dtype=bool)
        where = f", the first other in row {first + int(np.argmax(odd))}" if odd.any() else ""
        raise InvalidFile(
            f"{path}: {name} holds {column.type} and not whole numbers only{where}",
            "Number states and actions from 0",
        )
    return np.asarray(values, dtype=np.int64)
