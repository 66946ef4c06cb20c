"""`jm.solve`: one verb for every solver; and which one is taken when none is given, and why.

By default the exact program, as a linear program, smoothed or by columns, whose bounds hold after
every call, so that a limit can end it in a world of any size.
"""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from scipy import sparse

from journeyman.errors import InvalidProblem, InvalidSolver
from journeyman.execution import one_blas_thread
from journeyman.policy.policy_evaluation import is_narrow
from journeyman.policy.steps import LONG
from journeyman.problem import Apprenticeship
from journeyman.problem.expert_premises import ABOUT_A_COST
from journeyman.progress import Event, Observer, in_time, say, within
from journeyman.solvers.answer import Answer
from journeyman.solvers.classics.behaviour_cloning import CrossFittedClone
from journeyman.solvers.exact.band import band_order
from journeyman.solvers.exact.banded_program import BandedProgram
from journeyman.solvers.exact.column_generation import ColumnGeneration
from journeyman.solvers.exact.linear_program import LinearProgram
from journeyman.solvers.exact.rational_program import RationalProgram
from journeyman.solvers.exact.second_stage import constant_surplus, has_second_stage
from journeyman.solvers.exact.smoothed_program import SmoothedProgram
from journeyman.solvers.running import Watch, require_time_limit
from journeyman.world.levels import Level, require_discounted, require_level, require_totals

SMALL = 2_000
"""Pairs up to which a linear program is taken in any world."""
LAYERED = 4_000
"""Pairs up to which it is taken in a world with a horizon: beyond, factors fill up, columns take
one pass backward and one forward."""
NARROW = 18_000
"""Pairs up to which others are asked to be as exact as a linear program."""
BANDED = 4.5e8
"""Operations of a step, up to which an interior point is quicker than columns."""
PER_PAIR = 1e4
"""Operations that a pair costs beside the factor, in time."""
FEW_COSTS = 64.0
"""Columns take longer with more costs, by so much as an interior point may be larger then."""
MANY_COSTS = 200
"""Beyond, smoothing takes long even in a small world, and dense equations are quicker there."""
CELLS = 8
"""States per cost, below which sparse costs are soonest eliminated with their states, as general
engines do."""
SECOND_STAGE = 5.0
"""It may be larger by this for the second stage of `Simplex`."""
DENSE = 5.0
"""And by this for many costs in a world that is not narrow, where smoothing takes long."""
SEARCH_TOLERANCE = 1e-7
"""Of 2N/(1 - discount): what others are asked for where `LinearProgram` would still do; their last
steps gain several digits, as its do."""
TABLE_BYTES = 2**29
"""Of the table (states x costs) that `SmoothedProgram` keeps."""


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
    memory_limit: float | None = None,
    observer: Observer | None = None,
) -> Answer:
    """Solve a problem; by default exactly: `LinearProgram()`, or when large one of the others.

    Size and structure of the world decide (`default_solver`), and `answer.reason` is why. Below the
    explicit level there is no default, except `CrossFittedClone()` for records alone.

    `seed`, `time_limit` (seconds) and `memory_limit` (bytes, where the solver has such a limit) go
    before the solver's own; a solver that draws nothing has no use for a seed. The time limit is
    for everything: estimating the target of the problem where that is still to be done, building,
    solving, and evaluating the policy. What the solver reports goes to `observer`, by default to a
    line on the terminal when a solve takes long, which also says what goes on before. Ctrl-C and
    limits end with a status and the best policy at hand. Products of NumPy and SciPy use one
    thread meanwhile: small ones lose by more, and bits would change.
    """
    _check(problem, solver, observer)
    require_time_limit(time_limit)
    limit = getattr(solver, "time_limit", None) if time_limit is None else time_limit
    with ExitStack() as stack:
        stack.enter_context(one_blas_thread())
        deadline = stack.enter_context(in_time(limit, observer and partial(_reported, observer)))
        watch = Watch("solve", deadline.tell, deadline.seconds, clock=deadline.clock)
        stack.enter_context(watch)
        stack.enter_context(within(watch))
        if solver is None:
            say("choosing a solver")
        limited = memory_limit is not None
        known = None if solver is None else Choice(solver, "")
        chosen, reason = known or default_solver(problem, limited=limited)
        if memory_limit is not None:
            chosen = _within_memory(chosen, memory_limit)
        if seed is not None and hasattr(chosen, "seed"):
            chosen = replace(chosen, seed=seed)
        problem = problem.in_time()
        watch.task = type(chosen).__name__
        answer: Answer = chosen.run(problem, watch)
    return replace(answer, reason=reason) if reason else answer


def _reported(observer: Observer, event: Event) -> None:
    """What a solver reports, without the stages around it."""
    if not event.is_stage:
        observer(event)


def _within_memory(solver: Any, memory_limit: float) -> Any:
    """The same solver with a memory limit, for those that can keep to one."""
    if not hasattr(solver, "memory_limit"):
        raise InvalidSolver(
            f"memory_limit = {memory_limit!r}, and {type(solver).__name__} cannot keep to one",
            "Give ColumnGeneration(), SmoothedProgram() or BandedProgram(), or leave it out",
        )
    return replace(solver, memory_limit=memory_limit)


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


