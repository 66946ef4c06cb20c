"""`jm.solve`: one verb for every solver."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Protocol

from journeyman.errors import InvalidProblem, InvalidSolver
from journeyman.execution import one_blas_thread
from journeyman.problem import Apprenticeship
from journeyman.progress import Observer, Terminal
from journeyman.solvers.answer import Answer
from journeyman.solvers.default_choice import Choice, default_solver
from journeyman.solvers.watch import Watch
from journeyman.world.levels import Level, require_level


class Solver(Protocol):
    """A value that holds hyperparameters and can be run on a problem.

    One that works below the level `EXPLICIT` says so by a member `needs` (`world.levels`).
    """

    @property
    def time_limit(self) -> float | None: ...

    def run(self, problem: Apprenticeship, watch: Watch, /) -> Answer: ...


def solve(
    problem: Apprenticeship,
    solver: Solver | None = None,
    *,
    seed: int | None = None,
    time_limit: float | None = None,
    observer: Observer | None = None,
) -> Answer:
    """Solve a problem; by default exactly, with `LinearProgram()` or `ColumnGeneration()`.

    Size and structure of the world decide (`default_choice`), and `answer.reason` is why. Below the
    explicit level there is no default.

    `seed` and `time_limit` (seconds) go before the solver's own; a solver that draws nothing has no
    use for a seed. Progress goes to `observer`, by default to a line on the terminal when a solve
    takes long. Ctrl-C and time limits end with a status and the best policy at hand. Products of
    NumPy and SciPy use one thread meanwhile: small ones lose by more, and bits would change.
    """
    _check(problem, solver, observer)
    chosen, reason = default_solver(problem) if solver is None else Choice(solver, "")
    if seed is not None and hasattr(chosen, "seed"):
        chosen = replace(chosen, seed=seed)
    limit = chosen.time_limit if time_limit is None else time_limit
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        display = observer or stack.enter_context(Terminal())
        watch = Watch(type(chosen).__name__, display, limit)
        answer: Answer = chosen.run(problem, stack.enter_context(watch))
    return replace(answer, reason=reason) if reason else answer


def _check(problem: object, solver: object, observer: object) -> None:
    if not isinstance(problem, Apprenticeship):
        raise InvalidProblem(
            f"a {type(problem).__name__} cannot be solved", "Give an Apprenticeship or a Forward"
        )
    if isinstance(solver, type) or not (solver is None or hasattr(solver, "run")):
        raise InvalidSolver(f"{solver!r} is not a solver", "Give a value such as LinearProgram()")
    if observer is not None and not callable(observer):
        raise InvalidSolver(f"observer = {observer!r}", "Give a function that takes an Event")
    if solver is not None:
        needed = getattr(solver, "needs", Level.EXPLICIT)
        require_level(problem, needed, type(solver).__name__)
