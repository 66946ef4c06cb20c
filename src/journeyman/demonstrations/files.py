"""Demonstrations as comma-separated text, one row per visited state.

    episode,t,state,action,terminated
    0,0,5,2,
    0,1,6,,1

The last row of an episode has an empty action: it is the state where the record ends. `terminated`
is read from that row (1/0, true/false; empty means truncated). Columns may stand in any order and
further columns are ignored; rows of an episode must be consecutive, with t counting from 0.
"""

import csv
import io
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from journeyman.arrays import BoolArray, IntArray
from journeyman.errors import InvalidFile
from journeyman.storage import PathLike, write_atomically

COLUMNS = ("episode", "t", "state", "action", "terminated")
TRUE = {"1", "true", "yes"}
FALSE = {"", "0", "false", "no"}


def is_csv(path: PathLike) -> bool:
    return Path(path).suffix.lower() == ".csv"


def write_csv(
    path: PathLike, states: IntArray, actions: IntArray, offsets: IntArray, terminated: BoolArray
) -> None:
    def write(stream: BinaryIO) -> None:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(COLUMNS)
        for episode, (start, stop) in enumerate(pairwise(offsets)):
            for t, step in enumerate(range(start, stop)):
                rows.writerow((episode, t, states[step + episode], actions[step], ""))
            last = states[stop + episode]
            rows.writerow((episode, stop - start, last, "", int(terminated[episode])))
        text.flush()
        text.detach()

    write_atomically(path, write)


def read_csv(path: PathLike) -> tuple[Any, Any, Any, Any]:
    """(states, actions, offsets, terminated); the first wrong line is named."""
    reader = _Reader(path)
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream)
            missing = [name for name in COLUMNS[:4] if name not in (rows.fieldnames or ())]
            if missing:
                raise InvalidFile(
                    f"{path} lacks the column(s) {', '.join(missing)}",
                    f"Name the columns {','.join(COLUMNS)} in the first line",
                )
            for row in rows:
                reader.take(rows.line_num, row)
    except FileNotFoundError as fault:
        raise InvalidFile(f"{path} does not exist", "Check the path") from fault
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise InvalidFile(f"{path} is not readable text: {fault}", "Write UTF-8 CSV") from fault
    return reader.finish()


class _Reader:
    """Collects rows in order and refuses the first that does not fit."""

    def __init__(self, path: PathLike) -> None:
        self.path = path
        self.states: list[int] = []
        self.actions: list[int] = []
        self.offsets = [0]
        self.terminated: list[bool] = []
        self.episode: str | None = None
        self.finished: set[str] = set()

    def take(self, line: int, row: dict[str, str | None]) -> None:
        episode = (row["episode"] or "").strip()
        if self.episode is None:
            if episode in self.finished:
                raise self._refuse(line, f"episode {episode} goes on after its last row")
            self.episode = episode
        elif episode != self.episode:
            raise self._refuse(line, f"episode {self.episode} has no last row with an empty action")
        expected = len(self.actions) - self.offsets[-1]
        if self._integer(line, "t", row["t"]) != expected:
            raise self._refuse(line, f"t is {row['t']}, expected {expected}")
        self.states.append(self._integer(line, "state", row["state"]))
        if (row["action"] or "").strip():
            self.actions.append(self._integer(line, "action", row["action"]))
        else:
            self._close(line, (row.get("terminated") or "").strip().lower())

    def _close(self, line: int, flag: str) -> None:
        if flag not in TRUE | FALSE:
            raise self._refuse(line, f"terminated is {flag!r}, expected 1 or 0")
        if len(self.actions) == self.offsets[-1]:
            raise self._refuse(line, f"episode {self.episode} has no action")
        self.terminated.append(flag in TRUE)
        self.offsets.append(len(self.actions))
        self.finished.add(self.episode or "")
        self.episode = None

    def finish(self) -> tuple[Any, Any, Any, Any]:
        if self.episode is not None:
            raise InvalidFile(
                f"{self.path}: episode {self.episode} has no last row with an empty action",
                "End each episode with the state where its record ends",
            )
        if not self.terminated:
            raise InvalidFile(f"{self.path} holds no episode", "Give at least one")
        return self.states, self.actions, np.array(self.offsets), np.array(self.terminated)

    def _integer(self, line: int, name: str, text: str | None) -> int:
        try:
            value = int((text or "").strip().removesuffix(".0"))
        except ValueError:
            raise self._refuse(line, f"{name} is {text!r}, expected a whole number") from None
        if not 0 <= value < 2**63:
            raise self._refuse(line, f"{name} is {value}, expected an id from 0")
        return value

    def _refuse(self, line: int, what: str) -> InvalidFile:
        return InvalidFile(
            f"{self.path}, line {line}: {what}",
            "A row is episode,t,state,action,terminated; the last row of an episode has no action",
        )
