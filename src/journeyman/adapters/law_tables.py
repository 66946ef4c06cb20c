"""Worlds whose laws are known, as a table: one row for every possible step, with its probability.

    state,action,next_state,probability[,initial]

A CSV or Parquet file with these columns is a world; without `probability` it is a log of steps
(`logged_worlds`), whose laws are estimates. Rows may come in any order. The law of the first state
is the option `initial` (a state, `uniform`, or a file with the columns state,probability), or a
column `initial`, in some row of a state the probability that an episode starts there.

States are numbered from 0, and every one has a row. Actions are numbers too, which may differ from
state to state. Either may have names instead, which the world keeps: they are numbered in the order
of the names, and an action name means the same action in all states. States that are never left
need no rows if the option `absorbing` names them.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from journeyman.adapters.arrow_files import PARQUET, open_arrow, open_table, parquet_header
from journeyman.adapters.logged_worlds import read_logged_world
from journeyman.adapters.source_options import (
    Options,
    discount_of,
    initial_law,
    memory_limit,
    refuse_unknown,
    require_memory,
    states_in,
    world_bytes,
)
from journeyman.arrays import FloatArray, IntArray, first_true
from journeyman.errors import InvalidFile
from journeyman.tables import (
    LARGEST_ID,
    NO_WORLD,
    Ids,
    Known,
    Table,
    csv_table,
    frame_table,
    is_frame,
    is_number,
    plain_header,
)
from journeyman.world import World
from journeyman.world.laws import ROW_SUM_TOLERANCE

PROBABILITY, INITIAL = "probability", "initial"
IDS = ("state", "action", "next_state")
OF_LOGS = ("count", "episode", "t", "terminated")
OPTIONS = ("discount", "initial", "absorbing")
UNLEFT = "unleft"
FROM_0 = "Give states and actions in every row: numbers from 0, or names"
PER_NUMBER = 40
"""Bytes of a number on its way from a file to an array."""
TABLES = (".csv", ".parquet")


def read_table(source: Any, options: Options) -> World:
    """The world in a table: of known laws where it has a column of probabilities, else of a log.

    A table is a CSV or Parquet file, or a data frame.
    """
    source = frame_table(source) if is_frame(source) else source
    path, header = _header(source, memory_limit(options))
    names = plain_header(header, (*IDS, PROBABILITY, *OF_LOGS))
    if PROBABILITY not in names or "next_state" not in names:
        return read_logged_world(source, options)
    for name in OF_LOGS:
        if name in names:
            raise InvalidFile(
                f"{path} has the columns {PROBABILITY} and {name}: a table of known laws has one "
                "row for every possible step, a log one for every observed step",
                f"Leave out {PROBABILITY} if these are observed steps, else {name}",
            )
    return read_law_table(source, options)


def read_law_table(source: Any, options: Options) -> World:
    """The world whose laws stand in a table.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     path = f"{place}/laws.csv"
    ...     rows = ["state,action,next_state,probability", "0,0,0,0.5", "0,0,1,0.5", "1,0,1,1"]
    ...     _ = Path(path).write_text("\\n".join(rows))
    ...     world = read_law_table(path, {"discount": "0.9", "initial": "0"})
    >>> world.transition.toarray().tolist(), world.is_estimated
    ([[0.5, 0.5], [0.0, 1.0]], False)
    """
    limit = memory_limit(options)
    path = source.name if isinstance(source, Table) else str(source)
    refuse_unknown(path, options, OPTIONS)
    discount = discount_of(path, options)
    table = _Table.read(source, (*IDS, PROBABILITY), (INITIAL,), limit)
    here, action, after = (table.ids(name) for name in IDS)
    laws = table.probabilities(PROBABILITY)
    ends = _absorbing(table, options, here, after)
    states = np.append(here, ends)
    size = 1 + int(max(states.max(), after.max()))
    require_memory(path, world_bytes(size, here.size, here.size), limit)
    keys = states * LARGEST_ID + np.append(action, np.zeros_like(ends))
    pairs, row_of = np.unique(keys, return_inverse=True)
    columns = np.append(after, ends)
    _refuse_repeats(table, row_of * size + columns)
    _refuse_missing(table, pairs // LARGEST_ID, after, size)
    weights = np.append(laws, np.ones(ends.size))
    _refuse_sums(table, row_of, weights, pairs)
    matrix = sparse.coo_array((weights, (row_of, columns)), shape=(pairs.size, size)).tocsr()
    matrix.eliminate_zeros()
    homes, numbers = pairs // LARGEST_ID, pairs % LARGEST_ID
    offsets = np.searchsorted(homes, np.arange(size + 1))
    plain = np.array_equal(numbers, np.arange(pairs.size) - offsets[homes])
    return World(
        matrix, _initial(table, here, size, options), discount, choice_offsets=offsets,
        observed_actions=None if plain else numbers,
        state_names=table.states.names, action_names=table.actions.names,
    )  # fmt: skip


def _header(source: Any, limit: int) -> tuple[str, list[str]]:
    """What a table is called, and the names of its columns."""
    if isinstance(source, Table):
        return source.name, source.header
    if str(source).lower().endswith(PARQUET):
        return str(source), parquet_header(Path(source), limit)[0]
    return str(source), csv_table(source).header


@dataclass(frozen=True, eq=False)
class _Table:
    """Columns of numbers, nan in empty cells, and where in the file each row stands.

    Where states or actions have names, the numbers are those of the names in their order.
    """

    path: str
    columns: Mapping[str, FloatArray]
    lines: IntArray | None
    """None in Parquet files, where rows are numbered."""
    states: Known = NO_WORLD.states
    actions: Known = NO_WORLD.actions
    unit: str = "line"

    @classmethod
    def read(
        cls,
        source: Any,
        required: Sequence[str],
        optional: Sequence[str],
        limit: int,
        states: Known | None = None,
    ) -> "_Table":
        """Names of states are those of the table itself, unless `states` says what they mean."""
        table = _read(source, tuple(required), tuple(optional), limit, states)
        if not table.columns[required[0]].size:
            raise InvalidFile(f"{table.path} holds no row", "Give one row for every possible step")
        return table

    def refuse(self, row: int, what: str, remedy: str) -> NoReturn:
        raise InvalidFile(f"{self.place(row)}: {what}", remedy)

    def place(self, row: int) -> str:
        if self.lines is None:
            return f"{self.path}, row {row}"
        return f"{self.path}, {self.unit} {self.lines[row]}"

    def state(self, state: int) -> str:
        """What a state is called."""
        return str(state) if self.states.names is None else repr(self.states.names[state])

    def action(self, action: int) -> str:
        """What an action is called."""
        return str(action) if self.actions.names is None else repr(self.actions.names[action])

    def ids(self, name: str) -> IntArray:
        values = self.columns[name]
        wrong = ~((values >= 0) & (values < LARGEST_ID) & (values == np.floor(values)))
        if (row := first_true(wrong)) is not None:
            found = "empty" if np.isnan(values[row]) else f"{values[row]:g}"
            self.refuse(row, f"{name} is {found}", FROM_0)
        return values.astype(np.int64)

    def probabilities(self, name: str, *, may_be_empty: bool = False) -> FloatArray:
        values = self.columns[name]
        wrong = ~((values >= 0) & (values <= 1)) & ~(np.isnan(values) & may_be_empty)
        if (row := first_true(wrong)) is not None:
            self.refuse(row, f"{name} is {values[row]:g}", "Give a number from 0 to 1")
        return values


def _places(
    path: str, names: list[str], required: tuple[str, ...], optional: tuple[str, ...]
) -> list[str]:
    for name in required + optional:
        if names.count(name) > 1:
            raise InvalidFile(f"{path} has two columns {name!r}", "Give each its own name")
    missing = [name for name in required if name not in names]
    if missing:
        raise InvalidFile(
            f"{path} lacks the column(s) {', '.join(missing)}; it has "
            f"{', '.join(names[:20]) or 'none'}",
            f"Name them in the first line: {','.join(required)}",
        )
    return [name for name in required + optional if name in names]


def _read(
    source: Any,
    required: tuple[str, ...],
    optional: tuple[str, ...],
    limit: int,
    states: Known | None,
) -> _Table:
    known = (*required, *optional)
    if isinstance(source, str) and source.lower().endswith(PARQUET):
        header, words = parquet_header(Path(source), limit)
        if plain_header(header, known) == header and not set(words) & set(IDS):
            return _from_parquet(source, required, optional, limit)
    elif not isinstance(source, Table):
        source = csv_table(source)
        require_memory(source.name, PER_NUMBER / 2 * Path(source.name).stat().st_size, limit)
    table = open_table(source, limit, lambda name: name in known)
    return _from_text(table.knowing(known), required, optional, states)


def _from_text(
    table: Table, required: tuple[str, ...], optional: tuple[str, ...], states: Known | None
) -> _Table:
    names = _places(table.name, table.header, required, optional)
    ids = {
        "state": Ids(table, "state", states, FROM_0),
        "action": Ids(table, "action", None, FROM_0),
    }
    ids["next_state"] = ids["state"]
    lines = array("q")
    columns = [(name, table.header.index(name), ids.get(name), array("d")) for name in names]
    for line, row in table.rows:
        lines.append(line)
        for name, place, reader, kept in columns:
            text = row[place].strip() if place < len(row) else ""
            kept.append(
                _real(table, line, name, text)
                if reader is None
                else reader.number(text, line, name)
            )
    values = {name: np.array(kept) for name, *_, kept in columns}
    known = []
    for what in ("state", "action"):
        found, places = ids[what].in_order()
        known.append(Known(what, found))
        for name in (what, f"next_{what}"):
            if found is not None and name in values:
                values[name] = places[values[name].astype(np.int64)].astype(float)
    return _Table(table.name, values, np.array(lines), known[0], known[1], table.unit)


def _real(table: Table, line: int, name: str, text: str) -> float:
    if not text:
        return math.nan
    if not is_number(text):
        raise InvalidFile(
            f"{table.at(line)}: {name} is {text[:40]!r}, expected a number",
            "Give probabilities from 0 to 1, with a decimal point",
        )
    return float(text)


def _from_parquet(
    path: str, required: tuple[str, ...], optional: tuple[str, ...], limit: int
) -> _Table:
    every = required + optional
    with open_arrow(Path(path), "Parquet", memory=limit, reals=every) as file:
        names = _places(path, file.names, required, optional)
        require_memory(path, PER_NUMBER * (file.num_rows or 0) * len(names), limit)
        parts: dict[str, list[FloatArray]] = {name: [np.zeros(0)] for name in names}
        for batch in file.batches(names):
            for name in names:
                column = batch.columns[name]
                values = np.asarray(column.values, dtype=float)
                empty = column.empty
                parts[name].append(values if empty is None else np.where(empty, np.nan, values))
    return _Table(path, {name: np.concatenate(found) for name, found in parts.items()}, None)


def _absorbing(table: _Table, options: Options, here: IntArray, after: IntArray) -> IntArray:
    """States without rows that are declared never to be left."""
    text = options.get("absorbing", "")
    if text.strip() == UNLEFT:
        return np.setdiff1d(after, here)
    named = table.states.names
    ends = np.unique(np.array(states_in("absorbing", text, named), dtype=np.int64))
    if ((ends < 0) | (ends >= LARGEST_ID)).any():
        raise InvalidFile(f"absorbing = {text} holds no numbers of states", "Count from 0")
    for state in ends:
        if (row := first_true(here == state)) is not None:
            table.refuse(
                row, f"state {table.state(state)} is declared absorbing, and has a law of its own",
                "Leave it out of absorbing, or leave out its rows",
            )  # fmt: skip
    return ends


def _refuse_repeats(table: _Table, keys: IntArray) -> None:
    order = np.argsort(keys, kind="stable")
    again = first_true(np.diff(keys[order]) == 0)
    if again is not None:
        first, second = order[again], order[again + 1]
        table.refuse(
            int(second), f"the same step as in {table.place(int(first)).rpartition(', ')[2]}",
            "Give every possible step one row, with its whole probability",
        )  # fmt: skip


def _refuse_missing(table: _Table, states: IntArray, after: IntArray, size: int) -> None:
    """Every state needs a law."""
    known = np.zeros(size, dtype=bool)
    known[states] = True
    state = first_true(~known)
    if state is None:
        return
    entered = first_true(after == state)
    if entered is None:
        raise InvalidFile(
            f"{table.path}: there are states up to {size - 1}, and state {state} has no row",
            "Number states from 0 without gaps",
        )
    name = str(state) if table.states.names is None else table.states.names[state]
    action = "0" if table.actions.names is None else table.actions.names[0]
    table.refuse(
        entered, f"it leads to state {table.state(state)}, which has no row",
        f"Give its laws; if it is never left, add the row {name},{action},{name},1 or give the "
        f"option absorbing={name} (absorbing={UNLEFT} for all such; on the command line "
        f"--absorbing {name} with world import, --option absorbing={name} elsewhere)",
    )  # fmt: skip


def _refuse_sums(table: _Table, row_of: IntArray, weights: FloatArray, pairs: IntArray) -> None:
    sums = np.bincount(row_of, weights)
    wrong = first_true(~(np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE))
    if wrong is not None:
        state, action = divmod(int(pairs[wrong]), LARGEST_ID)
        table.refuse(
            int(np.argmax(row_of == wrong)),
            f"the probabilities of state {table.state(state)}, action {table.action(action)} "
            f"add up to {sums[wrong]:.9g}",
            "Give every possible step, and probabilities with all their digits (double precision)",
        )


def _initial(table: _Table, here: IntArray, size: int, options: Options) -> FloatArray:
    """The law of the first state: by option, from a file, or from the column."""
    text = options.get(INITIAL, "")
    if text.lower().endswith(TABLES):
        return _law_in(text, size, memory_limit(options), table.states)
    if text or INITIAL not in table.columns:
        return initial_law(table.path, options, size, np.ones(size), table.states.names)
    stated = table.probabilities(INITIAL, may_be_empty=True)
    rows = np.flatnonzero(~np.isnan(stated))
    law = np.zeros(size)
    law[here[rows]] = stated[rows]
    if (at := first_true(law[here[rows]] != stated[rows])) is not None:
        row = int(rows[at])
        table.refuse(
            row,
            f"initial is {stated[row]:g}, and another row of state "
            f"{table.state(int(here[row]))} has {law[here[row]]:g}",
            "Give the probability that an episode starts in the state, once or always the same",
        )  # fmt: skip
    return law


def _law_in(path: str, size: int, limit: int, known: Known) -> FloatArray:
    table = _Table.read(path, ("state", PROBABILITY), (), limit, known)
    states, law = table.ids("state"), np.zeros(size)
    if (row := first_true(states >= size)) is not None:
        table.refuse(row, f"state {states[row]} is outside 0..{size - 1}", "Give a known state")
    _refuse_repeats(table, states)
    law[states] = table.probabilities(PROBABILITY)
    return law
