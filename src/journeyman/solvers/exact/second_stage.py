"""The second stage of a class with a surplus: of the policies of least gap, the cheapest.

    maximise  surplus(mu) = <scale, target - Psi' mu>   over the measures mu of least gap

With an engine (`second_stage_of`) three ways are tried, the cheapest first.

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

By smoothing (`second_stage_by_tilts`) the tilted program is solved as the first stage was, with the
same proof.

By column generation (`second_stage_by_columns`), with z_i the n scaled differences to the target,

    minimise   sum_i z_i      over policies with  z_i <= level for every i,  budgets

where `level` is the gap of the first stage's mixture and a part of what the tolerance has left, so
that this mixture is strictly feasible. Units and columns are those of the first stage
(`UnitProgram.of_surplus`).

*Guarantee*: a dual point of this stage is y_i = 1/n + eta_i with prices eta >= 0 of the level, and
divided by its sum S it is one of the first stage. If that one proves that no gap is below L, every
policy has sum_i y_i z_i >= S L, and therefore one with a gap of at most `level`

    sum_i z_i / n  =  sum_i (y_i - eta_i) z_i  >=  S L - (S - 1) level  =  L - (S - 1)(level - L)

which bounds the surplus from above (`surplus_bound`). OPTIMAL means that the policy's own surplus,
recomputed, is within n `tolerance` of that, and its gap within `tolerance` of the least. Should the
level be broken by more than the tolerance allows, for lack of time or of digits, the policy
returned is a mixture of both stages' policies that keeps it.
"""

from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.policy import extract, occupancy
from journeyman.problem import Apprenticeship, Witness, least_cost_bound, lower_bound
from journeyman.problem.bounds import priced_cost
from journeyman.solvers.answer import Answer, Details, Solution, Work, total_surplus
from journeyman.solvers.exact.column_search import (
    SAFETY,
    BoundedSearch,
    DualPoint,
    allowance,
    evaluated,
    generate,
    is_optimal,
    keep_budgets,
    overdrafts,
)
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.exact.engines import SMALL_PROGRAM, Effort, Engine, Result, run_engine
from journeyman.solvers.exact.occupancy_program import (
    LinearModel,
    budget_rows,
    dual_point,
    matching_rows,
    policy_of,
    second_stage_program,
    tilted_program,
)
from journeyman.solvers.running import Status, Watch

FIRST_SHARE = 0.5
"""The first stage is solved to this share of the tolerance, so that the second has room."""
STOPPED = (Status.TIME_LIMIT, Status.MEMORY_LIMIT, Status.INTERRUPTED)
"""Outcomes that are reported whatever has been proven."""
EPSILON = float(np.finfo(float).eps)


def has_second_stage(problem: Apprenticeship) -> bool:
    """Whether policies of the same gap can differ in their surplus."""
    return problem.cost_class.has_surplus and problem.basis.num_costs > 1


def near(search: BoundedSearch, tolerance: float) -> float:
    """The distance of the bounds, in the search's own units, at which a second stage has room."""
    return SAFETY * tolerance / search.task.unit


def second_stage_by_columns(
    problem: Apprenticeship, first: BoundedSearch, tolerance: float, most: int
) -> Answer:
    """Among the policies that `first` and the tolerance allow, one of largest total surplus."""
    task, count = first.task, problem.basis.num_costs
    room = max(near(first, tolerance) - first.gap, 0.0) / 2
    level = first.upper + room
    second = type(first)(
        task.of_surplus(level, first.duals), SAFETY * tolerance * count, first.watch,
        first.memory_limit,
    )  # fmt: skip
    second.best = _cheapest_pair(second)
    second.take_over(first)
    status = _generate(second, room, most)
    solution = _solution(problem, first, second, tolerance)
    bound = surplus_bound(problem, task, level * task.unit, second.best)
    surplus = total_surplus(problem, solution.occupancy.measure)
    proven = bound - surplus <= count * allowance(solution, tolerance)
    if proven and is_optimal(problem, solution, tolerance):
        status = status if status in STOPPED else Status.OPTIMAL
    elif status is Status.OPTIMAL:
        status = Status.INACCURATE
    calls = first.calls + second.calls
    return Answer(
        problem, status, f"{first.description}, then {second.calls} calls for the surplus",
        solution, Details(work=Work(iterations=calls, forward_solves=calls)),
        log=f"total surplus {surplus:.9g} with a gap of {solution.value:.9g}; with one of at most "
        f"{level * task.unit:.9g} no policy has more than {bound:.9g}",
    )  # fmt: skip


