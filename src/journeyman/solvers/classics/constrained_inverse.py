"""Inverse learning within known budgets: a cost of a bounded class, and prices of the budgets, that
explain a soft-optimal expert.

    minimise over w in W, xi >= 0    F(w, xi) = <w, target> + <b, xi> - <initial, V>

*where* V are the soft values of the cost Psi w + D xi at the temperature T: values of costs less T
times the entropy of the policy. F is convex. For a fixed w its least value over xi is what the
target costs more than the best of all policies within the budgets <mu, d_j> <= b_j, entropy counted
for the latter; so w is the cost of the class under which the expert is least far from optimal, and
its own cost if it is soft-optimal within the budgets for one of the class and the target is exact.
The dual of the program is the apprentice's: its solution is the soft-optimal policy of the cost
Psi w + D xi, which

    minimises  gap_W(Psi' mu - target) - T H(mu)   over the policies mu within the budgets.

What records show about a cost is shared by others: in a world of one law, adding what all policies
pay alike changes nothing, and W decides among them. Only prices of budgets that bind are positive.

*Guarantee.* With z = Psi' mu - target for the policy mu of any (w, xi),

    gap_W(z) - <w, z> + <xi, b - D' mu>

bounds what both miss of their programs, where mu keeps the budgets. CONVERGED: it is at most
`tolerance` times 2N/(1 - discount), each overspent unit of a budget counted at more than any price
found. The gap is then above the least one by at most T H(mu), which is at most
T log A/(1 - discount) with A the most actions, and what both miss. Prices without end are those of
budgets that exclude each other: once a price comes near its limit this is tried, and INFEASIBLE if
it is proven, with the least increases that help (`answer.relaxation`).

*Method.* Newton's, from a high temperature down to T: the second derivative of F is
A' diag(mu) A/T, where column i of A has the advantages of cost i over the policy mu. Every step is
a small quadratic program over the class and prices (`exact.weight_step`), and is halved until F, or
what is missed, falls. *Cost.* One table (pairs x costs), and for every step one system with as many
right-hand sides as there are costs, and a soft plan or a few.

*Reference.* Schlaginhaufen and Kamgarpour, "Identifiability and generalizability in constrained
inverse reinforcement learning", 2023. They descend along projected gradients over balls of costs.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, dense
from journeyman.errors import InvalidProblem
from journeyman.policy import Plan, occupancy, soft_plan
from journeyman.policy.policy_evaluation import advantages
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Details, Work
from journeyman.solvers.classics.answering import answer_of
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.exact.relaxation import budgets_exclude_each_other, relax
from journeyman.solvers.exact.weight_step import weight_step
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_positive,
    require_time_limit,
)

COOLING = 0.25
"""By which the temperature falls once it has been solved roughly."""
ROUGHLY = 0.1
"""Of the temperature times the horizon: what may be missed before it falls."""
RISING = 1e-4
"""Of the slope: a step has to win that much, or"""
BETTER = 0.5
"""leave so much of what is missed, where rounding hides what it wins, and"""
LEVEL = 1e-3
"""lose so much of what is missed at most."""
HALVINGS = 30
RIDGE = 1e-10
"""Of the largest second derivative, in directions that policies do not answer to."""
AT_THE_LIMIT = 0.5
"""Prices above this share of their limit raise it."""
STEP_ACCURACY = 1e-5
"""Of what is missed: what a quadratic program may miss."""
MOST_CALLS = 1000
"""Of the planner, to find out whether budgets exclude each other."""
ENGINE = "Newton's method, soft plans"


@dataclass(frozen=True)
class ConstrainedInverse:
    """A cost of the class and prices of the budgets that explain a soft-optimal expert best.

    Args:
        temperature: T, in units of the largest cost N of the class.
        tolerance: of what cost and policy may miss, relative to 2N/(1 - discount).
        max_iterations: steps of Newton's method.
        time_limit: seconds.

    `answer.recovered` are the weights; `answer.log` has the prices of the budgets.

    >>> import journeyman as jm
    >>> world = jm.World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> basis, expert = jm.CostBasis([[1.0], [0.0]]), jm.ExpertExpectation([1.5])
    >>> budget = jm.Budget([0.0, 1.0], at_most=0.5, name="rest")
    >>> problem = jm.Apprenticeship(world, basis, expert, constraints=budget)
    >>> answer = jm.solve(problem, ConstrainedInverse())
    >>> answer.policy.probabilities([0]).round(3).tolist()
    [[0.75, 0.25]]
    """

    temperature: float = 0.01
    tolerance: float = 1e-6
    max_iterations: int = 300
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_positive("temperature", self.temperature)
        require_positive("tolerance", self.tolerance, below=1)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        if problem.expert is None:
            raise InvalidProblem(
                f"ConstrainedInverse learns from an expert, and a {type(problem).__name__} has "
                "none",
                "Give an Apprenticeship; LinearProgram() and ColumnGeneration() minimise known "
                "costs",
            )
        search = _Search(problem, max(1.0, self.temperature))
        status, asked = Status.STEP_LIMIT, False
        for iteration in range(self.max_iterations):
            if search.is_at_the_limit:
                if not asked and self._is_infeasible(problem, watch):
                    return self._infeasible(problem, watch)
                asked = True
                search.raise_limits()
            point, last = search.point, search.temperature <= self.temperature
            if watch.report(iteration, point.reached * search.task.unit):
                status = watch.stop_status
                break
            if last and point.missed <= 2 * self.tolerance:
                status = Status.CONVERGED
                break
            if not last and point.missed <= ROUGHLY * search.temperature:
                search.cool(self.temperature)
            elif not search.step():
                status = Status.INACCURATE
                break
        found = search.point.dual * search.task.dual_units
        weights, prices = np.split(found, [problem.num_costs])
        named = (
            f"{one.name} {price:.6g}"
            for one, price in zip(problem.constraints, prices, strict=True)
        )
        return answer_of(
            problem,
            search.point.plan.policy,
            status,
            engine=ENGINE,
            work=Work(iterations=search.steps, forward_solves=search.plans),
            weights=weights,
            prices=prices,
            recovered=weights,
            seconds=watch.elapsed,
            log="prices of the budgets: " + (", ".join(named) or "none"),
        )

    def _is_infeasible(self, problem: Apprenticeship, watch: Watch) -> bool:
        return budgets_exclude_each_other(problem, self.tolerance, watch, MOST_CALLS)

    def _infeasible(self, problem: Apprenticeship, watch: Watch) -> Answer:
        relaxation = relax(problem, self.tolerance, watch, MOST_CALLS)
        return Answer(
            problem, Status.INFEASIBLE, ENGINE, None, Details(relaxation=relaxation),
            solve_seconds=watch.elapsed,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Point:
    """Coordinates of weights and prices, and what the soft-optimal policy makes of them."""

    coordinates: FloatArray
    dual: FloatArray
    plan: Plan
    measure: FloatArray
    difference: FloatArray
    """(costs, budgets)' measure - (target, limits)."""
    reached: float
    """-F, which rises."""
    missed: float
    """The bound of the guarantee."""


