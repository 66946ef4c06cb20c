"""What to do about budgets that no policy can keep."""

import numpy as np

from journeyman.arrays import FloatArray, read_only
from journeyman.policy import Policy, extract, occupancy
from journeyman.problem import Program
from journeyman.solvers.answer import Relaxation
from journeyman.solvers.engine import Effort, Engine, Result, run_engine
from journeyman.solvers.highs import engines_for
from journeyman.solvers.occupancy_program import (
    LinearModel,
    least_spending_program,
    relaxed_program,
)
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch


def relax(
    problem: Program, engine: Engine | None, effort: Effort, watch: Watch
) -> Relaxation | None:
    """The least weighted increase of the limits, and each budget's least limit alone.

    Every figure is that of a policy, by exact evaluation. None when nothing was found in time.
    """
    spans = np.array([budget.span for budget in problem.constraints])
    weights = np.divide(
        1 - problem.world.discount, spans, out=1 / problem.budget_units, where=spans > 0
    )
    found = _solve(problem, relaxed_program(problem, weights), engine, effort, watch)
    if found.status is not Status.OPTIMAL:
        return None
    policy = _policy_of(problem, found)
    least = np.full(spans.size, np.nan)
    for j in range(spans.size):
        cheapest = _solve(problem, least_spending_program(problem, j), engine, effort, watch)
        if cheapest.status is Status.OPTIMAL:
            least[j] = _spending(problem, _policy_of(problem, cheapest))[j]
        elif cheapest.status is Status.INFEASIBLE:
            least[j] = np.inf
    prices = -found.row_duals[problem.world.num_states :] / problem.budget_units
    increase = np.maximum(_spending(problem, policy) - problem.limits, 0.0)
    return Relaxation(
        tuple(budget.name for budget in problem.constraints),
        read_only(increase), read_only(least), read_only(np.maximum(prices, 0.0)), policy,
    )  # fmt: skip


def _solve(
    problem: Program, model: LinearModel, engine: Engine | None, effort: Effort, watch: Watch
) -> Result:
    """The first engine's result that is an optimum or a proof that there is none."""
    for candidate in engines_for(problem.world.num_pairs, engine):
        result = run_engine(model, candidate, effort, watch)
        if result.status in (Status.OPTIMAL, Status.INFEASIBLE) or watch.must_stop:
            break
    return result


def _policy_of(problem: Program, result: Result) -> Policy:
    return extract(problem.world, result.columns[: problem.world.num_pairs])


def _spending(problem: Program, policy: Policy) -> FloatArray:
    return np.asarray(problem.budget_matrix.T @ occupancy(problem.world, policy).measure)
