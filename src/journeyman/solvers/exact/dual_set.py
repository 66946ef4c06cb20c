"""The dual set of a problem: which weights and prices may speak, in units of size one.

    maximise over y in Y of <y, z>,      y = (w / scale, xi unit / N),      z = (costs, budgets)

where the weights w fill the cost class (a box, a ball or a simplex), N is the largest cost of the
class, `unit` the size of each budget's cost and xi >= 0 its price. Prices end at a limit: a broken
budget is then a matter of cost and every master problem has a solution. The limit is exact once it
exceeds the optimal prices.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, Matrix
from journeyman.costs import EuclideanBall, InfinityBall
from journeyman.problem import Program, Witness
from journeyman.world import World

PRICE_LIMIT = 10.0
"""First limit of the prices."""
LEVEL_PRICE_LIMIT = 100.0
"""First limit of the prices of a level: a slice of policies is thin, so they are higher."""
ROOM = 2.0
"""Bounds that a ball or a simplex makes superfluous are put here, out of the way."""


@dataclass(frozen=True, eq=False)
class DualSet:
    """A box, cut by |y_i|_2 <= 1 or sum y_i = 1 over the first `num_costs` coordinates."""

    lower: FloatArray
    upper: FloatArray
    num_costs: int
    is_ball: bool
    is_simplex: bool

    @classmethod
    def of(cls, problem: Program, price_limit: float) -> "DualSet":
        costs, budgets = problem.basis.num_costs, len(problem.constraints)
        is_box = isinstance(problem.cost_class, InfinityBall)
        is_ball = isinstance(problem.cost_class, EuclideanBall)
        is_simplex = not (is_box or is_ball)
        low, high = (0.0 if is_simplex else -1.0), 1.0
        room = 1.0 if is_box else ROOM
        return cls(
            np.concatenate([np.full(costs, low * room), np.zeros(budgets)]),
            np.concatenate([np.full(costs, high * room), np.full(budgets, price_limit)]),
            costs, is_ball, is_simplex,
        )  # fmt: skip

    def raised(self, factor: float) -> "DualSet":
        """The same with higher limits of the prices."""
        upper = self.upper.copy()
        upper[self.num_costs :] *= factor
        return replace(self, upper=upper)

    def support(self, z: FloatArray) -> float:
        """max over Y of <y, z>."""
        count = self.num_costs
        matched, rest = z[:count], z[count:]
        paid = float(np.maximum(self.upper[count:] * rest, self.lower[count:] * rest).sum())
        if self.is_ball:
            return paid + float(np.linalg.norm(matched))
        if self.is_simplex:
            return paid + float(matched.max())
        return paid + float(self.upper[: self.num_costs] @ np.abs(matched))

    def centre(self) -> FloatArray:
        """A point of the interior."""
        middle = (self.lower + self.upper) / 2
        if self.is_simplex:
            middle[: self.num_costs] = 1 / self.num_costs
        return middle


@dataclass(frozen=True, eq=False)
class UnitProgram:
    """minimise over occupancy measures  max over y in Y of <y, costs' mu - target>, in units."""

    world: World
    costs: Matrix
    """(pairs x rows)."""
    target: FloatArray
    duals: DualSet
    unit: float
    """One unit of the objective in the problem's own figures."""
    dual_units: FloatArray
    """What a dual coordinate is multiplied with to give a weight or price."""
    first_dual: FloatArray
    never_negative: bool

    @classmethod
    def of(cls, problem: Program) -> "UnitProgram":
        """The problem itself, with budgets that can be broken at a price."""
        scale = problem.cost_class.scaling(problem.basis.num_costs)
        cost, horizon = problem.cost_unit, problem.world.effective_horizon
        rows = np.concatenate([scale / cost, 1 / problem.budget_units]) / horizon
        return cls(
            problem.world,
            _in_units(problem.cost_matrix, problem.budget_matrix, rows),
            np.concatenate([problem.target, problem.limits]) * rows,
            DualSet.of(problem, PRICE_LIMIT),
            cost * horizon,
            np.concatenate([scale, cost / problem.budget_units]),
            np.concatenate([_first_weights(problem) / scale, np.zeros(len(problem.constraints))]),
            problem.cost_class.contains_zero,
        )

    @classmethod
    def of_budgets(cls, problem: Program) -> "UnitProgram":
        """The first phase: minimise sum_j t_j (1 - discount)/(max d_j - min d_j) over increases t
        of the limits. The optimum is positive exactly when no policy keeps the budgets."""
        horizon, units = problem.world.effective_horizon, problem.budget_units
        spans = np.array([budget.span for budget in problem.constraints])
        weights = np.divide(1.0, spans * horizon, out=1 / units, where=spans > 0) * units * horizon
        return cls(
            problem.world,
            problem.budget_matrix / (units * horizon),
            problem.limits / (units * horizon),
            DualSet(np.zeros(units.size), weights, 0, False, False),
            1.0,
            1 / (units * horizon),
            weights / 2,
            True,
        )

    def of_surplus(self, level: float, duals: DualSet) -> "UnitProgram":
        """The second stage of `Simplex`, for a gap held at `level` in this task's units:

            minimise  sum_i z_i/n  with z_i <= level  =  max over y of <y, z - level> + level

        where y_i goes from 1/n to the limit of the prices. Its figures are those of this task, and
        so are the columns. `duals` are those of this task, perhaps with raised prices of budgets.
        """
        count, lower = duals.num_costs, duals.lower.copy()
        upper, target = duals.upper.copy(), self.target.copy()
        lower[:count], upper[:count] = 1 / count, LEVEL_PRICE_LIMIT
        target[:count] += level
        box = DualSet(lower, upper, 0, False, False)
        return replace(
            self, target=target, duals=box, unit=self.unit * count, first_dual=lower,
            never_negative=False,
        )  # fmt: skip

    def witness(self, dual: FloatArray, values: FloatArray) -> Witness:
        """A dual point in the problem's own figures."""
        both, count = dual * self.dual_units, self.duals.num_costs
        return Witness(both[:count], values * self.unit, both[count:])