class _Search:
    """The state of Newton's method, in units of N/(1 - discount) (`UnitProgram`)."""

    def __init__(self, problem: Apprenticeship, temperature: float) -> None:
        self.task, self.temperature = UnitProgram.of(problem), temperature
        self.world, self.duals = problem.world, self.task.duals
        self.table = dense(self.task.costs)
        self.steps = self.plans = 0
        start = self.duals.middle()
        start[self.duals.num_lifted :] = 0.0
        self.point = self.at(start, None)

    def at(self, coordinates: FloatArray, warm: Plan | None) -> _Point:
        """What a soft plan makes of weights and prices."""
        dual = self.duals.weights(coordinates)
        temperature = self.temperature / self.world.effective_horizon
        plan = soft_plan(
            self.world, self.table @ dual, temperature=temperature, warm_start=warm
        )  # fmt: skip
        self.plans += 1
        measure = occupancy(self.world, plan.policy).measure
        difference = self.table.T @ measure - self.task.target
        most = self.duals.support(self.duals.lifted(difference))
        most += float(self.duals.base(difference))
        reached = float(self.world.initial @ plan.values - self.task.target @ dual)
        missed = most - float(dual @ difference)
        return _Point(coordinates, dual, plan, measure, difference, reached, missed)

    def cool(self, least: float) -> None:
        """The next temperature, with the same weights."""
        self.temperature = max(least, COOLING * self.temperature)
        self.point = self.at(self.point.coordinates, self.point.plan)

    @property
    def is_at_the_limit(self) -> bool:
        """Whether a price is so near its limit that what is overspent counts for too little."""
        count = self.duals.num_lifted
        return bool(
            (self.point.coordinates[count:] > AT_THE_LIMIT * self.duals.upper[count:]).any()
        )

    def raise_limits(self) -> None:
        """Until no price is near its limit."""
        while self.is_at_the_limit:
            self.duals = self.duals.raised(2.0)
        self.point = self.at(self.point.coordinates, self.point.plan)

    def step(self) -> bool:
        """A step of Newton's method; False where there is none that wins."""
        point = self.point
        ahead = weight_step(
            self.duals, point.coordinates, point.difference, self._curvature(point),
            STEP_ACCURACY * point.missed,
        ) - point.coordinates  # fmt: skip
        if not np.isfinite(ahead).all():
            return False
        slope = max(float(self.duals.lifted(point.difference) @ ahead), 0.0)
        self.steps += 1
        for halved in range(HALVINGS):
            share = 0.5**halved
            found = self.at(point.coordinates + share * ahead, point.plan)
            rises = slope > 0 and found.reached >= point.reached + RISING * share * slope
            level = found.reached >= point.reached - LEVEL * point.missed
            if rises or (level and found.missed <= BETTER * point.missed):
                self.point = found
                return True
        return False

    def _curvature(self, point: _Point) -> FloatArray:
        """A' diag(mu) A/T over costs and budgets."""
        aside = advantages(self.world, point.plan.policy, self.table)
        found = aside.T @ (point.measure[:, np.newaxis] * aside)
        found *= self.world.effective_horizon / self.temperature
        least = RIDGE * max(float(np.abs(found).max()), 1.0)
        return np.asarray(found + least * np.eye(found.shape[0]))
