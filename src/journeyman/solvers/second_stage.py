"""The second stage of `Simplex`: of the policies of least gap, one that surpasses the expert most.

    maximise  surplus(mu) = <scale, target - Psi' mu>   over the measures mu of least gap

Three ways are tried, the cheapest first.

*Constant*: when the scaled costs add up to the same in every pair, as the parts of a partition do,
all policies have the same surplus.

*Tilted*: minimise gap(mu) - tilt * surplus(mu). For every tilt below some positive one the optimum
of this linear program is the very measure that is looked for; whether the tilt was small enough
shows in the gap of the policy. Prices w, V, xi prove of every policy with gap at most g

    surplus <= <scale, target> + (g + <w, target> - L)/tilt

where L is what no policy's cost Psi (w + tilt * scale) + D xi can go below, less <xi, b>.

*Sliced*: minimise the total cost over the measures whose gap is at most the least one and 1e-9 of
2N/(1 - discount). The slice is thin: the simplex method and Clarabel find their way in it, the
interior-point engines of HiGHS make no headway, and all of them need several times the iterations.
"""

from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.policy import extract, occupancy
from journeyman.problem import Program, least_cost_bound
from journeyman.problem.duality import priced_cost
from journeyman.solvers.engine import Effort, Engine, Result, run_engine
from journeyman.solvers.highs import SMALL_PROGRAM
from journeyman.solvers.occupancy_program import (
    LinearModel,
    dual_point,
    matching_rows,
    second_stage_program,
    tilted_program,
)
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

TILTS = (1e-3, 1e-4, 1e-5)
"""Divided by the number of costs. A larger one is seldom exact, a smaller one hard to prove."""
TILT_SLACK = 1e-8
"""By how much of 2N/(1 - discount) a tilted program may exceed the least gap."""
SLACK = 1e-9
"""By how much of it the sliced program may, and surpluses may differ that pass for constant."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A measure, what no policy of the same gap can surpass, and the engine if one ran."""

    status: Status
    measure: FloatArray
    surplus_bound: float | None
    engine: str = ""
    log: str = ""


def surpass(
    problem: Program,
    model: LinearModel,
    first: FloatArray,
    engine: Engine,
    effort: Effort,
    watch: Watch,
) -> Stage:
    """The second stage, from the exact program and its first optimal measure."""
    bound = _constant(problem)
    if bound is not None:
        return Stage(Status.OPTIMAL, first, bound)
    least = problem.gap(extract(problem.world, first))
    for tilt in TILTS if engine is Engine.CLARABEL else ():
        stage = _tilted(problem, model, least, tilt, effort, watch)
        if stage is not None:
            return stage
        if watch.must_stop:
            break
    return _sliced(problem, model, least, engine, effort, watch)


def _constant(problem: Program) -> float | None:
    """What every policy surpasses by, when the scaled costs add up to the same in every pair."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    total = problem.cost_of(scale)
    least, most = (
        float(cost) * problem.world.effective_horizon for cost in (total.min(), total.max())
    )
    if most - least > SLACK * problem.gap_scale * problem.basis.num_costs:
        return None
    return float(scale @ problem.target) - least


def _tilted(
    problem: Program, model: LinearModel, least: float, tilt: float, effort: Effort, watch: Watch
) -> Stage | None:
    """The optimum of the tilted program, if its gap is the least one and its surplus is proven."""
    share = tilt / problem.basis.num_costs
    careful = replace(effort, careful=True)
    tilted = tilted_program(problem, model, share)
    found = run_engine(tilted, Engine.CLARABEL, careful, watch)
    if found.status not in (Status.OPTIMAL, Status.INACCURATE):
        return None
    measure = found.columns[: problem.world.num_pairs]
    visits = occupancy(problem.world, extract(problem.world, measure))
    gap, surplus = problem.gap(visits), _surplus(problem, visits.measure)
    bound = _tilted_bound(problem, gap, share, found.row_duals)
    proven = bound - surplus <= effort.tolerance * problem.gap_scale * problem.basis.num_costs
    if not proven or gap - least > TILT_SLACK * problem.gap_scale:
        return None
    return Stage(Status.OPTIMAL, measure, bound, found.engine, found.log)


def _tilted_bound(problem: Program, gap: float, share: float, row_duals: FloatArray) -> float:
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    weights, values, prices = dual_point(problem, row_duals)
    weights, prices = problem.cost_class.admit(weights), np.maximum(prices, 0.0)
    cost = priced_cost(problem, weights + share * scale, prices)
    least = least_cost_bound(problem.world, cost, values) - prices @ problem.limits
    return float(scale @ problem.target + (gap + weights @ problem.target - least) / share)


def _sliced(
    problem: Program,
    model: LinearModel,
    least: float,
    engine: Engine,
    effort: Effort,
    watch: Watch,
) -> Stage:
    gap = least + SLACK * problem.gap_scale
    is_small = problem.world.num_pairs <= SMALL_PROGRAM
    able = Engine.SIMPLEX if is_small and engine is not Engine.CLARABEL else Engine.CLARABEL
    found = run_engine(second_stage_program(problem, model, gap), able, effort, watch)
    bound = _sliced_bound(problem, gap, found) if found.status is Status.OPTIMAL else None
    return Stage(found.status, found.columns, bound, found.engine, found.log)


def _sliced_bound(problem: Program, gap: float, found: Result) -> float:
    """Weak duality: gap rows priced at eta, budgets at xi."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    rows = matching_rows(problem)
    eta = np.maximum(-found.row_duals[rows], 0.0)
    xi = np.maximum(-found.row_duals[rows.stop :], 0.0) * problem.cost_unit / problem.budget_units
    values = found.row_duals[: rows.start] * problem.cost_unit
    least = least_cost_bound(problem.world, priced_cost(problem, scale * (1 + eta), xi), values)
    rights = eta @ (scale * problem.target + gap) + xi @ problem.limits
    return float(scale @ problem.target - least + rights)


def _surplus(problem: Program, measure: FloatArray) -> float:
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    return -float(scale @ problem.difference(measure))
