"""Demonstrations as comma-separated text, in one of two layouts.

One row per visited state; the last row of an episode has an empty action, it is the state where the
record ends, and `terminated` is read from it:

    episode,t,state,action,terminated
    0,0,5,2,
    0,1,6,,1

A log, one row per step, when there is a column `next_state`; `terminated` may be left out, and is
read from the last step of an episode:

    episode,t,state,action,next_state,terminated
    0,0,5,2,6,1

Observations have a column for each number, state_0,state_1,... instead of state, and in a log
next_state_0,next_state_1,... A column `expert_probability`, if there is one, says how likely the
expert took each action. Flags are 1/0, true/false or yes/no; empty means truncated. Columns may
stand in any order, with capitals and blanks in their names, and further columns are ignored. Rows
of an episode must be consecutive, with t counting from 0; they are read one at a time, and kept as
flat arrays. Without t, or where it holds timestamps, rows of an episode are sorted by their order
column (`journeyman.tables`), wherever they stand.

States and actions are numbers, or names that the world has for them.
"""

import csv
import io
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.errors import InvalidFile
from journeyman.storage import PathLike, write_atomically
from journeyman.tables import (
    NO_WORLD,
    ORDERS,
    WHOLE,
    Ids,
    Order,
    Table,
    WorldNames,
    csv_table,
    is_moment,
    order_column,
    plain_name,
    require_commas,
)


@dataclass(frozen=True, eq=False)
class Source:
    """A file or data set, and `place(episode, step)`: where it has a step, in its own words.

    `place` is a function of a module or a partial of one, so that demonstrations can be sent to
    other processes.
    """

    path: PathLike
    place: Callable[[int, int], str]


@dataclass(frozen=True, eq=False)
class Origin:
    """For every episode its source, -1 for none, and its number there.

    Kept beside demonstrations that were read from a file, so that whatever is wrong with a step,
    whenever it is found, is named by file and line.
    """

    sources: tuple[Source, ...]
    which: IntArray
    episodes: IntArray

    @classmethod
    def of(cls, source: Source, num_episodes: int) -> Self:
        """All episodes of one source."""
        return cls((source,), np.zeros(num_episodes, dtype=np.int64), np.arange(num_episodes))

    @classmethod
    def joined(cls, parts: Sequence["tuple[Origin | None, int]"]) -> Self | None:
        """The origins of several sets one after the other, each with its number of episodes."""
        sources: list[Source] = []
        which, episodes = [], []
        for origin, count in parts:
            known = cls((), np.full(count, -1), np.arange(count)) if origin is None else origin
            which.append(np.where(known.which < 0, -1, known.which + len(sources)))
            episodes.append(known.episodes)
            sources += known.sources
        joined = cls(tuple(sources), np.concatenate(which), np.concatenate(episodes))
        return joined if sources else None

    def subset(self, chosen: IntArray) -> Self:
        """The origin of some of the episodes."""
        return type(self)(self.sources, self.which[chosen], self.episodes[chosen])

    def where(self, episode: int, step: int) -> str:
        """'file, line 7: ', or nothing where the source is not known."""
        which = int(self.which[episode])
        if which < 0:
            return ""
        source = self.sources[which]
        return f"{source.path}, {source.place(int(self.episodes[episode]), step)}: "


ROWS_BETWEEN_CHECKS = 4096
FOREIGN_SUFFIXES = {".parquet", ".pq", ".hdf5", ".h5", ".arrow"}
"""Formats that `read_demonstrations` knows and `Demonstrations.load` does not."""


def refuse_foreign(path: PathLike) -> None:
    """Refuse a format of another package, naming the function that reads it."""
    if Path(path).suffix.lower() in FOREIGN_SUFFIXES or Path(path).is_dir():
        raise InvalidFile(
            f"{path} is not in the native format",
            "Read files and directories of other packages with jm.read_demonstrations(path)",
        )


