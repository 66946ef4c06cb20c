"""Cost features from a file: a table with one row per state, or one per state-action pair.

CSV names the costs in its first line. Columns called `state` and `action` say which row is whose,
in any order, by the numbers that states and actions have in the world; without them rows are taken
in the order of the world's states or pairs, or of all states and action numbers. Rows of actions
that a state does not offer are left out. A column that numbers the rows (`id`, `machine_id`,
`index`, or the nameless first column that data frames write) is no cost. The end that a world has
added for terminated episodes, and numbers that occur nowhere in a log, cost nothing if the table
has no row for them: who wrote it may not know of them. An NPZ file holds one table of numbers and,
if it likes, their `names`.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.formats.memory_limit import MEMORY_LIMIT, require_memory
from journeyman.adapters.formats.npz_arrays import NpzArrays, open_npz
from journeyman.arrays import FloatArray, IntArray
from journeyman.costs.basis import KEYS, numbers_rows
from journeyman.demonstrations.files import require_commas
from journeyman.errors import InvalidCosts, InvalidFile
from journeyman.world import World
from journeyman.world.pairs import LARGEST_NUMBER, MOST_NAMED

TABLES = ("costs", "matrix", "features", "feature_matrix")
NAMES = "names"
NAME_LIMIT = 10_000
PER_BYTE = 16
"""Bytes of memory for each byte of text, at most: a digit and a comma become a float in a list."""


@dataclass(frozen=True, eq=False)
class CostTable:
    """Numbers, their names, and what was left out, in words; nothing was if that is empty."""

    values: FloatArray
    names: list[str]
    note: str


def read_csv_costs(path: str, world: World) -> CostTable:
    """One row per state or pair, and the names of the costs."""
    lines: list[int] = []
    table: list[list[float]] = []
    try:
        require_memory(path, PER_BYTE * Path(path).stat().st_size, MEMORY_LIMIT)
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, strict=True)
            header = [name.strip() for name in next(rows, [])]
            require_commas(path, header)
            begin = rows.line_num + 1
            for row in rows:
                if row:
                    table.append(_numbers(path, begin, row, header))
                    lines.append(begin)
                begin = rows.line_num + 1
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise InvalidFile(f"{path} is not readable text: {fault}", "Write UTF-8 CSV") from fault
    if not table:
        raise InvalidFile(f"{path} holds no costs", "Give a line with names, then a row per state")
    return _Reading(path, header, np.array(table), lines).on(world)


@dataclass(frozen=True, eq=False)
class _Reading:
    """A table of numbers with the names of its columns and the line of every row."""

    path: str
    header: list[str]
    values: FloatArray
    lines: list[int]

    def on(self, world: World) -> CostTable:
        keys = {name: place for place, name in enumerate(self.header) if name.lower() in KEYS}
        numbering = [
            place for place, name in enumerate(self.header) if numbers_rows(name, first=place == 0)
        ]
        used = {*keys.values(), *numbering}
        costs = [place for place in range(len(self.header)) if place not in used]
        names = [self.header[place] for place in costs]
        _require_names(self.path, names)
        for key in KEYS:
            if [name.lower() for name in self.header].count(key) > 1:
                raise InvalidFile(f"{self.path} has two columns {key!r}", "Give each its own name")
        if not costs:
            raise InvalidFile(f"{self.path} has no column of costs", "Add one column per cost")
        notes = [f"the column {self.header[place]!r} numbers the rows" for place in numbering]
        by_key = {name.lower(): self._whole(place) for name, place in keys.items()}
        if by_key:
            values, left_out, free = self._ordered(by_key, self.values[:, costs], world)
        else:
            for place in numbering:
                self._require_in_order(place)
            values, left_out, free = self._as_listed(self.values[:, costs], world)
        if left_out:
            notes.append(f"{left_out} rows are for actions that their states do not offer")
        parts = [f"{' and '.join(notes)}; left out"] if notes else []
        if free.size:
            parts.append(_free_in_words(free, world))
        return CostTable(values, names, f"{self.path}: {'; '.join(parts)}" if parts else "")

    def _whole(self, place: int) -> IntArray:
        column = self.values[:, place]
        wrong = (column != np.floor(column)) | (column < 0) | (column >= LARGEST_NUMBER)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidCosts(
                f"{self.path}, line {self.lines[row]}: {self.header[place]} is {column[row]:g}, "
                "not a whole number from 0",
                "Number states and actions as the world does",
            )
        return column.astype(np.int64)

    def _require_in_order(self, place: int) -> None:
        """Rows that are numbered otherwise than they stand may be meant in another order."""
        column = self.values[:, place]
        wrong = column != column[0] + np.arange(column.size)
        if wrong.any() and not np.isnan(column).any():
            row = int(np.argmax(wrong))
            raise InvalidCosts(
                f"{self.path}, line {self.lines[row]}: {self.header[place]!r} is {column[row]:g}, "
                f"after {column[row - 1]:g}: the rows do not stand in the order of their numbers",
                "Call the column state if it tells whose costs these are, and add a column action "
                "if they differ by action; if it does not, leave it out",
            )

    def _as_listed(self, values: FloatArray, world: World) -> tuple[FloatArray, int, IntArray]:
        none = np.zeros(0, dtype=np.int64)
        if len(values) == world.sink == world.num_states - 1:
            return np.vstack([values, np.zeros_like(values[:1])]), 0, np.array([world.sink])
        rows, complete = len(values), world.num_states * world.pairs.width
        if rows not in (world.num_states, world.num_pairs, complete):
            also = "" if world.pairs.is_complete else f" ({complete} with all action numbers)"
            raise InvalidCosts(
                f"{self.path} has {rows} rows of costs, the last in line {self.lines[-1]}; the "
                f"world has {world.num_states} states and {world.num_pairs} state-action pairs"
                f"{also}",
                "Give one row per state, or one per pair; columns state and action tell which is "
                "whose",
            )
        if rows in (world.num_states, world.num_pairs):
            return values, 0, none
        kept = np.asarray(world.pairs.per_pair(self.path, values, InvalidCosts))
        return kept, rows - len(kept), none

    def _ordered(
        self, keys: dict[str, IntArray], values: FloatArray, world: World
    ) -> tuple[FloatArray, int, IntArray]:
        """Rows in the order of the world, how many of them it has no place for, and states that
        have none and cost nothing.
        """
        if "state" not in keys:
            raise InvalidFile(
                f"{self.path} has the column action, but not state", "Add the column state"
            )
        states, known = keys["state"], np.ones(len(values), dtype=bool)
        self._require_states(states, world)
        if "action" in keys:
            rows, known = self._pairs(states, keys["action"], world)
            homes, what = world.pairs.states, "pairs"
        else:
            rows, homes, what = states, np.arange(world.num_states), "states"
        size = homes.size
        counts = np.bincount(rows[known], minlength=size)
        free = np.setdiff1d(_without_costs(world), states[known])
        counts[np.isin(homes, free)] = 1
        if (counts != 1).any():
            row = int(np.argmax(counts != 1))
            where = world.describe_pair(row) if "action" in keys else f"state {row}"
            found = [self.lines[k] for k in np.flatnonzero(known & (rows == row))[:2]]
            there = f" (lines {found[0]} and {found[1]})" if len(found) > 1 else ""
            missing = int((counts == 0).sum())
            also = f"; {missing} {what} have none" if missing > 1 else ""
            raise InvalidCosts(
                f"{self.path} has {counts[row]} rows for {where}{there}, and {rows.size} in "
                f"all{also}",
                f"Give one row for each of the {size} {what}",
            )
        ordered = np.zeros((size, values.shape[1]))
        ordered[rows[known]] = values[known]
        return ordered, int((~known).sum()), free

    def _require_states(self, states: IntArray, world: World) -> None:
        outside = states >= world.num_states
        if outside.any():
            row = int(np.argmax(outside))
            raise InvalidCosts(
                f"{self.path}, line {self.lines[row]}: state is {states[row]}, outside "
                f"0..{world.num_states - 1}",
                "Number states as the world does",
            )

    def _pairs(self, states: IntArray, actions: IntArray, world: World) -> tuple[IntArray, Any]:
        """The pair of every row, and whether there is one; only records may lack an action."""
        pairs = world.pairs
        known = pairs.offers(states, actions)
        possible = actions < pairs.width if not pairs.is_complete else known
        wrong = ~known & ~possible & (world.observed_actions is None)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidCosts(
                f"{self.path}, line {self.lines[row]}: action is {actions[row]}, but state "
                f"{states[row]} has {pairs.actions_in_words(int(states[row]))}",
                "Number actions as the world does",
            )
        rows = np.zeros(states.size, dtype=np.int64)
        rows[known] = pairs.index(states[known], actions[known], InvalidCosts)
        return rows, known


def _without_costs(world: World) -> IntArray:
    """The added end of episodes, and what an estimated world never enters nor leaves."""
    inert = np.zeros(world.num_states, dtype=bool)
    if world.transition_counts is not None:
        laws = (world.transition if world.support is None else world.support).tocoo()
        entered = laws.col[(world.pairs.states[laws.row] != laws.col) & (laws.data > 0)]
        inert = world.absorbing & (world.initial == 0)
        inert[entered] = False
        inert[world.pairs.states[world.transition_counts > 0]] = False
    if world.sink is not None:
        inert[world.sink] = True
    return np.flatnonzero(inert)


def _free_in_words(states: IntArray, world: World) -> str:
    known = [f"{world.sink}, the end that was added for terminated episodes"]
    others = [str(state) for state in states if state != world.sink]
    shown = others[:MOST_NAMED]
    if len(others) > len(shown):
        shown.append(f"... ({len(others)} in all)")
    unseen = [f"{', '.join(shown)}, which no recorded step enters or leaves"] if others else []
    ends = known if world.sink in states else []
    count = "state" if states.size == 1 else "states"
    return f"no row for {count} {' and for '.join([*unseen, *ends])}: costs there are taken as 0"


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
    numbers = []
    for place, (name, cell) in enumerate(zip(header, row, strict=True)):
        value = _number(cell)
        if numbers_rows(name, first=place == 0):
            value = math.nan if value is None else value
        elif value is None:
            found = repr(cell.strip()[:40]) if cell.strip() else "empty"
            raise InvalidFile(
                f"{path}, line {line}: {name} is {found}, expected a number", "Give plain numbers"
            )
        elif not math.isfinite(value):
            raise InvalidCosts(
                f"{path}, line {line}: {name} is {value}, which is not finite", "Give finite costs"
            )
        numbers.append(value)
    return numbers


def _require_names(path: str, header: list[str]) -> None:
    """A first line of figures is a row of costs and not their names."""
    unnamed = next((name for name in header if _number(name or "0") is not None), None)
    if unnamed is not None:
        raise InvalidFile(
            f"{path}: a cost is named {unnamed!r}", "Name the columns in the first line"
        )


def _number(text: str) -> float | None:
    """What a cell says, or None if that is no number."""
    try:
        return float(text)
    except ValueError:
        return None