def default_solver(problem: Apprenticeship, *, limited: bool = False) -> Choice:
    """The solver for a problem in an explicit world or of records alone, and the reason in words.

    Measured with `InfinityBall` and both asked for 1e-6 of 2N/(1 - discount), CPU seconds
    (development half of `benchmarks.families`):

    | world                           | pairs   | interior point | columns     |
    |---------------------------------|---------|----------------|-------------|
    | grid 64x64, .99, 64 costs       | 16,384  | 0.23           | 0.69        |
    | grid 64x64, .95, 16 costs       | 16,384  | 0.07           | 0.14        |
    | torus 64x64, .97, 12 costs      | 16,384  | 0.42           | 0.35        |
    | road network, .99, 4 costs      | 14,000  | 0.15           | 0.14        |
    | one start, walls, 64x64, .99    | 16,000  | 0.23           | 0.23        |
    | grid 96x96, .99, 64 costs       | 36,864  | 2.2            | 1.2         |
    | grid 128x128, .99, 64 costs     | 65,536  | 2.5            | 1.7         |
    | grid 128x128, .95, 16 costs     | 65,536  | 4.7            | 0.58        |
    | grid 128x128, .9999, 16 costs   | 65,536  | 2.5            | 0.76        |
    | grid 128x128, .95, 256 costs    | 65,536  | 3.1            | 6.1         |

    and with dense equations in garnets

    |                                 | pairs   | interior point | smoothing   |
    |---------------------------------|---------|----------------|-------------|
    | `Simplex`, 16 costs             | 4,096   | 0.22           | 0.67        |
    | 512 costs, 1,024 states         | 3,072   | 0.59           | 11          |
    | 512 costs, 2,048 states         | 6,144   | 2.0            | 12          |
    | 512 costs, 4,096 states         | 12,288  | 9.8            | 8.8         |
    | 300 costs, 4,096 states         | 12,288  | 7.5            | 3.7         |

    Where memory is `limited`, column generation takes the place of the linear program, whose
    engines keep to no limit.

    Beyond half a million states, where a table of all costs takes long, columns need one solve a
    call (a garnet of 1.46 million states, 16 costs: bounds 0 and .056 of 40 after 41 s, with
    smoothing 0 and 5.9 after 62 s).

    Interior points live on factors, which are small in narrow worlds such as grids; columns and
    smoothing need none. `python -m benchmarks.families` and `python -m benchmarks.small_worlds`
    compare the choice with general engines.
    """
    if problem.level is Level.RECORDED:
        return Choice(CrossFittedClone(), "records alone, which nothing but a clone is made of")
    require_level(problem, Level.EXPLICIT, "the default solver, an exact program,")
    if any(isinstance(one, ABOUT_A_COST) for one in problem.expert_is):
        return Choice(RationalProgram(), "a declared premise about the expert's own cost")
    chosen = _by_size(problem)
    if limited and isinstance(chosen.solver, LinearProgram) and not problem.world.has_goal:
        reason = "a limit of memory, which column generation keeps to"
        return Choice(ColumnGeneration(tolerance=_tolerance(problem)), reason)
    return chosen


def _by_size(problem: Apprenticeship) -> Choice:
    """Small worlds and those that one pass plans in, and others by their structure."""
    world, pairs = problem.world, problem.world.num_pairs
    layered = world.layers is not None
    if pairs <= (LAYERED if layered else SMALL) or world.has_goal:
        kind = "world with discount 1" if world.has_goal else "small world"
        return Choice(LinearProgram(), f"a {kind} of {pairs} pairs")
    if layered:
        reason = f"a world with a horizon, which one pass plans in, {pairs} pairs"
        return Choice(ColumnGeneration(tolerance=_tolerance(problem)), reason)
    return _by_structure(problem)


def _by_structure(problem: Apprenticeship) -> Choice:
    """Worlds of some thousand pairs and more."""
    world, pairs, tolerance = problem.world, problem.world.num_pairs, _tolerance(problem)
    narrow = is_narrow(world)
    cells = sparse.issparse(problem.cost_matrix) and not problem.cost_class.has_surplus
    if narrow and cells and pairs <= NARROW and world.num_states < CELLS * problem.basis.num_costs:
        return Choice(LinearProgram(), f"a narrow world of {pairs} pairs with costs of few states")
    tilts = has_second_stage(problem) and constant_surplus(problem) is None
    many = problem.basis.num_costs > MANY_COSTS
    larger = SECOND_STAGE if tilts else 1.0 if narrow else DENSE
    if (narrow or tilts or many) and _suits_a_band(problem, larger):
        kind = "narrow world" if narrow else "second stage" if tilts else "world with many costs"
        return Choice(BandedProgram(tolerance=tolerance), f"a {kind}, {pairs} pairs")
    table = 8 * world.num_states * problem.basis.num_costs
    if table <= TABLE_BYTES and (tilts or not narrow) and world.num_states <= LONG:
        kind = "world that is not narrow" if not narrow else "large second stage"
        return Choice(SmoothedProgram(tolerance=tolerance), f"a {kind}, {pairs} pairs")
    return Choice(ColumnGeneration(tolerance=tolerance), f"a large world, {pairs} pairs")


def _suits_a_band(problem: Apprenticeship, larger: float) -> bool:
    """Whether normal equations are quickly factorised."""
    costs = max(1.0, problem.basis.num_costs / FEW_COSTS)
    limit = BANDED * larger * costs - PER_PAIR * problem.world.num_pairs
    return limit > 0 and band_order(problem.world).operations <= limit


def _tolerance(problem: Apprenticeship) -> float | None:
    """In worlds that a linear program could still serve, others are as exact as it would be; a
    second stage has to prove its surplus with what is left."""
    if problem.world.num_pairs > NARROW or problem.cost_class.has_surplus:
        return None
    return SEARCH_TOLERANCE * problem.gap_scale or None