def write_csv(
    path: PathLike,
    states: IntArray,
    actions: IntArray,
    offsets: IntArray,
    terminated: BoolArray,
    probabilities: FloatArray | None = None,
) -> None:
    columns = states.reshape(len(states), -1)
    numbered = states.ndim == 1
    names = ["state"] if numbered else [f"state_{k}" for k in range(columns.shape[1])]

    def write(stream: BinaryIO) -> None:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["episode", "t", *names, "action", "terminated"] + [PROBABILITY] * logged)
        for episode, (start, stop) in enumerate(pairwise(offsets)):
            for t, step in enumerate(range(start, stop)):
                more = [] if probabilities is None else [repr(float(probabilities[step]))]
                seen = columns[step + episode].tolist()
                rows.writerow([episode, t, *seen, actions[step], "", *more])
            last = columns[stop + episode].tolist()
            end = [episode, stop - start, *last, "", int(terminated[episode])]
            rows.writerow(end + [""] * logged)
        text.flush()
        text.detach()

    logged = probabilities is not None
    write_atomically(path, write)


def no_limit(num_bytes: int) -> None:
    """Allow any amount of memory."""


def read_csv(
    path: PathLike, allow: Callable[[int], None] = no_limit, names: WorldNames = NO_WORLD
) -> tuple[Any, ...]:
    """(states, actions, offsets, terminated, probabilities, source); the first wrong line is named.

    `allow` is called now and then with the bytes that the demonstrations take, and may raise.
    """
    return read_table(csv_table(path, strict=False), allow, names)


def read_table(
    table: Table,
    allow: Callable[[int], None] = no_limit,
    names: WorldNames = NO_WORLD,
) -> tuple[Any, ...]:
    """The same of any table."""
    table = table.knowing(known_columns(table.header))
    ordered = _in_order(table, allow)
    is_log = NEXT_STATE in table.header or f"{NEXT_STATE}_0" in table.header
    reader = (Log if is_log else Visits)(ordered, names)
    for count, (line, row) in enumerate(ordered.rows, 1):
        reader.take(line, row)
        if count % ROWS_BETWEEN_CHECKS == 0:
            allow(reader.num_bytes)
    allow(reader.num_bytes)
    parts = reader.finish()
    place = partial(_line, table.unit, _compact(reader.lines), parts[2], is_log)
    return *parts, Source(table.name, place)


def known_columns(header: Sequence[str]) -> list[str]:
    """Names of columns that mean something here."""
    axes = [name for name in map(plain_name, header) if AXIS.fullmatch(name)]
    return [*COLUMNS, NEXT_STATE, PROBABILITY, *ORDERS, *axes]


def _in_order(table: Table, allow: Callable[[int], None]) -> Table:
    """The table as it is where a column t counts steps; otherwise its rows sorted by their order
    column, episode by episode, with t."""
    column = order_column(table.header)
    if column is None or "episode" not in table.header or table.header.count(column) > 1:
        return table
    place = table.header.index(column)
    first = next(table.rows, None)
    rows = chain([] if first is None else [first], table.rows)
    text = first[1][place].strip() if first is not None and place < len(first[1]) else ""
    if column == "t" and not is_moment(text):
        return Table(table.name, table.header, rows, table.unit)
    header = ["t", *(f"{name} as given" if name == "t" else name for name in table.header)]
    return Table(table.name, header, _sorted(table, rows, place, allow), table.unit)


def _sorted(
    table: Table,
    rows: Iterable[tuple[int, list[str]]],
    place: int,
    allow: Callable[[int], None],
) -> Iterator[tuple[int, list[str]]]:
    order, at = Order(table.header[place], table), table.header.index("episode")
    episodes: dict[str, list[tuple[float, int, list[str]]]] = {}
    for count, (line, row) in enumerate(rows, 1):
        episode, text = ("".join(row[k : k + 1]).strip() for k in (at, place))
        moment = order.number(text, line)
        episodes.setdefault(episode, []).append((moment, line, row))
        if count % ROWS_BETWEEN_CHECKS == 0:
            allow(BYTES_PER_HELD_ROW * count)
    for episode, visits in episodes.items():
        visits.sort(key=lambda visit: visit[0])
        for t, (moment, line, row) in enumerate(visits):
            if t and visits[t - 1][0] == moment:
                raise InvalidFile(
                    f"{table.at(line)}: {order.column} is that of {table.unit} "
                    f"{visits[t - 1][1]} too, in episode {episode[:40]}",
                    "Give the rows of an episode different moments, or number them by a column t",
                )
            yield line, [str(t), *row]


