"""Column generation: the exact program over as few policies as it takes, with bounds on both sides.

    minimise   gap_W(sum_{b,k} theta_bk m_bk - target)
    over       theta >= 0,  sum_k theta_bk = 1 for every b,  budgets

where m_bk are the expectations of policy k started in block b of the initial law. This is the exact
program once enough policies are there: an optimal basis mixes few. Policies are generated one by
one, each of them (nearly) optimal for the cost that the master problem finds hardest at present.

Guarantee. After every call the mixture at hand is an occupancy measure, hence a stationary policy
(Proposition 1), and its gap bounds the optimum from above; the values of the last policies bound it
from below by weak duality, inexact or not. Both are recomputed from the data for the answer, so the
solve can be stopped at any moment. OPTIMAL means that they differ by at most `tolerance` and that
budgets are kept as exactly. Budgets are broken at a price in the master; INFEASIBLE is said only
with prices that prove it.

For `Simplex` the optimum is usually a whole face, so a second stage (`second_stage`) takes from
among the policies whose gap is within `tolerance` of the least the one of least total cost.
OPTIMAL then also means that no policy of least gap has a total surplus that is larger by more than
`tolerance` per cost; `Answer.log` has the numbers. A second stage that is stopped leaves the best
policy so far, with a gap that is within `tolerance`.

Cost. Per call some rough steps of policy iteration, one solve for all costs and one master problem
with a few hundred rows; 5 to 40 calls. Time and memory grow little faster than the world.

Reference: Dantzig and Wolfe, "Decomposition principle for linear programs", 1960.
"""

import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from journeyman.arrays import read_only, require_between
from journeyman.errors import InvalidSolver
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Details, Solution, Work
from journeyman.solvers.exact.column_search import (
    SAFETY,
    ColumnSearch,
    evaluated,
    generate,
    is_optimal,
    keep_budgets,
)
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.exact.relaxation import budgets_exclude_each_other, relax
from journeyman.solvers.exact.second_stage import (
    FIRST_SHARE,
    has_second_stage,
    near,
    second_stage_by_columns,
)
from journeyman.solvers.running import Status, Watch, require_count, require_time_limit

RELATIVE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class ColumnGeneration:
    """Solve the exact program by generated policies; made for large worlds.

    Args:
        tolerance: asked-for difference of value and lower bound, in units of the objective (for an
            `Apprenticeship` those of the gap); by default 1e-6 of 2N/(1 - discount).
        time_limit: seconds.
        max_calls: generated policies before the solve stops.
        memory_limit: bytes that columns, tables and factors may take before the solve stops.
    """

    takes_averages: ClassVar[bool] = True
    tolerance: float | None = None
    time_limit: float | None = None
    max_calls: int = 1000
    memory_limit: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            require_between(
                "tolerance", self.tolerance, 0, np.inf, InvalidSolver,
                "Give a positive difference of costs, or None",
            )  # fmt: skip
        require_time_limit(self.time_limit)
        require_count("max_calls", self.max_calls)
        if self.memory_limit is not None and not self.memory_limit > 0:
            raise InvalidSolver(
                f"memory_limit = {self.memory_limit}", "Give bytes above 0, or None"
            )

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        tolerance = self._tolerance(problem)
        share = FIRST_SHARE if has_second_stage(problem) else SAFETY
        memory = np.inf if self.memory_limit is None else float(self.memory_limit)
        search = ColumnSearch(UnitProgram.of(problem), share * tolerance, watch, memory)
        status = self._search(problem, search)
        if status is Status.INFEASIBLE:
            relaxation = relax(problem, search.tolerance, watch, self.max_calls)
            answer = Answer(
                problem, status, search.description, None, Details(relaxation=relaxation)
            )
        else:
            answer = self._judge(problem, search, status, tolerance)
        details = replace(
            answer.details, bounds_trace=read_only(np.array(search.trace).reshape(-1, 3)),
            work=answer.work or Work(iterations=search.calls, forward_solves=search.calls),
        )  # fmt: skip
        return replace(answer, details=details, solve_seconds=time.perf_counter() - started)

    def _judge(
        self, problem: Apprenticeship, search: ColumnSearch, status: Status, tolerance: float
    ) -> Answer:
        """The best policy, after a second stage if there is one; its numbers say what it is."""
        ended = status in (Status.OPTIMAL, Status.INACCURATE)
        if has_second_stage(problem) and ended and search.gap <= near(search, tolerance):
            return second_stage_by_columns(
                problem, search, tolerance, self.max_calls - search.calls
            )
        solution = _solution(problem, search, tolerance)
        if status is Status.OPTIMAL and not is_optimal(problem, solution, tolerance):
            status = Status.INACCURATE
        return Answer(problem, status, search.description, solution)

    def _tolerance(self, problem: Apprenticeship) -> float:
        if self.tolerance is not None:
            return float(self.tolerance)
        return RELATIVE_TOLERANCE * (problem.gap_scale or 1.0)

    def _search(self, problem: Apprenticeship, search: ColumnSearch) -> Status:
        """Generate; when budgets stay broken, ask whether they can be kept and raise prices."""
        status = generate(search, self.max_calls)
        broken = status is Status.OPTIMAL and search.excess > search.tolerance
        if broken and budgets_exclude_each_other(
            problem, search.tolerance, search.watch, self.max_calls
        ):
            return Status.INFEASIBLE
        return keep_budgets(search, self.max_calls, status)


def _solution(problem: Apprenticeship, search: ColumnSearch, tolerance: float) -> Solution:
    """The policy of the best mixture, as good as the search has promised."""
    witness = search.task.witness(search.best.dual, search.best.values)
    promised = search.upper * search.task.unit + (1 - SAFETY) / 2 * tolerance
    return evaluated(problem, search, witness, lambda solution: solution.value <= promised)
