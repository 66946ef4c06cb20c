"""Worlds estimated from logs of steps: one row per step, or per kind of step with its count.

    state,action,next_state[,count][,terminated]
    state,action,next_state,episode[,t][,terminated]

The world keeps its counts, so that certificates account for what it may get wrong. Where episodes
start is read from `episode` (its first row, or the one with t = 0), or given as `initial`. A step
marked `terminated` leads to an added absorbing state, the sink, because the same state may be
entered with and without an end. A state with a name that is never left is an end itself.

Rows of an episode have to follow one another: t = 0, 1, 2, ..., each from where the one before it
led. Another column may order the rows instead of t: step, timestamp, time, ... (`tables.ORDERS`).
States and actions may have names, which the world keeps. A gap in t is refused, unless `gaps=allow`
declares that what is missing does not depend on what happened there; then every row is a step of
its own, and the start of an episode without t = 0 is not known.

Some recorders mark a step terminated also where a time limit stops the episode. `truncated_at`
names that limit. Whether an episode has ended by its last possible step is then not known, whatever
is marked, and that step is left out in every episode that has it: as its number decides that, and
not where it leads, the other steps keep their laws.

Pairs may share laws (`SharedLaws`): `increments=0,1,2` declares by how much a state's number can
grow in a step, the same law everywhere, `resets=1:0` that action 1 first sets it to 0; `shared`
names an NPZ file with the tables `groups` and `targets` of other groups and outcomes.
"""

import warnings
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.arrow_files import PARQUET, open_arrow, open_table, parquet_header
from journeyman.adapters.npz_arrays import open_npz
from journeyman.adapters.source_options import (
    Options,
    discount_of,
    initial_law,
    memory_limit,
    refuse_unknown,
    require_memory,
    states_in,
    truth_value,
    whole_number,
    whole_numbers,
)
from journeyman.arrays import BoolArray, FloatArray, IntArray, first_true
from journeyman.demonstrations.demonstrations import warn_of_limit
from journeyman.errors import InvalidFile, InvalidWorld
from journeyman.tables import (
    LARGEST_ID,
    ORDERS,
    WHOLE,
    Ids,
    Order,
    Table,
    csv_table,
    order_column,
    plain_header,
    plain_name,
)
from journeyman.world import SharedLaws, World, estimation
from journeyman.world.pairs import MOST_NAMED

EPISODE = "episode"


class Labels:
    """Numbers for names of episodes, beyond all whole numbers that a table may hold."""

    FIRST, PER_NAME = 1 << 62, 200

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.num_bytes = 0

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = self.FIRST + len(self._numbers)
            self.num_bytes += self.PER_NAME + len(name)
        return self._numbers[name]

    def __len__(self) -> int:
        return len(self._numbers)

    def name(self, number: int) -> str:
        if number < self.FIRST:
            return str(number)
        return list(self._numbers)[number - self.FIRST][:40]


