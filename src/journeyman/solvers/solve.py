"""`jm.solve`: one verb for every solver; and which one is taken when none is given, and why.

By default the exact program where it is quick, as a linear program, smoothed or by columns; beyond
that the reduced program over features that are made from the demonstrations.
"""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from journeyman.errors import InvalidProblem, InvalidSolver
from journeyman.execution import one_blas_thread
from journeyman.features import partition
from journeyman.policy.policy_evaluation import is_narrow
from journeyman.problem import Apprenticeship
from journeyman.problem.expert_premises import ABOUT_A_COST
from journeyman.progress import Observer, Terminal
from journeyman.solvers.answer import Answer
from journeyman.solvers.classics.behaviour_cloning import CrossFittedClone
from journeyman.solvers.exact.column_generation import ColumnGeneration
from journeyman.solvers.exact.linear_program import LinearProgram
from journeyman.solvers.exact.rational_program import RationalProgram
from journeyman.solvers.exact.second_stage import constant_surplus
from journeyman.solvers.exact.smoothed_program import SmoothedProgram
from journeyman.solvers.running import Watch
from journeyman.world.levels import Level, require_discounted, require_level, require_totals

EXACT_UP_TO = 1_000_000
"""State-action pairs up to which the exact program takes seconds to a minute."""
SMALL = 2_000
NARROW = 18_000
"""Pairs up to which a linear program is taken in any world, and in a narrow one."""
LAYERED = 4_000
"""Pairs up to which it is taken in a world with a horizon: beyond, factors fill up, columns take
one pass backward and one forward."""
CONCENTRATED = 8
"""A narrow world may be larger by this when few states are started in: columns gain little there,
since there are few starts to be treated apart."""
FEW_STARTS = 0.1
"""Share of the states that count as few."""
SHORT, FEW_SUMS = 0.65, 700.0
"""It has to be smaller by this when many are, and the horizon times the number of costs is at most
that: starts hardly meet within a short horizon, and few columns do for few costs."""
COLUMNS_TOLERANCE = 1e-8
"""Of 2N/(1 - discount): what interior points usually reach when they are asked for 1e-7."""
SMOOTHED_TOLERANCE = 1e-7
"""What they are asked for; the last calls of smoothing gain several digits, as theirs do."""
TABLE_BYTES = 2**29
"""Of the table (states x costs) that `SmoothedProgram` keeps."""
SURPLUS = 9_000
"""Pairs up to which general engines solve the second stage of `Simplex` quickly."""
PATIENCE_FOR_SURPLUS = 2
"""`LinearProgram` also finds the largest surplus for `Simplex`: worlds may be larger by this."""


class Solver(Protocol):
    """A value that holds hyperparameters and can be run on a problem.

    One that works below the level `EXPLICIT` says so by a member `needs` (`world.levels`), one
    whose answers hold with discount 1 by `reaches_goals = True`, with average costs by
    `takes_averages = True`.
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
    """Solve a problem; by default exactly: `LinearProgram()`, or when large one of the others.

    Size and structure of the world decide (`default_solver`), and `answer.reason` is why. Below the
    explicit level there is no default, except `CrossFittedClone()` for records alone.

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
    if solver is not None and not getattr(solver, "reaches_goals", False):
        require_discounted(problem.world, type(getattr(solver, "solver", solver)).__name__)
    if solver is not None and not getattr(solver, "takes_averages", False):
        require_totals(problem.world, type(getattr(solver, "solver", solver)).__name__)
    if solver is not None:
        needed = getattr(solver, "needs", Level.EXPLICIT)
        require_level(problem, needed, type(solver).__name__)


class Choice(NamedTuple):
    """A solver, and why it was taken."""

    solver: Any
    reason: str


