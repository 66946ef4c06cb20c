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

Cost. Per call a few sparse solves and one master problem with some hundred rows; 15 to 40 calls.
Time and memory grow little faster than the world.

Reference: Dantzig and Wolfe, "Decomposition principle for linear programs", 1960.
"""

import time
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import read_only, require_between
from journeyman.costs import Simplex
from journeyman.errors import InvalidSolver
from journeyman.problem import Program
from journeyman.solvers.answer import Answer, Solution
from journeyman.solvers.broken_budgets import impossible_budgets
from journeyman.solvers.column_search import PRICE_LIMIT, ColumnSearch
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

RELATIVE_TOLERANCE = 1e-6
SAFETY = 0.9
"""The loop stops at this share of the tolerance; the rest is for rounding."""
PATIENCE = 25
"""Calls without any progress before the solve is given up."""
DEAREST = 1e7
"""Prices of budgets end here."""


@dataclass(frozen=True)
class ColumnGeneration:
    """Solve the exact program by generated policies; made for large worlds.

    Args:
        tolerance: asked-for difference of value and lower bound, in units of the objective (for an
            `Apprenticeship` those of the gap); by default 1e-6 of the trivial bound.
        time_limit: seconds.
        max_calls: generated policies before the solve stops.
    """

    tolerance: float | None = None
    time_limit: float | None = None
    max_calls: int = 1000

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            require_between(
                "tolerance", self.tolerance, 0, np.inf, InvalidSolver,
                "Give a positive difference of costs, or None",
            )  # fmt: skip
        if self.time_limit is not None and not self.time_limit > 0:
            raise InvalidSolver(f"time_limit = {self.time_limit}", "Give seconds above 0, or None")
        if not isinstance(self.max_calls, int) or self.max_calls < 1:
            raise InvalidSolver(f"max_calls = {self.max_calls!r}", "Allow at least one call")

    def run(self, problem: Program, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        task, tolerance = Task.of(problem), self._tolerance(problem)
        search = ColumnSearch(task, SAFETY * tolerance, watch)
        built = time.perf_counter()
        status, relaxation = self._search(problem, search), None
        solution = None
        if status is Status.INFEASIBLE:
            relaxation = relax_by_columns(problem, watch, self.max_calls)
            status = status if relaxation.is_proven else Status.INACCURATE
        if status is not Status.INFEASIBLE:
            solution = self._solution(problem, search, tolerance)
            status = self._judge(problem, solution, status, tolerance)
        return Answer(
            problem, status, search.description, solution,
            relaxation=None if relaxation is None else relaxation.outcome,
            total_surplus=_total_surplus(problem, solution),
            bounds_trace=read_only(np.array(search.trace).reshape(-1, 3)),
            build_seconds=built - started, solve_seconds=time.perf_counter() - built,
        )  # fmt: skip

    def _tolerance(self, problem: Program) -> float:
        if self.tolerance is not None:
            return self.tolerance
        return RELATIVE_TOLERANCE * (problem.trivial_bound or 1.0)