def _compact(lines: "array[int]") -> Sequence[int]:
    """The lines of rows; without gaps, as in most files, their bounds will do."""
    if len(lines) and lines[-1] - lines[0] == len(lines) - 1 and (np.diff(lines) == 1).all():
        return range(lines[0], lines[-1] + 1)
    return lines


def _line(unit: str, lines: Sequence[int], offsets: IntArray, is_log: bool, e: int, t: int) -> str:
    """The row of step t of episode e; behind the last one the row where the record ends."""
    first, count = int(offsets[e]), int(offsets[e + 1] - offsets[e])
    row = first + min(t, count - 1) if is_log else first + e + min(t, count)
    return f"{unit} {lines[row]}"


def recorded_step(episode: int, step: int) -> str:
    """The place of a step in files that have no lines."""
    return f"episode {episode}, step {step}"


COLUMNS = ("episode", "t", "state", "action", "terminated")
REQUIRED = COLUMNS[:4]
NEXT_STATE, PROBABILITY = "next_state", "expert_probability"
TRUE = {"1", "true", "yes"}
FALSE = {"", "0", "false", "no"}
MOST = 1 << 63
BYTES_PER_HELD_ROW = 700
"""Of a row of text that is held until all rows are sorted."""
AXIS = re.compile(r"(next_)?state_[0-9]+")
BYTES_PER_STEP, BYTES_PER_EPISODE = 64, 240
"""What reading takes at its peak, together with the value that is built in the end."""


def require_columns(path: PathLike, found: Sequence[str]) -> None:
    """Refuse a table that lacks a column, and say which of its columns may be meant by it; for
    `state` there may be the columns of an observation."""
    require_commas(path, found)
    axes = state_columns(found)
    names = [*REQUIRED, *axes, *({NEXT_STATE, COLUMNS[4], PROBABILITY} & set(found))]
    twice = [name for name in names if list(found).count(name) > 1]
    if twice:
        raise InvalidFile(f"{path} has two columns {twice[0]}", "Give each its own name")
    known = [*found, *(["state"] if axes else []), *(["t"] if order_column(found) else [])]
    missing = [name for name in REQUIRED if name not in known]
    if missing:
        raise InvalidFile(
            f"{path} lacks the column(s) {', '.join(missing)}{_nearest(missing, found)}",
            f"Name the columns {','.join(COLUMNS)} in the first line",
        )


def state_columns(found: Sequence[str], prefix: str = "state") -> list[str]:
    """Columns state_0, state_1, ... of observations; none where states are ids."""
    if prefix in found:
        return []
    names: list[str] = []
    while f"{prefix}_{len(names)}" in found:
        names.append(f"{prefix}_{len(names)}")
    return names


def _nearest(missing: Sequence[str], found: Sequence[str]) -> str:
    spare = {name.strip().lower(): name for name in found if name not in COLUMNS}
    near = [
        f"{name} may be {spare[close[0]][:40]!r}"
        for name in missing
        if (close := get_close_matches(name, spare, n=1, cutoff=0.5))
    ]
    if near:
        return f" ({', '.join(near)})"
    return f"; it has {', '.join(found)[:200] or 'none'}"


