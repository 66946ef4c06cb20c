"""Cost features from a file: a table with one row per state, or one per state-action pair.

CSV names the costs in its first line. Columns called `state` and `action` say which row is whose,
in any order; without them rows are taken in the order of the world's states or pairs. An NPZ file
holds one table of numbers and, if it likes, their `names`.
"""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.formats.memory_limit import MEMORY_LIMIT, require_memory
from journeyman.adapters.formats.npz_arrays import NpzArrays, open_npz
from journeyman.arrays import FloatArray, integer_array
from journeyman.demonstrations.table_rows import require_commas
from journeyman.errors import InvalidCosts, InvalidFile
from journeyman.world import World

KEYS = ("state", "action")
TABLES = ("costs", "matrix", "features", "feature_matrix")
NAMES = "names"
NAME_LIMIT = 10_000
PER_BYTE = 16
"""Bytes of memory for each byte of text, at most: a digit and a comma become a float in a list."""


def read_csv_costs(path: str, world: World) -> tuple[FloatArray, list[str]]:
    """One row per state or pair, and the names of the costs."""
    try:
        require_memory(path, PER_BYTE * Path(path).stat().st_size, MEMORY_LIMIT)
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, strict=True)
            header = [name.strip() for name in next(rows, [])]
            require_commas(path, header)
            table = [_numbers(path, rows.line_num, row, header) for row in rows if row]
            last = rows.line_num
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise InvalidFile(f"{path} is not readable text: {fault}", "Write UTF-8 CSV") from fault
    if not table:
        raise InvalidFile(f"{path} holds no costs", "Give a line with names, then a row per state")
    _require_names(path, header)
    values = np.array(table)
    keys = {name: values[:, header.index(name)] for name in KEYS if name in header}
    costs = [place for place, name in enumerate(header) if name not in KEYS]
    if not costs:
        raise InvalidFile(f"{path} has no column of costs", "Add one column per cost")
    if not keys and len(table) not in (world.num_states, world.num_pairs):
        raise InvalidCosts(
            f"{path} has {len(table)} rows of costs, the last in line {last}; the world has "
            f"{world.num_states} states and {world.num_pairs} state-action pairs",
            "Give one row per state, or one per pair",
        )
    ordered = _ordered(path, values[:, costs], keys, world)
    return ordered, [header[place] for place in costs]


def read_npz_costs(path: str) -> tuple[FloatArray, Sequence[str] | None]:
    """The table of an NPZ file and its names, if it has any."""
    with open_npz(path, MEMORY_LIMIT) as arrays:
        others = sorted(arrays.members - {NAMES})
        found = [name for name in TABLES if name in others] or others
        if arrays.is_native or len(found) != 1:
            raise InvalidFile(
                f"{path} holds {', '.join(others) or 'no array'}, and not one table of costs",
                f"Name the table {TABLES[0]!r}",
            )
        return np.asarray(arrays.read(found[0])), _stored_names(path, arrays)


def _stored_names(path: str, arrays: NpzArrays) -> Sequence[str] | None:
    if NAMES not in arrays.members:
        return None
    found = arrays.announced(NAMES)
    if found.dtype.kind != "U" or found.size > NAME_LIMIT:
        raise InvalidFile(f"{path}: names holds {found.dtype}", "Give an array of texts")
    return [str(name) for name in arrays.read(NAMES).ravel()]


def _numbers(path: str, line: int, row: list[str], header: list[str]) -> list[float]:
    if len(row) != len(header):
        raise InvalidFile(
            f"{path}, line {line}: {len(row)} cells, the first line names {len(header)}",
            "Give one cell for each column",
        )
    try:
        numbers = [float(cell) for cell in row]
    except ValueError as fault:
        raise InvalidFile(f"{path}, line {line}: {fault}", "Give plain numbers") from None
    for name, value in zip(header, numbers, strict=True):
        if not math.isfinite(value):
            raise InvalidCosts(
                f"{path}, line {line}: {name} is {value}, which is not finite", "Give finite costs"
            )
    return numbers


def _require_names(path: str, header: list[str]) -> None:
    """A first line of figures is a row of costs and not their names."""
    unnamed = next((name for name in header if _is_number(name)), None)
    if unnamed is not None:
        raise InvalidFile(
            f"{path}: a cost is named {unnamed!r}", "Name the columns in the first line"
        )


def _is_number(text: str) -> bool:
    try:
        float(text or "0")
    except ValueError:
        return False
    return True


def _ordered(path: str, values: FloatArray, keys: dict[str, Any], world: World) -> FloatArray:
    """Rows in the order of the world."""
    if not keys:
        return values
    if "state" not in keys:
        raise InvalidFile(f"{path} has the column action, but not state", "Add the column state")
    states = integer_array("state", keys["state"], refusal=InvalidCosts)
    if "action" in keys:
        actions = integer_array("action", keys["action"], refusal=InvalidCosts)
        if world.observed_actions is not None:
            actions = world.renumbered(states, actions)
        rows, size = world.pairs.index(states, actions, InvalidCosts), world.num_pairs
    else:
        rows, size = states, world.num_states
    counts = np.bincount(rows[(rows >= 0) & (rows < size)], minlength=size)
    if rows.size != size or (counts != 1).any():
        row = int(np.argmax(counts != 1))
        where = world.describe_pair(row) if "action" in keys else f"state {row}"
        raise InvalidCosts(
            f"{path} has {counts[row]} rows for {where}, and {rows.size} in all",
            f"Give one row for each of the {size} {'pairs' if 'action' in keys else 'states'}",
        )
    ordered = np.empty_like(values)
    ordered[rows] = values
    return ordered
