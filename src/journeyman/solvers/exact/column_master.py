"""The master problem of column generation, by a primal-dual interior-point method.

    minimise over x >= 0, F x = f    max over y in Y of <y, M x - target>

where the columns of M are expectations of generated policies, F couples them (one convexity row per
start block, or a small flow), and Y is the dual set. Its dual is

    maximise <f, v> - <target, y>    over y in Y and v with  s = M'y - F'v >= 0

Two things speak for interior points here. The matrix of a Newton step is only as large as y, since
the rows of F are eliminated first; and an iterate that stops short of optimality lies near the
middle of all good duals, which stabilises column generation: vertices make the weights jump. So the
master is solved from scratch, and only as exactly as its gap to the lower bound deserves.

Cost per iteration: one product M D M' of (costs + budgets)^2 times the number of columns.

Reference: Gondzio, Gonzalez-Brevis, Munari, "New developments in the primal-dual column generation
technique", European Journal of Operational Research, 2013. Mehrotra's predictor and corrector.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.solvers.exact.dual_set import DualSet
from journeyman.solvers.exact.start_blocks import StartRows
from journeyman.solvers.norm_cone import Scaling, centre
from journeyman.world import World

MOST_ITERATIONS = 80
TO_THE_BOUNDARY = 0.99
RIDGE = 1e-13
ILL_CONDITIONED = 1e-7
"""Ratio of pivots below which a Newton matrix is not multiplied out."""
LEAST_SLACK = 1e-20
"""A slack that rounding has taken to zero counts as this."""
LEAST_CENTRING = 1e-6
SMALL = 1e-3
CORRECTORS, WORTHWHILE = 2, 0.1
LOW, HIGH = 0.1, 10.0
"""Products outside this range of the goal are corrected."""
Parts = tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class Master:
    """`expectations` is M transposed, one row per column. `feasible` repairs x to F x = f."""

    expectations: FloatArray
    coupling: SparseMatrix
    right: FloatArray
    target: FloatArray
    duals: DualSet
    feasible: Callable[[FloatArray], FloatArray]

    def miss(self, mixture: FloatArray) -> FloatArray:
        """M x - target."""
        return np.asarray(self.expectations.T @ mixture - self.target)


@dataclass(frozen=True, eq=False)
class MasterPoint:
    """A mixture that is feasible, a dual point, the values of both, and the reduced costs."""

    mixture: FloatArray
    dual: FloatArray
    upper: float
    lower: float
    reduced_costs: FloatArray
    iterations: int


def solve_master(master: Master, tolerance: float) -> MasterPoint:
    """A point whose values differ by at most `tolerance`, or the best before progress ends."""
    iterate = _Iterate(master)
    best = iterate.point(0)
    for iteration in range(1, MOST_ITERATIONS + 1):
        if best.upper - best.lower <= tolerance or not iterate.advance():
            break
        found = iterate.point(iteration)
        if not np.isfinite(found.upper + found.lower):
            break
        if found.upper - found.lower < best.upper - best.lower:
            best = found
    return best


class _Direction:
    """A step of all variables."""

    def __init__(self, **parts: Any) -> None:
        self.x, self.s, self.y, self.v = (parts[name] for name in "xsyv")
        self.high, self.low = parts["high"], parts["low"]
        self.cone, self.total = parts["cone"], parts["total"]


class _Iterate:
    """x, s, y, v, the multipliers of the box (high, low) and of the sum, and the ball's cone."""

    def __init__(self, master: Master) -> None:
        self.master, self.set = master, master.duals
        self.columns, self.target = (
            self.set.lifted(master.expectations),
            self.set.lifted(master.target),
        )
        self.base, self.base_target = (
            self.set.base(numbers) for numbers in (master.expectations, master.target)
        )
        columns = self.columns
        self.F = Coupling(master.coupling)
        self.y = self.set.middle()
        self.x = master.feasible(np.ones(columns.shape[0]))
        prices = columns @ self.y + self.base
        self.v = self.F.below(prices, 0.1 * float(np.abs(prices).mean()) + SMALL)
        self.s = prices - self.F.spread(self.v)
        z = columns.T @ self.x - self.target
        size = float(np.abs(z).mean()) + SMALL
        ball = slice(0, self.set.num_lifted if self.set.is_ball else 0)
        self.cone, self.total, self.ball = (
            centre(-z[ball], size),
            np.zeros_like(self.set.right),
            ball,
        )
        z[ball] = 0.0
        self.high, self.low = np.maximum(z, 0.0) + size, np.maximum(-z, 0.0) + size

    def point(self, iteration: int) -> MasterPoint:
        mixture = self.master.feasible(self.x)
        upper = self.set.support(self.columns.T @ mixture - self.target)
        lower = float(self.master.right @ self.v - self.target @ self.y)
        if np.ndim(self.base):
            upper += float(self.base @ mixture - self.base_target)
            lower -= float(self.base_target)
        return MasterPoint(mixture, self.y.copy(), upper, lower, self.s.copy(), iteration)

    def advance(self) -> bool:
        """One step of predictor and corrector; False when the arithmetic has given out."""
        self._measure()
        if not self._factorise():
            return False
        first = self._direction(self._aims(0.0, None))
        after = sum(float(part.sum()) for part in self._products(first, *self._lengths(first)))
        share = max(float(after), 0.0) / (self.count * self.mean)
        goal = self.mean * max(share**3, LEAST_CENTRING)
        step = self._corrected(self._aims(goal, first), goal)
        primal, dual = (TO_THE_BOUNDARY * length for length in self._lengths(step))
        self._move(step, primal, dual)
        return bool(np.isfinite(self.y).all() and np.isfinite(self.x).all())

    def _corrected(self, aims: Parts, goal: float) -> _Direction:
        """The step, and Gondzio's correctors: outlying products are pulled in while steps grow."""
        step = self._direction(aims)
        for _ in range(CORRECTORS):
            lengths = self._lengths(step)
            longer = [min(1.0, 1.1 * length + 0.1) for length in lengths]
            trial = self._products(step, *longer)[:-1]
            pulls = [
                np.maximum(np.clip(part, LOW * goal, HIGH * goal) - part, -HIGH * goal)
                for part in trial
            ]
            pulled = tuple(aim + pull for aim, pull in zip(aims, pulls, strict=False))
            aims = (*pulled, aims[-1])
            better = self._direction(aims)
            if sum(self._lengths(better)) < sum(lengths) + WORTHWHILE:
                break
            step = better
        return step

    def _aims(self, goal: float, first: _Direction | None) -> Parts:
        """Wanted products of the multipliers of columns and box with their slacks, less what a
        `first` step of this kind would miss; and the change of the cone's multiplier."""
        columns, above, below = np.full(self.x.size, goal), np.full(self.y.size, goal), goal
        cone = self.cone.z
        if self.cone.is_there:
            cone = goal * self.cone.inverse - self.cone.z
        if first is None:
            return columns, above, np.full(self.y.size, goal), cone
        if self.cone.is_there:
            cone = cone - self.scaling.second_order(first.cone)
        return (
            columns - first.x * first.s, above + first.high * first.y, below - first.low * first.y,
            cone,
        )  # fmt: skip

    def _products(self, step: _Direction, primal: float, dual: float) -> Parts:
        """All complementarity products after a step of given lengths."""
        return (
            (self.x + primal * step.x) * (self.s + dual * step.s),
            (self.high + primal * step.high) * (self.above - dual * step.y),
            (self.low + primal * step.low) * (self.below + dual * step.y),
            np.array([self.cone.moved(step.cone, dual, primal).product]),
        )

    def _measure(self) -> None:
        """Residuals, slacks and the mean complementarity."""
        master = self.master
        self.above = np.maximum(self.set.upper - self.y, LEAST_SLACK)
        self.below = np.maximum(self.y - self.set.lower, LEAST_SLACK)
        self.flow_residual = master.right - self.F.total(self.x)
        self.slack_residual = self.columns @ self.y + self.base - self.F.spread(self.v) - self.s
        self.balance = -(self.columns.T @ self.x - self.target - self.high + self.low)
        self.balance[self.ball] -= self.cone.z[1:]
        if self.set.right.size:
            self.balance += self.set.spread(self.total)
        self.count = self.x.size + 2 * self.y.size + self.set.is_ball
        products = self.x @ self.s + self.high @ self.above + self.low @ self.below
        self.mean = (float(products) + self.cone.product) / self.count

    def _factorise(self) -> bool:
        """The matrix of the Newton steps, as a sum of squares: a difference would cancel."""
        columns, weights = self.columns, self.x / self.s
        self.weights = weights
        if not self.F.weigh(weights):
            return False
        self.reduced = self.F.solve(self.F.total(columns * weights[:, None]))
        rest = columns - self.F.spread(self.reduced)
        box = self.high / self.above + self.low / self.below
        matrix = rest.T @ (rest * weights[:, None])
        matrix[np.diag_indices_from(matrix)] += box
        self.scaling = Scaling(self.cone)
        if self.set.is_ball:
            self.stiffness = self.scaling.softened(np.eye(self.set.num_lifted), -1.0)
            matrix[self.ball, self.ball] += self.stiffness
            return self._take_factor(matrix, RIDGE)
        if self._take_factor(matrix, 0.0):
            return True
        roots = np.vstack([rest * np.sqrt(weights)[:, None], np.diag(np.sqrt(box))])
        return self._take_root(roots) or self._take_factor(matrix, RIDGE)

    def _take_factor(self, matrix: FloatArray, ridge: float) -> bool:
        """By Cholesky, with a growing ridge if one is given; else only if well conditioned."""
        added = ridge * float(np.trace(matrix)) / matrix.shape[0]
        for _ in range(3 if ridge else 1):
            matrix[np.diag_indices_from(matrix)] += added
            try:
                self.factor = cho_factor(matrix, check_finite=True)
            except (LinAlgError, ValueError):
                added *= 1e3
                continue
            pivots = np.diagonal(self.factor[0])
            return bool(ridge or pivots.min() > ILL_CONDITIONED * pivots.max())
        return False

    def _take_root(self, roots: FloatArray) -> bool:
        """The factor of roots' roots, to twice the digits that the product itself would leave."""
        if not np.isfinite(roots).all():
            return False
        self.factor = np.linalg.qr(roots, mode="r"), False
        return bool(np.diagonal(self.factor[0]).all())

    def _direction(self, aims: Parts) -> _Direction:
        """Newton towards given complementarity products."""
        x, s, y = self.x, self.s, self.y
        g = aims[0] / s - x - self.weights * self.slack_residual
        h = self.flow_residual - self.F.total(g)
        right = self.columns.T @ g + self.reduced.T @ h - self.balance
        right += self.high - aims[1] / self.above - self.low + aims[2] / self.below
        right[self.ball] += aims[3][1:]
        dy = cho_solve(self.factor, right)
        total = np.zeros_like(self.set.right)
        if total.size:
            answers = cho_solve(self.factor, self.set.spread(np.eye(total.size)))
            missed = self.set.totals(dy) - self.set.right + self.set.totals(y)
            total = _solved(self.set.totals(answers), missed)
            dy = dy - answers @ total
        dv = self.F.solve(h) + self.reduced @ dy
        ds = self.columns @ dy - self.F.spread(dv) + self.slack_residual
        pressure = self.stiffness @ dy[self.ball] if self.set.is_ball else dy[self.ball]
        return _Direction(
            x=aims[0] / s - x - self.weights * ds, s=ds, y=dy, v=dv,
            high=aims[1] / self.above - self.high + self.high / self.above * dy,
            low=aims[2] / self.below - self.low - self.low / self.below * dy,
            cone=self.scaling.step(aims[3], pressure), total=total,
        )  # fmt: skip

    def _lengths(self, step: _Direction) -> tuple[float, float]:
        """How far primal and dual variables can go."""
        primal = min(
            _longest(self.x, step.x), _longest(self.high, step.high), _longest(self.low, step.low)
        )
        dual = min(
            _longest(self.s, step.s), _longest(self.above, -step.y), _longest(self.below, step.y)
        )
        inside, multiplier = self.cone.reach(step.cone)
        return min(primal, multiplier), min(dual, inside)

    def _move(self, step: _Direction, primal: float, dual: float) -> None:
        self.x = self.x + primal * step.x
        self.high = self.high + primal * step.high
        self.low = self.low + primal * step.low
        self.cone = self.cone.moved(step.cone, dual, primal)
        self.total += primal * step.total
        self.s = self.s + dual * step.s
        self.y = self.y + dual * step.y
        self.v = self.v + dual * step.v


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """A few equations; those that depend on each other are met as well as can be."""
    if right.size == 1:
        return np.asarray(right / matrix[0])
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])


