"""What a person sees while a long computation runs, and how long it may run.

A computation reports an `Event` to an `Observer` now and then. `Terminal` shows the latest one on
a terminal, and nothing when standard error is not one. A fault in a display never kills a
computation: `guarded` turns it into one warning.

A `Deadline` is for everything that is done within one call of `learn`, `solve` or `certify`. Code
that may take long calls `working` from its loops: that says what is going on, and raises
`OutOfTime` when the time is over. Whoever has a cheaper way, or can do without, catches it; what
nothing can replace runs within `whatever_it_takes`. Where nobody has set a deadline nothing is
reported and nothing raised.
"""

import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
    left: float | None = None
    """Seconds that the task is estimated to go on for; None when nothing is known."""
    is_stage: bool = False
    """Whether the task is a stage of a computation, which does not go on for ever."""

    def __str__(self) -> str:
        counted = f"iteration {self.iteration}" * (not self.is_stage)
        left = "" if self.left is None else f"about {self.left:.0f} s left"
        parts = [self.task, f"{self.elapsed:.1f} s", counted, self._figures, left]
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
    """A line that is renewed in place on standard error, only there and only on a terminal.

    What is reported within the first `patience` seconds is shown when they are over, unless all is
    done by then: a stage that reports its beginning alone can be seen too.
    """

    def __init__(self, *, patience: float = 1.0, interval: float = 0.2) -> None:
        self.patience = patience
        self.interval = interval
        self._line: Any = None
        self._last = -math.inf
        self._lock = threading.RLock()
        self._waiting: threading.Timer | None = None
        self._latest: Event | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._latest = None
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None
            if self._line is not None:
                self._line.stop()
                self._line = None

    def __call__(self, event: Event, /) -> None:
        with self._lock:
            now = time.monotonic()
            if event.elapsed < self.patience:
                self._show_later(event)
            elif now - self._last >= self.interval:
                self._last = now
                self._show(event)

    def _show_later(self, event: Event) -> None:
        self._latest = event
        if self._waiting is None and self._line is None and sys.stderr.isatty():
            self._waiting = threading.Timer(self.patience - event.elapsed, self._show_latest)
            self._waiting.daemon = True
            self._waiting.start()

    def _show_latest(self) -> None:
        with self._lock:
            self._waiting = None
            if self._latest is not None and self._line is None:
                self._show(self._latest)

    def _show(self, event: Event) -> None:
        self._latest = None
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


class OutOfTime(Exception):
    """A stage was given up, because the time for it is over."""


class Deadline:
    """When a computation has to be done, and who sees how it goes; time counts from here."""

    def __init__(
        self,
        time_limit: float | None = None,
        observer: Observer = quiet,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.clock = clock
        self._observe = guarded(observer)
        self._start = clock()
        self._limit = math.inf if time_limit is None else time_limit
        self.reserve = 0.0
        """Seconds that it will take to end once it has to stop: it stops so much earlier."""

    @property
    def elapsed(self) -> float:
        return self.clock() - self._start

    @property
    def remaining(self) -> float:
        """Seconds left before the time limit (infinite without one)."""
        return max(self._limit - self.elapsed, 0.0)

    @property
    def seconds(self) -> float | None:
        """The same as a time limit for something else; None without one."""
        return self.remaining if math.isfinite(self._limit) else None

    @property
    def must_stop(self) -> bool:
        return self.remaining <= self.reserve

    def tell(self, event: Event) -> None:
        """Show an event."""
        self._observe(event)


_CURRENT: ContextVar[tuple[Deadline, float] | None] = ContextVar("deadline", default=None)
"""Of the call that is on, and how much of its time is for others."""


@contextmanager
def within(deadline: Deadline, *, keeping: float = 0.0) -> Iterator[None]:
    """Work that has to be done by then, or `keeping` seconds before; infinitely many before: it has
    to be done whatever it takes."""
    token = _CURRENT.set((deadline, keeping))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> Deadline | None:
    """The deadline of the call that is on."""
    found = _CURRENT.get()
    return None if found is None else found[0]


@contextmanager
def whatever_it_takes() -> Iterator[None]:
    """Work that nothing can replace: what is going on is said, and nothing is raised."""
    found = _CURRENT.get()
    if found is None:
        yield
        return
    with within(found[0], keeping=-math.inf):
        yield


@contextmanager
def keeping(share: float) -> Iterator[None]:
    """Work that has to leave so large a share of the remaining time to what comes after it."""
    found = _CURRENT.get()
    if found is None:
        yield
        return
    deadline, kept = found
    left = deadline.remaining - kept
    with within(deadline, keeping=kept + share * left if math.isfinite(left) else kept):
        yield


def working(words: str, done: int = 0, of: int = 0, *, since: float | None = None) -> None:
    """A stage is at step `done` of `of`: say so, or give up when its time is over.

    `since` is when it began, by the deadline's clock (`beginning`): what is left is estimated.
    """
    found = _CURRENT.get()
    if found is None:
        return
    deadline, left = found[0], None
    if since is not None and 0 < done < of:
        left = (deadline.clock() - since) / done * (of - done)
    deadline.tell(Event(words, deadline.elapsed, done, left=left, is_stage=True))
    if out_of_time():
        raise OutOfTime(words)


def say(words: str) -> None:
    """What is going on now, where nobody is asked whether there is time for it."""
    with whatever_it_takes():
        working(words)


@contextmanager
def in_time(time_limit: float | None, observer: Observer | None) -> Iterator[Deadline]:
    """A call with a limit and an observer of its own, which may be part of another call: it then
    has to be done when that one has, and reports to its observer unless it has one."""
    outer = current()
    if outer is not None and time_limit is None and observer is None:
        yield outer
        return
    seconds, display = time_limit, observer
    if outer is not None:
        display = observer or outer.tell
        if outer.seconds is not None:
            seconds = outer.seconds if seconds is None else min(seconds, outer.seconds)
    with Terminal() as line:
        clock = time.monotonic if outer is None else outer.clock
        deadline = Deadline(seconds, display or line, clock=clock)
        with within(deadline):
            yield deadline


def beginning() -> float | None:
    """Now, by the clock of the deadline."""
    found = _CURRENT.get()
    return None if found is None else found[0].clock()


def out_of_time() -> bool:
    """Whether the time for what is being done is over."""
    found = _CURRENT.get()
    if found is None or found[1] == -math.inf:
        return False
    deadline, kept = found
    return deadline.must_stop or deadline.remaining <= kept
