"""Column generation in worlds whose transitions fit no single process.

    minimise over policies   gap_W(Psi' mu_pi - target)    subject to budgets

by the search of `ColumnGeneration`, with its plans and evaluations done on the workers of an
executor, each of which keeps the rows of some blocks of states (`state_blocks`). The world is one
of callables (`LargeWorld`; an explicit world with the same actions everywhere is one, too), small
enough for vectors over its states and large enough for its transitions to be a burden. Here, where
the solver runs, are vectors over states, the choices of the generated policies (a byte per state),
the policy (a number per pair) and the master problem.

Guarantee. Every worker gives the same bits, and lost ones are replaced. `value` and `lower_bound`
are computed at the end, from rows that are made anew: with V any values of the policy's cost i and
r = c_i + discount P_pi V - V its residual, recomputed,

    <initial, V> + min r/(1 - discount)  <=  <mu_pi, psi_i>  <=  <initial, V> + max r/(1 - discount)

so the largest gap over these intervals bounds the gap of the policy from above; `lower_bound` is
that of weak duality (`problem.bounds`), its minimum taken block by block. Both include rounding.
OPTIMAL means that they differ by at most `tolerance` and that budgets are kept as exactly. Of
policies with the least gap no cheapest one is looked for: `Simplex` has no second stage here.

A solve that is stopped returns the best mixture if there is time left to make a policy of it,
otherwise the best single policy so far. A time limit is looked at between rounds: it holds to one
pass over the transitions, making them included.

Cost. Per call some rounds for the plan and, for every column, one for each product of BiCGSTAB: 8
bytes a state to every worker and back. Each worker has its share of the transitions, of the costs,
and of the chain of one policy; docs/scaling-out.md has measurements.

Reference: Dantzig and Wolfe, "Decomposition principle for linear programs", 1960; van der Vorst,
"Bi-CGSTAB", SIAM Journal on Scientific and Statistical Computing, 1992.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from journeyman.arrays import FloatArray, IntArray, read_only, require_between
from journeyman.costs import CostFunctions
from journeyman.errors import InvalidSolver
from journeyman.execution import KeepingExecutor, Serial
from journeyman.policy.policy_evaluation import Chains
from journeyman.policy.table import Policy
from journeyman.problem import Apprenticeship, Witness
from journeyman.problem.apprenticeship import Budget
from journeyman.solvers.answer import Answer, BoundedSolution, Details, Relaxation, Work
from journeyman.solvers.exact.column_master import ColumnPool
from journeyman.solvers.exact.column_search import (
    EXACT,
    SAFETY,
    ColumnSearch,
    generate,
    is_optimal,
    keep_budgets,
)
from journeyman.solvers.exact.dual_set import PRICE_LIMIT, DualSet, UnitProgram
from journeyman.solvers.exact.relaxation import SHARE
from journeyman.solvers.exact.searched_program import RELATIVE_TOLERANCE
from journeyman.solvers.exact.state_blocks import (
    EPSILON,
    BlockedChains,
    BlockedWorld,
    RowMaker,
    StateBlocks,
    Stopped,
    slack,
)
from journeyman.solvers.running import Status, Watch, require_count, require_time_limit
from journeyman.world import World
from journeyman.world.levels import Level

MOST_STATES = 10**10
"""Beyond, one vector takes 80 GB."""
CHARGED = 0.01
"""Share of the tolerance that residuals of the last evaluation may cost the value."""
CAUTION = 1.5
"""More time than expected is set aside for the end."""


@dataclass(frozen=True)
class ShardedColumns:
    """Solve the exact program by generated policies, on workers that each have a part of the world.

    Args:
        executor: `jm.Serial()`, `jm.Processes(...)` or `jm.Ray(...)`; None is `Serial`. The answer
            does not depend on it.
        tolerance: asked-for difference of value and lower bound, in units of the objective; by
            default 1e-6 of 2N/(1 - discount).
        time_limit: seconds.
        max_calls: generated policies before the solve stops.
        num_blocks: of states, the pieces that are given to workers; at most so many can help.
    """

    needs: ClassVar[Level] = Level.STEPPED

    executor: KeepingExecutor | None = None
    tolerance: float | None = None
    time_limit: float | None = None
    max_calls: int = 1000
    num_blocks: int = 32

    def __post_init__(self) -> None:
        if self.executor is not None and not hasattr(self.executor, "map_on"):
            raise InvalidSolver(
                f"executor = {self.executor!r} cannot say which worker does what",
                "Give jm.Serial(), jm.Processes(...) or jm.Ray(...), or add map_on",
            )
        if self.tolerance is not None:
            require_between(
                "tolerance", self.tolerance, 0, np.inf, InvalidSolver,
                "Give a positive difference of costs, or None",
            )  # fmt: skip
        require_time_limit(self.time_limit)
        require_count("max_calls", self.max_calls)
        require_count("num_blocks", self.num_blocks)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        if problem.world.num_states > MOST_STATES:
            raise InvalidSolver(
                f"the world has {problem.world.num_states:.3g} states, too many for a vector",
                "Use a method over features: SampledProgram or StochasticSubgradient",
            )
        with ExitStack() as stack:
            executor = Serial() if self.executor is None else self.executor
            if not executor.is_open:
                stack.enter_context(executor)
            blocks = StateBlocks(_maker(problem), executor, self.num_blocks, watch)
            stack.callback(blocks.release)
            world = BlockedWorld(blocks)
            made = time.perf_counter()
            run = _Run(self, problem, world, watch)
            answer = run.answer()
        ended = time.perf_counter()
        return replace(answer, build_seconds=made - started, solve_seconds=ended - made)


def _maker(problem: Apprenticeship) -> RowMaker:
    budgets = tuple(_budget_function(problem, budget) for budget in problem.constraints)
    world = cast(Any, problem.world)
    return RowMaker(world, (problem.cost_functions, *budgets))


def _budget_function(problem: Apprenticeship, budget: Budget) -> CostFunctions:
    if budget.function is not None:
        return budget.function
    costs, world = budget.on(problem.world), problem.world
    function = partial(_budget_rows, costs, world.num_actions)
    return CostFunctions(function, [budget.name], lowest=costs.min(), highest=costs.max())


def _budget_rows(
    costs: FloatArray, num_actions: int, states: IntArray, actions: IntArray
) -> FloatArray:
    return np.asarray(costs[states * num_actions + actions, np.newaxis])


class _Run:
    """One solve: its tasks in units, and bounds in the problem's own."""

    def __init__(
        self, settings: ShardedColumns, problem: Apprenticeship, world: BlockedWorld, watch: Watch
    ) -> None:
        self.settings, self.problem = settings, problem
        self.world, self.watch = world, watch
        self.tolerance = settings.tolerance or RELATIVE_TOLERANCE * (problem.gap_scale or 1.0)
        self.targets = np.concatenate([problem.target, problem.limits])
        self.count = problem.num_costs

    def answer(self) -> Answer:
        search = ShardedSearch(self._task(), SAFETY * self.tolerance, self.watch)
        status = generate(search, self.settings.max_calls)
        if status is Status.OPTIMAL and search.excess > search.tolerance:
            relaxation = self._relaxation(search.tolerance)
            if relaxation is not None:
                return self._answer(search, Status.INFEASIBLE, None, relaxation)
        status = keep_budgets(search, self.settings.max_calls, status)
        solution, whole = self._solution(search)
        good = is_optimal(self.problem, cast(Any, solution), self.tolerance)
        if not whole:
            status = self.watch.stop_status
        elif status is Status.OPTIMAL and not good:
            status = Status.INACCURATE
        return self._answer(search, status, solution)

    def _answer(
        self,
        search: "ShardedSearch",
        status: Status,
        solution: BoundedSolution | None,
        relaxation: Relaxation | None = None,
    ) -> Answer:
        traffic, world = self.world.blocks.traffic, self.world
        log = (
            f"{len(world.blocks.ranges)} blocks of states with {world.held_bytes:,} bytes of rows; "
            f"{traffic.rounds} rounds, {traffic.sent:,} bytes to each worker, "
            f"{traffic.returned:,} bytes back"
        )
        details = Details(
            relaxation=relaxation,
            bounds_trace=read_only(np.array(search.trace).reshape(-1, 3)),
            work=Work(iterations=search.calls, forward_solves=search.calls),
        )
        return Answer(self.problem, status, search.description, solution, details, log=log)

    def _solution(self, search: "ShardedSearch") -> tuple[BoundedSolution, bool]:
        """The policy of the best mixture with its bounds, and True; where there is no time for
        that, the best single policy with what the search has proven."""
        try:
            return self._whole_solution(search), True
        except Stopped:
            return self._single_solution(search), False

    def _whole_solution(self, search: "ShardedSearch") -> BoundedSolution:
        if self.watch.must_stop:
            raise Stopped
        self.world.blocks.make()
        point = search.task.witness(search.best.dual, search.best.values)
        witness, lower = self._proven(point)
        found = self._evaluated(search.policy(search.accuracy), witness, lower)
        solved = search.gap <= search.tolerance
        if solved and not is_optimal(self.problem, cast(Any, found), self.tolerance):
            finer = self._evaluated(search.policy(EXACT), witness, lower)
            found = min(found, finer, key=lambda one: one.value)
        return found

    def _single_solution(self, search: "ShardedSearch") -> BoundedSolution:
        """What was proven of it on the way; of a policy at random its costs' ranges are known."""
        horizon = self.world.effective_horizon
        point = search.task.witness(search.best.dual, search.best.values)
        witness, lower = self._proven(point, last=True)
        if search.single is None:
            policy = Policy(self.world.pairs.uniform, self.world.pairs)
            low, high = horizon * self.world.lowest, horizon * self.world.highest
        else:
            law = np.zeros(self.world.num_pairs)
            law[search.single.choice] = 1.0
            policy = Policy(law, self.world.pairs)
            rows = _units(self.problem)
            low, high = search.single.low / rows, search.single.high / rows
        return self._bounded(policy, witness, lower, low, high)

    def _evaluated(self, policy: Policy, witness: Witness, lower: float) -> BoundedSolution:
        """The policy with its expectations, as intervals that contain them."""
        world, horizon = self.world, self.world.effective_horizon
        size = np.maximum(np.abs(world.lowest), np.abs(world.highest))
        scale = 1 / _units(self.problem) / horizon
        goals = CHARGED * self.tolerance / (self.problem.cost_unit * size.size) * scale / horizon
        chains, low, high = BlockedChains(world), np.empty_like(size), np.empty_like(size)
        weights = np.eye(size.size)
        for part, table in chains.tables_of_law(policy.per_pair, weights, goals):
            residuals = chains.residuals[:, part]
            low[part], high[part] = interval(world, table, residuals, size[part])
        return self._bounded(policy, witness, lower, low, high)

    def _bounded(
        self, policy: Policy, witness: Witness, lower: float, low: FloatArray, high: FloatArray
    ) -> BoundedSolution:
        sizes = EPSILON * 4 * (np.maximum(np.abs(low), np.abs(high)) + np.abs(self.targets))
        least, most = low - self.targets - sizes, high - self.targets + sizes
        count = self.count
        gap = self.problem.cost_class.largest_gap(least[:count], most[:count])
        return BoundedSolution(
            policy, witness, gap + EPSILON * (count + 8) * abs(gap), lower,
            read_only(np.column_stack([low, high])), read_only(most[count:]),
        )  # fmt: skip

    def _proven(self, point: Witness, *, last: bool = False) -> tuple[Witness, float]:
        """The dual point, moved into the class, and what it proves (`problem.bounds`)."""
        problem = self.problem
        weights = problem.cost_class.admit(point.cost_weights)
        prices = np.maximum(point.budget_prices, 0.0)
        both = np.concatenate([weights, prices])
        bound = self._least_cost(both, point.values, last=last) - float(both @ self.targets)
        bound -= EPSILON * (both.size + 2) * float(np.abs(both) @ np.abs(self.targets))
        witness = Witness(weights, point.values, prices)
        if problem.cost_class.contains_zero and bound < 0:
            zeros = np.zeros(self.count), np.zeros(self.world.num_states), 0 * prices
            return Witness(*zeros), 0.0
        return witness, bound

    def _least_cost(self, weights: FloatArray, values: FloatArray, *, last: bool = False) -> float:
        """No policy's total of the weighted costs is smaller: `bounds.least_cost_bound`."""
        world = self.world
        found = world.blocks.round(slack, (weights, values), last=last)
        least, largest = min(one for one, _ in found), max(one for _, one in found)
        horizon, size = world.effective_horizon, float(np.abs(values).max())
        terms = np.abs(weights) @ np.maximum(np.abs(world.lowest), np.abs(world.highest))
        per_pair = (world.branches + 4) * (largest + 2 * size) + (weights.size + 2) * float(terms)
        rounding = EPSILON * (per_pair * horizon + (world.num_states + 2) * size)
        return float(world.initial @ values + least * horizon - rounding)

    def _relaxation(self, tolerance: float) -> Relaxation | None:
        """If no policy keeps all the budgets, proven by prices: the least increases of the limits.
        How far each could give way alone is not looked for."""
        problem, task = self.problem, self._task_of_budgets()
        search = ShardedSearch(task, SHARE * tolerance, self.watch)
        with self.watch.aside("least increase of the limits"):
            generate(search, self.settings.max_calls)
        prices = np.maximum(search.best.dual * task.dual_units, 0.0)
        weights = np.concatenate([np.zeros(self.count), prices])
        try:
            margin = self._least_cost(weights, search.best.values) - prices @ problem.limits
            paid = float(prices @ np.abs(problem.limits))
            if margin - EPSILON * (prices.size + 2) * paid <= 0:
                return None
            policy = search.policy(search.accuracy)
            found = self._evaluated(policy, Witness(weights, search.best.values), -np.inf)
        except Stopped:
            return None
        return Relaxation(
            tuple(budget.name for budget in problem.constraints),
            read_only(np.maximum(found.overspending, 0.0)),
            read_only(np.full(prices.size, np.nan)), read_only(prices), policy,
        )  # fmt: skip

    def _task(self) -> UnitProgram:
        """`UnitProgram.of`, in which a cost is a column of weights."""
        problem, world, count = self.problem, self.world, self.count
        scale = problem.cost_class.scaling(count)
        cost, horizon, rows = problem.cost_unit, world.effective_horizon, _units(problem)
        budgets = len(problem.constraints)
        staying = horizon * world.start_costs[:count] - problem.target
        first = problem.cost_class.worst_case(staying) / scale
        return UnitProgram(
            cast(World, world),
            np.diag(rows),
            self.targets * rows,
            DualSet.of(problem.cost_class, count, budgets, PRICE_LIMIT),
            cost * horizon,
            np.concatenate([scale, cost / problem.budget_units]),
            np.concatenate([first, np.zeros(budgets)]),
            problem.cost_class.contains_zero,
            (world.lowest * rows, world.highest * rows),
        )

    def _task_of_budgets(self) -> UnitProgram:
        """`UnitProgram.of_budgets`."""
        problem, world, count = self.problem, self.world, self.count
        units, horizon = problem.budget_units, world.effective_horizon
        spans = (world.highest - world.lowest)[count:]
        weights = np.divide(1.0, spans * horizon, out=1 / units, where=spans > 0) * units * horizon
        rows = 1 / (units * horizon)
        return UnitProgram(
            cast(World, world),
            np.vstack([np.zeros((count, units.size)), np.diag(rows)]),
            problem.limits * rows,
            DualSet(np.zeros(units.size), weights),
            1.0,
            rows,
            weights / 2,
            True,
            (world.lowest[count:] * rows, world.highest[count:] * rows),
        )


