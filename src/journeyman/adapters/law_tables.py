"""Worlds whose laws are known, as a table: one row for every possible step, with its probability.

    state,action,next_state,probability[,initial]

A CSV or Parquet file with these columns is a world; without `probability` it is a log of steps
(`logged_worlds`), whose laws are estimates. Rows may come in any order. The law of the first state
is the option `initial` (a state, `uniform`, or a file with the columns state,probability), or a
column `initial`, in some row of a state the probability that an episode starts there.

States are numbered from 0, and every one has a row. Actions are numbers too, which may differ from
state to state. States that are never left need no rows if the option `absorbing` names them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
from scipy import sparse

from journeyman.adapters.arrow_files import open_arrow
from journeyman.adapters.logged_worlds import read_logged_world
from journeyman.adapters.source_options import (
    Options,
    discount_of,
    initial_law,
    memory_limit,
    refuse_unknown,
    require_memory,
    whole_numbers,
    world_bytes,
)
from journeyman.arrays import FloatArray, IntArray, first_true
from journeyman.demonstrations.files import csv_rows
from journeyman.errors import InvalidFile
from journeyman.world import World
from journeyman.world.laws import ROW_SUM_TOLERANCE

PROBABILITY, INITIAL = "probability", "initial"
IDS = ("state", "action", "next_state")
OF_LOGS = ("count", "episode", "t", "terminated")
OPTIONS = ("discount", "initial", "absorbing")
UNLEFT = "unleft"
LARGEST_ID = 1 << 31
PER_NUMBER = 40
"""Bytes of a number on its way from a file to an array."""
TABLES = (".csv", ".parquet")


def read_table(path: str, options: Options) -> World:
    """The world in a table: of known laws where it has a column of probabilities, else of a log."""
    names = _header(path, memory_limit(options))
    if PROBABILITY not in names or "next_state" not in names:
        return read_logged_world(path, options)
    for name in OF_LOGS:
        if name in names:
            raise InvalidFile(
                f"{path} has the columns {PROBABILITY} and {name}: a table of known laws has one "
                "row for every possible step, a log one for every observed step",
                f"Leave out {PROBABILITY} if these are observed steps, else {name}",
            )
    return read_law_table(path, options)


def read_law_table(path: str, options: Options) -> World:
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
    refuse_unknown(path, options, OPTIONS)
    discount, limit = discount_of(path, options), memory_limit(options)
    table = _Table.read(path, (*IDS, PROBABILITY), (INITIAL,), limit)
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
    )  # fmt: skip


def _header(path: str, limit: int) -> list[str]:
    if path.lower().endswith(".parquet"):
        with open_arrow(Path(path), "Parquet", memory=limit) as file:
            return list(file.names)
    return csv_rows(path)[0]


@dataclass(frozen=True, eq=False)
class _Table:
    """Columns of numbers, nan in empty cells, and where in the file each row stands."""

    path: str
    columns: Mapping[str, FloatArray]
    lines: IntArray | None
    """None in Parquet files, where rows are numbered."""

    @classmethod
    def read(
        cls, path: str, required: Sequence[str], optional: Sequence[str], limit: int
    ) -> "_Table":
        read = _from_parquet if path.lower().endswith(".parquet") else _from_csv
        table: _Table = read(path, tuple(required), tuple(optional), limit)
        if not table.columns[required[0]].size:
            raise InvalidFile(f"{path} holds no row", "Give one row for every possible step")
        return table

    def refuse(self, row: int, what: str, remedy: str) -> NoReturn:
        raise InvalidFile(f"{self.place(row)}: {what}", remedy)

    def place(self, row: int) -> str:
        if self.lines is None:
            return f"{self.path}, row {row}"
        return f"{self.path}, line {self.lines[row]}"

    def ids(self, name: str) -> IntArray:
        values = self.columns[name]
        wrong = ~((values >= 0) & (values < LARGEST_ID) & (values == np.floor(values)))
        if (row := first_true(wrong)) is not None:
            self.refuse(row, f"{name} is {values[row]:g}", "Number states and actions from 0")
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


def _from_csv(
    path: str, required: tuple[str, ...], optional: tuple[str, ...], limit: int
) -> _Table:
    header, rows = csv_rows(path)
    require_memory(path, PER_NUMBER / 2 * Path(path).stat().st_size, limit)
    names = _places(path, header, required, optional)
    at, found, lines = [header.index(name) for name in names], [], []
    for line, row in rows:
        cells = [row[place].strip() if place < len(row) else "" for place in at]
        try:
            found.append([float(text) if text else math.nan for text in cells])
        except ValueError:
            wrong = next(text for text in cells if text and not _is_number(text))
            raise InvalidFile(
                f"{path}, line {line}: {wrong[:40]!r} is not a number",
                "Give numbers: states and actions from 0, probabilities from 0 to 1",
            ) from None
        lines.append(line)
    table = np.array(found).reshape(len(lines), len(names))
    return _Table(path, dict(zip(names, table.T, strict=True)), np.array(lines, dtype=np.int64))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
    ends = np.unique(np.array(whole_numbers("absorbing", text), dtype=np.int64))
    if ((ends < 0) | (ends >= LARGEST_ID)).any():
        raise InvalidFile(f"absorbing = {text} holds no numbers of states", "Count from 0")
    for state in ends:
        if (row := first_true(here == state)) is not None:
            table.refuse(
                row, f"state {state} is declared absorbing, and has a law of its own",
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
    table.refuse(
        entered, f"it leads to state {state}, which has no row",
        f"Give its laws; if it is never left, add the row {state},0,{state},1 or give the option "
        f"absorbing={state} (absorbing={UNLEFT} for all such; on the command line --absorbing "
        f"{state} with world import, --option absorbing={state} elsewhere)",
    )  # fmt: skip


def _refuse_sums(table: _Table, row_of: IntArray, weights: FloatArray, pairs: IntArray) -> None:
    sums = np.bincount(row_of, weights)
    wrong = first_true(~(np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE))
    if wrong is not None:
        state, action = divmod(int(pairs[wrong]), LARGEST_ID)
        table.refuse(
            int(np.argmax(row_of == wrong)),
            f"the probabilities of state {state}, action {action} add up to {sums[wrong]:.9g}",
            "Give every possible step, and probabilities with all their digits (double precision)",
        )


def _initial(table: _Table, here: IntArray, size: int, options: Options) -> FloatArray:
    """The law of the first state: by option, from a file, or from the column."""
    text = options.get(INITIAL, "")
    if text.lower().endswith(TABLES):
        return _law_in(text, size, memory_limit(options))
    if text or INITIAL not in table.columns:
        return initial_law(table.path, options, size, np.ones(size))
    stated = table.probabilities(INITIAL, may_be_empty=True)
    rows = np.flatnonzero(~np.isnan(stated))
    law = np.zeros(size)
    law[here[rows]] = stated[rows]
    if (at := first_true(law[here[rows]] != stated[rows])) is not None:
        row = int(rows[at])
        table.refuse(
            row, f"initial is {stated[row]:g}, and another row of state {here[row]} has "
            f"{law[here[row]]:g}",
            "Give the probability that an episode starts in the state, once or always the same",
        )  # fmt: skip
    return law


def _law_in(path: str, size: int, limit: int) -> FloatArray:
    table = _Table.read(path, ("state", PROBABILITY), (), limit)
    states, law = table.ids("state"), np.zeros(size)
    if (row := first_true(states >= size)) is not None:
        table.refuse(row, f"state {states[row]} is outside 0..{size - 1}", "Give a known state")
    _refuse_repeats(table, states)
    law[states] = table.probabilities(PROBABILITY)
    return law