SHARES = (1e-3, 1e-2, 1e-4)
"""Weights of the mean cost beside the gap. A smaller one is more often exact, and has to be solved
more exactly."""


def second_stage_by_tilts(
    problem: Apprenticeship, first: BoundedSearch, tolerance: float, most: int
) -> Answer:
    """The same by the tilted program, over weights y + share/n: its dual points divided by the
    share are those of the second stage, and prove as much of the surplus."""
    task, calls = first.task, first.calls
    witness = task.witness(first.best.dual, first.best.values)

    def is_good(solution: Solution) -> bool:
        return is_optimal(problem, solution, tolerance)

    best = safe = evaluated(problem, first, witness, is_good)
    status = Status.OPTIMAL if is_good(safe) else Status.INACCURATE
    bound = constant_surplus(problem)
    for share in SHARES if bound is None else ():
        second = type(first)(
            task.tilted(share, first.duals), share * tolerance / 2, first.watch, first.memory_limit
        )
        second.take_over(first)
        with second.watch.aside("gap and mean cost"):
            status = keep_budgets(second, most, generate(second, most))
        calls += second.calls
        bold = evaluated(problem, second, witness, is_good)
        if is_good(bold) and status not in STOPPED:
            point = DualPoint(0.0, second.best.dual / share, second.best.values / share)
            bound = surplus_bound(problem, task, bold.value, point)
            best, missing = bold, bound - total_surplus(problem, bold.occupancy.measure)
            if missing <= problem.basis.num_costs * allowance(bold, tolerance):
                status = Status.OPTIMAL
                break
        elif not is_good(bold):
            bold = _boldest_mixture(problem, safe, bold, witness, tolerance)
            best = max(best, bold, key=lambda one: total_surplus(problem, one.occupancy.measure))
        if status in STOPPED:
            break
        status = Status.INACCURATE
    surplus = total_surplus(problem, best.occupancy.measure)
    proven = "nothing is proven" if bound is None else f"no policy has more than {bound:.9g}"
    return Answer(
        problem, status, f"{first.description}, then {calls - first.calls} calls for the surplus",
        best, Details(work=Work(iterations=calls, forward_solves=calls)),
        log=f"total surplus {surplus:.9g} with a gap of {best.value:.9g}; with one of at most that "
        f"{proven}",
    )  # fmt: skip


def surplus_bound(
    problem: Apprenticeship, task: UnitProgram, level: float, point: DualPoint
) -> float:
    """What the total surplus of no policy with a gap of at most `level` exceeds."""
    count = problem.basis.num_costs
    dual = point.dual.copy()
    dual[:count] = np.maximum(dual[:count], 1 / count)
    total = float(dual[:count].sum())
    least = lower_bound(problem, task.witness(dual / total, point.values / total))
    rounding = 4 * EPSILON * total * (abs(level) + abs(least))
    return float(count * ((total - 1) * (level - least) - least + rounding))


def _cheapest_pair(search: BoundedSearch) -> DualPoint:
    """No policy costs less in total than the cheapest pair for ever.

    Where the costs add up to the same in every pair, as those of a partition do, nothing is better.
    """
    dual, world = search.task.first_dual, search.task.world
    least = float(np.asarray(search.costs @ dual).min()) * world.effective_horizon
    return DualPoint(least - float(search.task.target @ dual), dual, np.zeros(world.num_states))


def _generate(search: BoundedSearch, room: float, most: int) -> Status:
    """Until the bounds meet; prices rise while the level or a budget stays broken."""
    if most < 1:
        return Status.OPTIMAL if search.gap <= search.tolerance else Status.STEP_LIMIT
    with search.watch.aside("sum of the differences to the level"):
        return keep_budgets(search, most, generate(search, most), room)


def _solution(
    problem: Apprenticeship, first: BoundedSearch, second: BoundedSearch, tolerance: float
) -> Solution:
    """The second stage's policy if it keeps the level, else a mixture with the first one's."""
    witness = first.task.witness(first.best.dual, first.best.values)

    def is_good(solution: Solution) -> bool:
        return is_optimal(problem, solution, tolerance)

    bold = evaluated(problem, second, witness, is_good)
    if is_good(bold):
        return bold
    safe = evaluated(problem, first, witness, is_good)
    mixed = _boldest_mixture(problem, safe, bold, witness, tolerance)
    return max(safe, mixed, key=lambda one: total_surplus(problem, one.occupancy.measure))