class Columns(dict[str, IntArray]):
    """Columns by their names; the names of episodes that are no numbers, and those of states and
    actions, None where they are numbers."""

    def __init__(
        self,
        columns: Mapping[str, IntArray],
        episodes: Labels | None = None,
        states: tuple[str, ...] | None = None,
        actions: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(columns)
        self.episodes = Labels() if episodes is None else episodes
        self.states, self.actions = states, actions

    def changed(self, columns: Mapping[str, IntArray]) -> "Columns":
        """Other columns of the same episodes."""
        return Columns(columns, self.episodes, self.states, self.actions)

    def episode_name(self, row: int) -> str:
        """What the episode of a row is called in its file."""
        return self.episodes.name(int(self[EPISODE][row]))

    def state_name(self, name: str, row: int) -> str:
        """What a cell of the column `name` says."""
        state = int(self[name][row])
        return str(state) if self.states is None else repr(self.states[state][:40])


TRUE, FALSE = {"true", "yes"}, {"false", "no", ""}
COLUMN_LIMIT = 1000
PER_ENTRY = 24
"""Bytes of an entry on its way from a file to an array."""
REQUIRED = ("state", "action", "next_state")
OPTIONAL = ("count", "episode", "t", "terminated")
KNOWN = (*REQUIRED, *OPTIONAL, *ORDERS)
CHECKED_ROWS = 4096
MEANT_AS_LAWS = ("probability", "prob", "probabilities", "chance", "p", "likelihood")
"""Names of columns that a log has not."""
FROM_0 = "Give states and actions in every row: numbers from 0, or names"
LINE, ROW = "line", "row"
"""Besides its columns a table has the line, or else the number, of every row."""
FLAGS = ("terminated",)
"""Columns of truth values; in the others an empty cell is an error."""


def read_columns(source: Any, limit: int) -> Columns:
    """The columns of a log: a CSV file, a Parquet file or a data frame."""
    if isinstance(source, str) and source.lower().endswith(PARQUET):
        header, words = parquet_header(Path(source), limit)
        named = set(words) & set(REQUIRED + ORDERS)
        if plain_header(header, KNOWN) == header and not named and _order(header) in (None, "t"):
            return read_parquet_columns(source, limit)
    if isinstance(source, str) and not source.lower().endswith(PARQUET):
        table = csv_table(source)
        require_memory(source, PER_ENTRY / 2 * Path(source).stat().st_size, limit)
    else:
        table = open_table(source, limit, lambda name: name in KNOWN)
    return read_text_columns(table.knowing(KNOWN), limit)


def read_text_columns(table: Table, limit: int) -> Columns:
    """The columns of a log of text, whose first line names them; others are ignored."""
    places = places_of(table.name, table.header)
    column = _order(table.header)
    if column is not None:
        places["t"] = table.header.index(column)
    reading = _Reading(table, Order(column or "t", table))
    lines = array("q")
    kept: dict[str, Any] = {name: [] if name == "t" else array("q") for name in places}
    cells = [(name, place, reading.reader(name), kept[name]) for name, place in places.items()]
    for line, row in table.rows:
        for name, place, read, values in cells:
            if place >= len(row):
                raise InvalidFile(f"{table.at(line)}: {name} is missing", "Complete the row")
            values.append(read(row[place].strip(), line, name))
        lines.append(line)
        if line % CHECKED_ROWS == 0:
            require_memory(table.name, reading.num_bytes, limit)
    kept[ROW if table.unit == ROW else LINE] = lines
    moments = np.array(kept.pop("t", ()))
    columns = {name: np.array(values, dtype=np.int64) for name, values in kept.items()}
    found = reading.named(columns)
    if column is not None:
        found["t"] = moments if reading.order.counts_steps else _ranks(table, found, moments)
        found["t"] = found["t"].astype(np.int64)
    return found


def _order(header: Sequence[str]) -> str | None:
    """The column that orders rows; without episodes nothing but t means something."""
    if EPISODE in header:
        return order_column(header)
    return "t" if "t" in header else None


def _ranks(table: Table, columns: Columns, moments: Any) -> IntArray:
    """How many rows of its episode come before every row."""
    order = np.lexsort([moments, columns[EPISODE]])
    episodes, times = columns[EPISODE][order], moments[order]
    again = (np.diff(episodes) == 0) & (np.diff(times) == 0)
    if (step := first_true(again)) is not None:
        row, other = int(order[step + 1]), int(order[step])
        earlier = place_of(table.name, columns, other).removeprefix(table.name).lstrip(",: ")
        raise InvalidFile(
            f"{place_of(table.name, columns, row)} has the same {_order(table.header)} as "
            f"{earlier}, in episode {columns.episode_name(row)}",
            "Give the rows of an episode different moments, or number them by a column t",
        )
    ranks = np.empty(order.size, dtype=np.int64)
    ranks[order] = np.arange(order.size) - np.searchsorted(episodes, episodes)
    return ranks


def read_parquet_columns(path: str, limit: int) -> Columns:
    """The same of a Parquet file; how many rows it has is known before they are unpacked."""
    with open_arrow(Path(path), "Parquet", memory=limit, texts=[EPISODE]) as file:
        names = list(places_of(path, file.names))
        if not file.num_rows:
            raise InvalidFile(f"{path} holds no step", "Give one row per step")
        needed = PER_ENTRY * file.num_rows * len(REQUIRED + OPTIONAL)
        require_memory(f"{path}, with {file.num_rows} rows,", needed, limit)
        parts: dict[str, list[IntArray]] = {name: [] for name in names}
        episodes = Labels()
        for batch in file.batches(names):
            for name in file.texts[len(episodes) :]:
                episodes.number(name)
            require_memory(path, needed + episodes.num_bytes, limit)
            for name in names:
                values = batch.filled(name)
                is_text = batch.columns[name].is_text
                parts[name].append(values + Labels.FIRST if is_text else values)
    columns = {name: np.concatenate(parts[name]) for name in names}
    return Columns({**columns, ROW: np.arange(file.num_rows)}, episodes)


def place_of(path: str, columns: Columns, row: int) -> str:
    """Where a row is found in its file."""
    if LINE in columns:
        return f"{path}, line {columns[LINE][row]}"
    return f"{path}: row {columns[ROW][row] if ROW in columns else row}"


def places_of(path: str, header: list[str]) -> dict[str, int]:
    """Where the columns stand among the names in `header`."""
    names = [name.strip() for name in header[:COLUMN_LIMIT]]
    for name in REQUIRED + OPTIONAL:
        if names.count(name) > 1:
            raise InvalidFile(f"{path} has two columns {name!r}", "Give each its own name")
    missing = [name for name in REQUIRED if name not in names]
    laws = [name for name in names if plain_name(name) in MEANT_AS_LAWS]
    if missing:
        found = ", ".join(names[:20]) or "none"
        others = ",probability" if laws else f"[,{'][,'.join(OPTIONAL)}]"
        raise InvalidFile(
            f"{path} lacks the column(s) {', '.join(missing)}; it has {found}",
            f"Name them in the first line: {','.join(REQUIRED)}{others}",
        )
    if laws:
        raise InvalidFile(
            f"{path} has a column {laws[0]!r}, and a log counts: it has one row for every "
            "observed step",
            "Call the column probability if these are known laws; rename it if it is something "
            "else",
        )
    return {name: names.index(name) for name in REQUIRED + OPTIONAL if name in names}


class _Reading:
    """Reads the cells of a log."""

    def __init__(self, table: Table, order: Order) -> None:
        self.table, self.order, self.episodes = table, order, Labels()
        states, actions = (Ids(table, what, None, FROM_0) for what in ("state", "action"))
        self.ids = {"state": states, "action": actions, "next_state": states}

    @property
    def num_bytes(self) -> int:
        ids = self.ids["state"].num_bytes + self.ids["action"].num_bytes
        return self.episodes.num_bytes + ids

    def reader(self, name: str) -> Callable[[str, int, str], Any]:
        """What reads a cell of the column `name`, given its text and its line."""
        if name in self.ids:
            return self.ids[name].number
        if name == "t":
            return self._moment
        return self._episode if name == EPISODE else self._number

    def _moment(self, text: str, line: int, name: str) -> Any:
        return self.order.number(text, line)

    def _episode(self, text: str, line: int, name: str) -> int:
        if WHOLE.fullmatch(text):
            return int(text.partition(".")[0])
        if not text:
            raise InvalidFile(
                f"{self.table.at(line)}: episode is empty", "Give every row the name of its episode"
            )
        return self.episodes.number(text)

    def _number(self, text: str, line: int, name: str) -> int:
        if WHOLE.fullmatch(text):
            return int(text.partition(".")[0])
        if name in FLAGS and text.lower() in TRUE | FALSE:
            return text.lower() in TRUE
        expected = "1 or 0" if name in FLAGS else "a whole number"
        raise InvalidFile(
            f"{self.table.at(line)}: {name} is {text[:40]!r}, expected {expected}",
            f"Give {expected} in every row",
        )

    def named(self, columns: dict[str, IntArray]) -> Columns:
        """The columns with numbers for names, in the order of the names."""
        found = {}
        for what in ("state", "action"):
            found[what], places = self.ids[what].in_order()
            for name in (what, f"next_{what}"):
                if found[what] is not None and name in columns:
                    columns[name] = places[columns[name]]
        return Columns(columns, self.episodes, found["state"], found["action"])


INCREMENTS, RESETS, SHARED = "increments", "resets", "shared"
OPTIONS = (
    "discount", "initial", "num_states", "absorbing", "drop_unseen", "gaps", "truncated_at",
    INCREMENTS, RESETS, SHARED,
)  # fmt: skip
UNLEFT, ALLOW = "unleft", "allow"
"""Values of absorbing, for every state that was reached and never left, and of gaps."""
TRUNCATED_AT = "truncated_at"
ENDED_NAME = "ended"
ENDED = "nowhere, unless as the next state of a step marked terminated, which leads to the sink"
LEFT_OUT = "nowhere, unless in a step that truncated_at leaves out"
LIMIT_OPTION = "the option truncated_at={0} (on the command line --option truncated_at={0})"
REAL_ENDS = "as terminated steps they are taken for real ends, and the laws of the world are wrong"
MOST_STEPS = 1 << 53
"""Counts beyond this are not exact as floating-point numbers."""
PER_ROW, PER_STATE = 200, 100
"""Bytes that a row of the log, and a state, take while frequencies are computed."""


def read_logged_world(source: Any, options: Options) -> World:
    """The world whose laws are the frequencies in a log: a CSV or Parquet file, or a table."""
    limit = memory_limit(options)
    path = source.name if isinstance(source, Table) else str(source)
    columns = read_columns(source, limit)
    refuse_unknown(path, options, OPTIONS)
    _refuse_numbers_of_names(path, columns, options)
    discount = discount_of(path, options)
    rows = _counted(path, columns, options)
    shared = _shared_tables(path, options, limit)
    size = _number_of_states(rows, options, shared)
    require_memory(path, PER_ROW * rows["state"].size + PER_STATE * size, limit)
    _require_ids(path, rows, size)
    every, rows = rows, _within_limit(path, rows, options)
    given = _starts(path, every, options, _occurring(rows, options, size))
    following, sink = rows["next_state"], None
    ends = _absorbing(options, rows)
    over = rows.get("terminated", np.zeros_like(following)) != 0
    if rows.states is not None:
        over &= ~np.isin(following, ends)
    if over.any():
        sink, size = size, size + 1
        following = np.where(over, sink, following)
        ends = np.append(ends, sink)
        if given["initial"] is not None:
            given["initial"] = np.append(given["initial"], 0.0)
    if shared is None:
        shared = _increments(path, options, size, int(rows["action"].max()) + 1, sink)
    steps = (rows["state"], rows["action"], following)
    arguments = estimation.empirical(
        *steps, **given, num_states=size, support=None, absorbing=ends,
        drop_unseen=_drops(options), times=rows["count"], shared=shared,
        wording=_wording(path, rows, sink, TRUNCATED_AT in options),
    )  # fmt: skip
    names = rows.states if sink is None or rows.states is None else with_end(rows.states)
    return World(
        **arguments, discount=discount, sink=sink, state_names=names, action_names=rows.actions
    )


def with_end(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of states, and one for the added end of episodes."""
    return (*names, ENDED_NAME if ENDED_NAME not in names else f"{ENDED_NAME} (added)")


def _refuse_numbers_of_names(path: str, columns: Columns, options: Options) -> None:
    """Options that speak of numbers of states."""
    for option in ("num_states", INCREMENTS, RESETS, SHARED):
        if option in options and columns.states is not None:
            raise InvalidWorld(
                f"{path} has names of states, and the option {option} is for numbers of states",
                f"Leave {option} out, or number the states from 0",
            )


def _shared_tables(path: str, options: Options, limit: int) -> SharedLaws | None:
    """The laws that pairs share, by the file of the option `shared`."""
    if SHARED not in options:
        return None
    if INCREMENTS in options or RESETS in options:
        raise InvalidWorld(
            f"{path} has the options shared and increments or resets",
            "Give shared, a file with tables, or increments",
        )
    with open_npz(options[SHARED], limit) as file:
        missing = sorted({"groups", "targets"} - file.members)
        if missing:
            raise InvalidFile(
                f"{options[SHARED]} lacks the array {missing[0]}",
                "Save groups (states x actions) and targets (states x actions x outcomes)",
            )
        return SharedLaws(file.read("groups"), file.read("targets"))


def _increments(
    path: str, options: Options, size: int, num_actions: int, sink: int | None
) -> SharedLaws | None:
    """The same by the options `increments` and `resets`."""
    if INCREMENTS not in options:
        if RESETS in options:
            raise InvalidWorld(
                f"{path} has the option resets without increments", "Give increments=0,1,2 too"
            )
        return None
    if "num_states" not in options or sink is not None:
        raise InvalidWorld(
            f"{path} has the option increments, and "
            + ("its terminated steps lead to an added state" if sink is not None else "")
            + (
                "" if sink is not None else "not num_states, so that it is not known where they end"
            ),
            "Give num_states, and no terminated steps; other rules go into the file of the option "
            "shared",
        )
    resets = {}
    for part in filter(None, options.get(RESETS, "").split(",")):
        action, _, value = part.partition(":")
        resets[whole_number(RESETS, action)] = whole_number(RESETS, value)
    steps = whole_numbers(INCREMENTS, options[INCREMENTS])
    actions = max(num_actions, *(action + 1 for action in resets), 1)
    return SharedLaws.increments(size, steps, num_actions=actions, resets=resets)


def _absorbing(options: Options, rows: Columns) -> IntArray:
    """The states that are declared never to be left, and those where episodes end that have a name
    of their own."""
    text = options.get("absorbing", "")
    over = rows.get("terminated", np.zeros_like(rows["state"])) != 0
    if text.strip() == UNLEFT:
        entered = rows["next_state"] if rows.states is not None else rows["next_state"][~over]
        return np.setdiff1d(entered, rows["state"])
    ends = np.array(states_in("absorbing", text, rows.states), dtype=np.int64)
    if rows.states is None:
        return ends
    return np.union1d(ends, np.setdiff1d(rows["next_state"][over], rows["state"]))


def _wording(path: str, rows: Columns, sink: int | None, limited: bool) -> estimation.RecordWording:
    def declare(states: Sequence[int]) -> str:
        few = len(states) <= MOST_NAMED
        names = [str(one) if rows.states is None else rows.states[one] for one in states]
        value = ",".join(names) if few else UNLEFT
        return f"the option absorbing={value} (on the command line --option absorbing={value})"

    return estimation.RecordWording(
        step=lambda k: place_of(path, rows, k),
        absorbing=declare,
        drop="the option drop_unseen=yes (on the command line --option drop_unseen=yes)",
        initial="the option initial (on the command line --option initial=...)",
        nowhere=LEFT_OUT if limited else "nowhere" if sink is None else ENDED,
        name=lambda state: str(state) if rows.states is None else repr(rows.states[state]),
    )


def _require_ids(path: str, rows: Columns, size: int) -> None:
    for name in ("state", "next_state"):
        if (row := first_true(rows[name] >= size)) is not None:
            raise InvalidFile(
                f"{place_of(path, rows, row)}: {name} is {rows[name][row]}, outside 0..{size - 1}",
                "Give the option num_states the number of all states, or leave it out",
            )


def _counted(path: str, columns: Columns, options: Options) -> Columns:
    """Rows that were seen, with how often; a row without a count was seen once."""
    if not columns["state"].size:
        raise InvalidFile(f"{path} holds no step", "Give one row per step")
    for name in REQUIRED:
        if (row := first_true((columns[name] < 0) | (columns[name] >= LARGEST_ID))) is not None:
            large = "" if columns[name][row] < 0 else ", which is too large"
            raise InvalidFile(
                f"{place_of(path, columns, row)} has {name} {columns[name][row]}{large}",
                "Number ids from 0",
            )
    if {"count", "episode"} <= set(columns):
        raise InvalidFile(
            f"{path} has the columns count and episode",
            "Give one row per step, with its episode, or one per kind of step, with its count",
        )
    if "count" not in columns:
        if "episode" in columns:
            _require_chains(path, columns, options)
        return columns.changed({**columns, "count": np.ones_like(columns["state"])})
    counts = columns["count"]
    wrong = (counts < 0) | (counts > MOST_STEPS)
    if wrong.any() or not 0 < counts.sum(dtype=float) <= MOST_STEPS:
        row = int(np.argmax(wrong))
        raise InvalidFile(
            f"{place_of(path, columns, row)} has count {counts[row]}, all counts sum to "
            f"{counts.sum():.3g}",
            f"Give whole numbers from 0 that sum to something between 1 and {MOST_STEPS:.0e}",
        )
    return columns.changed({name: part[counts > 0] for name, part in columns.items()})


def _number_of_states(rows: Columns, options: Options, shared: SharedLaws | None) -> int:
    """Without the sink, which is the last state of tables of shared laws where episodes end."""
    if "num_states" in options:
        return whole_number("num_states", options["num_states"])
    if shared is not None:
        return max(shared.num_states - int(rows.get("terminated", np.zeros(1)).any()), 1)
    return 1 + max(int(rows[name].max()) for name in ("state", "next_state"))


def _starts(path: str, rows: Columns, options: Options, states: FloatArray) -> dict[str, Any]:
    """A known law, which may be uniform over `states`, or the observed first states."""
    if "initial" in options or "episode" not in rows:
        law = initial_law(path, options, states.size, states, rows.states)
        return {"initial": law, "initial_states": None}
    first = _first_rows(path, rows, allowed=_allow_gaps(options))
    return {"initial": None, "initial_states": rows["state"][first]}


def _occurring(rows: Columns, options: Options, size: int) -> FloatArray:
    """One for every state; where numbers that occur nowhere are dropped, zero for those."""
    if not _drops(options):
        return np.ones(size)
    found = np.zeros(size)
    found[rows["state"]] = 1.0
    running = rows["terminated"] == 0 if "terminated" in rows else slice(None)
    found[rows["next_state"][running]] = 1.0
    return found


def _drops(options: Options) -> bool:
    return truth_value("drop_unseen", options.get("drop_unseen", "no"))


def _first_rows(path: str, columns: Columns, *, allowed: bool) -> IntArray:
    """The rows with which episodes start; where gaps are allowed, of those that have one."""
    if "t" not in columns:
        _, first = np.unique(columns["episode"], return_index=True)
        return np.asarray(first)
    starts = np.flatnonzero(columns["t"] == 0)
    lost = ~np.isin(columns["episode"], columns["episode"][starts])
    if lost.any() and not (allowed and starts.size):
        row = int(np.argmax(lost))
        raise InvalidFile(
            f"{place_of(path, columns, row)}: episode {columns.episode_name(row)} has no row with "
            "t = 0, so that it is not known where it starts",
            "Count t from 0; or give the option initial (on the command line --option initial=0 "
            "or initial=uniform) if the law of the first state is known",
        )
    return starts


def _allow_gaps(options: Options) -> bool:
    text = options.get("gaps", "refuse")
    if text not in (ALLOW, "refuse"):
        raise InvalidWorld(f"gaps = {text!r}", f"Give gaps={ALLOW}, or leave it out")
    return text == ALLOW


def _require_chains(path: str, columns: Columns, options: Options) -> None:
    """Within an episode every step starts where the one before it led, and none is missing."""
    timed, allowed = "t" in columns, _allow_gaps(options)
    if not timed and "initial" in options and TRUNCATED_AT not in options:
        return
    keys = [columns["t"], columns["episode"]] if timed else [columns["episode"]]
    order = np.lexsort(keys)
    episode, state, following = (
        columns[name][order] for name in ("episode", "state", "next_state")
    )
    same = np.diff(episode) == 0
    passed = np.diff(columns["t"][order]) if timed else np.ones(same.size, dtype=np.int64)
    ended = columns["terminated"][order][:-1] != 0 if "terminated" in columns else same & False
    torn = same & (passed == 1) & (following[:-1] != state[1:])
    gap = same & (passed > 1)
    wrong = (same & (passed == 0)) | (same & ended) | torn | (gap & (not allowed))
    if (step := first_true(wrong)) is not None:
        raise _broken(path, columns, int(order[step]), int(order[step + 1]))
    if (step := first_true(gap)) is not None:
        warnings.warn(
            f"{path} has {int(gap.sum())} gaps in t, the first before "
            f"{_named(path, columns, int(order[step + 1]))}: every row is read as a step of its "
            "own, which is right if what is missing does not depend on what happened there",
            stacklevel=2,
        )


@dataclass(frozen=True, eq=False)
class _LoggedEpisodes:
    """Episodes of a log, as `warn_of_limit` asks for them."""

    lengths: IntArray
    terminated: BoolArray
    last_states: IntArray
    step_states: IntArray
    next_states: IntArray


def _within_limit(path: str, rows: Columns, options: Options) -> Columns:
    """The rows whose ends are real; where no limit is given, all, perhaps with a warning."""
    if TRUNCATED_AT not in options:
        if "episode" in rows and rows.get("terminated", np.zeros(1)).any():
            warn_of_limit(
                _episodes(rows), path, stacklevel=3, option=LIMIT_OPTION, otherwise=REAL_ENDS
            )
        return rows
    limit = whole_number(TRUNCATED_AT, options[TRUNCATED_AT])
    if limit < 1:
        raise InvalidWorld(f"{TRUNCATED_AT} = {limit}", "Give a whole number from 1")
    if "episode" not in rows:
        raise InvalidFile(
            f"{path} has no column episode, so that it is not known which steps are number "
            f"{limit} of their episodes, as {TRUNCATED_AT} asks",
            "Add the column episode, or take away the marks of steps that a time limit has ended",
        )
    times = _times(rows)
    if (row := first_true(times >= limit)) is not None:
        raise InvalidFile(
            f"{_named(path, rows, row)} is step {times[row] + 1} of its episode, more than "
            f"{TRUNCATED_AT} = {limit}",
            "Give the number of steps at which the time limit ends every episode",
        )
    within = times < limit - 1
    if not within.any():
        raise InvalidFile(
            f"{path} has no step before number {limit} of an episode, and {TRUNCATED_AT} leaves "
            "that one out",
            "Give the number of steps at which the time limit ends every episode",
        )
    return rows.changed({name: part[within] for name, part in rows.items()})


def _times(rows: Columns) -> IntArray:
    """How many steps of its episode precede every row."""
    if "t" in rows:
        return rows["t"]
    order = np.argsort(rows["episode"], kind="stable")
    ordered = rows["episode"][order]
    times = np.empty_like(order)
    times[order] = np.arange(order.size) - np.searchsorted(ordered, ordered)
    return times


def _episodes(rows: Columns) -> _LoggedEpisodes:
    times, names = _times(rows), rows["episode"]
    order = np.lexsort([times, names])
    last = order[np.append(np.diff(names[order]) != 0, True)]
    return _LoggedEpisodes(
        times[last] + 1,
        rows["terminated"][last] != 0,
        rows["next_state"][last],
        rows["state"],
        rows["next_state"],
    )


def _broken(path: str, columns: Columns, before: int, after: int) -> InvalidFile:
    """What is wrong between two rows of an episode that should follow one another."""
    timed = "t" in columns
    passed = int(columns["t"][after] - columns["t"][before]) if timed else 1
    where = _named(path, columns, after)
    earlier = _named(path, columns, before).removeprefix(f"{path}, ").removeprefix(f"{path}: ")
    if passed == 0:
        return InvalidFile(
            f"{where} occurs twice, also as {earlier}", "Give every step its own row"
        )
    if "terminated" in columns and columns["terminated"][before]:
        return InvalidFile(
            f"{where} goes on after {earlier}, which is marked terminated",
            "Give what follows an end an episode of its own, or take the mark away",
        )
    if passed > 1:
        return InvalidFile(
            f"{where} follows {earlier}, so that steps are missing between them",
            "Add the missing rows, or give the parts episodes of their own and the option initial; "
            "if what is missing does not depend on what happened there, give the option "
            f"gaps={ALLOW} (on the command line --option gaps={ALLOW})",
        )
    return InvalidFile(
        f"{where} is from state {columns.state_name('state', after)}, but {earlier} leads to state "
        f"{columns.state_name('next_state', before)}",
        "Give every step its own row; next_state is the state of the next row"
        + ("" if timed else ", and rows of an episode are in order, or numbered by a column t"),
    )


def _named(path: str, columns: Columns, row: int) -> str:
    time = f", t = {columns['t'][row]}" if "t" in columns else ""
    return f"{place_of(path, columns, row)} (episode {columns.episode_name(row)}{time})"
