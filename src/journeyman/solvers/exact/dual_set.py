"""The dual set of a problem: which weights and prices may speak, in units of size one.

    maximise over y in Y of <y, z>,      y = (w / scale, xi unit / N),      z = (costs, budgets)

where the weights w fill the cost class, `scale` is the largest weight of each cost, N the largest
cost of the class, `unit` the size of each budget's cost and xi >= 0 its price. Prices end at a
limit: a broken budget is then a matter of cost and every master problem has a solution. The limit
is exact once it exceeds the optimal prices.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, Matrix
from journeyman.costs import CostClass
from journeyman.costs.cost_class import WeightSet
from journeyman.problem import Apprenticeship, Witness
from journeyman.world import World

PRICE_LIMIT = 10.0
"""First limit of the prices."""
LEVEL_PRICE_LIMIT = 100.0
"""First limit of the prices of a level: a slice of policies is thin, so they are higher."""


@dataclass(frozen=True, eq=False)
class DualSet:
    """A box for (v, prices), where v make the weights of the first `num_costs` rows, if any.

    The coordinates of a master problem are v, those of everybody else the weights themselves; for
    most classes they are the same (`WeightSet`).
    """

    lower: FloatArray
    upper: FloatArray
    chosen: WeightSet | None = None

    @classmethod
    def of(cls, cost_class: CostClass, costs: int, budgets: int, price_limit: float) -> "DualSet":
        """Bounds that follow from the rest are moved out of the way."""
        chosen = cost_class.weight_set(costs)
        if not chosen.size:
            chosen = WeightSet.hull(chosen.centre[:, np.newaxis])
        chosen = chosen.in_units(cost_class.scaling(costs))
        size = np.maximum(np.abs(chosen.lower), np.abs(chosen.upper))
        return cls(
            np.concatenate([chosen.lower - size * chosen.implied_lower, np.zeros(budgets)]),
            np.concatenate([
                chosen.upper + size * chosen.implied_upper, np.full(budgets, price_limit)
            ]),
            chosen,
        )  # fmt: skip

    @property
    def num_costs(self) -> int:
        return 0 if self.chosen is None else self.chosen.num_costs

    @property
    def num_lifted(self) -> int:
        """How many v there are."""
        return 0 if self.chosen is None else self.chosen.size

    @property
    def is_ball(self) -> bool:
        return self.chosen is not None and self.chosen.axes is not None

    @property
    def is_box(self) -> bool:
        """Whether every weight has its own bounds and nothing else."""
        return self.chosen is not None and self.chosen.is_box

    @property
    def right(self) -> FloatArray:
        """The right-hand sides of the equations that v keep."""
        return np.zeros(0) if self.chosen is None else self.chosen.right

    def totals(self, y: FloatArray) -> FloatArray:
        """The left-hand sides of these equations, for one y or for columns of them."""
        if self.chosen is None:
            return np.zeros((0, *y.shape[1:]))
        v, rows = y[: self.num_lifted], self.chosen.equations
        if len(rows) == 1 and self.chosen.rows is None:  # of ones
            return np.asarray(v.sum(axis=0))[np.newaxis]
        return np.asarray(rows @ v)

    def spread(self, multipliers: FloatArray) -> FloatArray:
        """The transposed equations, with zeros for the prices."""
        spread = np.zeros((self.lower.size, *multipliers.shape[1:]))
        if self.chosen is not None:
            spread[: self.num_lifted] = self.chosen.equations.T @ multipliers
        return spread

    def raised(self, factor: float) -> "DualSet":
        """The same with higher limits of the prices."""
        upper = self.upper.copy()
        upper[self.num_lifted :] *= factor
        return replace(self, upper=upper)

    def lifted(self, numbers: FloatArray) -> FloatArray:
        """Rows of (costs, budgets), or one, as the v and prices see them."""
        if self.chosen is None or self.chosen.generators is None:
            return numbers
        costs = self.chosen.pulled(numbers[..., : self.num_costs].T).T
        return np.concatenate([costs, numbers[..., self.num_costs :]], axis=-1)

    def base(self, numbers: FloatArray) -> FloatArray | float:
        """What the centre of the weights makes of rows of (costs, budgets), or of one."""
        if self.chosen is None or self.chosen.is_centred:
            return 0.0
        return np.asarray(numbers[..., : self.num_costs] @ self.chosen.centre)

    def weights(self, y: FloatArray) -> FloatArray:
        """The weights and prices of a y, moved into the set should rounding have left it."""
        clipped = np.clip(y, self.lower, self.upper)
        if self.chosen is None:
            return clipped
        own = self.chosen.weights(self.chosen.admit(clipped[: self.num_lifted]))
        return np.concatenate([own, clipped[self.num_lifted :]])

    def support(self, z: FloatArray) -> float:
        """max over Y of <y, z>, without the centre."""
        count = self.num_lifted
        matched, rest = z[:count], z[count:]
        paid = float(np.maximum(self.upper[count:] * rest, self.lower[count:] * rest).sum())
        return paid if self.chosen is None else paid + self.chosen.support(matched)

    def middle(self) -> FloatArray:
        """A point of the interior."""
        middle = (self.lower + self.upper) / 2
        if self.chosen is not None:
            middle[: self.num_lifted] = self.chosen.middle()
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
    """One unit of the objective in the problem's own units."""
    dual_units: FloatArray
    """What a dual coordinate is multiplied with to give a weight or price."""
    first_dual: FloatArray
    never_negative: bool
    ranges: tuple[FloatArray, FloatArray] | None = None
    """Least and largest entry of each cost, where `costs` has no row for each pair."""

    @classmethod
    def of(cls, problem: Apprenticeship) -> "UnitProgram":
        """The problem itself, with budgets that can be broken at a price."""
        scale = problem.cost_class.scaling(problem.basis.num_costs)
        cost, horizon = problem.cost_unit, problem.world.effective_horizon
        rows = np.concatenate([scale / cost, 1 / problem.budget_units]) / horizon
        return cls(
            problem.world,
            _in_units(problem.cost_matrix, problem.budget_matrix, rows),
            np.concatenate([problem.target, problem.limits]) * rows,
            DualSet.of(problem.cost_class, scale.size, len(problem.constraints), PRICE_LIMIT),
            cost * horizon,
            np.concatenate([scale, cost / problem.budget_units]),
            np.concatenate([_first_weights(problem) / scale, np.zeros(len(problem.constraints))]),
            problem.cost_class.contains_zero,
        )

    @classmethod
    def of_budgets(cls, problem: Apprenticeship) -> "UnitProgram":
        """The first phase: minimise sum_j t_j (1 - discount)/(max d_j - min d_j) over increases t
        of the limits. The optimum is positive exactly when no policy keeps the budgets."""
        horizon, units = problem.world.effective_horizon, problem.budget_units
        spans = np.array([budget.span for budget in problem.constraints])
        weights = np.divide(1.0, spans * horizon, out=1 / units, where=spans > 0) * units * horizon
        return cls(
            problem.world,
            problem.budget_matrix / (units * horizon),
            problem.limits / (units * horizon),
            DualSet(np.zeros(units.size), weights),
            1.0,
            1 / (units * horizon),
            weights / 2,
            True,
        )

    def of_surplus(self, level: float, duals: DualSet) -> "UnitProgram":
        """The second stage, for a gap held at `level` in this task's units:

            minimise  sum_i z_i/n  with z_i <= level  =  max over y of <y, z - level> + level

        where y_i goes from 1/n to the limit of the prices. Its numbers are those of this task, and
        so are the columns. `duals` are those of this task, perhaps with raised prices of budgets.
        """
        count, lower = duals.num_costs, duals.lower.copy()
        upper, target = duals.upper.copy(), self.target.copy()
        lower[:count], upper[:count] = 1 / count, LEVEL_PRICE_LIMIT
        target[:count] += level
        return replace(
            self, target=target, duals=DualSet(lower, upper), unit=self.unit * count,
            first_dual=lower, never_negative=False,
        )  # fmt: skip

    def tilted(self, share: float, duals: DualSet) -> "UnitProgram":
        """The gap, and `share` times the mean of the scaled costs:

            minimise  max over y of <y, z> + share sum_i z_i/n  =  max over y of <y + share/n, z>

        `duals` are those of this task, perhaps with raised prices of budgets.
        """
        assert duals.chosen is not None
        centre = duals.chosen.centre + share / duals.num_costs
        first = self.first_dual.copy()
        first[: duals.num_costs] += share / duals.num_costs
        return replace(
            self, duals=replace(duals, chosen=replace(duals.chosen, centre=centre)),
            first_dual=first, never_negative=False,
        )  # fmt: skip

    def witness(self, dual: FloatArray, values: FloatArray) -> Witness:
        """A dual point in the problem's own units."""
        both, count = dual * self.dual_units, self.duals.num_costs
        return Witness(both[:count], values * self.unit, both[count:])