def wrong_time(t: int, expected: int) -> tuple[str, str]:
    """What is wrong with the time of a row, and how to repair it."""
    what = f"t is {t}, expected {expected}"
    if expected == 0:
        return what, "Count t from 0 in every episode, and sort the rows by episode and t"
    if t == 0:
        twice = "the row is there twice, or " if expected == 1 else ""
        return (
            f"{what}: {twice}a new episode has no name of its own",
            "Give every episode its own name, and leave out copies of rows",
        )
    if t == expected - 1:
        return f"{what}: it is there twice", "Leave out the copy; each t has one row"
    if t < expected:
        return f"{what}: rows are out of order", "Sort the rows by episode and t"
    lacking = f"step {expected} is" if t == expected + 1 else f"steps {expected} to {t - 1} are"
    return (
        f"{what}: {lacking} missing",
        "Add what is missing; or end the episode before it, truncated, and leave out the rest, "
        "which does not begin where episodes begin",
    )


class Visits:
    """Collects rows of visited states in order and refuses the first that does not fit."""

    SHAPE = "A row is episode,t,state,action,terminated; the last row of an episode has no action"

    def __init__(self, table: Table, names: WorldNames) -> None:
        header = table.header
        require_columns(table.name, header)
        self.table, self.width = table, len(header)
        states = Ids(table, "state", names.states, self.SHAPE, MOST)
        actions = Ids(table, "action", names.actions, self.SHAPE, MOST)
        self.ids = {"state": states, "action": actions, NEXT_STATE: states}
        self.lines = array("q")
        self.places = {name: header.index(name) for name in header}
        self.axes = state_columns(header)
        self.states: array[Any] = array("d" if self.axes else "q")
        self.actions, self.probabilities = array("q"), array("d")
        self.is_logged = PROBABILITY in header
        self.offsets, self.terminated = array("q", [0]), array("b")
        self.episode: str | None = None
        self.finished: set[str] = set()
        self.name_bytes = 0

    @property
    def num_bytes(self) -> int:
        episodes = BYTES_PER_EPISODE * len(self.terminated) + self.name_bytes
        return BYTES_PER_STEP * len(self.states) + 32 * len(self.probabilities) + episodes

    def take(self, line: int, row: list[str]) -> None:
        """Add a row."""
        episode = self._name(line, row)
        if self.episode is None:
            self._open(line, episode)
        elif episode != self.episode:
            raise self._refuse(
                line, f"episode {self.episode[:40]} has no last row with an empty action"
            )
        self._require_time(line, row)
        self.states.extend(self._state(line, row, "state"))
        if self._text(row, "action"):
            self._act(line, row)
        else:
            self._close(line, self._flag(line, row))

    def finish(self) -> tuple[Any, ...]:
        """The arrays, when the file has ended where it may."""
        if self.episode is not None:
            raise InvalidFile(
                f"{self.table.name}: episode {self.episode[:40]} has no last row with an empty "
                "action",
                "End each episode with the state where its record ends",
            )
        if not self.terminated:
            raise InvalidFile(f"{self.table.name} holds no episode", "Give at least one")
        kind = np.float64 if self.axes else np.int64
        states, actions = np.frombuffer(self.states, kind), np.frombuffer(self.actions, np.int64)
        if self.axes:
            states = states.reshape(-1, len(self.axes))
        logged = np.frombuffer(self.probabilities, np.float64) if self.is_logged else None
        ended = np.array(self.terminated, dtype=bool)
        return states, actions, np.array(self.offsets), ended, logged

    def _state(self, line: int, row: list[str], prefix: str) -> list[int] | list[float]:
        """An id, or the numbers of an observation."""
        if not self.axes:
            return [self.ids[prefix].number(self._text(row, prefix), line, prefix)]
        return [self._number(line, row, f"{prefix}_{k}") for k in range(len(self.axes))]

    def _act(self, line: int, row: list[str]) -> None:
        self.actions.append(self.ids["action"].number(self._text(row, "action"), line, "action"))
        if self.is_logged:
            chance = self._number(line, row, PROBABILITY)
            if not 0 < chance <= 1:
                raise self._refuse(line, f"{PROBABILITY} is {chance}, expected above 0, up to 1")
            self.probabilities.append(chance)

    def _number(self, line: int, row: list[str], name: str) -> float:
        text = self._text(row, name)
        try:
            value = float(text)
            if "_" in text or not math.isfinite(value):
                raise ValueError(text)
        except ValueError:
            raise self._refuse(line, f"{name} is {text[:40]!r}, expected a number") from None
        return value

    def _name(self, line: int, row: list[str]) -> str:
        """The name of a row's episode, if the row is as wide as the first line says."""
        if len(row) > self.width and any(cell.strip() for cell in row[self.width :]):
            raise self._refuse(
                line, f"the row has {len(row)} cells, the first line names {self.width} columns"
            )
        self.lines.append(line)
        name = self._text(row, "episode")
        if not name:
            raise self._refuse(line, "episode is empty", "Give every row the name of its episode")
        return name

    def _open(self, line: int, episode: str) -> None:
        if episode in self.finished:
            raise self._refuse(
                line,
                f"episode {episode[:40]} goes on after its last row",
                "Sort the rows by episode and t, and give every episode its own name",
            )
        self.episode = episode

    def _close(self, line: int, terminated: bool) -> None:
        name = self.episode or ""
        if len(self.actions) == self.offsets[-1]:
            raise self._refuse(line, f"episode {name[:40]} has no action")
        self.terminated.append(terminated)
        self.offsets.append(len(self.actions))
        self.finished.add(name)
        self.name_bytes += len(name)
        self.episode = None

    def _shown(self, state: float) -> str:
        """A state by its name, or a number."""
        known = self.ids["state"].known
        names = () if self.axes or known is None else known.names or ()
        return repr(names[int(state)]) if state < len(names) else str(state)

    def _require_time(self, line: int, row: list[str]) -> None:
        expected, text = len(self.actions) - self.offsets[-1], self._text(row, "t")
        if text == str(expected):
            return
        t = self._integer(line, text)
        if t != expected:
            raise self._refuse(line, *wrong_time(t, expected))

    def _text(self, row: list[str], name: str) -> str:
        place = self.places.get(name, len(row))
        return row[place].strip() if place < len(row) else ""

    def _flag(self, line: int, row: list[str]) -> bool:
        flag = self._text(row, "terminated").lower()
        if flag not in TRUE | FALSE:
            raise self._refuse(line, f"terminated is {flag[:40]!r}, expected 1 or 0")
        return flag in TRUE

    def _integer(self, line: int, text: str) -> int:
        if not WHOLE.fullmatch(text):
            raise self._refuse(line, f"t is {text[:40]!r}, expected a whole number")
        return int(text.partition(".")[0])

    def _refuse(self, line: int, what: str, remedy: str | None = None) -> InvalidFile:
        return InvalidFile(f"{self.table.at(line)}: {what}", remedy or self.SHAPE)


