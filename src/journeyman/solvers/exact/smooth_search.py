"""The loop of `SmoothedProgram`: policies that answer a cost softly, and Newton's method for it.

With a temperature t > 0 the least cost of all policies becomes a smooth function of the weights y,

    g_t(y) = <initial, V> - <y, target>
    V(x) = -t log sum_a exp( -Q(x, a)/t ),      Q = c_y + discount P V

below g_0, whose maximum over Y is the optimum. Its gradient is what the soft-greedy policy misses,
z = costs' mu - target, and everything that Newton's method needs follows from the policy's values T
of all costs, one linear solve for each:

    Q_i = c_i + discount P T_i,     -g_t'' = sum_x d(x) Cov_{a ~ pi(x)}(Q_1(x, a), .., Q_n(x, a))/t

One call

1. evaluates the policy for every cost (T);
2. solves, at a lower temperature if the last one has been solved, the problem in which each state
   answers new weights softly while its visits d and the values T behind it stay as they are: by
   Newton's method, whose steps are small quadratic programs over Y (`weight_step`);
3. plans softly for the weights it has found: the policy, its visits, and so z.

With discount 0 this is exact. It nearly is where few states still change their action, so the last
calls gain several digits each. Where much changes the weights go only as far as g_t rises.

Bounds. The policy's gap, max over Y of <y, z>, bounds the optimum from above. From below a plan for
y without temperature does, whatever it misses (`improve`). Their distance is

    gap - <y, z>    what the weights miss,      and      <y, z> - g_0(y)    what the policy does,

about as large as t times the share of states that are undecided at t, hence like t^2. The next
temperature is taken when the first is no longer larger than the second.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix, dense, norms
from journeyman.policy.planning import improve
from journeyman.policy.policy_evaluation import (
    Chains,
    DiscountedSystem,
    averaging,
    cached_width,
    compiled_system,
    factorise,
    substituted,
    substituted_block,
)
from journeyman.policy.steps import BLOCK_ITERATIONS
from journeyman.policy.table import Policy
from journeyman.solvers.exact.column_search import BoundedSearch, DualPoint, shortest_ending
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.exact.weight_step import weight_step
from journeyman.solvers.running import Watch

FIRST_RATIO, LEAST_RATIO, MOST_RATIO = 0.25, 0.01, 0.95
"""By which the temperature falls at first, at most and at least."""
WANTED, CENTRED = 0.1, 3.0
"""A temperature has been solved when the weights miss at most so many times what the policy does;
the former far from the optimum, the latter once they miss little (`NEAR_ENOUGH`)."""
WELL = 0.03
"""A fall of the temperature has gone well when the weights miss at most this share of what was
missed before."""
NEAR_ENOUGH = 1e-3
"""It has gone wrong when they miss more than was missed before, and more than this."""
FALLS, CORRECTIONS = 2, 4
"""So many falls are tried, and so many corrections after one before it is taken back."""
PATIENCE = 10
"""Calls without progress before it is given up: two temperatures with all their corrections."""
SOFT_STEPS = 12
SOFT_ACCURACY = 1e-3
"""Of the temperature: what soft values may miss."""
SOFT_REDUCTION = 1e-2
TABLE_ACCURACY, FINEST_TABLE = 1e-3, 1e-10
"""Of the values of all costs; it falls with the temperature, which errors are compared with."""
INNER_STEPS = 30
DECIDED = 1e-30
"""Actions of less probability do not count in the model of a call."""
NEGLIGIBLE = 1e-13
OVERSHOT = 0.5
"""A step of the weights is shortened when the slope behind it is below minus this share."""
BETTER = 0.7
"""Nor is it when the weights then miss less than this share."""
PLAN_STEPS = 60
CHUNK_BYTES, KEPT_BYTES = 2**26, 2**29
"""Of what a state's costs lead to: more than the former is handled in pieces, and kept, up to the
latter, in single precision, which the curvature needs no more than."""
SETTLED = 1e-6
"""States in which one action has all but this probability add nothing to the curvature."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class SoftPoint:
    """Weights, temperature, and what the soft-optimal policy makes of them."""

    coordinates: FloatArray
    dual: FloatArray
    temperature: float
    values: FloatArray
    law: FloatArray
    visits: FloatArray
    difference: FloatArray
    upper: float
    weights_miss: float
    policy_misses: float


