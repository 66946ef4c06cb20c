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
from typing import Any, Protocol, Self


@dataclass(frozen=True)
class Event:
    """A moment of a computation."""

    task: str
    elapsed: float
    iteration: int
    objective: float | None = None
    """What the best point at hand has; finite, or None when there is none."""
    lower_bound: float | None = None
    """What no point can go below; finite, or None when nothing is known."""

    def __str__(self) -> str:
        parts = [self.task, f"{self.elapsed:.1f} s", f"iteration {self.iteration}", self._figures]
        return " · ".join(part for part in parts if part)

    @property
    def _figures(self) -> str:
        low, high = self.lower_bound, self.objective
        if low is None:
            return "" if high is None else f"objective {high:.6g}"
        if high is None:
            return f"{low:.6g} <= optimum"
        return f"{low:.6g} <= optimum <= {high:.6g} (difference {high - low:.2g})"


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

    def __exit__(self, *_: object) -> None:
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
        self._line.update(_as_it_is(str(event)))


def _open_line() -> Any:
    from rich.console import Console

    line = Console(stderr=True).status("")
    line.start()
    return line


def _as_it_is(words: str) -> Any:
    """Words that may hold names from a user: brackets in them are no markup."""
    from rich.text import Text

    return Text(words)


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
