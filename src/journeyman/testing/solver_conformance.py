"""The promises every solver makes, as one call: `check_solver(MySolver())`."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from journeyman.costs import CostClass
from journeyman.costs.registry import COST_CLASSES
from journeyman.errors import InvalidSolver
from journeyman.problem import Apprenticeship, lower_bound
from journeyman.progress import Event
from journeyman.solvers import Answer, Solver, Status, solve
from journeyman.testing.random_worlds import Shape, random_cost_class, random_problem

NO_TIME = 1e-9
"""Seconds that are over before anything has begun."""
FINISHED = (Status.OPTIMAL, Status.CONVERGED, Status.INACCURATE)


def check_solver(
    solver: Solver | Callable[[Apprenticeship], Solver],
    *,
    classes: tuple[type[CostClass], ...] = (),
    seeds: int = 3,
    trajectories: int = 0,
) -> None:
    """Run `solver` on small problems of every shape and check what any answer must fulfil.

    - The policy is a law over the actions of the problem's own world.
    - `value` is the gap of that policy, recomputed; `lower_bound` follows from the witness,
      recomputed; and they are in order.
    - OPTIMAL means that they agree to 1e-6 of 2N/(1 - discount).
    - The same call gives the same answer.
    - Limits of time and iterations and Ctrl-C end with a status and a policy.
    - Hyperparameters that are not finite are refused.

    All registered cost classes are tried; `classes` restricts them for solvers that serve only
    some. `trajectories` is for solvers that need demonstrations. In place of a solver that needs
    something of the world, such as features, give a function from a problem to one.
    """

    given: Any = solver
    of = (lambda _: given) if hasattr(given, "run") else given
    for kind in classes or COST_CLASSES.values():
        for shape in Shape:
            for seed in range(seeds):
                where = f"{kind.__name__}, {shape.name}, seed {seed}"
                member = random_cost_class(kind, seed)
                problem = random_problem(seed, member, shape=shape, trajectories=trajectories)
                _check(of(problem), where, problem)
        problem = random_problem(0, random_cost_class(kind, 0), trajectories=trajectories)
        check_hyperparameters(of(problem))
        check_limits(of(problem), problem)


def _check(solver: Solver, where: str, problem: Apprenticeship) -> None:
    answer, again = solve(problem, solver), solve(problem, solver)
    unit = problem.gap_scale
    require(isinstance(answer.status, Status), where, "status is not a Status")
    require(answer.policy.pairs == problem.world.pairs, where, "policy of another world")
    value = problem.gap(answer.policy)
    require(abs(answer.value - value) <= 1e-9 * unit, where, f"value {answer.value} != {value}")
    bound = lower_bound(problem, answer.witness)
    require(abs(answer.lower_bound - bound) <= 1e-9 * unit, where, "lower bound is not its own")
    require(bound <= value + 1e-9 * unit, where, f"lower bound {bound} above value {value}")
    if answer.status is Status.OPTIMAL:
        require(value - bound <= 1e-6 * unit, where, f"OPTIMAL with a gap of {value - bound}")
    same = np.array_equal(answer.policy.per_pair, again.policy.per_pair)
    require(same, where, "two runs gave different policies")


def require(holds: bool, where: str, what: str) -> None:
    """Fail with a message when a promise is broken."""
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


def check_limits(solver: Any, problem: Apprenticeship) -> None:
    """A run that is cut short has the status for it and a policy of the problem's world."""
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
