"""`jm.solve`: one verb for every solver."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Protocol, overload

from journeyman.errors import InvalidProblem, InvalidSolver
from journeyman.execution import one_blas_thread
from journeyman.problem import Program
from journeyman.problem.large_apprenticeship import LargeApprenticeship
from journeyman.problem.simulated_apprenticeship import SimulatedApprenticeship
from journeyman.progress import Observer, Terminal
from journeyman.solvers.answer import Answer
from journeyman.solvers.default_choice import solver_for
from journeyman.solvers.large_answer import LargeAnswer
from journeyman.solvers.mixture_answer import MixtureAnswer
from journeyman.solvers.policy_mixture import PolicyMixture
from journeyman.solvers.watch import Watch


class Solver(Protocol):
    """A value that holds hyperparameters and can be run on a problem."""

    @property
    def time_limit(self) -> float | None: ...

    def run(self, problem: Program, watch: Watch, /) -> Answer: ...


class LargeSolver(Protocol):
    """A solver for worlds too large to enumerate."""

    @property
    def time_limit(self) -> float | None: ...

    def run(self, problem: LargeApprenticeship, watch: Watch, /) -> LargeAnswer: ...


@overload
def solve(
    problem: Program,
    solver: Solver | None = None,
    *,
    seed: int | None = None,
    time_limit: float | None = None,
    observer: Observer | None = None,
) -> Answer: ...


@overload
def solve(
    problem: LargeApprenticeship,
    solver: LargeSolver,
    *,
    seed: int | None = None,
    time_limit: float | None = None,
    observer: Observer | None = None,
) -> LargeAnswer: ...


@overload
def solve(
    problem: LargeApprenticeship | SimulatedApprenticeship,
    solver: PolicyMixture,
    *,
    seed: int | None = None,
    time_limit: float | None = None,
    observer: Observer | None = None,
) -> MixtureAnswer: ...


def solve(
    problem: Program | LargeApprenticeship | SimulatedApprenticeship,
    solver: Any = None,
    *,
    seed: int | None = None,
    time_limit: float | None = None,
    observer: Observer | None = None,
) -> Answer | LargeAnswer | MixtureAnswer:
    """Solve a problem; by default exactly, with `LinearProgram()` or `ColumnGeneration()`.

    Size and structure of the world decide (`choice_of_engine`), and the answer's `engine` says why.

    `seed` and `time_limit` (seconds) go before the solver's own; a solver that draws nothing has no
    use for a seed. Progress goes to `observer`, by default to a line on the terminal when a solve
    takes long. Ctrl-C and time limits end with a status and the best policy at hand. Products of
    NumPy and SciPy use one thread meanwhile: small ones lose by more, and bits would change.
    """
    _check(problem, solver, observer)
    chosen, reason = solver, ""
    if solver is None and isinstance(problem, Program):
        chosen, reason = solver_for(problem)
    if seed is not None and hasattr(chosen, "seed"):
        chosen = replace(chosen, seed=seed)
    limit = chosen.time_limit if time_limit is None else time_limit
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        display = observer or stack.enter_context(Terminal())
        watch = Watch(type(chosen).__name__, display, limit)
        answer: Answer | LargeAnswer | MixtureAnswer = chosen.run(
            problem, stack.enter_context(watch)
        )
    return replace(answer, engine=f"{answer.engine}; chosen for {reason}") if reason else answer


def _check(problem: object, solver: object, observer: object) -> None:
    if not isinstance(problem, Program | LargeApprenticeship | SimulatedApprenticeship):
        raise InvalidProblem(
            f"a {type(problem).__name__} cannot be solved", "Give an Apprenticeship or a Forward"
        )
    if isinstance(problem, SimulatedApprenticeship) and not isinstance(solver, PolicyMixture):
        raise InvalidSolver(
            f"{'no solver' if solver is None else type(solver).__name__} is given for a simulator",
            "Give PolicyMixture(candidates, ...): the others need the laws of the world",
        )
    if isinstance(problem, LargeApprenticeship) and solver is None:
        raise InvalidSolver(
            "no solver is given for a world too large to enumerate",
            "Give StochasticSubgradient(features), SampledProgram(features) or PolicyMixture(...)",
        )
    if isinstance(solver, type) or not (solver is None or hasattr(solver, "run")):
        raise InvalidSolver(f"{solver!r} is not a solver", "Give a value such as LinearProgram()")
    if observer is not None and not callable(observer):
        raise InvalidSolver(f"observer = {observer!r}", "Give a function that takes an Event")
