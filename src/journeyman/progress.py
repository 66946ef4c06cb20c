"""What a person sees while a long computation runs.

A computation reports an `Event` to an `Observer` now and then. `Terminal` shows the latest one on
a terminal, and nothing when standard error is not one. A fault in a display never kills a
computation: `guarded` turns it into one warning.
"""

import math
import sys
import time
import warnings
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self


@dataclass(frozen=True)
class Event:
    """A moment of a computation."""

    task: str
    elapsed: float
    iteration: int
    objective: float | None = None

    def __str__(self) -> str:
        parts = [self.task, f"{self.elapsed:.1f} s", f"iteration {self.iteration}"]
        if self.objective is not None:
            parts.append(f"objective {self.objective:.6g}")
        return " · ".join(parts)


class Observer(Protocol):
    """Anything that can be called with an `Event`."""

    def __call__(self, event: Event, /) -> None: ...


def quiet(event: Event, /) -> None:
    """The observer that shows nothing."""


class Terminal:
    """A line that is renewed in place on standard error, only there and only on a terminal."""

    def __init__(self, *, patience: float = 1.0, interval: float = 0.2) -> None:
        self.patience = patience
        self.interval = interval
        self._line: Any = None
        self._last = -math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._line is not None:
            self._line.stop()
            self._line = None

    def __call__(self, event: Event, /) -> None:
        now = time.monotonic()
        if event.elapsed < self.patience or now - self._last < self.interval:
            return
        self._last = now
        if self._line is None:
            if not sys.stderr.isatty():
                return
            self._line = _open_line()
        self._line.update(str(event))


def _open_line() -> Any:
    from rich.console import Console

    line = Console(stderr=True).status("")
    line.start()
    return line


def guarded(observer: Observer) -> Observer:
    """The same observer, silenced with one warning as soon as it fails."""
    broken = False

    def observe(event: Event, /) -> None:
        nonlocal broken
        if broken:
            return
        try:
            observer(event)
        except Exception as fault:
            broken = True
            warnings.warn(f"progress display failed and was switched off: {fault}", stacklevel=2)

    return observe