class Log(Visits):
    """Collects rows of single steps; an episode ends where the next one begins."""

    SHAPE = "A row is episode,t,state,action,next_state and, if you like, terminated"

    def __init__(self, table: Table, names: WorldNames) -> None:
        super().__init__(table, names)
        self.ended = False

    def take(self, line: int, row: list[str]) -> None:
        """Add a row."""
        episode, state = self._name(line, row), self._state(line, row, "state")
        if self.episode is not None and episode != self.episode:
            self._close(line, self.ended)
        if self.episode is None:
            self._open(line, episode)
            self.states.extend(state)
        elif self.ended:
            raise self._refuse(line, f"episode {episode[:40]} goes on after it terminated")
        self._require_time(line, row)
        before = self.states[-len(state) :].tolist()
        if state != before:
            words = [", ".join(map(self._shown, one)) for one in (state, before)]
            raise self._refuse(
                line, f"state is {words[0]}, but the step before led to {words[1]}",
                "Give every step its own row, each from where the one before it led",
            )  # fmt: skip
        self._act(line, row)
        self.states.extend(self._state(line, row, NEXT_STATE))
        self.ended = self._flag(line, row)

    def finish(self) -> tuple[Any, ...]:
        """The arrays; the last episode ends with the file."""
        if self.episode is not None:
            self._close(0, self.ended)
        return super().finish()
