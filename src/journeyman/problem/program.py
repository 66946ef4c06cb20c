"""The program that every problem of this library is an instance of.

    minimise   gap_W(Psi' mu - target)      over occupancy measures mu of the world
    subject to <mu, d_j> <= b_j             for every budget j

where gap_W is the support function of a cost class. `Apprenticeship` takes the target from an
expert; `Forward` has one known cost and target zero.
"""

from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray, Matrix, assign
from journeyman.costs import CostBasis, CostClass
from journeyman.errors import InvalidProblem
from journeyman.policy import Occupancy, Policy, occupancy
from journeyman.policy.attainable import attainable_ranges
from journeyman.problem.budget import Budget
from journeyman.problem.trivial import TrivialBound, with_ranges, without_plans
from journeyman.world import World


@dataclass(frozen=True, eq=False, init=False)
class Program(ABC):
    """World, costs, target and budgets, checked to fit together."""

    world: World
    basis: CostBasis
    cost_class: CostClass
    target: FloatArray
    constraints: tuple[Budget, ...]

    def __init__(
        self,
        world: World,
        basis: CostBasis,
        cost_class: CostClass,
        target: FloatArray,
        constraints: Iterable[Budget] | Budget,
    ) -> None:
        if target.size != basis.num_costs:
            raise InvalidProblem(
                f"the expert has {target.size} expectations, the basis {basis.num_costs} costs",
                "Give one expectation per cost",
            )
        if not isinstance(cost_class, CostClass):
            raise InvalidProblem(
                f"cost_class is {cost_class!r}", "Give a value, for example Simplex()"
            )
        cost_class.scaling(basis.num_costs)
        fitted = basis.fitted(world)
        fitted.on(world)
        budgets = (constraints,) if isinstance(constraints, Budget) else tuple(constraints)
        for budget in budgets:
            if not isinstance(budget, Budget):
                raise InvalidProblem(
                    f"constraints holds a {type(budget).__name__}",
                    "Give jm.Budget(cost=..., at_most=...)",
                )
            budget.on(world)
        assign(
            self, world=world, basis=fitted, cost_class=cost_class, target=target,
            constraints=tuple(budget.fitted(world) for budget in budgets),
        )  # fmt: skip

    @cached_property
    def cost_matrix(self) -> Matrix:
        """Psi with one row per pair."""
        return self.basis.on(self.world)

    @cached_property
    def budget_matrix(self) -> FloatArray:
        """The budgets' costs as columns (pairs x budgets)."""
        columns = [budget.on(self.world) for budget in self.constraints]
        return np.column_stack(columns) if columns else np.zeros((self.world.num_pairs, 0))

    @property
    def limits(self) -> FloatArray:
        """The right-hand sides b_j."""
        return np.array([budget.at_most for budget in self.constraints], dtype=float)

    @property
    def effective_horizon(self) -> float:
        """1/(1 - discount): the mass of every occupancy measure."""
        return self.world.effective_horizon

    @cached_property
    def gap_scale(self) -> float:
        """2 N/(1 - discount): what tolerances of solvers are relative to. It needs no plan, so it
        is often far above the largest gap that there is, the `trivial_bound`."""
        return 2 * self.cost_class.pointwise_bound(self.basis.matrix) * self.world.effective_horizon

    @property
    def trivial_bound(self) -> float:
        """No policy has a larger gap; a bound that reaches it is vacuous (`problem.trivial`).

        It rests on the attainable ranges of the costs and takes up to two plans per cost, once. In
        an estimated world it is what bounded costs alone say; a certificate, which knows with what
        probability the model may be how wrong, may have a smaller one.
        """
        return self.trivial.value

    @cached_property
    def trivial(self) -> TrivialBound:
        """The trivial bound with what proves it."""
        return self._trivial(self.exact_target, known_cost=self.cost_class.is_known)

    @cached_property
    def largest_excess(self) -> float:
        """By how much the gaps of two policies, to whatever target, differ at most: what guarantees
        about the best policy are compared with."""
        return self._trivial(None, known_cost=False).value

    def _trivial(self, target: FloatArray | None, *, known_cost: bool) -> TrivialBound:
        ranges = attainable_ranges(self.world, self.basis)
        if self.world.is_estimated or not ranges.planned:
            return without_plans(self, target, known_cost=known_cost)
        return with_ranges(self, target, ranges, known_cost=known_cost)

    @property
    def exact_target(self) -> FloatArray | None:
        """The target where it is taken as exact; None where it was estimated."""
        return self.target

    @cached_property
    def cost_unit(self) -> float:
        """N, the largest cost of the class in any pair, or 1 when all costs are zero: engines are
        given figures in this unit."""
        return self.cost_class.pointwise_bound(self.basis.matrix) or 1.0

    @cached_property
    def budget_units(self) -> FloatArray:
        """max |d_j| of every budget, 1 where that is zero."""
        return np.array([budget.size or 1.0 for budget in self.constraints], dtype=float)

    def cost_of(self, weights: FloatArray) -> FloatArray:
        """c_w = Psi w per pair."""
        return np.asarray(self.cost_matrix @ weights)

    def difference(self, measure: FloatArray) -> FloatArray:
        """Psi' measure - target."""
        return np.asarray(self.cost_matrix.T @ measure - self.target)

    def gap(self, policy: Policy | Occupancy) -> float:
        """The objective at a policy (or its occupancy), by exact evaluation."""
        visits = policy if isinstance(policy, Occupancy) else occupancy(self.world, policy)
        return self.cost_class.gap(self.difference(visits.measure))

    def overspending(self, measure: FloatArray) -> FloatArray:
        """<mu, d_j> - b_j for every budget; positive means broken."""
        return np.asarray(self.budget_matrix.T @ measure - self.limits)
