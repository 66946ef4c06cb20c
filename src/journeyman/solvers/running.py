"""What the runs of all solvers share: how one can end, checks of hyperparameters, supervision
(Ctrl-C, the clock, progress) and the loop of iterative methods.

An outcome is not an error: it comes with a message and a remedy.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import Any, Self

import numpy as np

from journeyman.arrays import require_between, require_seconds, require_whole
from journeyman.errors import InvalidSolver
from journeyman.progress import Deadline, Event, Observer


class Status(Enum):
    """The outcome of a solve."""

    OPTIMAL = (
        "the policy's value and the lower bound agree to the solver's tolerance",
        "nothing to do",
    )
    CONVERGED = (
        "the method has ended by its own rule; its docstring states what is proven then",
        "answer.value and answer.lower_bound say what that means for the gap; richer features "
        "lower a loss over features itself",
    )
    INFEASIBLE = (
        "the constraints exclude each other",
        "answer.relaxation has the smallest increase that makes budgets possible; instead of "
        "Hard() use a penalty such as jm.ExactPenalty()",
    )
    UNBOUNDED = (
        "the objective improves without end: a penalty that is too small, or a likelihood that no "
        "finite weights maximise",
        "use jm.ExactPenalty(), at which a loss bounds the policy's gap; answer.log names the "
        "costs whose weights grow, which show their direction only",
    )
    INACCURATE = (
        "the engine stopped, but the bounds are further apart than the tolerance or a budget is "
        "broken",
        "see answer.overspending; both bounds hold; try another engine, or "
        "rescale costs that differ by many magnitudes",
    )
    TIME_LIMIT = (
        "the time limit was reached",
        "the policy is the best one at hand (it may break budgets: see answer.overspending); "
        "allow more time",
    )
    MEMORY_LIMIT = (
        "the memory limit was reached",
        "the policy is the best one at hand (it may break budgets: see answer.overspending); "
        "allow more memory, or ask for a larger tolerance",
    )
    STEP_LIMIT = (
        "all steps were taken before the asked accuracy was proven",
        "allow more steps, or accept the accuracy that was reached",
    )
    NOT_FINITE = (
        "coefficients became infinite or undefined",
        "use smaller steps, or costs of moderate size",
    )
    INTERRUPTED = (
        "the solve was interrupted",
        "the policy is the best one at hand (it may break budgets: see answer.overspending); "
        "solve again to finish",
    )
    FAILED = (
        "the engine gave up",
        "try another engine; answer.log has its output",
    )

    @property
    def message(self) -> str:
        return self.value[0]

    @property
    def remedy(self) -> str:
        return self.value[1]


def require_time_limit(time_limit: Any) -> None:
    """Seconds above 0, or None."""
    require_seconds(time_limit, InvalidSolver)


def require_kind(name: str, value: Any, kinds: Any, remedy: str) -> None:
    """A value of one of some types."""
    if not isinstance(value, kinds):
        raise InvalidSolver(f"{name} = {value!r}", remedy)


def require_count(name: str, value: Any, *, least: int = 1) -> None:
    """A whole number of at least `least`."""
    require_whole(name, value, least, InvalidSolver)


def require_positive(name: str, value: Any, *, below: float = np.inf) -> None:
    """A number strictly between 0 and `below`."""
    remedy = "Give a positive number" + (f" below {below:g}" if np.isfinite(below) else "")
    require_between(name, value, 0, below, InvalidSolver, remedy)


def require_not_negative(name: str, value: Any, *, at_most: float = np.inf) -> None:
    """A finite number from 0 to `at_most`."""
    number = hasattr(value, "__float__") and not isinstance(value, str)
    if not number or not (np.isfinite(float(value)) and 0 <= float(value) <= at_most):
        limit = f" to {at_most:g}" if np.isfinite(at_most) else ""
        raise InvalidSolver(f"{name} = {value!r}", f"Give a finite number from 0{limit}")


class Watch(Deadline):
    """Supervision of a running engine: time counts from its creation, engines call `report` now
    and then.

    While it is open, the first Ctrl-C asks the engine to stop at its next report and the solve
    ends with a status; a second one raises `KeyboardInterrupt` as usual. Whoever listened for
    Ctrl-C before is informed as well: the solve may be one of many, or may end before its next
    report. Where SIGINT was ignored before, as in background jobs of a shell, it stays ignored.
    SIGTERM, which `runs.interruption` passes on to the same handler under its own number, is never
    ignored.
    """

    def __init__(
        self,
        task: str,
        observer: Observer,
        time_limit: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(time_limit, observer, clock=clock)
        self.task = task
        self.interrupted = False
        self.insisted = False
        """Whether Ctrl-C was pressed a second time."""
        self._in_engine = False
        self._previous: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
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
    def must_stop(self) -> bool:
        return self.interrupted or self.remaining <= self.reserve

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
        self.tell(Event(self.task, self.elapsed, iteration, *numbers))
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
