"""Supervision of a running engine: Ctrl-C, the clock, progress; and the loop of iterative methods.

While a `Watch` is open, the first Ctrl-C asks the engine to stop at its next report and the solve
ends with a status; a second one raises `KeyboardInterrupt` as usual. Whoever listened for Ctrl-C
before is informed as well: the solve may be one of many, or may end before its next report.

Where SIGINT was ignored before, as in background jobs of a shell, it stays ignored. SIGTERM, which
`runs.interruption` passes on to the same handler under its own number, is never ignored.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any, Self

from journeyman.progress import Event, Observer, guarded
from journeyman.solvers.status import Status


class Watch:
    """Counts time from its creation; engines call `report` now and then."""

    def __init__(self, task: str, observer: Observer, time_limit: float | None = None) -> None:
        self.task = task
        self.interrupted = False
        self.insisted = False
        """Whether Ctrl-C was pressed a second time."""
        self._in_engine = False
        self._observe = guarded(observer)
        self._start = time.monotonic()
        self._limit = float("inf") if time_limit is None else time_limit
        self._previous: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _interrupt(self, signum: int, frame: FrameType | None) -> None:
        if signum == signal.SIGINT and self._previous is signal.SIG_IGN:
            return
        self.insisted = self.interrupted
        self.interrupted = True
        if callable(self._previous):
            with suppress(KeyboardInterrupt):
                self._previous(signum, frame)
        if self.insisted and not self._in_engine:
            raise KeyboardInterrupt

    @contextmanager
    def engine(self) -> Iterator[None]:
        """Around an engine's run: engines swallow exceptions, so a second Ctrl-C is raised as
        soon as the engine has returned."""
        self._in_engine = True
        try:
            yield
        finally:
            self._in_engine = False
        if self.insisted:
            raise KeyboardInterrupt

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start

    @property
    def remaining(self) -> float:
        """Seconds left before the time limit (infinite without one)."""
        return max(self._limit - self.elapsed, 0.0)

    @property
    def must_stop(self) -> bool:
        return self.interrupted or self.remaining <= 0

    @property
    def stop_status(self) -> Status:
        """How a run has ended that had to stop."""
        return Status.INTERRUPTED if self.interrupted else Status.TIME_LIMIT

    @contextmanager
    def aside(self, words: str) -> Iterator[None]:
        """Around a search for something else than the solution: its reports say what they are
        about, since their numbers are not those of the problem."""
        task, self.task = self.task, f"{self.task}, {words}"
        try:
            yield
        finally:
            self.task = task

    def report(
        self, iteration: int, objective: float | None = None, lower_bound: float | None = None
    ) -> bool:
        """Show where the engine is; True: stop.

        `lower_bound` must be proven, for the very objective that is reported. An infinite number
        means that there is none yet.
        """
        numbers = (_finite(objective), _finite(lower_bound))
        self._observe(Event(self.task, self.elapsed, iteration, *numbers))
        return self.must_stop


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


@dataclass(frozen=True)
class Advance:
    """What one iteration reports to the loop."""

    objective: float
    """What the method minimises, at its present iterate."""
    lower_bound: float | None = None
    """Proven for that objective, if anything is."""
    converged: bool = False


def iterate(
    advance: Callable[[], Advance], watch: Watch, max_iterations: int
) -> tuple[Status, int]:
    """The one loop of iterative methods: call `advance` until it has converged or something else
    (limits, Ctrl-C, a number that is not finite) ends the run; count the calls.

    There is always a first call, so that every run ends with an iterate. A method keeps the best
    iterate it has seen; the loop only decides when to stop.
    """
    for iteration in range(1, max_iterations + 1):
        step = advance()
        if not math.isfinite(step.objective):
            return Status.NOT_FINITE, iteration
        must_stop = watch.report(iteration, step.objective, step.lower_bound)
        if step.converged:
            return Status.CONVERGED, iteration
        if must_stop:
            return watch.stop_status, iteration
    return Status.STEP_LIMIT, max_iterations