def _longest(values: FloatArray, step: FloatArray) -> float:
    """The largest part of a step, up to 1, that keeps values nonnegative."""
    shrinking = step < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, float((-values[shrinking] / step[shrinking]).min()))


class Coupling:
    """F, the rows that couple the columns, and solves with F D F', which is diagonal when every
    column is in one row and small otherwise."""

    def __init__(self, matrix: SparseMatrix) -> None:
        self.matrix, self.transposed = matrix, matrix.T.tocsr()
        self.is_diagonal = bool((np.diff(self.transposed.indptr) == 1).all())

    def total(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ values)

    def spread(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.transposed @ values)

    def below(self, prices: FloatArray, margin: float) -> FloatArray:
        """Values v with F'v < prices by about a margin."""
        num_rows = self.matrix.shape[0]
        if self.is_diagonal:
            least = np.full(num_rows, np.inf)
            np.minimum.at(least, self.transposed.indices, prices / self.transposed.data)
            return least - margin
        ones = self.spread(np.ones(num_rows))
        return np.full(num_rows, float(((prices - margin) / ones).min()))

    def weigh(self, weights: FloatArray) -> bool:
        """Take D; False when the arithmetic has given out."""
        if self.is_diagonal:
            self._diagonal = np.asarray((self.matrix * self.matrix) @ weights)
            return True
        self._scaled = (self.transposed * weights[:, None]).tocsr()
        try:
            self._factor = cho_factor((self.matrix @ self._scaled).toarray())
        except (LinAlgError, ValueError):
            return False
        return True

    def solve(self, right: FloatArray) -> FloatArray:
        """(F D F')^-1 right, corrected once: near a discount of one a core's flow needs it."""
        if self.is_diagonal:
            return np.asarray((right.T / self._diagonal).T)
        found = cho_solve(self._factor, right)
        missing = right - self.matrix @ (self._scaled @ found)
        return np.asarray(found + cho_solve(self._factor, missing))


