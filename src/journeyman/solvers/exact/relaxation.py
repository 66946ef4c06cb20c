"""What to do about budgets that no policy can keep: the least limits that some policy keeps.

    minimise   sum_j t_j (1 - discount)/(max d_j - min d_j)    over increases t >= 0 of the limits

by an engine (`relax`) or by column generation (`relax_by_columns`), where it is one more program
over occupancy measures and runs through the same loop (`UnitProgram.of_budgets`). A positive lower
bound is a proof that the budgets exclude each other, and its duals are the prices that prove it.
"""

import numpy as np

from journeyman.arrays import FloatArray, read_only
from journeyman.policy import Policy, extract, occupancy
from journeyman.problem import Apprenticeship, Forward, infeasibility_margin
from journeyman.solvers.answer import Relaxation
from journeyman.solvers.exact.column_search import ColumnSearch, generate, keep_budgets
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.exact.engines import Effort, Engine, Result, engines_for, run_engine
from journeyman.solvers.exact.occupancy_program import (
    LinearModel,
    least_spending_program,
    relaxed_program,
)
from journeyman.solvers.running import Status, Watch

SHARE = 0.1
"""The first phase is solved to this share of the tolerance."""


def relax(
    problem: Apprenticeship, engine: Engine | None, effort: Effort, watch: Watch
) -> Relaxation | None:
    """By an engine; None when nothing was found in time."""
    spans = np.array([budget.span for budget in problem.constraints])
    weights = np.divide(
        1 - problem.world.discount, spans, out=1 / problem.budget_units, where=spans > 0
    )
    found = _solve(problem, relaxed_program(problem, weights), engine, effort, watch)
    if found.status is not Status.OPTIMAL:
        return None
    least = np.full(spans.size, np.nan)
    for j in range(spans.size):
        cheapest = _solve(problem, least_spending_program(problem, j), engine, effort, watch)
        if cheapest.status is Status.OPTIMAL:
            least[j] = _spending(problem, _policy_of(problem, cheapest))[j]
        elif cheapest.status is Status.INFEASIBLE:
            least[j] = np.inf
    prices = -found.row_duals[problem.world.num_states :] / problem.budget_units
    return _relaxation(problem, _policy_of(problem, found), least, np.maximum(prices, 0.0))


def _solve(
    problem: Apprenticeship, model: LinearModel, engine: Engine | None, effort: Effort, watch: Watch
) -> Result:
    """The first engine's result that is an optimum or a proof that there is none."""
    for candidate in engines_for(problem.world.num_pairs, engine):
        result = run_engine(model, candidate, effort, watch)
        if result.status in (Status.OPTIMAL, Status.INFEASIBLE) or watch.must_stop:
            break
    return result


def _policy_of(problem: Apprenticeship, result: Result) -> Policy:
    return extract(problem.world, result.columns[: problem.world.num_pairs])


def _spending(problem: Apprenticeship, policy: Policy) -> FloatArray:
    return np.asarray(problem.budget_matrix.T @ occupancy(problem.world, policy).measure)


def budgets_exclude_each_other(
    problem: Apprenticeship, tolerance: float, watch: Watch, max_calls: int
) -> bool:
    """Whether it can be proven that no policy keeps all the budgets."""
    search = _first_phase(problem, tolerance, watch, max_calls)
    return search.lower > 0 and infeasibility_margin(problem, _budget_prices(search)) > 0


def relax_by_columns(
    problem: Apprenticeship, tolerance: float, watch: Watch, max_calls: int
) -> Relaxation:
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
    forward = Forward(problem.world, problem.budget_matrix[:, budget], others)
    if others and budgets_exclude_each_other(forward, tolerance, watch, max_calls):
        return float("inf")
    task = UnitProgram.of(forward)
    search = ColumnSearch(task, tolerance * task.unit, watch)
    with watch.aside(f"least spending of {problem.constraints[budget].name!r}"):
        status = keep_budgets(search, max_calls, generate(search, max_calls))
    found = status is Status.OPTIMAL and search.excess <= search.tolerance
    return search.upper * task.unit if found else float("nan")
