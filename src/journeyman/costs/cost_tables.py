"""Costs as a table with names: a row for every state, or for every state and action.

state,action,lost output,work
pump-ok,run,0,0
pump-worn,replace,1,0.5
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from journeyman.arrays import FloatArray, IntArray, first_true
from journeyman.errors import InvalidCosts, InvalidFile
from journeyman.tables import Ids, Table, WorldNames, plain_name
from journeyman.world import World
from journeyman.world.pairs import LARGEST_NUMBER, MOST_NAMED

KEYS = ("state", "action")
"""Names of columns that tell whose costs a row has."""
ROW_NUMBERS = ("id", "index", "row", "pair")
"""Names of columns that number the rows."""
AS_IN_WORLD = "Write states and actions as in the world: by their numbers, or their names"


@dataclass(frozen=True, eq=False)
class CostTable:
    """Numbers, their names, and what was left out, in words; nothing was if that is empty."""

    values: FloatArray
    names: list[str]
    note: str


def read_cost_table(given: Table, world: World) -> CostTable:
    """One row per state or pair, and the names of the costs, which are those of the columns.

    Columns called `state` and `action` say which row is whose, in any order, by the numbers or the
    names that states and actions have in the world; without them rows are taken in the order of the
    world's states or pairs, or of all states and action numbers. Rows of actions that a state does
    not offer are left out. A column that numbers the rows (`id`, `machine_id`, `index`, or the
    nameless first column that data frames write) is not a cost. The end that a world has added for
    terminated episodes, and numbers that occur nowhere in a log, cost nothing if the table has no
    row for them: who wrote it may not know of them.
    """
    table, known = given.knowing(KEYS), WorldNames.of(world)
    _require_columns(table)
    keys = {
        "state": Ids(table, "state", known.states, AS_IN_WORLD, LARGEST_NUMBER),
        "action": Ids(table, "action", known.actions, AS_IN_WORLD, LARGEST_NUMBER),
    }
    lines: list[int] = []
    values: list[list[float]] = []
    for line, row in table.rows:
        values.append(_numbers(table, line, row, keys))
        lines.append(line)
    if not values:
        raise InvalidFile(
            f"{table.name} holds no costs", "Give a line with names, then a row per state"
        )
    return _Reading(table.name, table.header, np.array(values), lines, table.unit).on(world)


@dataclass(frozen=True, eq=False)
class _Reading:
    """A table of numbers with the names of its columns and the line of every row."""

    path: str
    header: list[str]
    values: FloatArray
    lines: list[int]
    unit: str
    """What is counted: lines of a file, rows of a data frame."""

    def at(self, row: int) -> str:
        """The place of a row, for messages."""
        return f"{self.path}, {self.unit} {self.lines[row]}"

    def on(self, world: World) -> CostTable:
        keys = {name: place for place, name in enumerate(self.header) if name in KEYS}
        numbering = [
            place for place, name in enumerate(self.header) if numbers_rows(name, first=place == 0)
        ]
        used = {*keys.values(), *numbering}
        costs = [place for place in range(len(self.header)) if place not in used]
        names = [self.header[place] for place in costs]
        _require_names(self.path, names)
        if not costs:
            raise InvalidFile(f"{self.path} has no column of costs", "Add one column per cost")
        notes = [f"the column {self.header[place]!r} numbers the rows" for place in numbering]
        by_key = {name: self.values[:, place].astype(np.int64) for name, place in keys.items()}
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

    def _require_in_order(self, place: int) -> None:
        """Rows that are numbered otherwise than they stand may be meant in another order."""
        column = self.values[:, place]
        wrong = column != column[0] + np.arange(column.size)
        if wrong.any() and not np.isnan(column).any():
            row = int(np.argmax(wrong))
            raise InvalidCosts(
                f"{self.at(row)}: {self.header[place]!r} is {column[row]:g}, "
                f"after {column[row - 1]:g}: the rows do not stand in the order of their numbers",
                "Call the column state if it says whose costs these are, and add a column action "
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
                f"{self.path} has {rows} rows of costs, the last in {self.unit} {self.lines[-1]}; "
                f"the world has {world.num_states} states and {world.num_pairs} state-action pairs"
                f"{also}",
                "Give one row per state, or one per pair; columns state and action say which is "
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
        if (row := first_true(counts != 1)) is not None:
            state = world.with_names(f"state {row}")
            where = world.describe_pair(row) if "action" in keys else state
            found = [self.lines[k] for k in np.flatnonzero(known & (rows == row))[:2]]
            there = f" ({self.unit}s {found[0]} and {found[1]})" if len(found) > 1 else ""
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
        if (row := first_true(states >= world.num_states)) is not None:
            raise InvalidCosts(
                f"{self.at(row)}: state is {states[row]}, outside 0..{world.num_states - 1}",
                "Number states as the world does",
            )

    def _pairs(self, states: IntArray, actions: IntArray, world: World) -> tuple[IntArray, Any]:
        """The pair of every row, and whether there is one; only records may lack an action."""
        pairs = world.pairs
        known = pairs.offers(states, actions)
        possible = actions < pairs.width if not pairs.is_complete else known
        if (row := first_true(~known & ~possible & (world.observed_actions is None))) is not None:
            raise InvalidCosts(
                f"{self.at(row)}: action is {actions[row]}, but state "
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
    names = world.state_names
    others = [str(x) if names is None else names[x] for x in states if x != world.sink]
    shown = others[:MOST_NAMED]
    if len(others) > len(shown):
        shown.append(f"... ({len(others)} in all)")
    unseen = [f"{', '.join(shown)}, which no recorded step enters or leaves"] if others else []
    ends = known if world.sink in states else []
    count = "state" if states.size == 1 else "states"
    return f"no row for {count} {' and for '.join([*unseen, *ends])}: costs there are taken as 0"


def _numbers(table: Table, line: int, row: list[str], keys: Mapping[str, Ids]) -> list[float]:
    """The cells of a row as numbers; names of states and actions as theirs."""
    header, where = table.header, table.at(line)
    if len(row) != len(header):
        raise InvalidFile(
            f"{where}: {len(row)} cells, the first line names {len(header)}",
            "Give one cell for each column",
        )
    numbers = []
    for place, (name, cell) in enumerate(zip(header, row, strict=True)):
        text = cell.strip()
        if name in keys:
            numbers.append(float(keys[name].number(text, line, name)))
            continue
        value = _number(cell)
        if numbers_rows(name, first=place == 0):
            value = math.nan if value is None else value
        elif value is None:
            found = repr(text[:40]) if text else "empty"
            raise InvalidFile(
                f"{where}: {name} is {found}, expected a number", "Give plain numbers"
            )
        elif not math.isfinite(value):
            raise InvalidCosts(
                f"{where}: {name} is {value}, which is not finite", "Give finite costs"
            )
        numbers.append(value)
    return numbers


def _require_columns(table: Table) -> None:
    for key in KEYS:
        if [plain_name(name) for name in table.header].count(key) > 1:
            raise InvalidFile(f"{table.name} has two columns {key!r}", "Give each its own name")
    if "action" in table.header and "state" not in table.header:
        raise InvalidFile(
            f"{table.name} has the column action, but not state", "Add the column state"
        )


def _require_names(path: str, header: list[str]) -> None:
    """A first line of numbers is a row of costs and not their names."""
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


def numbers_rows(name: str, *, first: bool) -> bool:
    """Whether a column of that name numbers the rows of a table and is no cost.

    >>> numbers_rows("Unnamed: 0", first=True), numbers_rows("machine_ID", first=False)
    (True, True)
    """
    plain = name.strip().lower()
    return (
        plain in ROW_NUMBERS
        or plain.endswith("_id")
        or (first and (plain == "" or plain.startswith("unnamed:")))
    )
