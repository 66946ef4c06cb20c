"""What to do about budgets that no policy can keep."""

import numpy as np

from journeyman.arrays import FloatArray, read_only
from journeyman.policy import extract
from journeyman.problem import Program
from journeyman.solvers.answer import Relaxation
from journeyman.solvers.highs import Engine, HighsModel
from journeyman.solvers.occupancy_program import (
    LinearModel,
    least_spending_program,
    relaxed_program,
)
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch


def relax(problem: Program, engine: Engine, threads: int, watch: Watch) -> Relaxation | None:
    """The least weighted increase of the limits, and each budget's least limit alone.

    None when the watch ends the work first.
    """
    spans = np.array([budget.span for budget in problem.constraints])
    varying = spans > 0
    prices = np.divide(1 - problem.world.discount, spans, out=np.ones_like(spans), where=varying)
    measure = _measure(problem, relaxed_program(problem, prices), engine, threads, watch)
    if measure is None:
        return None
    least = np.full(spans.size, np.inf)
    for j in range(spans.size):
        cheapest = _measure(problem, least_spending_program(problem, j), engine, threads, watch)
        if watch.must_stop:
            return None
        if cheapest is not None:
            least[j] = problem.budget_matrix[:, j] @ cheapest
    increase = np.maximum(problem.overspending(measure), 0.0)
    return Relaxation(read_only(increase), read_only(least), extract(problem.world, measure))


def _measure(
    problem: Program, model: LinearModel, engine: Engine, threads: int, watch: Watch
) -> FloatArray | None:
    """The optimal measure of a program over measures, None when there is none."""
    result = HighsModel(model, engine, threads).run(watch)
    if result.status is not Status.OPTIMAL:
        return None
    return np.asarray(result.columns[: problem.world.num_pairs])
