"""The loop of column generation: duals from the master, a policy for them, bounds from both.

All numbers are in the units of `dual_set.UnitProgram`, in which values are of size one. One call

1. plans for the master's dual point y, as well as bounds deserve, from the best values at hand,
2. evaluates it for every cost and budget (its columns, one per start row),
3. bounds every policy's cost from below by weak duality, whatever the policy misses to be optimal,
4. solves the master problem, whose mixture is a policy: an upper bound, and the next y.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from journeyman.arrays import FloatArray, IntArray, dense
from journeyman.policy import extract
from journeyman.policy.planning import Improvement, improve
from journeyman.policy.policy_evaluation import BLOCK_BYTES, Chains
from journeyman.policy.steps import LONG
from journeyman.policy.table import Policy
from journeyman.problem import Apprenticeship, Witness
from journeyman.progress import whatever_it_takes
from journeyman.solvers.answer import Solution
from journeyman.solvers.exact.column_master import ColumnPool, Mixture, solve_master
from journeyman.solvers.exact.dual_set import KnownWeights, UnitProgram
from journeyman.solvers.exact.start_blocks import Blocks, Core, StartRows, core_around, value_blocks
from journeyman.solvers.running import Status, Watch
from journeyman.world import World

RAISES, RAISE = 3, 30.0
"""How often, and by which factor, the limit of the budgets' prices is raised."""
PATIENCE = 25
"""Calls without progress before columns are given up."""
BLOCKS = 256
"""Start blocks: with fewer more policies are needed, with more the master takes longer."""
FEWER_BLOCKS = 16
"""Start blocks where each of them costs an iterative solve. Where that takes seconds (`LONG`) there
is a single one: three times as many policies then take an eighth of the time each."""
VISITS_BYTES = 2**27
"""Visits of generated policies are kept, in single precision, if they take no more memory."""
KEPT_ACCURACY = 1e-7
"""They are used where no more is asked."""
CORE = 150
"""States of a core."""
FEW_STARTS = 40
"""With at most this many start states a core is used instead of blocks."""
SKETCH = 8
"""Random mixtures of the costs whose values say which start states are alike."""
STEPS = 200
"""Iterations of a plan."""
ROUGH, INEXACT = 1.0, 0.1
"""Share of the gap between the bounds that an inexact policy may cost the lower bound: at first,
and when the bound can gain by it."""
MASTER_SHARE, ROUGHEST = 0.1, 0.5
"""The master is solved to this share of the gap between the bounds, and at least to the latter."""
TABLE_BYTES = 2**27
"""Values of all costs are kept for the next call if they take no more memory than this."""
CRUMBS = 1e-3
"""Shares of a mixture below this part of the gap are left out."""
FLOOR = 1e-10
"""Nor is the master asked for more than this."""


@dataclass(frozen=True, eq=False)
class DualPoint:
    """The best lower bound and what proves it."""

    bound: float
    dual: FloatArray
    values: FloatArray


class BoundedSearch(ABC):
    """State of one solve: two bounds, in the units of its task, that are valid after every call."""

    patience: int
    """Calls without progress before it is given up."""

    def __init__(
        self, task: UnitProgram, tolerance: float, watch: Watch, memory_limit: float = np.inf
    ) -> None:
        self.task, self.world, self.watch = task, task.world, watch
        self.memory_limit = memory_limit
        self.duals, self.costs = task.duals, task.costs
        self.tolerance = tolerance / task.unit
        self.accuracy = float(np.clip(1e-3 * self.tolerance, 1e-11, 1e-7))
        self.upper, self.calls = np.inf, 0
        bound = 0.0 if task.never_negative else -np.inf
        dual = 0 * task.first_dual if task.never_negative else task.first_dual
        self.best = DualPoint(bound, dual, np.zeros(task.world.num_states))
        self.trace: list[tuple[float, float, float]] = []
        self._difference = np.zeros(task.target.size)
        """Of the best policy: its expectations and spending less what is aimed at."""

    @property
    def lower(self) -> float:
        return self.best.bound

    @property
    def gap(self) -> float:
        return self.upper - self.best.bound

    @property
    def excess(self) -> float:
        """By how much the best policy breaks a budget, at most, in units of that budget."""
        return float(self._difference[self.duals.num_costs :].max(initial=0.0))

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound on the optimum in the problem's own units.

        A policy that breaks a budget proves nothing from above.
        """
        upper = self.upper if self.excess <= self.tolerance else np.inf
        return self.lower * self.task.unit, upper * self.task.unit

    @property
    @abstractmethod
    def held_bytes(self) -> int:
        """Of everything that outlives a call."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The engine in words."""

    @abstractmethod
    def call(self) -> bool:
        """One round; False when it was cut short by the watch."""

    @abstractmethod
    def take_over(self, other: Any) -> None:
        """Begin where another search over the same costs is."""

    @abstractmethod
    def raise_prices(self, factor: float) -> None:
        """Let broken budgets cost more; the upper bound starts again."""

    @abstractmethod
    def ending_seconds(self) -> float:
        """How long it will take to evaluate the best policy."""

    @abstractmethod
    def policy(self, accuracy: float) -> Policy:
        """The best policy."""


