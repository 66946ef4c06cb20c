"""What to do about budgets that no policy can keep: the least limits that some policy keeps.

    minimise   sum_j t_j (1 - discount)/(max d_j - min d_j)    over increases t >= 0 of the limits

by column generation, to which it is one more program over occupancy measures
(`UnitProgram.of_budgets`). A positive lower bound is a proof that the budgets exclude each other,
and its duals are the prices that prove it.
"""

import numpy as np

from journeyman.arrays import FloatArray, read_only
from journeyman.policy import Policy, expected_cost, occupancy, plan
from journeyman.problem import Apprenticeship, Forward, infeasibility_margin
from journeyman.solvers.answer import Relaxation
from journeyman.solvers.exact.column_search import ColumnSearch, generate, keep_budgets
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.running import Status, Watch

SHARE = 0.1
"""The first phase is solved to this share of the tolerance."""


def _spending(problem: Apprenticeship, policy: Policy) -> FloatArray:
    return np.asarray(problem.budget_matrix.T @ occupancy(problem.world, policy).measure)


def budgets_exclude_each_other(
    problem: Apprenticeship, tolerance: float, watch: Watch, max_calls: int
) -> bool:
    """Whether it can be proven that no policy keeps all the budgets."""
    search = _first_phase(problem, tolerance, watch, max_calls)
    return search.lower > 0 and infeasibility_margin(problem, _budget_prices(search)) > 0


def relax(problem: Apprenticeship, tolerance: float, watch: Watch, max_calls: int) -> Relaxation:
    """By column generation."""
    search = _first_phase(problem, tolerance, watch, max_calls)
    least = [
        _least_spending(problem, j, tolerance, watch, max_calls)
        for j in range(len(problem.constraints))
    ]
    policy = search.policy(search.accuracy)
    return _relaxation(problem, policy, np.array(least), _budget_prices(search))


def _relaxation(
    problem: Apprenticeship, policy: Policy, least: FloatArray, prices: FloatArray
) -> Relaxation:
    """Increases of the limits that the policy needs, by exact evaluation, and the rest as given."""
    increase = np.maximum(_spending(problem, policy) - problem.limits, 0.0)
    names = tuple(budget.name for budget in problem.constraints)
    return Relaxation(names, read_only(increase), read_only(least), read_only(prices), policy)


def _first_phase(
    problem: Apprenticeship, tolerance: float, watch: Watch, max_calls: int
) -> ColumnSearch:
    search = ColumnSearch(UnitProgram.of_budgets(problem), SHARE * tolerance, watch)
    with watch.aside("least increase of the limits"):
        generate(search, max_calls)
    return search


def _budget_prices(search: ColumnSearch) -> FloatArray:
    return search.best.dual * search.task.dual_units


def _least_spending(
    problem: Apprenticeship, budget: int, tolerance: float, watch: Watch, max_calls: int
) -> float:
    """min <mu, d_budget> while all the others are kept: infinite if impossible, NaN if unknown."""
    others = [other for j, other in enumerate(problem.constraints) if j != budget]
    world, cost = problem.world, problem.budget_matrix[:, budget]
    if not others:
        return expected_cost(world, plan(world, cost).policy, cost)
    forward = Forward(world, cost, others)
    if budgets_exclude_each_other(forward, tolerance, watch, max_calls):
        return float("inf")
    task = UnitProgram.of(forward)
    search = ColumnSearch(task, tolerance * task.unit, watch)
    with watch.aside(f"least spending of {problem.constraints[budget].name!r}"):
        status = keep_budgets(search, max_calls, generate(search, max_calls))
    found = status is Status.OPTIMAL and search.excess <= search.tolerance
    return search.upper * task.unit if found else float("nan")
