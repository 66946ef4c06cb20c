"""Budgets that no policy can keep, found out by column generation itself.

The first phase minimises the weighted increases of the limits that make them possible; it is one
more program over occupancy measures and runs through the same loop (`Task.of_budgets`). A positive
lower bound of it is a proof, and its duals are the prices that prove it.
"""

import numpy as np

from journeyman.arrays import FloatArray, read_only
from journeyman.policy import occupancy
from journeyman.problem import Forward, Program, infeasibility_margin
from journeyman.solvers.answer import Relaxation
from journeyman.solvers.column_search import ColumnSearch, generate, keep_budgets
from journeyman.solvers.dual_set import Task
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

SHARE = 0.1
"""The first phase is solved to this share of the tolerance."""


def budgets_exclude_each_other(
    problem: Program, tolerance: float, watch: Watch, max_calls: int
) -> bool:
    """Whether it can be proven that no policy keeps all the budgets."""
    search = _first_phase(problem, tolerance, watch, max_calls)
    return search.lower > 0 and infeasibility_margin(problem, _prices(search)) > 0


def relax_by_columns(
    problem: Program, tolerance: float, watch: Watch, max_calls: int
) -> Relaxation:
    """The least weighted increase of the limits, and each budget's least limit alone."""
    search = _first_phase(problem, tolerance, watch, max_calls)
    policy = search.policy(search.accuracy)
    spending = problem.budget_matrix.T @ occupancy(problem.world, policy).measure
    least = [
        _least_spending(problem, j, tolerance, watch, max_calls)
        for j in range(len(problem.constraints))
    ]
    return Relaxation(
        tuple(budget.name for budget in problem.constraints),
        read_only(np.maximum(spending - problem.limits, 0.0)),
        read_only(np.array(least)),
        read_only(_prices(search)),
        policy,
    )


def _first_phase(problem: Program, tolerance: float, watch: Watch, max_calls: int) -> ColumnSearch:
    search = ColumnSearch(Task.of_budgets(problem), SHARE * tolerance, watch)
    with watch.aside("least increase of the limits"):
        generate(search, max_calls)
    return search


def _prices(search: ColumnSearch) -> FloatArray:
    return search.best.dual * search.task.dual_units


def _least_spending(
    problem: Program, budget: int, tolerance: float, watch: Watch, max_calls: int
) -> float:
    """min <mu, d_budget> while all the others are kept: infinite if impossible, NaN if unknown."""
    others = [other for j, other in enumerate(problem.constraints) if j != budget]
    forward = Forward(problem.world, problem.budget_matrix[:, budget], others)
    if others and budgets_exclude_each_other(forward, tolerance, watch, max_calls):
        return float("inf")
    task = Task.of(forward)
    search = ColumnSearch(task, tolerance * task.unit, watch)
    with watch.aside(f"least spending of {problem.constraints[budget].name!r}"):
        status = keep_budgets(search, max_calls, generate(search, max_calls))
    found = status is Status.OPTIMAL and search.excess <= search.tolerance
    return search.upper * task.unit if found else float("nan")