class SoftChain:
    """Systems of one randomised policy of a world: values, visits and a table of values."""

    def __init__(self, chains: Chains, law: FloatArray) -> None:
        self.world, self.direct = chains.world, chains.direct
        kept = np.where(law < NEGLIGIBLE, 0.0, law)
        pairs = np.flatnonzero(kept)
        offsets = np.searchsorted(pairs, self.world.pairs.offsets)
        mixing = sparse.csr_array(
            (kept[pairs], pairs, offsets), shape=(self.world.num_states, self.world.num_pairs)
        )
        self.matrix: SparseMatrix = (mixing @ self.world.continuation).tocsr()
        self._factor: Any = None

    @property
    def factor(self) -> Any:
        if self._factor is None:
            self._factor = factorise(DiscountedSystem(self.matrix, self.world.discount).matrix)
        return self._factor

    def solve(self, right: FloatArray, guess: FloatArray, reduction: float) -> FloatArray:
        """Values of a cost per state, roughly: the residual of the guess times `reduction`."""
        from journeyman.policy.system_kernels import bicgstab, residual_norm

        system = compiled_system(self.matrix, self.world.discount)
        if self.world.is_forward:
            return substituted(system, right, transposed=False)
        x = guess.copy()
        wanted = reduction * residual_norm(system, right, x)
        bicgstab(system, right, x, wanted, BLOCK_ITERATIONS)
        if not residual_norm(system, right, x) <= 10 * wanted:
            if self.direct:
                return np.asarray(self.factor.solve(right))
            x = DiscountedSystem(self.matrix, self.world.discount).solve(
                right, guess=guess, reduction=reduction
            ).x  # fmt: skip
        return x

    def visits(self, guess: FloatArray, accuracy: float) -> FloatArray:
        """Discounted visits to every state from the initial law."""
        from journeyman.policy.system_kernels import bicgstab, residual_norm

        initial, discount = self.world.initial, self.world.discount
        if self.world.is_forward:
            system = compiled_system(self.matrix, discount)
            return np.maximum(substituted(system, initial, transposed=True), 0.0)
        if self.direct:
            return np.asarray(np.maximum(self.factor.solve(initial, trans="T"), 0.0))
        system, x = compiled_system(self.matrix.T.tocsr(), discount), guess.copy()
        wanted = accuracy * float(norms(initial))
        bicgstab(system, initial, x, wanted, BLOCK_ITERATIONS)
        if not residual_norm(system, initial, x) <= 10 * wanted:
            x = DiscountedSystem(self.matrix, discount).solve(
                initial, transposed=True, guess=guess
            ).x  # fmt: skip
        return np.maximum(x, 0.0)

    def table(self, right: FloatArray, guess: FloatArray, accuracy: float) -> FloatArray:
        """Values of all costs (states x costs)."""
        from journeyman.policy.system_kernels import bicgstab_block

        system = compiled_system(self.matrix, self.world.discount)
        if self.world.is_forward:
            return substituted(system, right, transposed=False)
        if self.direct:
            return substituted_block(self.factor, right)
        x = guess.copy()
        width = cached_width(self.world.num_states)
        for first in range(0, right.shape[1], width):
            part = slice(first, first + width)
            some, block = (np.ascontiguousarray(array[:, part]) for array in (right, x))
            bicgstab_block(system, some, block, accuracy * norms(some), BLOCK_ITERATIONS)
            x[:, part] = np.where(np.isfinite(block), block, 0.0)
        return x


