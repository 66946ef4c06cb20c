"""Tables as people have them: CSV files and data frames, as rows of text with their places.

Readers ask for columns by plain names: `State`, ` state ` and `Next State` are the columns state
and next_state. A cell is a text without surrounding blanks; numbers of data frames are written so
that reading them gives the same number, timestamps in ISO format, and missing values are empty.

Names of states and actions stand where numbers could stand, not beside them (`Ids`). They are those
of a world (`Known`), or, in a table that is the world, numbered when all rows are known.

An order column (`ORDERS`) says which row of an episode follows which: numbers, or timestamps in ISO
format. Only t counts steps; of the others only the order matters.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TextIO
from unicodedata import normalize

import numpy as np

from journeyman.arrays import IntArray
from journeyman.errors import InvalidFile, InvalidInput, MissingExtra
from journeyman.storage import PathLike

LONGEST_ROW = 1 << 20
"""Characters of a row; a file without line ends is refused before it fills the memory."""
LONGEST_NAME = 1000
"""Characters of the name of a state or an action."""
LARGEST_ID = 1 << 31
MOST_REMEMBERED = 1 << 17
"""Texts of cells whose numbers are looked up; others are read again."""
BYTES_PER_NAME = 500
WHOLE = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?", re.ASCII)
FRAME = "the data frame"
ORDERS = ("t", "step", "timestamp", "datetime", "time", "date", "order")
"""Columns that say in which order rows of an episode come; the first that there is counts."""
EPOCH = datetime(1970, 1, 1)
LONGEST_TIME = 1 << 63


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of text below the names of their columns.

    `rows` gives every row with its number, once; `unit` says what is counted: the lines of a file,
    or rows from 0.
    """

    name: str
    header: list[str]
    rows: Iterator[tuple[int, list[str]]]
    unit: str = "line"

    def at(self, number: int) -> str:
        """The place of a row, for messages."""
        return f"{self.name}, {self.unit} {number}"

    def knowing(self, known: Iterable[str]) -> "Table":
        """The same table, with plain names for the `known` columns among its own."""
        return Table(self.name, plain_header(self.header, known), self.rows, self.unit)


def plain_name(name: str) -> str:
    """The name of a column without capitals, blanks and hyphens.

    >>> plain_name(" Next State "), plain_name("next-state")
    ('next_state', 'next_state')
    """
    return re.sub(r"[\s\-]+", "_", name.strip()).lower()


def plain_header(header: Sequence[str], known: Iterable[str]) -> list[str]:
    """Names of columns, where those in `known` are recognised however they are written; a column
    that has such a name exactly comes before others.

    >>> plain_header(["State", " ACTION", "Delay"], ["state", "action"])
    ['state', 'action', 'Delay']
    """
    wanted = set(known)
    exact = {name.strip() for name in header} & wanted
    return [
        plain if (plain := plain_name(name)) in wanted - exact else name.strip() for name in header
    ]


def is_csv(source: object) -> bool:
    return isinstance(source, str | Path) and Path(source).suffix.lower() == ".csv"


def is_frame(source: object) -> bool:
    """Whether it is a table of pandas, polars or pyarrow, or of another package that gives its
    columns in the same way."""
    signs = ("__dataframe__", "__arrow_c_stream__", "collect_schema")
    return any(hasattr(source, sign) for sign in signs)


def csv_table(path: PathLike, *, strict: bool = True) -> Table:
    """A comma-separated file.

    Unless `strict`, there may be spaces behind a closing quote, as some systems write them.
    """
    rows = _csv_rows(path, strict)
    _, names = next(rows, (0, []))
    if names[:1] == ["sep="]:  # a line for spreadsheets
        _, names = next(rows, (0, []))
    header = [name.strip() for name in names]
    require_commas(path, header)
    if any(not character.isprintable() for name in header for character in name):
        raise InvalidFile(
            f"{path} is not text: its first line holds {header[0][:20]!r}",
            "Export it as CSV; a spreadsheet or packed file is not turned into one by its name",
        )
    return Table(str(path), header, rows)