def _units(problem: Apprenticeship) -> FloatArray:
    """What expectations are multiplied with to be of size one."""
    scale = problem.cost_class.scaling(problem.num_costs)
    both = np.concatenate([scale / problem.cost_unit, 1 / problem.budget_units])
    return np.asarray(both / problem.effective_horizon)


def interval(
    world: BlockedWorld, table: FloatArray, residuals: FloatArray, size: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What expectations lie between, from values (states x costs), the least and largest residuals
    of their equations, and the sizes of the costs."""
    horizon, largest = world.effective_horizon, np.abs(table).max(axis=0)
    per_pair = (world.branches + 2 * world.num_actions + 6) * (size + 2 * largest) * horizon
    rounding = EPSILON * (per_pair + (world.num_states + 2) * largest)
    middle = world.initial @ table
    low, high = (middle + horizon * end for end in residuals)
    return low - rounding, high + rounding


@dataclass(frozen=True, eq=False)
class Single:
    """A generated policy with what its expectations lie between, in units."""

    choice: IntArray
    low: FloatArray
    high: FloatArray
    gap: float


class ShardedSearch(ColumnSearch):
    """`ColumnSearch` over blocks of states: costs are named by their weights."""

    chains: Any
    world: Any

    def __init__(self, task: UnitProgram, tolerance: float, watch: Watch) -> None:
        super().__init__(task, tolerance, watch)
        self.single: Single | None = None
        self._set_aside = 0.0

    @staticmethod
    def _chains_of(world: Any, memory_limit: float) -> Chains:
        return cast(Chains, BlockedChains(world))

    def ending_seconds(self) -> float:
        """Nothing: where there is no time the best policy so far is taken, which has its bounds."""
        return 0.0

    @property
    def description(self) -> str:
        count = len(self.world.blocks.ranges)
        return f"column generation ({self.calls} calls, {count} blocks of states, BiCGSTAB)"

    @property
    def _by_visits(self) -> bool:
        return False

    def call(self) -> bool:
        """One round of the search; False when it was cut short, or the rest of the time is needed
        to make a policy of the mixture."""
        if self.watch.remaining < self._set_aside:
            return False
        try:
            return super().call()
        except Stopped:
            return False

    def policy(self, accuracy: float) -> Policy:
        """The stationary policy of the best mixture (Proposition 1)."""
        world = self.world
        if self.mixture is None:
            raise Stopped
        measure, count = (
            np.zeros((world.num_states, world.num_actions)),
            np.arange(world.num_states),
        )
        for actions, weights in self.mixture.parts:
            start = self._start_of(weights)
            visits = self.chains.visits(self._choice(actions), start, accuracy)
            measure[count, actions] += np.maximum(visits, 0.0)
        largest = measure.max(axis=1, keepdims=True)
        measure[largest[:, 0] <= 0] = 1.0
        measure /= np.where(largest > 0, largest, 1.0)
        measure /= measure.sum(axis=1, keepdims=True)
        return Policy(measure.ravel(), world.pairs)

    def _open(self, choice: IntArray) -> ColumnPool:
        return ColumnPool(
            self.world, self._start_blocks(choice), np.zeros((0, self.costs.shape[1]))
        )

    def _expectations_by_values(self, pool: ColumnPool, choice: IntArray) -> FloatArray | None:
        """Columns of a policy; what the policy by itself is worth is kept if it is the best."""
        started = time.monotonic()
        size = np.max(np.abs(self.task.ranges), axis=0)  # type: ignore[arg-type]
        found = super()._expectations_by_values(pool, choice)
        if found is None:
            return None
        seconds = time.monotonic() - started
        total, world = found.sum(axis=0), self.world
        largest = world.effective_horizon * size
        rounding = EPSILON * largest * (
            world.num_states + (world.branches + 8) * 3 * world.effective_horizon
        )  # fmt: skip
        low, high = (world.effective_horizon * end for end in self.chains.residuals)
        low, high = total + low - rounding, total + high + rounding
        gap = self.duals.support(total - self.task.target)
        if self.single is None or gap < self.single.gap:
            self.single = Single(choice, low, high, gap)
        parts = 1 if self.mixture is None else len(self.mixture.parts) + 1
        self._set_aside = world.seconds_made + CAUTION * seconds * (2 + parts / size.size)
        return found
