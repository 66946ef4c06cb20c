"""`jm.solve`: one verb for every solver."""

from contextlib import ExitStack
from typing import Protocol

from journeyman.problem import Program
from journeyman.progress import Observer, Terminal
from journeyman.solvers.answer import Answer
from journeyman.solvers.linear_program import LinearProgram
from journeyman.solvers.watch import Watch


class Solver(Protocol):
    """A value that holds hyperparameters and can be run on a problem."""

    @property
    def time_limit(self) -> float | None: ...

    def run(self, problem: Program, watch: Watch, /) -> Answer: ...


def solve(
    problem: Program, solver: Solver | None = None, *, observer: Observer | None = None
) -> Answer:
    """Solve a problem; by default exactly, with `LinearProgram()`.

    Progress goes to `observer`, by default to a line on the terminal when a solve takes long.
    Ctrl-C and time limits end with a status and the best policy at hand.
    """
    chosen = LinearProgram() if solver is None else solver
    with ExitStack() as stack:
        display = observer or stack.enter_context(Terminal())
        watch = Watch(type(chosen).__name__, display, chosen.time_limit)
        return chosen.run(problem, stack.enter_context(watch))
