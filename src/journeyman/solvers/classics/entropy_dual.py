"""The dual of entropy maximisation: a smooth convex function of cost weights.

    f(u) = <u, t> - rate <initial, V_u>,        grad f(u) = t - m(u)

where V_u are the soft values (`policy.soft_planning`, temperature 1) of the cost Psi_n u, m(u) =
rate Psi_n' mu_u the expectations of its soft-optimal policy, and t those of the expert. All is of
size one: Psi_n is Psi in the scale of the cost class, divided by the largest Euclidean norm N of a
row, and U = N/rate the size of what is to be matched, at most N/(1 - discount): the Euclidean norm
of the scaled target, or that of the attainable ranges (`policy.attainable`) where it is less, or
how far the target lies outside of them where that is more. Where episodes end after a few steps, U
is of the size of an episode however near 1 the discount is, even if policies could go on for ever.

The second derivative is a variance. With A v the advantages Q - V of the cost Psi_n v under the
soft-optimal policy pi (hard values: no entropy in them),

    H v = rate A' diag(mu_u) A v

which takes one system with the chain of pi for the advantages and one adjoint system for A'.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray, norms
from journeyman.costs import EuclideanBall
from journeyman.policy.attainable import attainable_ranges
from journeyman.policy.linear_systems import ChainSystems, DiscountedSystem
from journeyman.policy.soft_planning import SoftPlan, soft_plan
from journeyman.problem import Apprenticeship

VALUE_ERROR = 1e-10
"""Asked of soft values, in units of the temperature, per unit of 1/rate (1/(1 - discount) where
nothing ends): laws are as exact as that."""
LEAST_CHOICE = 1e-9
"""Ranges below this share of N/(1 - discount) are rounding: there is nothing to choose."""
LEAST_SIZE = 1e-4
"""Share of the ranges that counts as the size of a target whose costs cancel each other out."""
PRODUCT_ACCURACY = 1e-7
"""Of products with the second derivative, which only shape a step."""


class EntropyDual:
    """f and its derivatives for one problem; counts the soft plans it makes."""

    def __init__(self, problem: Apprenticeship) -> None:
        self.problem, self.world = problem, problem.world
        scale = problem.cost_class.scaling(problem.basis.num_costs)
        self.unit = EuclideanBall(scale).pointwise_bound(problem.basis.matrix) or 1.0
        self.factor = scale / self.unit
        self.rate = self._rate(scale)
        self.target = self.rate * self.factor * problem.target
        self.systems = ChainSystems(self.world)
        self.plans = 0

    def _rate(self, scale: FloatArray) -> float:
        """N/U."""
        ranges, target = attainable_ranges(self.world, self.problem.basis), self.problem.target
        apart = float(norms(scale * (ranges.highest - ranges.lowest)))
        outside = float(norms(scale * (target - ranges.clip(target))))
        most = self.unit * self.world.effective_horizon
        size = min(apart, max(float(norms(scale * target)), LEAST_SIZE * apart))
        matched = min(max(size, outside), most)
        return self.unit / (matched if matched > LEAST_CHOICE * most else most)

    @property
    def size(self) -> float:
        """U, what a mismatch is relative to."""
        return self.unit / self.rate

    def weights(self, u: FloatArray) -> FloatArray:
        """Cost weights w of the problem's basis with Psi w = Psi_n u."""
        return np.asarray(self.factor * u)

    def at(self, u: FloatArray, near: "DualPoint | None" = None) -> "DualPoint":
        """f around `u`; the plan of a point nearby saves work."""
        self.plans += 1
        plan = soft_plan(
            self.world,
            self.problem.cost_of(self.weights(u)),
            tolerance=VALUE_ERROR / self.rate,
            warm_start=None if near is None else near.plan,
            systems=self.systems,
        )
        return DualPoint(self, np.array(u, dtype=float), plan)


@dataclass(frozen=True, eq=False)
class DualPoint:
    """f, its gradient and its curvature at one point."""

    dual: EntropyDual
    u: FloatArray
    plan: SoftPlan

    @property
    def value(self) -> float:
        """f(u)."""
        future = float(self.dual.world.initial @ self.plan.values)
        return float(self.u @ self.dual.target) - self.dual.rate * future

    @cached_property
    def system(self) -> DiscountedSystem:
        return self.dual.systems.of(self.plan.policy)

    @cached_property
    def measure(self) -> FloatArray:
        """The occupancy measure of the soft-optimal policy."""
        world = self.dual.world
        visits = self.system.solve(
            world.initial, transposed=True, guess=world.initial * world.effective_horizon
        )
        return np.asarray(world.pairs.spread(visits.x) * self.plan.policy.per_pair)

    @cached_property
    def mismatch(self) -> FloatArray:
        """m(u) - t, which is minus the gradient."""
        dual = self.dual
        return dual.rate * dual.factor * dual.problem.difference(self.measure)

    def curvature(self, v: FloatArray) -> FloatArray:
        """H v."""
        dual, world, law = self.dual, self.dual.world, self.plan.policy.per_pair
        cost = dual.problem.cost_of(dual.factor * v)
        values = self.system.solve(world.pairs.total(law * cost), reduction=PRODUCT_ACCURACY).x
        backup = cost + world.discount * (world.transition @ values)
        weighted = self.measure * (backup - world.pairs.spread(world.pairs.total(law * backup)))
        later = world.discount * (world.transition.T @ weighted)
        visits = self.system.solve(later, transposed=True, reduction=PRODUCT_ACCURACY).x
        shifted = weighted + law * world.pairs.spread(visits)
        return np.asarray(dual.rate * dual.factor * (dual.problem.cost_matrix.T @ shifted))