def _boldest_mixture(
    problem: Apprenticeship, safe: Solution, bold: Solution, witness: Witness, tolerance: float
) -> Solution:
    """As much of `bold` as gap and budgets bear; occupancy measures may be mixed."""
    highest = np.append(
        np.full(problem.basis.num_costs, safe.lower_bound + SAFETY * tolerance),
        SAFETY * overdrafts(problem, tolerance),
    )
    low, high = (_differences(problem, solution) for solution in (safe, bold))
    spare, missing = np.maximum(highest - low, 0.0), high - highest
    shares = spare[missing > 0] / (spare + missing)[missing > 0]
    share = float(shares.min(initial=1.0))
    measure = (1 - share) * safe.occupancy.measure + share * bold.occupancy.measure
    return Solution.of(problem, extract(problem.world, measure), witness)


def _differences(problem: Apprenticeship, solution: Solution) -> FloatArray:
    """Scaled differences to the target, then overspending."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    difference = scale * problem.difference(solution.occupancy.measure)
    return np.concatenate([difference, solution.overspending])


TILTS = (1e-3, 1e-4, 1e-5)
"""Divided by the number of costs. A larger one is seldom exact, a smaller one hard to prove."""
TILT_SLACK = 1e-8
"""By how much of 2N/(1 - discount) a tilted program may exceed the least gap."""
SLACK = 1e-9
"""By how much of it the sliced program may, and surpluses may differ that pass for constant."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A measure, a bound on the surplus of policies of the same gap, and the engine if one ran."""

    status: Status
    measure: FloatArray
    surplus_bound: float | None
    engine: str = ""
    log: str = ""


def second_stage_of(
    problem: Apprenticeship,
    model: LinearModel,
    first: FloatArray,
    engine: Engine,
    effort: Effort,
    watch: Watch,
) -> Stage:
    """The second stage, from the exact program and its first optimal measure."""
    bound = constant_surplus(problem)
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


def constant_surplus(problem: Apprenticeship) -> float | None:
    """Every policy's surplus, when the scaled costs add up to the same in every pair."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    total = problem.cost_of(scale)
    least, most = (
        float(cost) * problem.world.effective_horizon for cost in (total.min(), total.max())
    )
    if most - least > SLACK * problem.gap_scale * problem.basis.num_costs:
        return None
    return float(scale @ problem.target) - least


def _tilted(
    problem: Apprenticeship,
    model: LinearModel,
    least: float,
    tilt: float,
    effort: Effort,
    watch: Watch,
) -> Stage | None:
    """The optimum of the tilted program, if its gap is the least one and its surplus is proven."""
    share = tilt / problem.basis.num_costs
    careful = replace(effort, careful=True)
    tilted = tilted_program(problem, model, share)
    found = run_engine(tilted, Engine.CLARABEL, careful, watch)
    if found.status not in (Status.OPTIMAL, Status.INACCURATE):
        return None
    measure = found.columns[: problem.world.num_pairs]
    visits = occupancy(problem.world, policy_of(problem, measure))
    gap, surplus = problem.gap(visits), total_surplus(problem, visits.measure)
    bound = _tilted_bound(problem, gap, share, found.row_duals)
    proven = bound - surplus <= effort.tolerance * problem.gap_scale * problem.basis.num_costs
    if not proven or gap - least > TILT_SLACK * problem.gap_scale:
        return None
    return Stage(Status.OPTIMAL, measure, bound, found.engine, found.log)


def _tilted_bound(
    problem: Apprenticeship, gap: float, share: float, row_duals: FloatArray
) -> float:
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    weights, values, prices = dual_point(problem, row_duals)
    weights, prices = problem.cost_class.admit(weights), np.maximum(prices, 0.0)
    cost = priced_cost(problem, weights + share * scale, prices)
    least = least_cost_bound(problem.world, cost, values) - prices @ problem.limits
    return float(scale @ problem.target + (gap + weights @ problem.target - least) / share)


def _sliced(
    problem: Apprenticeship,
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


def _sliced_bound(problem: Apprenticeship, gap: float, found: Result) -> float:
    """Weak duality: gap rows priced at eta, budgets at xi."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    rows = matching_rows(problem)
    eta = np.maximum(-found.row_duals[rows], 0.0)
    duals = found.row_duals[budget_rows(problem, found.row_duals.size)]
    xi = np.maximum(-duals, 0.0) * problem.cost_unit / problem.budget_units
    values = found.row_duals[: rows.start] * problem.cost_unit
    least = least_cost_bound(problem.world, priced_cost(problem, scale * (1 + eta), xi), values)
    rights = eta @ (scale * problem.target + gap) + xi @ problem.limits
    return float(scale @ problem.target - least + rights)
