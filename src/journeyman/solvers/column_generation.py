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

For `Simplex` the gap is minimised; the second stage of `LinearProgram`, the largest surplus among
the policies of least gap, is not.

Cost. Per call some rough steps of policy iteration, one solve for all costs and one master problem
with a few hundred rows; 5 to 40 calls. Time and memory grow little faster than the world.

Reference: Dantzig and Wolfe, "Decomposition principle for linear programs", 1960.
"""

import time
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import read_only, require_between
from journeyman.costs import Simplex
from journeyman.errors import InvalidSolver
from journeyman.problem import Program
from journeyman.solvers.answer import Answer, Solution, total_surplus
from journeyman.solvers.column_relaxation import budgets_exclude_each_other, relax_by_columns
from journeyman.solvers.column_search import ColumnSearch, generate
from journeyman.solvers.dual_set import Task
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

RELATIVE_TOLERANCE = 1e-6
SAFETY = 0.9
"""The loop stops at this share of the tolerance; the rest is for rounding."""
EXACT = 1e-12
"""Accuracy of the second evaluation, should the first have been too rough."""
ROUNDING = 1e-12
"""Value and bound may differ by this share of the value whatever the tolerance."""
RAISES, RAISE = 3, 30.0
"""How often, and by which factor, the limit of the budgets' prices is raised."""


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
        tolerance = self._tolerance(problem)
        search = ColumnSearch(Task.of(problem), SAFETY * tolerance, watch)
        status, relaxation, solution = self._search(problem, search), None, None
        if status is Status.INFEASIBLE:
            relaxation = relax_by_columns(problem, search.tolerance, watch, self.max_calls)
        else:
            solution = _solution(problem, search, tolerance)
            status = _judge(problem, solution, status, tolerance)
        surplus = None
        if isinstance(problem.cost_class, Simplex) and solution is not None:
            surplus = total_surplus(problem, solution)
        return Answer(
            problem, status, search.description, solution, relaxation=relaxation,
            total_surplus=surplus, bounds_trace=read_only(np.array(search.trace).reshape(-1, 3)),
            solve_seconds=time.perf_counter() - started,
        )  # fmt: skip

    def _tolerance(self, problem: Program) -> float:
        if self.tolerance is not None:
            return float(self.tolerance)
        return RELATIVE_TOLERANCE * (problem.trivial_bound or 1.0)

    def _search(self, problem: Program, search: ColumnSearch) -> Status:
        """Generate; when budgets stay broken, ask whether they can be kept and raise prices."""
        status = generate(search, self.max_calls)
        for attempt in range(RAISES):
            if status is not Status.OPTIMAL or search.excess <= search.tolerance:
                break
            if attempt == 0 and budgets_exclude_each_other(
                problem, search.tolerance, search.watch, self.max_calls
            ):
                return Status.INFEASIBLE
            search.raise_prices(RAISE)
            status = generate(search, self.max_calls)
        return status


def _solution(problem: Program, search: ColumnSearch, tolerance: float) -> Solution:
    """The policy of the best mixture, evaluated; once more exactly if that was too rough."""
    witness = search.task.witness(search.best.dual, search.best.values)
    rough = Solution.of(problem, search.policy(search.accuracy), witness)
    promised = search.upper * search.task.unit
    if search.mixture is None or rough.value <= promised + (1 - SAFETY) / 2 * tolerance:
        return rough
    fine = Solution.of(problem, search.policy(EXACT), witness)
    return min(rough, fine, key=lambda solution: solution.value)


def _judge(problem: Program, solution: Solution, status: Status, tolerance: float) -> Status:
    """OPTIMAL is what the recomputed figures say."""
    if status is not Status.OPTIMAL:
        return status
    allowed = max(tolerance, ROUNDING * abs(solution.value))
    share = tolerance / (problem.cost_unit * problem.world.effective_horizon)
    limits = share * problem.budget_units * problem.world.effective_horizon
    close = solution.value - solution.lower_bound <= allowed
    kept = (solution.overspending <= limits).all()
    return Status.OPTIMAL if close and kept else Status.INACCURATE