class ColumnSearch(BoundedSearch):
    """State of one solve. `lower`, `upper` and `mixture` are valid after every call."""

    patience = PATIENCE

    def __init__(
        self, task: UnitProgram, tolerance: float, watch: Watch, memory_limit: float = np.inf
    ) -> None:
        super().__init__(task, tolerance, watch, memory_limit)
        self.chains = self._chains_of(task.world, memory_limit)
        self.pool: ColumnPool | None = None
        self.mixture: Mixture | None = None
        self.tightness = 1.0
        self.known = KnownWeights.of(task, self.tolerance)
        self.dual = self.known.applied(task.first_dual, task)
        if not task.never_negative:
            self.best = replace(self.best, dual=self.dual)
        self._values = np.zeros(task.world.num_states)
        self._table: FloatArray | None = None
        self._visit_seconds = 0.0
        self._last_visits: Any = None
        self._visits: dict[int, tuple[IntArray, Any]] = {}
        """Of generated policies from the whole start, by the identity of their actions."""

    @staticmethod
    def _chains_of(world: Any, memory_limit: float) -> Chains:
        """What plans and evaluates in the task's world."""
        return Chains(world, memory_limit)

    @property
    def held_bytes(self) -> int:
        """Of everything that outlives a call."""
        table = 0 if self._table is None else self._table.nbytes
        pool = 0 if self.pool is None else self.pool.held_bytes
        vectors = self._values.nbytes + self.best.values.nbytes
        visits = sum(int(kept.nbytes) for _, kept in self._visits.values())
        return table + pool + vectors + visits + self.chains.held_bytes

    @property
    def description(self) -> str:
        """The engine in words."""
        if self.pool is None:
            return "column generation (not started)"
        start_rows = self.pool.start_rows
        form = "core and exits" if start_rows.pairs.size else "start blocks"
        form = form.removesuffix("s") if start_rows.num_rows == 1 else form
        means = "LU" if self.chains.direct else "BiCGSTAB"
        means = "substitution" if self.world.is_forward else means
        return f"column generation ({self.calls} calls, {start_rows.num_rows} {form}, {means})"

    def call(self) -> bool:
        """One round; False when it was cut short by the watch."""
        cost = np.asarray(self.costs @ self.dual)
        found = self._policy_for(cost)
        if self.watch.must_stop and cost.size > LONG:
            return False
        if self.pool is None:
            self.pool = self._open(found.choice)
        self._values = found.values
        by_visits = self._by_visits and not self.pool.start_rows.pairs.size
        read = self._expectations_by_visits if by_visits else self._expectations_by_values
        expectations = read(self.pool, found.choice)
        if expectations is None:
            return False
        best, _ = self.chains.greedy(cost, self._values)
        self._bound(self.dual, self._values, float((self._values - best).max()))
        self._keep_visits(self.pool.add(found.choice, expectations))
        self._solve_master(self.pool)
        self.calls += 1
        self.trace.append((self.watch.elapsed, *self.bounds))
        return True

    def _policy_for(self, cost: FloatArray) -> Improvement:
        """A rough plan at first, a better one if that can improve the lower bound."""
        allowed = self._scale() * (1 - self.world.discount)
        values = self._guess()
        for share in (ROUGH, INEXACT):
            found = improve(self.chains, cost, values, most=STEPS, allowed=share * allowed)
            self._bound(self.dual, found.values, found.loss)
            values = found.values
            hoped = float(self.world.initial @ values - self.task.target @ self.dual)
            if hoped <= self.lower or self.watch.must_stop:
                break
        return found

    def take_over(self, other: "ColumnSearch") -> None:
        """Begin with the policies and the mixture of another search over the same costs."""
        self.chains, self.pool, self.mixture = other.chains, other.pool, other.mixture
        self._values, self._table, self._visits = other._values, other._table, other._visits
        self._visit_seconds = other._visit_seconds
        self._difference = other._difference + other.task.target - self.task.target
        self.upper = self.duals.support(self._difference)
        if self.pool is not None and self.gap > self.tolerance:
            self._solve_master(self.pool)

    def raise_prices(self, factor: float) -> None:
        """Let broken budgets cost more; the upper bound starts again."""
        self.duals = self.duals.raised(factor)
        self.upper = np.inf
        if self.pool is not None:
            self._solve_master(self.pool)

    def ending_seconds(self) -> float:
        """How long it will take to evaluate the best mixture: visits of every policy in it, then
        those of the mixture, more exactly, and its bounds."""
        parts = [] if self.mixture is None else self.mixture.parts
        if not parts:  # nothing yet, or a core that holds all that is reached
            return shortest_ending(self.world, self.watch)
        if not self._visit_seconds:
            start = self._start_of(parts[0][1])
            for _ in range(2):  # the first time kernels may have to be compiled
                self._visit_seconds = self._seconds_of_visits(self._choice(parts[0][0]), start)
        missing = sum(id(actions) not in self._visits for actions, _ in parts)
        return self._visit_seconds * (missing / 2 + ENDING)

    def _seconds_of_visits(self, choice: IntArray, start: FloatArray) -> float:
        began = self.watch.elapsed
        self.chains.visits(choice, start, HURRIED)
        return self.watch.elapsed - began

    def _choice(self, actions: IntArray) -> IntArray:
        """The pair of each state."""
        return np.asarray(self.world.pairs.offsets[:-1] + actions)

    def _start_of(self, weights: FloatArray) -> FloatArray:
        """The measure of all rows by their weights."""
        assert self.mixture is not None
        return np.asarray(self.mixture.start_rows.starts.T @ weights)

    def policy(self, accuracy: float) -> Policy:
        """The stationary policy of the best mixture (Proposition 1)."""
        world = self.world
        if self.mixture is None:
            return Policy.uniform(world)
        measure = np.zeros(world.num_pairs)
        measure[self.mixture.start_rows.pairs] = self.mixture.own
        for actions, weights in self.mixture.parts:
            choice, kept = self._choice(actions), self._visits.get(id(actions))
            if kept is not None and accuracy >= KEPT_ACCURACY:
                visits = weights[0] * kept[1]
            else:
                visits = self.chains.visits(choice, self._start_of(weights), accuracy)
            measure[choice] += np.maximum(visits, 0.0)
        return extract(world, measure)

    def _keep_visits(self, actions: IntArray) -> None:
        """What the last policy does from the whole start, which its mixtures will ask for."""
        if self._last_visits is None:
            return
        self._visits[id(actions)] = actions, self._last_visits
        self._last_visits = None
        most = min(VISITS_BYTES, self.memory_limit / 4)
        while sum(kept.nbytes for _, kept in self._visits.values()) > most:
            self._visits.pop(next(iter(self._visits)))

    def _scale(self) -> float:
        return max(min(self.gap, 1.0), self.tolerance)

    def _guess(self) -> FloatArray:
        return self._values if self._table is None else np.asarray(self._table @ self.dual)

    def _bound(self, dual: FloatArray, values: FloatArray, loss: float) -> None:
        world = self.world
        bound = float(world.initial @ values - self.task.target @ dual)
        bound -= loss * world.effective_horizon
        if bound > self.best.bound:
            self.best = DualPoint(bound, dual, values.copy())

    def _solve_master(self, pool: ColumnPool) -> None:
        master = pool.master(self.task.target, self.duals)
        asked = min(ROUGHEST, MASTER_SHARE * self.gap) * self.tightness
        point = solve_master(master, max(asked, self.tolerance / 5, FLOOR))
        if point.upper < self.upper:
            self.upper = point.upper
            self.mixture = pool.snapshot(point.mixture, CRUMBS * self._scale())
            self._difference = master.miss(point.mixture)
        pool.retire(point)
        self.dual = self._admitted(point.dual)

    def _admitted(self, dual: FloatArray) -> FloatArray:
        """The dual point moved into the cost class, should rounding have left it."""
        return self.known.applied(self.duals.weights(dual), self.task)

    @property
    def _by_visits(self) -> bool:
        """Whether few start blocks, and a solve for each of them, replace one for every cost."""
        few = self.costs.shape[1] > FEWER_BLOCKS or self._whole_start
        return not self.chains.direct and few

    @property
    def _whole_start(self) -> bool:
        """Whether there is a single start block, because solves take long."""
        iterative = not (self.chains.direct or self.chains.leads_forward)
        return iterative and self.world.num_states > LONG

    def _expectations_by_values(self, pool: ColumnPool, choice: IntArray) -> FloatArray | None:
        """Columns of a policy; its values for the present dual point on the way."""
        size = self.costs.shape[1]
        expectations = np.empty((pool.start_rows.num_rows, size))
        values = np.zeros(self.world.num_states)
        keep = 8 * self.world.num_states * size <= min(TABLE_BYTES, self.memory_limit / 4)
        blocks = []
        for part, table in self.chains.tables(choice, self.costs, self.accuracy):
            expectations[:, part] = pool.start_rows.starts @ table
            values += table @ self.dual[part]
            if keep:
                blocks.append(table)
            if self.watch.must_stop and (part.stop < size or table.size > LONG):
                return None
        self._values = values
        self._table = np.hstack(blocks) if keep else None
        return expectations

    def _expectations_by_visits(self, pool: ColumnPool, choice: IntArray) -> FloatArray | None:
        """Columns of a policy from its visits, start block by start block."""
        starts, chosen = pool.start_rows.starts, self.costs[choice]
        width = max(1, BLOCK_BYTES // (8 * self.world.num_states))
        parts, began = [], self.watch.elapsed
        for first in range(0, starts.shape[0], width):
            some = np.ascontiguousarray(starts[first : first + width].toarray().T)
            visits = self.chains.visits(choice, some, self.accuracy)
            parts.append((chosen.T @ visits).T)
            if self.watch.must_stop and (first + width < starts.shape[0] or some.size > LONG):
                return None
        if starts.shape[0] == 1 and self._whole_start:
            self._last_visits = visits[:, 0].astype(np.float32)
            self._visit_seconds = self.watch.elapsed - began
        return np.vstack(parts)

    def _open(self, choice: IntArray) -> ColumnPool:
        world = self.world
        start_rows: StartRows
        starts = np.count_nonzero(world.initial)
        if self._whole_start:
            start_rows = Blocks(world, np.zeros(starts, dtype=np.int64))
        elif starts <= FEW_STARTS and 2 * starts <= world.num_states:
            start_rows = Core(world, core_around(world, CORE))
        else:
            start_rows = self._start_blocks(choice)
        own = self.costs[start_rows.pairs]
        own = dense(own)
        return ColumnPool(world, start_rows, own)

    def _start_blocks(self, choice: IntArray) -> Blocks:
        """Start states that are alike under a policy."""
        rng = np.random.default_rng(0)
        mixtures = rng.normal(size=(self.costs.shape[1], SKETCH))
        if self.costs.shape[1] <= SKETCH:
            mixtures = np.eye(self.costs.shape[1])
        sketch = np.asarray(self.costs @ mixtures)
        count = FEWER_BLOCKS if self._by_visits else BLOCKS
        parts = [table for _, table in self.chains.tables(choice, sketch, 1e-4)]
        initial = self.world.initial
        return Blocks(self.world, value_blocks(np.hstack(parts), initial, count))


def generate(search: BoundedSearch, most: int) -> Status:
    """Call until the bounds meet: OPTIMAL in the search's own units, or what stopped it."""
    watch, gaps = search.watch, [np.inf]
    if watch.seconds is not None and not watch.reserve:
        watch.reserve = search.ending_seconds()
    while search.gap > search.tolerance:
        if watch.must_stop or not search.call():
            return watch.stop_status
        watch.reserve = search.ending_seconds() if watch.seconds is not None else 0.0
        lower, upper = search.bounds
        watch.report(search.calls, upper, lower)
        if search.gap > search.tolerance and search.held_bytes > search.memory_limit:
            return Status.MEMORY_LIMIT
        if search.calls >= most and search.gap > search.tolerance:
            return Status.STEP_LIMIT
        gaps.append(search.gap)
        stalled = len(gaps) > search.patience and gaps[-1] >= gaps[-search.patience]
        if stalled:
            return Status.INACCURATE
    return Status.OPTIMAL


def shortest_ending(world: World, watch: Watch) -> float:
    """Seconds that evaluating any policy takes, from one pass over the transitions."""
    began = watch.elapsed
    world.transition @ np.zeros(world.num_states)
    return ENDING_PASSES * (watch.elapsed - began)


def keep_budgets(
    search: BoundedSearch, most: int, status: Status, allowed: float | None = None
) -> Status:
    """Raise prices and go on until the mixture keeps the budgets, or has had its chances."""
    for _ in range(RAISES):
        room = search.tolerance if allowed is None else allowed
        if status is not Status.OPTIMAL or search.excess <= room:
            break
        search.raise_prices(RAISE)
        status = generate(search, most)
    return status


SAFETY = 0.9
"""A search stops at this share of the tolerance; the rest is for rounding."""
EXACT = 1e-12
"""Accuracy of the second evaluation, should the first have been too rough."""
ENDING_PASSES = 60
"""Passes over the transitions that an evaluation takes: its own are over fewer, and more."""
ENDING = 1.5
"""Times the first one that was measured: an exact evaluation and the bounds. Those of the other
policies take about half of it."""
HURRIED = 1e-5
"""Accuracy of the only evaluation after a limit."""
ROUNDING = 1e-12
"""Value and bound may differ by this share of the value whatever the tolerance."""


def evaluated(
    problem: Apprenticeship,
    search: BoundedSearch,
    witness: Witness,
    is_good: Callable[[Solution], bool],
) -> Solution:
    """The policy of the best mixture; once more exactly if the first one is not good.

    A search that was stopped has no time for an exact mixture; what it has is evaluated exactly.
    """
    stopped = search.watch.must_stop and search.gap > search.tolerance
    accuracy = max(search.accuracy, HURRIED) if stopped else search.accuracy
    with whatever_it_takes():
        rough = Solution.of(problem, search.policy(accuracy), witness)
        if search.upper == np.inf or stopped or is_good(rough):
            return rough
        fine = Solution.of(problem, search.policy(EXACT), witness)
    return min(rough, fine, key=lambda solution: solution.value)


def is_optimal(problem: Apprenticeship, solution: Solution, tolerance: float) -> bool:
    """Whether value and bound agree to the tolerance and budgets are kept as exactly."""
    close = solution.value - solution.lower_bound <= allowance(solution, tolerance)
    return close and bool((solution.overspending <= overdrafts(problem, tolerance)).all())


def allowance(solution: Solution, tolerance: float) -> float:
    """By how much value and bound may differ."""
    return max(tolerance, ROUNDING * abs(solution.value))


def overdrafts(problem: Apprenticeship, tolerance: float) -> FloatArray:
    """By how much each budget may be broken: in its own unit the tolerance of the gap."""
    return np.asarray(tolerance / problem.cost_unit * problem.budget_units)