def default_solver(problem: Apprenticeship) -> Choice:
    """The solver for a problem in an explicit world or of records alone, and the reason in words.

    Measured with `InfinityBall` and both asked for 1e-7 of 2N/(1 - discount), CPU seconds, the
    smaller and the larger of two experts where they differ:

    | world                           | pairs   | linear program | columns     |
    |---------------------------------|---------|----------------|-------------|
    | grid 32x32, .9, 16 costs        | 4,096   | 0.22 to 0.28   | 0.28 to 0.32 |
    | grid 48x48, .99, 64 costs       | 9,216   | 0.7            | 5.0         |
    | grid 64x64, .99, 64 costs       | 16,384  | 1.8 to 2.4     | 2.5 to 3.6  |
    | grid 64x64, .9, 16 costs        | 16,384  | 1.1 to 1.3     | 0.35 to 0.4 |
    | grid 80x80, .99, 64 costs       | 25,600  | 4.2            | 3.8 to 4.5  |
    | one start, 64x64, .99, 64 costs | 15,760  | 0.26           | 1.5         |
    | one start, 128x128, .99         | 63,000  | 2.0            | inaccurate  |
    | garnet 300, .99, 8 costs        | 1,200   | 0.075          | 0.09 to 0.11 |
    | garnet 500, .9, 8 costs         | 2,000   | 0.14           | 0.08 to 0.09 |
    | garnet 1,000, .99, 8 costs      | 4,000   | 0.4 to 0.5     | 0.2         |
    | inventory, 12 steps, 4 costs    | 2,773   | 0.07           | 0.14        |
    | grid 12x12, 40 steps, 16 costs  | 23,044  | 2.0            | 0.12        |
    | the same, one start             | 23,044  | 9.4            | 2.4         |
    | inventory of 40, 26 steps       | 22,387  | 1.7            | 0.5         |

    General engines live on sparse factors, which stay sparse in narrow worlds such as grids and
    fill up elsewhere; columns need neither. `python -m benchmarks.small_worlds` compares the
    choice with CVXPY.
    """
    if problem.level is Level.RECORDED:
        return Choice(CrossFittedClone(), "records alone, which nothing but a clone is made of")
    require_level(problem, Level.EXPLICIT, "the default solver, an exact program,")
    if any(isinstance(one, ABOUT_A_COST) for one in problem.expert_is):
        return Choice(RationalProgram(), "a declared premise about the expert's own cost")
    pairs = problem.world.num_pairs
    factor = PATIENCE_FOR_SURPLUS if problem.cost_class.has_surplus else 1
    layered = problem.world.layers is not None
    if pairs <= factor * (LAYERED if layered else SMALL) or problem.world.has_goal:
        kind = "world with discount 1" if problem.world.has_goal else "small world"
        return Choice(LinearProgram(), f"a {kind} of {pairs} pairs")
    if (
        not layered
        and pairs <= factor * NARROW * _size_of_starts(problem)
        and not _tilts(problem)
        and is_narrow(problem.world)
    ):
        reason = f"a narrow world of {pairs} pairs, whose factors stay sparse"
        return Choice(LinearProgram(), reason)
    if pairs > EXACT_UP_TO and problem.demonstrations is not None:
        return _reduced(problem)
    kind = "world with a horizon, which one pass plans in" if layered else "large world"
    solver: Solver = ColumnGeneration(tolerance=_tolerance(problem, COLUMNS_TOLERANCE))
    if not layered and _suits_smoothing(problem):
        kind = "large second stage" if _tilts(problem) else "world that is not narrow"
        exact = None if problem.cost_class.has_surplus else SMOOTHED_TOLERANCE
        solver = SmoothedProgram(tolerance=exact and _tolerance(problem, exact))
    return Choice(solver, f"a {kind}, {pairs} pairs")


def _reduced(problem: Apprenticeship) -> Choice:
    """The solver over features of the demonstrations, beyond what exact programs are for.

    An interior point with d x d factors, or sparse ones, solves to 1e-8 in less time than steps on
    rows take to a proven 5 %, except where d is large and factors fill up: CPU seconds of
    `python -m benchmarks.stochastic_solvers`, families grid and garnet,

    | world                              | d     | ReducedProgram | StochasticPrimalDual |
    |------------------------------------|-------|----------------|----------------------|
    | grid, 1,048,576 pairs              | 1,024 | 30             | over 66              |
    | grid, 40,000 pairs                 | 4,096 | 4.0            | 24                   |
    | garnet, 40,000 pairs               | 4,096 | 14             | 4.8                  |
    """
    from journeyman.solvers.reduced.reduced_program import MOST_FEATURES, ReducedProgram
    from journeyman.solvers.reduced.stochastic_primal_dual import StochasticPrimalDual

    assert problem.demonstrations is not None
    features = partition(problem.world, problem.demonstrations)
    reason = f"a world of {problem.world.num_pairs} pairs, more than {EXACT_UP_TO} that an exact"
    reason += " program is for"
    if features.num_features > MOST_FEATURES and not is_narrow(problem.world):
        reason += f", and {features.num_features} features, whose factors fill up"
        return Choice(StochasticPrimalDual(features), reason)
    return Choice(ReducedProgram(features), reason)


def _suits_smoothing(problem: Apprenticeship) -> bool:
    """Worlds that are not narrow mix fast: few states change their action at a time."""
    table = 8 * problem.world.num_states * problem.basis.num_costs
    return table <= TABLE_BYTES and (_tilts(problem) or not is_narrow(problem.world))


def _tilts(problem: Apprenticeship) -> bool:
    """Whether a second stage is so large that general engines take long to solve it."""
    large = problem.cost_class.has_surplus and problem.world.num_pairs > SURPLUS
    return large and constant_surplus(problem) is None


def _size_of_starts(problem: Apprenticeship) -> float:
    """How many times larger a narrow world may be because of where it is started."""
    world = problem.world
    if np.count_nonzero(world.initial) <= FEW_STARTS * world.num_states:
        return CONCENTRATED
    is_short = world.effective_horizon * problem.basis.num_costs <= FEW_SUMS
    return SHORT if is_short else 1.0


def _tolerance(problem: Apprenticeship, share: float) -> float | None:
    """In worlds that a linear program could still serve, others are as exact as it would be."""
    if problem.world.num_pairs > NARROW:
        return None
    return share * problem.gap_scale or None