def _csv_rows(path: PathLike, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file that are not empty, each with the number of its last line."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            lines = _Lines(stream)
            rows = csv.reader(lines, skipinitialspace=True, strict=strict)
            for row in rows:
                lines.held = 0
                if row:
                    yield rows.line_num, row
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except UnicodeDecodeError as fault:
        raise InvalidFile(
            f"{path} is not readable text: {fault}",
            "Export it as CSV in UTF-8; a spreadsheet is not turned into CSV by its name",
        ) from fault
    except (OSError, csv.Error) as fault:
        raise InvalidFile(f"{path} is not readable text: {fault}", "Write UTF-8 CSV") from fault


class _Lines:
    """The lines of a file, as long as a row is not too long."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.held = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.stream.readline(LONGEST_ROW)
        self.held += len(line)
        if not line:
            raise StopIteration
        if self.held >= LONGEST_ROW:
            raise csv.Error(f"a row has more than {LONGEST_ROW - 1} characters")
        return line


def require_commas(path: PathLike, header: Sequence[str]) -> None:
    """Refuse a table whose first line is separated by something else."""
    signs = [sign for sign in (";", "\t") if len(header) == 1 and sign in header[0]]
    if signs:
        raise InvalidFile(
            f"{path} separates its columns by {signs[0]!r}: the first line is {header[0][:80]!r}",
            "Separate columns by commas, and write decimal points",
        )


def frame_table(frame: Any) -> Table:
    """A data frame; an index that has names is taken for columns."""
    names, columns = frame_columns(frame)
    texts = [_texts(name, column) for name, column in zip(names, columns, strict=True)]
    rows = ((k, list(row)) for k, row in enumerate(zip(*texts, strict=True)))
    return Table(FRAME, names, rows, "row")


def frame_columns(frame: Any) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns of a data frame, and their values as lists."""
    if hasattr(frame, "reset_index") and any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    if hasattr(frame, "collect"):
        raise InvalidInput(f"{FRAME} is not computed yet", "Give frame.collect()")
    try:
        if hasattr(frame, "column_names"):  # pyarrow
            return list(frame.column_names), [one.to_pylist() for one in frame.columns]
        given = list(frame.columns)
        names = [str(name).strip() for name in given]
        for name in names:
            if names.count(name) > 1:
                raise InvalidInput(f"{FRAME} has two columns {name!r}", "Give each its own name")
        return names, [frame[name].to_list() for name in given]
    except (AttributeError, KeyError, TypeError) as fault:
        raise InvalidInput(
            f"the columns of a {type(frame).__name__} are not readable ({fault})",
            "Give a DataFrame of pandas or polars, or a table of pyarrow",
        ) from fault


def _texts(name: str, column: list[Any]) -> list[str]:
    kinds = set(map(type, column))
    if len(kinds) > 1 or not all(kind.__hash__ for kind in kinds):
        return [_text(name, row, value) for row, value in enumerate(column)]
    texts: dict[Any, str] = {}  # each value once, for most columns repeat a few
    for row, value in enumerate(column):
        if value not in texts:
            texts[value] = _text(name, row, value)
    return [texts[value] for value in column]


def _text(name: str, row: int, value: Any) -> str:
    """What a CSV file would have in this cell."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, float):
        return "" if np.isnan(value) else repr(value)
    if isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise InvalidInput(
        f"{FRAME}, row {row}: {name} holds a {type(value).__name__}",
        "Give numbers, texts, truth values and timestamps",
    )


def to_frame(data: Any) -> Any:
    """A pandas DataFrame of rows (mappings with the same keys), or of columns."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("pandas", "frames") from None
    return pandas.DataFrame(data)


def ordered_names(what: str, places: Mapping[str, str]) -> tuple[str, ...]:
    """Names of states or actions (`what`) in order, if no two can be taken for each other; `places`
    says where each came first."""
    seen: dict[str, str] = {}
    for name, place in places.items():
        if len(name) > LONGEST_NAME or not name.isprintable():
            raise InvalidFile(
                f"{place}: the name {name[:40]!r} of {what} "
                + ("is too long" if len(name) > LONGEST_NAME else "holds unprintable characters"),
                f"Give names of at most {LONGEST_NAME} printable characters",
            )
        other = seen.setdefault(_key(name), name)
        if other != name:
            raise InvalidFile(
                f"{place}: the {what} {name[:40]!r} differs from {other[:40]!r} ({places[other]}) "
                "in capitals or blanks only",
                "Write the same name in the same way; if two are meant, give them other names",
            )
    return tuple(sorted(places))


def _key(name: str) -> str:
    return re.sub(r"\s+", " ", normalize("NFKC", name)).casefold()


def nearest(name: str, known: Iterable[str]) -> str:
    """Which of the `known` names may be meant, in words."""
    by_key = {_key(one): one for one in known}
    close = get_close_matches(_key(name), by_key, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {by_key[close[0]][:40]!r}?"
    some = [repr(one[:40]) for one in list(by_key.values())[:5]]
    more = ", ..." if len(by_key) > len(some) else ""
    return f"; known are {', '.join(some)}{more}" if some else ""


def with_names(
    text: str, states: Sequence[str] | None, actions: Sequence[str] | None = None
) -> str:
    """The same text, with its name behind every number of a state or an action.

    >>> with_names("state 1, action 0 to state 2", ["ok", "worn", "broken"])
    "state 1 ('worn'), action 0 to state 2 ('broken')"
    """
    names = {"state": states or (), "action": actions or ()}

    def named(found: re.Match[str]) -> str:
        known, number = names[found[1]], int(found[2])
        return f"{found[0]} ({known[number][:40]!r})" if number < len(known) else found[0]

    return re.sub(r"\b(state|action) ([0-9]{1,9})\b(?!\.[0-9])", named, text)


@dataclass(frozen=True, eq=False)
class Known:
    """The names that a world has for its states or its actions (`what`), None for none.

    `number` says which one a name means. A number is never a name.
    """

    what: str
    names: Sequence[str] | None

    def __post_init__(self) -> None:
        numbers: dict[str, int] = {}
        twice: set[str] = set()
        for number, name in enumerate(self.names or ()):
            plain = str(name).strip()
            (twice.add if plain in numbers else lambda _: None)(plain)
            numbers.setdefault(plain, number)
        object.__setattr__(self, "_numbers", numbers)
        object.__setattr__(self, "_twice", twice)

    def number(self, text: str, where: str) -> int:
        """The number behind a name."""
        numbers: Mapping[str, int] = vars(self)["_numbers"]
        if text in numbers and text not in vars(self)["_twice"]:
            return numbers[text]
        if not numbers:
            raise InvalidFile(
                f"{where} is {text[:40]!r}, expected a whole number, for no names of {self.what}s "
                "are known",
                "Number states and actions from 0; or give a world that has these names, such as "
                "one from a table with them",
            )
        if text in numbers:
            raise InvalidFile(
                f"{where} is {text[:40]!r}, and the world has two {self.what}s of that name",
                "Give numbers",
            )
        raise InvalidFile(
            f"{where} is {text[:40]!r}, which is no {self.what} of the world"
            f"{nearest(text, numbers)}",
            f"Write the names of {self.what}s as they are in the world",
        )


@dataclass(frozen=True, eq=False)
class WorldNames:
    """What a world calls its states and actions."""

    states: Known
    actions: Known

    @classmethod
    def of(cls, world: Any) -> "WorldNames":
        """Those of a world; in one with a horizon, of the world it was made of."""
        base = world if world.reduction is None else world.reduction.base
        return cls(Known("state", base.state_names), Known("action", base.action_names))


NO_WORLD = WorldNames(Known("state", None), Known("action", None))
"""Where names cannot be known."""


class Ids:
    """Reads cells that stand for states or for actions (`what`): whole numbers, or names, not both.

    Names are those that are `known`; without such, new names are numbered from 0 as they come.
    """

    def __init__(
        self, table: Table, what: str, known: Known | None, remedy: str, below: int = LARGEST_ID
    ) -> None:
        self.table, self.what, self.known = table, what, known
        self.remedy, self.below = remedy, below
        self.places: dict[str, str] = {}
        """Names that are new, and where each came first."""
        self.num_bytes = 0
        self._numbers: dict[str, int] = {}
        self._named: bool | None = None
        self._first = ""
        self._read_before: dict[str, int] = {}

    def number(self, text: str, line: int, column: str) -> int:
        """What a cell of the column stands for."""
        found = self._read_before.get(text)
        if found is None:
            found = self._read(text, line, column)
            if len(self._read_before) < MOST_REMEMBERED:
                self._read_before[text] = found
        return found

    def in_order(self) -> tuple[tuple[str, ...] | None, IntArray]:
        """The new names in order, None if there are none, and for each number that was given to
        one its place among them."""
        names = ordered_names(self.what, self.places)
        places = {name: place for place, name in enumerate(names)}
        return names or None, np.array([places[name] for name in self.places], dtype=np.int64)

    def _read(self, text: str, line: int, column: str) -> int:
        where = f"{self.table.at(line)}: {column} is "
        if not text:
            raise InvalidFile(f"{where}empty", self.remedy)
        named = not is_number(text)
        if self._named is None:
            self._named, self._first = named, f"{text[:40]!r} in {self.table.unit} {line}"
        if named is not self._named:
            kinds = ("a name", "a number") if named else ("a number", "a name")
            raise InvalidFile(
                f"{where}{text[:40]!r}, {kinds[0]}; {self._first} is {kinds[1]}",
                "Number them all from 0, or give all of them names that are no numbers ('ward 3' "
                "instead of 3)",
            )
        if not named:
            return self._whole(text, where)
        if self.known is not None:
            return self.known.number(text, where.removesuffix(" is "))
        if text not in self._numbers:
            self._numbers[text] = len(self.places)
            self.places[text] = self.table.at(line)
            self.num_bytes += BYTES_PER_NAME + len(text)
        return self._numbers[text]

    def _whole(self, text: str, where: str) -> int:
        found = WHOLE.fullmatch(text)
        value = int(text.partition(".")[0]) if found else -1
        if 0 <= value < self.below:
            return value
        if found and value < 0:
            raise InvalidFile(f"{where}{text}, expected an id from 0", self.remedy)
        if found or text.isdigit():
            raise InvalidFile(
                f"{where}{text[:40]}, too large: ids are below {self.below}", self.remedy
            )
        raise InvalidFile(f"{where}{text[:40]!r}, expected a whole number", self.remedy)


def is_number(text: str) -> bool:
    """Whether a text reads as a number, of whatever kind."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_moment(text: str) -> bool:
    """Whether a text is a timestamp in ISO format, and no whole number."""
    try:
        return WHOLE.fullmatch(text) is None and bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def order_column(header: Sequence[str]) -> str | None:
    """The column that says in which order rows come."""
    return next((name for name in ORDERS if name in header), None)


class Order:
    """Reads an order column: numbers that are kept as they are, or moments in microseconds."""

    def __init__(self, column: str, table: Table) -> None:
        self.column, self.table = column, table
        self._kind = self._first = ""

    @property
    def counts_steps(self) -> bool:
        """Whether the numbers are those of steps."""
        return self.column == "t" and self._kind == "a number"

    def number(self, text: str, line: int) -> float:
        kind, value = self._read(text, line)
        if kind is not self._kind:
            if self._kind:
                raise InvalidFile(
                    f"{self.table.at(line)}: {self.column} is {text[:40]!r}, {kind}; {self._first} "
                    f"is {self._kind}",
                    "Write the whole column in one way",
                )
            self._kind, self._first = kind, f"{text[:40]!r} in {self.table.unit} {line}"
        return value

    def _read(self, text: str, line: int) -> tuple[str, float]:
        if WHOLE.fullmatch(text) or (text.isdecimal() and int(text) < LONGEST_TIME):
            return "a number", int(text.partition(".")[0])
        if self.column != "t" and is_number(text) and np.isfinite(float(text)):
            return "a number", float(text)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            whole = "whole number" if self.column == "t" else "number"
            found = f"{text[:40]!r}, which is no {whole} and no timestamp in ISO format"
            raise InvalidFile(
                f"{self.table.at(line)}: {self.column} is {found if text else 'empty'}",
                "Write numbers, or timestamps such as 2024-05-31 or 2024-05-31T08:30:00; if the "
                "column does not order the rows, rename it (a column t counts steps from 0)",
            ) from None
        if moment.tzinfo is None:
            return "a timestamp", (moment - EPOCH) // timedelta(microseconds=1)
        plain = moment.astimezone(UTC).replace(tzinfo=None)
        return "a timestamp with a time zone", (plain - EPOCH) // timedelta(microseconds=1)