def _first_weights(problem: Apprenticeship) -> FloatArray:
    """The worst case against staying where one starts and acting at random."""
    world = problem.world
    law = world.pairs.spread(world.initial) * world.pairs.uniform * world.effective_horizon
    return problem.cost_class.worst_case(problem.difference(law))


def _in_units(costs: Matrix, budgets: FloatArray, rows: FloatArray) -> Matrix:
    if sparse.issparse(costs):
        both = sparse.hstack([costs, sparse.csr_array(budgets)], format="csr")
        return (both @ sparse.diags_array(rows)).tocsr()
    return np.hstack([costs, budgets]) * rows


CRUMB = 0.1
"""Share of the tolerance that all of these costs together may miss their extreme by."""


@dataclass(frozen=True, eq=False)
class KnownWeights:
    """Weights of a box that are known before the search: at an end of their interval.

        |<mu, c_i> - target_i|  =  <mu, c_i> - target_i    where  target_i <= min c_i/(1 - discount)

    A cost that the expert incurs as little as any policy can has its largest weight in the hardest
    cost, one that he incurs as much as any can its least; places that he never visits are the usual
    case. The master problem cannot know this before some column has been there, and would send one
    policy after the other to find out.
    """

    high: BoolArray
    low: BoolArray

    @classmethod
    def of(cls, task: UnitProgram, tolerance: float) -> "KnownWeights":
        """The coordinates whose sign is known, for a box; none for other dual sets."""
        count = task.duals.num_costs
        is_cost = np.arange(task.target.size) < count
        if not task.duals.is_box:
            return cls(np.zeros_like(is_cost), np.zeros_like(is_cost))
        crumb, horizon = CRUMB * tolerance / count, task.world.effective_horizon
        least, most = (horizon * end for end in _range(task))
        high = is_cost & (task.target - least <= crumb)
        return cls(high, is_cost & ~high & (most - task.target <= crumb))

    def applied(self, dual: FloatArray, task: UnitProgram) -> FloatArray:
        """The same dual point with these coordinates at their ends."""
        if not (self.high.any() or self.low.any()):
            return dual
        ends = np.where(self.high, task.duals.upper, task.duals.lower)
        count = task.duals.num_costs
        if task.duals.chosen is not None:
            ends[:count] += task.duals.chosen.centre
        return np.where(self.high | self.low, ends, dual)


def _range(task: UnitProgram) -> tuple[FloatArray, FloatArray]:
    """The least and the largest entry of each cost."""
    if task.ranges is not None:
        return task.ranges
    least, most = task.costs.min(axis=0), task.costs.max(axis=0)
    dense = (end.toarray() if hasattr(end, "toarray") else end for end in (least, most))
    low, high = (np.asarray(end, dtype=float).ravel() for end in dense)
    return low, high
