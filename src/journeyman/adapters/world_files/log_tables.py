"""Columns of whole numbers from a CSV file, the form in which steps are logged.

Episodes may have names, which are numbered beyond all whole numbers that a file may hold.
"""

import csv
import re
from array import array
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.formats.memory_limit import require_memory
from journeyman.arrays import IntArray
from journeyman.demonstrations.files import require_commas
from journeyman.errors import InvalidFile

EPISODE = "episode"


class Columns(dict[str, IntArray]):
    """Columns by their names, and the names of episodes that are no numbers."""

    def __init__(
        self, columns: Mapping[str, IntArray], episodes: "EpisodeNames | None" = None
    ) -> None:
        super().__init__(columns)
        self.episodes = EpisodeNames() if episodes is None else episodes

    def changed(self, columns: Mapping[str, IntArray]) -> "Columns":
        """Other columns of the same episodes."""
        return Columns(columns, self.episodes)

    def episode_name(self, row: int) -> str:
        """What the episode of a row is called in its file."""
        return self.episodes.name(int(self[EPISODE][row]))


class EpisodeNames:
    """Numbers for names of episodes."""

    FIRST, PER_NAME = 1 << 62, 200

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.num_bytes = 0

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = self.FIRST + len(self._numbers)
            self.num_bytes += self.PER_NAME + len(name)
        return self._numbers[name]

    def name(self, number: int) -> str:
        if number < self.FIRST:
            return str(number)
        return list(self._numbers)[number - self.FIRST][:40]


TRUE, FALSE = {"true", "yes"}, {"false", "no", ""}
WHOLE = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?", re.ASCII)
COLUMN_LIMIT = 1000
PER_ENTRY = 24
"""Bytes of an entry on its way from a file to an array."""
IDS = ("state", "action", "next_state")
LARGEST_ID = 1 << 31
LINE, ROW = "line", "row"
"""Besides its columns a table has the line, or else the number, of every row."""
FLAGS = ("terminated",)
"""Columns of truth values; in the others an empty cell is an error."""


def read_csv_columns(
    path: str, required: Collection[str], optional: Collection[str], limit: int
) -> Columns:
    """The named columns of a CSV file whose first line names them; others are ignored."""
    try:
        size = Path(path).stat().st_size
        require_memory(path, PER_ENTRY / 2 * size, limit)
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.reader(stream, strict=True)
            places = places_of(path, next(rows, []), required, optional)
            kept = {name: array("q") for name in places}
            episodes = EpisodeNames()
            lines, begin = array("q"), rows.line_num + 1
            for row in rows:
                _keep(path, begin, row, places, kept, episodes)
                if row:
                    lines.append(begin)
                begin = rows.line_num + 1
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise InvalidFile(f"{path} is not readable text: {fault}", "Write UTF-8 CSV") from fault
    kept[LINE] = lines
    columns = {name: np.array(values, dtype=np.int64) for name, values in kept.items()}
    return Columns(columns, episodes)


def place_of(path: str, columns: Columns, row: int) -> str:
    """Where a row is found in its file."""
    if LINE in columns:
        return f"{path}, line {columns[LINE][row]}"
    return f"{path}: row {columns[ROW][row] if ROW in columns else row}"


def places_of(
    path: str, header: list[str], required: Collection[str], optional: Collection[str]
) -> dict[str, int]:
    """Where the columns stand among the names in `header`."""
    require_commas(path, header)
    names = [name.strip() for name in header[:COLUMN_LIMIT]]
    for name in (*required, *optional):
        if names.count(name) > 1:
            raise InvalidFile(f"{path} has two columns {name!r}", "Give each its own name")
    missing = [name for name in required if name not in names]
    if missing:
        found = ", ".join(names[:20]) or "none"
        raise InvalidFile(
            f"{path} lacks the column(s) {', '.join(missing)}; it has {found}",
            f"Name them in the first line: {','.join(required)}[,{'][,'.join(optional)}]",
        )
    return {name: names.index(name) for name in (*required, *optional) if name in names}


def _keep(
    path: str,
    line: int,
    row: list[str],
    places: Mapping[str, int],
    kept: Mapping[str, Any],
    episodes: EpisodeNames,
) -> None:
    if not row:
        return
    for name, place in places.items():
        if place >= len(row):
            raise InvalidFile(f"{path}, line {line}: {name} is missing", "Complete the row")
        text = row[place].strip()
        if name in FLAGS and text.lower() in TRUE | FALSE:
            kept[name].append(text.lower() in TRUE)
        elif WHOLE.fullmatch(text):
            kept[name].append(_allowed(path, line, name, int(text.partition(".")[0])))
        elif name == EPISODE:
            if not text:
                raise InvalidFile(
                    f"{path}, line {line}: episode is empty",
                    "Give every row the name of its episode",
                )
            kept[name].append(episodes.number(text))
        else:
            raise InvalidFile(
                f"{path}, line {line}: {name} is {text[:40]!r}, expected a whole number",
                "Number states and actions from 0",
            )


def _allowed(path: str, line: int, name: str, value: int) -> int:
    """A number that may be an id, where one is expected."""
    if name not in IDS or 0 <= value < LARGEST_ID:
        return value
    wrong = "expected an id from 0" if value < 0 else f"too large: ids are below {LARGEST_ID}"
    raise InvalidFile(
        f"{path}, line {line}: {name} is {value}, {wrong}", "Number states and actions from 0"
    )
