"""What an engine proposes: a measure and a dual point, to be judged by the data.

A proposal is made by HiGHS for the linear cost classes (with a second stage for `Simplex`) and by
Clarabel for the Euclidean ball.
"""

from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs import Simplex
from journeyman.policy import plan
from journeyman.problem import Program, least_cost_bound
from journeyman.problem.duality import priced_cost
from journeyman.solvers.cone import ConeModel, ConeResult, conic_form, run_cone
from journeyman.solvers.highs import SMALL_PROGRAM, Engine, Result, run_highs
from journeyman.solvers.occupancy_program import LinearModel, dual_point, second_stage_program
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

SECOND_STAGE_SLACK = 1e-9
"""By how much of the trivial bound the second stage may exceed the least gap."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """The last iterate of an engine. Only `status` INFEASIBLE and limits are its own word."""

    status: Status
    measure: FloatArray
    weights: FloatArray
    prices: FloatArray
    engine: str
    log: str
    surplus_bound: float | None = None
    """For `Simplex`: no policy of the same gap has a larger total surplus."""


def propose_linear(
    problem: Program, model: LinearModel, engine: Engine, threads: int, watch: Watch
) -> Proposal:
    """The optimum of a linear program by HiGHS; for `Simplex` the one that surpasses most."""
    found = run_highs(model, engine, watch, threads)
    weights, prices = dual_point(problem, found.row_duals)
    first = Proposal(
        found.status, found.columns[: problem.world.num_pairs], weights, prices, found.engine,
        found.log,
    )  # fmt: skip
    if isinstance(problem.cost_class, Simplex) and found.status is Status.OPTIMAL:
        return _second_stage(problem, model, first, float(found.columns[-1]), threads, watch)
    return first


def propose_conic(problem: Program, model: ConeModel, threads: int, watch: Watch) -> Proposal:
    """The optimum for the Euclidean ball by Clarabel."""
    found = run_cone(model, watch, threads)
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    prices = found.row_duals[model.num_equations :][: len(problem.constraints)]
    return Proposal(
        found.status,
        found.columns[:-1],
        -scale * found.row_duals[-scale.size :],
        prices * problem.cost_unit / problem.budget_units,
        found.engine,
        found.log,
    )


def _second_stage(
    problem: Program,
    model: LinearModel,
    first: Proposal,
    least: float,
    threads: int,
    watch: Watch,
) -> Proposal:
    """Among the measures of least gap, one of least total scaled cost.

    The slice that is left is thin. The simplex method and Clarabel work there; the interior-point
    engines of HiGHS make no headway.
    """
    gap = least * problem.cost_unit + SECOND_STAGE_SLACK * problem.trivial_bound
    sliced = second_stage_program(problem, model, gap)
    rows = slice(problem.world.num_states, None)
    second: Result | ConeResult
    if problem.world.num_pairs <= SMALL_PROGRAM:
        second = run_highs(sliced, Engine.SIMPLEX, watch, threads)
        duals = -second.row_duals[rows]
    else:
        second = run_cone(conic_form(sliced), watch, threads)
        duals = second.row_duals[rows]
    engine = f"{first.engine}, then {second.engine}"
    log = first.log + second.log
    if second.status is not Status.OPTIMAL:
        return replace(first, status=second.status, engine=engine, log=log)
    bound = _surplus_bound(problem, gap, duals)
    measure = second.columns[: problem.world.num_pairs]
    return replace(first, measure=measure, engine=engine, log=log, surplus_bound=bound)


def _surplus_bound(problem: Program, gap: float, duals: FloatArray) -> float:
    """Weak duality for the second stage: gap rows priced at eta, budgets at xi."""
    count = problem.basis.num_costs
    scale = problem.cost_class.scaling(count)
    eta = np.maximum(duals[:count], 0.0)
    xi = np.maximum(duals[count:][: len(problem.constraints)], 0.0)
    xi = xi * problem.cost_unit / problem.budget_units
    cost = priced_cost(problem, scale * (1 + eta), xi)
    least = least_cost_bound(problem.world, cost, plan(problem.world, cost).values)
    rights = eta @ (scale * problem.target + gap) + xi @ problem.limits
    return float(scale @ problem.target - least + rights)