def _first_weights(problem: Program) -> FloatArray:
    """The worst case against staying where one starts and acting at random."""
    world = problem.world
    law = world.pairs.spread(world.initial) * world.pairs.uniform * world.effective_horizon
    return problem.cost_class.worst_case(problem.difference(law))


def _in_units(costs: Matrix, budgets: FloatArray, rows: FloatArray) -> Matrix:
    if sparse.issparse(costs):
        both = sparse.hstack([costs, sparse.csr_array(budgets)], format="csr")
        return (both @ sparse.diags_array(rows)).tocsr()
    return np.hstack([costs, budgets]) * rows


# Weights of the infinity ball that are known before the search.
#
#     |<mu, c_i> - target_i|  =  <mu, c_i> - target_i     where  target_i <= min c_i/(1 - discount)
#
# A cost that the expert incurs as little as any policy can has weight one in the hardest cost, one
# that he incurs as much as any can has weight minus one; places that he never visits are the usual
# case. The master problem cannot know this before some column has been there, and would send one
# policy after the other to find out.

CRUMB = 0.1
"""Share of the tolerance that all of these costs together may miss their extreme by."""


@dataclass(frozen=True, eq=False)
class KnownWeights:
    """Which coordinates of a dual point are fixed at an end of their interval."""

    high: BoolArray
    low: BoolArray

    @classmethod
    def of(cls, task: UnitProgram, tolerance: float) -> "KnownWeights":
        """The coordinates whose sign is known, for a box; none for other dual sets."""
        count = task.duals.num_costs
        is_cost = np.arange(task.target.size) < count
        if task.duals.is_ball or task.duals.is_simplex or not count:
            return cls(np.zeros_like(is_cost), np.zeros_like(is_cost))
        crumb, horizon = CRUMB * tolerance / count, task.world.effective_horizon
        least, most = (horizon * end for end in _range(task))
        high = is_cost & (task.target - least <= crumb)
        return cls(high, is_cost & ~high & (most - task.target <= crumb))

    def applied(self, dual: FloatArray, task: UnitProgram) -> FloatArray:
        """The same dual point with these coordinates at their ends."""
        ends = np.where(self.high, task.duals.upper, task.duals.lower)
        return np.where(self.high | self.low, ends, dual)


def _range(task: UnitProgram) -> tuple[FloatArray, FloatArray]:
    """The least and the largest entry of each cost."""
    least, most = task.costs.min(axis=0), task.costs.max(axis=0)
    dense = (end.toarray() if hasattr(end, "toarray") else end for end in (least, most))
    low, high = (np.asarray(end, dtype=float).ravel() for end in dense)
    return low, high
