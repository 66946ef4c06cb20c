"""What a solver reported, one JSON object per line, for whoever wants to plot it.

Figures are those of `progress.Event`; at most one line a second is kept, and the last one. Killed
while writing, a run leaves half a line at most, which is cut off when the run goes on.
"""

import json
import time
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import Self

from journeyman.progress import Event, Observer
from journeyman.storage import naming

INTERVAL = 1.0
"""Seconds between two lines."""
LONGEST_LINE = 4096


class Metrics:
    """An observer that writes to a file and passes on to another observer."""

    def __init__(self, path: Path, onward: Observer, *, interval: float = INTERVAL) -> None:
        self.path, self.onward, self.interval = path, onward, interval
        self._last: float | None = None
        self._held: Event | None = None
        self._stream: TextIOWrapper | None = None

    def __enter__(self) -> Self:
        _cut_half_line(self.path)
        self._stream = self.path.open("a", encoding="utf-8")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            with naming(self.path), self._stream as stream:
                if self._held is not None:
                    stream.write(_line(self._held))

    def __call__(self, event: Event, /) -> None:
        self.onward(event)
        now = time.monotonic()
        if self._stream is None or (self._last is not None and now - self._last < self.interval):
            self._held = event
            return
        self._last, self._held = now, None
        with naming(self.path):
            self._stream.write(_line(event))
            self._stream.flush()


def last_elapsed(path: Path) -> float | None:
    """Seconds that the last solve took, as far as it has reported; None when it has not."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(path.stat().st_size - LONGEST_LINE, 0))
            elapsed = json.loads(stream.read().splitlines()[-1])["elapsed"]
        return float(elapsed)
    except (OSError, LookupError, TypeError, ValueError, RecursionError):
        return None


def _line(event: Event) -> str:
    return json.dumps(vars(event), sort_keys=True, default=float) + "\n"


def _cut_half_line(path: Path) -> None:
    if not path.exists():
        return
    whole = path.read_bytes().rpartition(b"\n")
    if whole[2]:
        with path.open("r+b") as stream:
            stream.truncate(len(whole[0]) + len(whole[1]))
