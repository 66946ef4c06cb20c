"""The second stage of `Simplex` by column generation.

The least gap usually belongs to a whole face of policies. With z_i the scaled differences to the
target, of which there are n, the second stage takes from among them one that surpasses most:

    minimise   sum_i z_i      over policies with  z_i <= level for every i,  budgets

where `level` is the gap of the first stage's mixture and a part of what the tolerance has left, so
that this mixture is strictly feasible. The figures are those of the first stage, and so are its
policies: they are the columns to begin with (`Task.of_surplus`).

Guarantee. A dual point of this stage is y_i = 1/n + eta_i with prices eta >= 0 of the level, and
divided by its sum S it is one of the first stage. If that one proves that no gap is below L, every
policy has sum_i y_i z_i >= S L, and therefore one with a gap of at most `level`

    sum_i z_i / n  =  sum_i (y_i - eta_i) z_i  >=  S L - (S - 1) level  =  L - (S - 1)(level - L)

which bounds the surplus from above (`surplus_bound`). OPTIMAL means that the policy's own surplus,
recomputed, is within n `tolerance` of that, and its gap within `tolerance` of the least.

Should the level be broken by more than the tolerance allows, for lack of time or of digits, the
policy returned is a mixture of both stages' policies that keeps it.
"""

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs import Simplex
from journeyman.policy import extract
from journeyman.problem import Program, Witness, lower_bound
from journeyman.solvers.answer import Answer, Solution, total_surplus
from journeyman.solvers.column_search import ColumnSearch, DualPoint, generate, keep_budgets
from journeyman.solvers.column_verdict import (
    SAFETY,
    allowance,
    evaluated,
    is_optimal,
    overdrafts,
)
from journeyman.solvers.dual_set import Task
from journeyman.solvers.status import Status
from journeyman.solvers.work import Work

FIRST_SHARE = 0.5
"""The first stage is solved to this share of the tolerance, so that the second has room."""
STOPPED = (Status.TIME_LIMIT, Status.MEMORY_LIMIT, Status.INTERRUPTED)
"""Outcomes that are reported whatever has been proven."""
EPSILON = float(np.finfo(float).eps)


def has_second_stage(problem: Program) -> bool:
    """Whether policies of the same gap can differ in their surplus."""
    return isinstance(problem.cost_class, Simplex) and problem.basis.num_costs > 1


def near(search: ColumnSearch, tolerance: float) -> float:
    """The distance of the bounds, in the search's own units, at which a second stage has room."""
    return SAFETY * tolerance / search.task.unit


def surpass(problem: Program, first: ColumnSearch, tolerance: float, most: int) -> Answer:
    """Among the policies that `first` and the tolerance allow, one of largest total surplus."""
    task, count = first.task, problem.basis.num_costs
    room = max(near(first, tolerance) - first.gap, 0.0) / 2
    level = first.upper + room
    second = ColumnSearch(
        task.of_surplus(level, first.duals), SAFETY * tolerance * count, first.watch
    )
    second.best = _cheapest_pair(second)
    second.take_over(first)
    status = _generate(second, room, most)
    solution = _solution(problem, first, second, tolerance)
    bound = surplus_bound(problem, task, level * task.unit, second.best)
    surplus = total_surplus(problem, solution)
    proven = bound - surplus <= count * allowance(solution, tolerance)
    if proven and is_optimal(problem, solution, tolerance):
        status = status if status in STOPPED else Status.OPTIMAL
    elif status is Status.OPTIMAL:
        status = Status.INACCURATE
    calls = first.calls + second.calls
    return Answer(
        problem, status, f"{first.description}, then {second.calls} calls for the surplus",
        solution, total_surplus=surplus, work=Work(iterations=calls, forward_solves=calls),
        log=f"total surplus {surplus:.9g} with a gap of {solution.value:.9g}; with one of at most "
        f"{level * task.unit:.9g} no policy has more than {bound:.9g}",
    )  # fmt: skip


def surplus_bound(problem: Program, task: Task, level: float, point: DualPoint) -> float:
    """What the total surplus of no policy with a gap of at most `level` exceeds."""
    count = problem.basis.num_costs
    dual = point.dual.copy()
    dual[:count] = np.maximum(dual[:count], 1 / count)
    total = float(dual[:count].sum())
    least = lower_bound(problem, task.witness(dual / total, point.values / total))
    rounding = 4 * EPSILON * total * (abs(level) + abs(least))
    return float(count * ((total - 1) * (level - least) - least + rounding))


def _cheapest_pair(search: ColumnSearch) -> DualPoint:
    """No policy costs less in total than the cheapest pair for ever.

    Where the costs add up to the same in every pair, as those of a partition do, nothing is better.
    """
    dual, world = search.task.first_dual, search.world
    least = float(np.asarray(search.costs @ dual).min()) * world.effective_horizon
    return DualPoint(least - float(search.task.target @ dual), dual, np.zeros(world.num_states))


def _generate(search: ColumnSearch, room: float, most: int) -> Status:
    """Until the bounds meet; prices rise while the level or a budget stays broken."""
    if most < 1:
        return Status.OPTIMAL if search.gap <= search.tolerance else Status.STEP_LIMIT
    with search.watch.aside("sum of the differences to the level"):
        return keep_budgets(search, most, generate(search, most), room)


def _solution(
    problem: Program, first: ColumnSearch, second: ColumnSearch, tolerance: float
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
    return max(safe, mixed, key=lambda solution: total_surplus(problem, solution))


def _boldest_mixture(
    problem: Program, safe: Solution, bold: Solution, witness: Witness, tolerance: float
) -> Solution:
    """As much of `bold` as gap and budgets bear; occupancy measures may be mixed."""
    highest = np.append(
        np.full(problem.basis.num_costs, safe.lower_bound + SAFETY * tolerance),
        SAFETY * overdrafts(problem, tolerance),
    )
    low, high = (_figures(problem, solution) for solution in (safe, bold))
    spare, missing = np.maximum(highest - low, 0.0), high - highest
    shares = spare[missing > 0] / (spare + missing)[missing > 0]
    share = float(shares.min(initial=1.0))
    measure = (1 - share) * safe.occupancy.measure + share * bold.occupancy.measure
    return Solution.of(problem, extract(problem.world, measure), witness)


def _figures(problem: Program, solution: Solution) -> FloatArray:
    """Scaled differences to the target, then overspending."""
    scale = problem.cost_class.scaling(problem.basis.num_costs)
    difference = scale * problem.difference(solution.occupancy.measure)
    return np.concatenate([difference, solution.overspending])