COLUMNS, KEPT = 12, 8
"""Columns are retired when there are more than so many times the size of the master; so many are
left."""
EXPECTATIONS_COUNT = 3
"""The size of a master is the number of its rows, or so many times that of its expectations."""
UNUSED = 0.01
"""Only columns with a smaller share of their row are retired."""


class ColumnPool:
    """Columns in the units of the master, ordered by policy and row, after those of the start rows.

    A policy is stored as one small integer per state. A column that has long been worth nothing in
    the master problem is retired; a policy without columns is forgotten.
    """

    def __init__(self, world: World, start_rows: StartRows, own_expectations: FloatArray) -> None:
        self.world, self.start_rows = world, start_rows
        self._own = own_expectations
        self._rows = np.flatnonzero(np.diff(start_rows.starts.indptr) > 0)
        self._choices: dict[int, IntArray] = {}
        self._expectations = np.zeros((0, own_expectations.shape[1]))
        self._policy_of = np.zeros(0, dtype=np.int64)
        self._row_of = np.zeros(0, dtype=np.int64)
        self._count = 0

    @property
    def held_bytes(self) -> int:
        """Of policies and expectations."""
        return int(self._expectations.nbytes + sum(kept.nbytes for kept in self._choices.values()))

    def add(self, choice: IntArray, expectations: FloatArray) -> IntArray:
        """A policy (the pair of each state) with its expectations from every start row; its actions
        as they are kept are returned."""
        largest = self.world.pairs.max_actions - 1
        actions = choice - self.world.pairs.offsets[:-1]
        self._choices[self._count] = actions.astype(np.min_scalar_type(largest))
        self._expectations = np.concatenate([self._expectations, expectations[self._rows]])
        self._row_of = np.concatenate([self._row_of, self._rows])
        own = np.full(self._rows.size, self._count)
        self._policy_of = np.concatenate([self._policy_of, own])
        self._count += 1
        return self._choices[self._count - 1]

    def master(self, target: FloatArray, duals: DualSet) -> Master:
        """The master problem over all columns."""
        rows, number = self._row_of, self._row_of.size
        generated = sparse.csr_array(
            (np.ones(number), (rows, np.arange(number))), shape=(self.start_rows.num_rows, number)
        )
        return Master(
            expectations=np.concatenate([self._own, self._expectations]),
            coupling=sparse.hstack([self.start_rows.coupling, generated], format="csr"),
            right=self.start_rows.right,
            target=target,
            duals=duals,
            feasible=lambda x: self.start_rows.feasible(x, rows),
        )

    def retire(self, point: MasterPoint) -> None:
        """Drop the columns worth least when there are too many; the newest two rounds are kept."""
        number = self._row_of.size
        size = max(self._rows.size, EXPECTATIONS_COUNT * self._own.shape[1])
        if number <= COLUMNS * size:
            return
        own = self.start_rows.pairs.size
        shares = point.mixture[own:]
        totals = np.bincount(self._row_of, shares, self.start_rows.num_rows)
        idle = shares <= UNUSED * totals[self._row_of]
        idle &= self._policy_of < self._count - 2
        worth = np.where(idle, -point.reduced_costs[own:], np.inf)
        surplus = min(number - KEPT * size, int(idle.sum()))
        kept = np.ones(number, dtype=bool)
        kept[np.argsort(worth, kind="stable")[:surplus]] = False
        self._expectations = self._expectations[kept]
        self._row_of, self._policy_of = self._row_of[kept], self._policy_of[kept]
        for index in set(self._choices) - set(self._policy_of.tolist()):
            del self._choices[index]

    def snapshot(self, mixture: FloatArray, crumbs: float) -> "Mixture":
        """A mixture that survives what happens to the pool; shares below `crumbs` are left out."""
        own = self.start_rows.pairs.size
        totals = np.bincount(self._row_of, mixture[own:], self.start_rows.num_rows)[self._row_of]
        used = np.concatenate([np.ones(own, dtype=bool), mixture[own:] >= crumbs * totals])
        mixture = self.start_rows.feasible(mixture * used, self._row_of)
        parts: list[tuple[IntArray, FloatArray]] = []
        for index, actions in self._choices.items():
            shares = mixture[own:] * (self._policy_of == index)
            weights = np.zeros(self.start_rows.num_rows)
            np.add.at(weights, self._row_of, shares)
            if weights.any():
                parts.append((actions, weights))
        return Mixture(self.start_rows, mixture[:own].copy(), parts)


class Mixture:
    """Which policies are followed from which rows, with which mass."""

    def __init__(
        self, start_rows: StartRows, own: FloatArray, parts: list[tuple[IntArray, FloatArray]]
    ) -> None:
        self.start_rows, self.own, self.parts = start_rows, own, parts
