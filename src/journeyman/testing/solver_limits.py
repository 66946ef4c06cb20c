"""What `check_solver` asks about limits: time, iterations, Ctrl-C, figures that are not finite."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from journeyman.errors import InvalidSolver
from journeyman.problem import Program
from journeyman.progress import Event
from journeyman.solvers import Answer, Status, solve

NO_TIME = 1e-9
"""Seconds that are over before anything has begun."""
FINISHED = (Status.OPTIMAL, Status.CONVERGED, Status.INACCURATE)


def require(holds: bool, where: str, what: str) -> None:
    """Fail with words when a promise is broken."""
    if not holds:
        raise AssertionError(f"{where}: {what}")


def check_hyperparameters(solver: Any) -> None:
    """Every number among the hyperparameters is refused when it is not one."""
    for field in fields(solver) if is_dataclass(solver) else ():
        value: Any = getattr(solver, field.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        try:
            changed = replace(solver, **{field.name: float("nan")})
        except InvalidSolver:
            continue
        require(False, type(solver).__name__, f"{field.name} = nan is accepted: {changed}")


def check_limits(solver: Any, problem: Program) -> None:
    """A run that is cut short says so and still has a policy of the problem's world."""
    name = type(solver).__name__
    _check_cut(name, "time limit", solve(problem, solver, time_limit=NO_TIME), Status.TIME_LIMIT)
    if hasattr(solver, "max_iterations"):
        short = replace(solver, max_iterations=1)
        _check_cut(name, "one iteration", solve(problem, short), Status.STEP_LIMIT)
    with _listening():
        answer = solve(problem, solver, observer=_Impatient())
    _check_cut(name, "Ctrl-C", answer, Status.INTERRUPTED)


@contextmanager
def _listening() -> Iterator[None]:
    """Listen for Ctrl-C, also where the shell that started this process has it ignored."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Impatient:
    """An observer that presses Ctrl-C at the first sign of life."""

    def __init__(self) -> None:
        self.pressed = False

    def __call__(self, event: Event) -> None:
        if not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)


def _check_cut(name: str, limit: str, answer: Answer, status: Status) -> None:
    ended = (*FINISHED, status)
    require(answer.status in ended, name, f"{limit} ends as {answer.status}")
    law = answer.policy.per_pair
    require(bool(np.isfinite(law).all()), name, f"{limit} leaves no policy")