class SmoothSearch(BoundedSearch):
    """State of one solve. `lower`, `upper` and the best policy are valid after every call."""

    patience = PATIENCE

    def __init__(
        self, task: UnitProgram, tolerance: float, watch: Watch, memory_limit: float = np.inf
    ) -> None:
        super().__init__(task, tolerance, watch, memory_limit)
        self.chains = Chains(task.world, memory_limit)
        self.mixture: SoftPoint | None = None
        """The point of the best policy."""
        self.point: SoftPoint | None = None
        self.ratio, self._bold, self._corrections = FIRST_RATIO, True, 0
        self._wanted, self._first_temperature = WANTED, 1.0
        self._anchor: SoftPoint | None = None
        """The last point whose weights were solved for."""
        self._chain: tuple[FloatArray, SoftChain] | None = None
        self._table = np.zeros((task.world.num_states, task.target.size))
        self._visits = task.world.initial * task.world.effective_horizon
        self._visit_seconds = 0.0

    @property
    def excess(self) -> float:
        """By how much the best policy breaks a budget, at most, in units of that budget."""
        if self.mixture is None:
            return 0.0
        return float(self.mixture.difference[self.duals.num_costs :].max(initial=0.0))

    @property
    def held_bytes(self) -> int:
        """Of everything that outlives a call."""
        return self._table.nbytes + 6 * 8 * self.world.num_pairs

    @property
    def description(self) -> str:
        """The engine in words."""
        means = "LU" if self.chains.direct else "BiCGSTAB"
        means = "substitution" if self.world.is_forward else means
        return f"smoothed program ({self.calls} calls, {means})"

    def ending_seconds(self) -> float:
        """How long it will take to evaluate the best policy: twice what its visits took."""
        return 2 * self._visit_seconds or shortest_ending(self.world, self.watch)

    def policy(self, accuracy: float) -> Policy:
        """The best policy."""
        if self.mixture is None:
            return Policy.uniform(self.world)
        return Policy(self.mixture.law, self.world.pairs)

    def take_over(self, other: "SmoothSearch") -> None:
        """Begin with the table of another search over the same costs."""
        self.chains, self._table, self._visits = other.chains, other._table, other._visits

    def raise_prices(self, factor: float) -> None:
        """Let broken budgets cost more; upper bound and temperature start again, since weights
        that are far from the new optimum are hardly found when it is cold."""
        self.duals, self.upper = self.duals.raised(factor), np.inf
        self.ratio, self._bold, self._corrections = FIRST_RATIO, True, 0
        self._wanted, self._anchor = WANTED, None
        if self.point is not None:
            again = self._at(self.point.coordinates, self._first_temperature, self.point.values)
            if again is not None:
                self._take(again)

    def call(self) -> bool:
        """One round; False when it was cut short by the watch."""
        point = self._first_point() if self.point is None else self._next_point(self.point)
        if point is None:
            return False
        self._take(point)
        self.calls += 1
        self.trace.append((self.watch.elapsed, *self.bounds))
        return True

    def _take(self, point: SoftPoint) -> None:
        self.point = point
        if point.upper < self.upper:
            self.upper, self.mixture = point.upper, point
        if float(point.dual @ point.difference) > self.lower:
            self._bound_below(point)

    def _bound_below(self, point: SoftPoint) -> None:
        """By a plan for the weights."""
        world = self.world
        allowed = 0.1 * max(self.tolerance, 0.1 * min(self.gap, 1.0)) * (1 - world.discount)
        cost = np.asarray(self.costs @ point.dual)
        found = improve(self.chains, cost, point.values, most=PLAN_STEPS, allowed=allowed)
        bound = float(world.initial @ found.values - self.task.target @ point.dual)
        bound -= found.loss * world.effective_horizon
        if bound > self.lower:
            self.best = DualPoint(bound, point.dual, found.values)

    def _first_point(self) -> SoftPoint | None:
        duals = self.duals
        if duals.chosen is None:
            start = self.task.first_dual
        else:
            start = np.concatenate([duals.chosen.middle(), duals.lower[duals.num_lifted :]])
        squares = self.costs.multiply(self.costs) if sparse.issparse(self.costs) else self.costs**2
        size = float(np.sqrt(squares.sum() / self.world.num_pairs))
        self._first_temperature = size or 1.0
        return self._at(start, self._first_temperature, np.zeros(self.world.num_states))

    def _at(
        self, coordinates: FloatArray, temperature: float, values: FloatArray
    ) -> SoftPoint | None:
        """The soft-optimal policy for some weights, from a guess of its values."""
        from journeyman.policy.system_kernels import soft_step

        world, matrix = self.world, self.world.continuation
        dual = self.duals.weights(coordinates)
        cost = np.asarray(self.costs @ dual)
        law = np.empty(world.num_pairs)
        soft, least, mean = (np.empty(world.num_states) for _ in range(3))
        for step in range(SOFT_STEPS + 1):
            soft_step(
                matrix.data, matrix.indices, matrix.indptr, world.pairs.offsets, cost,
                world.discount, temperature, values, law, soft, least, mean,
            )  # fmt: skip
            change = soft - values
            spread = float(change.max() - change.min())
            if spread <= SOFT_ACCURACY * temperature or step == SOFT_STEPS:
                break
            if self.watch.must_stop:
                return None
            chain = SoftChain(self.chains, law)
            values = values + chain.solve(change, np.zeros_like(change), SOFT_REDUCTION)
        chain = SoftChain(self.chains, law)
        began = self.watch.elapsed
        self._visits = visits = chain.visits(self._visits, self.accuracy)
        self._visit_seconds = self.watch.elapsed - began
        measure = visits[world.pairs.states] * law
        difference = np.asarray(self.costs.T @ measure) - self.task.target
        upper = self.duals.support(self.duals.lifted(difference)) + float(
            self.duals.base(difference)
        )
        self._chain = law, chain
        return SoftPoint(
            coordinates, dual, temperature, values, law, visits, difference, upper,
            upper - float(dual @ difference), float(visits @ (mean - least)),
        )  # fmt: skip

    def _next_point(self, point: SoftPoint) -> SoftPoint | None:
        if not self._is_centred(point):
            self._corrections += 1
            if self._anchor is None or self._corrections <= CORRECTIONS:
                return self._corrected(point)
            self.ratio, point = min(self.ratio**0.5, MOST_RATIO), self._anchor
        else:
            self._adapt(point)
        return self._cooled(point)

    def _is_centred(self, point: SoftPoint) -> bool:
        near = point.weights_miss <= NEAR_ENOUGH
        allowed = (CENTRED if near else self._wanted) * point.policy_misses
        return point.weights_miss <= max(allowed, 0.3 * self.tolerance)

    def _adapt(self, point: SoftPoint) -> None:
        """The next fall of the temperature, by how hard the last one was."""
        if self._anchor is not None and self._corrections <= 1:
            missed = self._anchor.weights_miss + self._anchor.policy_misses
            well = self._corrections == 0 and point.weights_miss <= WELL * missed
            self.ratio = max(self.ratio ** (3.0 if well else 1.5), LEAST_RATIO)
        elif self._corrections >= CORRECTIONS - 1:
            self.ratio = min(self.ratio**0.7, MOST_RATIO)

    def _cooled(self, point: SoftPoint) -> SoftPoint | None:
        """The next temperature, or better weights where every fall of it goes wrong."""
        model = self._model(point)
        if model is None:
            return None
        self._anchor, self._corrections, self._bold = point, 0, True
        missed = point.weights_miss + point.policy_misses
        for _ in range(FALLS):
            goal = max(0.1 * self.tolerance, 0.02 * missed * self.ratio)
            lower = point.temperature * self.ratio
            trial = self._moved(point, model.answer(lower, goal, INNER_STEPS), lower)
            if trial is None or trial.weights_miss <= max(missed, NEAR_ENOUGH, self.tolerance):
                self._wanted = WANTED
                return trial
            self.ratio = min(self.ratio**0.5, MOST_RATIO)
        self._wanted = 0.1 * point.weights_miss / max(point.policy_misses, 1e-300)
        return self._corrected(point, model)

    def _corrected(self, point: SoftPoint, model: "Model | None" = None) -> SoftPoint | None:
        """Better weights at the same temperature, as far as g_t rises."""
        model = self._model(point) if model is None else model
        if model is None:
            return None
        missed = point.weights_miss + point.policy_misses
        goal = max(0.05 * self.tolerance, 0.01 * missed)
        steps = INNER_STEPS if self._bold else 1
        aim = model.answer(point.temperature, goal, steps)
        along = self.duals.weights(aim) - point.dual
        length, slope = 1.0, float(point.difference @ along)
        while True:
            coordinates = point.coordinates + length * (aim - point.coordinates)
            trial = self._moved(point, coordinates, point.temperature)
            if trial is None:
                return None
            behind = float(trial.difference @ along)
            better = trial.weights_miss <= BETTER * point.weights_miss
            if better or behind >= -OVERSHOT * slope or slope <= 0 or length < 1e-3:
                self._bold = length == 1.0
                return trial
            length *= max(0.1, min(0.6, slope / (slope - behind)))

    def _moved(
        self, point: SoftPoint, coordinates: FloatArray, temperature: float
    ) -> SoftPoint | None:
        dual, share = self.duals.weights(coordinates), temperature / point.temperature
        surprise = point.values - self._table @ point.dual
        return self._at(coordinates, temperature, self._table @ dual + share * surprise)

    def _model(self, point: SoftPoint) -> "Model | None":
        """Values of all costs, and what follows from them."""
        right = dense(averaging(self.world, point.law) @ self.costs)
        if self._chain is None or self._chain[0] is not point.law:
            self._chain = point.law, SoftChain(self.chains, point.law)
        chain = self._chain[1]
        cooled = point.temperature / self._first_temperature
        accuracy = max(TABLE_ACCURACY * cooled, FINEST_TABLE)
        self._table = chain.table(np.ascontiguousarray(right), self._table, accuracy)
        if self.watch.must_stop:
            return None
        return Model(self, point, self._table)


