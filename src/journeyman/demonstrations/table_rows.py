"""Rows of a table of demonstrations, collected one at a time until they are whole episodes.

`files` has the two layouts. The first row that does not fit is refused by its line.
"""

from array import array
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from journeyman.errors import InvalidFile
from journeyman.storage import PathLike

COLUMNS = ("episode", "t", "state", "action", "terminated")
REQUIRED = COLUMNS[:4]
NEXT_STATE = "next_state"
TRUE = {"1", "true", "yes"}
FALSE = {"", "0", "false", "no"}
BYTES_PER_STEP, BYTES_PER_EPISODE = 56, 240
"""What reading takes at its peak, together with the value that is built in the end."""


def require_commas(path: PathLike, header: Sequence[str]) -> None:
    """Refuse a table whose first line is separated by something else."""
    signs = [sign for sign in (";", "\t") if len(header) == 1 and sign in header[0]]
    if signs:
        raise InvalidFile(
            f"{path} separates its columns by {signs[0]!r}: the first line is {header[0][:80]!r}",
            "Separate columns by commas, and write decimal points",
        )


def require_columns(path: PathLike, found: Sequence[str]) -> None:
    """Refuse a table that lacks a column, and say which of its columns may be meant by it."""
    require_commas(path, found)
    names = [*REQUIRED, *({NEXT_STATE, COLUMNS[4]} & set(found))]
    twice = [name for name in names if list(found).count(name) > 1]
    if twice:
        raise InvalidFile(f"{path} has two columns {twice[0]}", "Give each its own name")
    missing = [name for name in REQUIRED if name not in found]
    if missing:
        raise InvalidFile(
            f"{path} lacks the column(s) {', '.join(missing)}{_nearest(missing, found)}",
            f"Name the columns {','.join(COLUMNS)} in the first line",
        )


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
        return f"{what}; a new episode has to have its own name", "Number the episodes"
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

    def __init__(self, path: PathLike, header: Sequence[str]) -> None:
        require_columns(path, header)
        self.path = path
        self.places = {name: header.index(name) for name in header}
        self.states, self.actions = array("q"), array("q")
        self.offsets, self.terminated = array("q", [0]), array("b")
        self.episode: str | None = None
        self.finished: set[str] = set()
        self.name_bytes = 0

    @property
    def num_bytes(self) -> int:
        episodes = BYTES_PER_EPISODE * len(self.terminated) + self.name_bytes
        return BYTES_PER_STEP * len(self.states) + episodes

    def take(self, line: int, row: list[str]) -> None:
        """Add a row."""
        episode = self._text(row, "episode")
        if self.episode is None:
            self._open(line, episode)
        elif episode != self.episode:
            raise self._refuse(
                line, f"episode {self.episode[:40]} has no last row with an empty action"
            )
        self._require_time(line, row)
        self.states.append(self._integer(line, row, "state"))
        if self._text(row, "action"):
            self.actions.append(self._integer(line, row, "action"))
        else:
            self._close(line, self._flag(line, row))

    def finish(self) -> tuple[Any, Any, Any, Any]:
        """The arrays, when the file has ended where it may."""
        if self.episode is not None:
            raise InvalidFile(
                f"{self.path}: episode {self.episode[:40]} has no last row with an empty action",
                "End each episode with the state where its record ends",
            )
        if not self.terminated:
            raise InvalidFile(f"{self.path} holds no episode", "Give at least one")
        states, actions = (np.frombuffer(ids, np.int64) for ids in (self.states, self.actions))
        return states, actions, np.array(self.offsets), np.array(self.terminated, dtype=bool)

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

    def _require_time(self, line: int, row: list[str]) -> None:
        expected = len(self.actions) - self.offsets[-1]
        t = self._integer(line, row, "t")
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

    def _integer(self, line: int, row: list[str], name: str) -> int:
        text = self._text(row, name)
        try:
            value = int(text.removesuffix(".0"))
            if "_" in text:
                raise ValueError(text)
        except ValueError:
            raise self._refuse(line, f"{name} is {text[:40]!r}, expected a whole number") from None
        if not 0 <= value < 2**63:
            raise self._refuse(line, f"{name} is {text[:40]}, expected an id from 0")
        return value

    def _refuse(self, line: int, what: str, remedy: str | None = None) -> InvalidFile:
        return InvalidFile(f"{self.path}, line {line}: {what}", remedy or self.SHAPE)


class Log(Visits):
    """Collects rows of single steps; an episode ends where the next one begins."""

    SHAPE = "A row is episode,t,state,action,next_state and, if you like, terminated"

    def __init__(self, path: PathLike, header: Sequence[str]) -> None:
        super().__init__(path, header)
        self.ended = False

    def take(self, line: int, row: list[str]) -> None:
        """Add a row."""
        episode, state = self._text(row, "episode"), self._integer(line, row, "state")
        if self.episode is not None and episode != self.episode:
            self._close(line, self.ended)
        if self.episode is None:
            self._open(line, episode)
            self.states.append(state)
        elif self.ended:
            raise self._refuse(line, f"episode {episode[:40]} goes on after it terminated")
        self._require_time(line, row)
        if state != self.states[-1]:
            raise self._refuse(
                line, f"state is {state}, but the step before led to {self.states[-1]}"
            )
        self.actions.append(self._integer(line, row, "action"))
        self.states.append(self._integer(line, row, NEXT_STATE))
        self.ended = self._flag(line, row)

    def finish(self) -> tuple[Any, Any, Any, Any]:
        """The arrays; the last episode ends with the file."""
        if self.episode is not None:
            self._close(0, self.ended)
        return super().finish()