class Model:
    """The problem in which each state answers new weights softly while visits and values stay."""

    def __init__(self, search: SmoothSearch, point: SoftPoint, table: FloatArray) -> None:
        world = search.world
        states = world.pairs.states
        self.duals, self.point, self.table = search.duals, point, table
        self.discount = world.discount
        live = point.law > DECIDED
        several = np.bincount(states[live], minlength=world.num_states) > 1
        self.pairs: IntArray = np.flatnonzero(live & several[states] & (point.visits > 0)[states])
        own = states[self.pairs]
        self.first = np.flatnonzero(np.diff(own, prepend=-1))
        self.group = np.repeat(np.arange(self.first.size), np.diff(self.first, append=own.size))
        self.mass = point.visits[own]
        self.law = point.law[self.pairs]
        self.costs, self.steps = search.costs[self.pairs], world.continuation[self.pairs]
        surprise = (point.values - table @ point.dual) / point.temperature
        self.surprise = self.discount * (self.steps @ surprise)
        self._kept: Array | None = None
        entries = self.pairs.size * table.shape[1]
        if 4 * entries <= min(KEPT_BYTES, search.memory_limit / 4):
            single = 8 * entries > CHUNK_BYTES
            kept = np.empty((self.pairs.size, table.shape[1]), np.float32 if single else float)
            for rows in np.array_split(np.arange(self.pairs.size), 1 + 8 * entries // CHUNK_BYTES):
                kept[rows] = self._computed(rows)
            self._kept = kept

    def answer(self, temperature: float, goal: float, most: int) -> FloatArray:
        """Coordinates of the weights that solve the model, up to `goal`."""
        duals, coordinates = self.duals, self.point.coordinates
        law, difference, dual = self.law, self.point.difference, self.point.dual
        centre = dual * (temperature / self.point.temperature)
        for step in range(most):
            curvature = self._curvature(law, temperature)
            gradient = difference - curvature @ (dual - centre)
            aim = weight_step(duals, coordinates, gradient, curvature, 0.1 * goal)
            coordinates, law, difference = self._stepped(
                coordinates, aim, difference, temperature, cautious=step > 0
            )
            centre = dual = duals.weights(coordinates)
            missed = duals.support(duals.lifted(difference)) + float(duals.base(difference))
            if missed - float(dual @ difference) <= goal:
                break
        return coordinates

    def _stepped(
        self,
        start: FloatArray,
        aim: FloatArray,
        difference: FloatArray,
        temperature: float,
        *,
        cautious: bool,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """As far towards `aim` as the objective rises."""
        length = 1.0
        along = self.duals.weights(aim) - self.duals.weights(start)
        slope = float(difference @ along)
        while True:
            coordinates = start + length * (aim - start)
            law = self._law(self.duals.weights(coordinates), temperature)
            found = self._difference(law)
            behind = float(found @ along)
            if not cautious or behind >= -OVERSHOT * slope or slope <= 0 or length < 1e-4:
                return coordinates, law, found
            length *= max(0.1, min(0.6, slope / (slope - behind)))

    def _law(self, dual: FloatArray, temperature: float) -> FloatArray:
        ahead = self.costs @ dual + self.discount * (self.steps @ (self.table @ dual))
        logits: FloatArray = -(np.asarray(ahead) / temperature + self.surprise)
        if not logits.size:
            return logits
        logits = logits - np.maximum.reduceat(logits, self.first)[self.group]
        shares = np.exp(logits)
        return np.asarray(shares / np.add.reduceat(shares, self.first)[self.group])

    def _difference(self, law: FloatArray) -> FloatArray:
        moved = self.mass * (law - self.law)
        onwards = self.discount * (self.table.T @ (self.steps.T @ moved))
        return np.asarray(self.point.difference + self.costs.T @ moved + onwards)

    def _curvature(self, law: FloatArray, temperature: float) -> FloatArray:
        """sum_x d(x) Cov(Q(x, .))/t over the states that are undecided, some at a time."""
        from journeyman.policy.system_kernels import centre_rows

        size = self.table.shape[1]
        curvature = np.zeros((size, size))
        undecided = np.zeros(0, dtype=bool)
        if law.size:
            undecided = 1 - np.maximum.reduceat(law, self.first) > SETTLED
        rows = np.flatnonzero(undecided[self.group])
        heads = np.flatnonzero(np.diff(self.group[rows], prepend=-1))
        weights = np.sqrt(self.mass[rows] * law[rows] / temperature)
        width, begin = max(1, CHUNK_BYTES // (8 * size)), 0
        while begin < heads.size:
            end = max(begin + 1, int(np.searchsorted(heads, heads[begin] + width)))
            ends = np.append(heads, rows.size)[begin : end + 1]
            part = slice(ends[0], ends[-1])
            Q = self._ahead(rows[part])
            centre_rows(Q, ends - ends[0], law[rows[part]], weights[part], Q)
            curvature += Q.T @ Q
            begin = end
        return curvature

    def _ahead(self, rows: IntArray) -> Array:
        """Q of some pairs."""
        if self._kept is not None:
            return np.asarray(self._kept[rows])
        return self._computed(rows)

    def _computed(self, rows: IntArray) -> FloatArray:
        return np.asarray(dense(self.costs[rows]) + self.discount * (self.steps[rows] @ self.table))
