"""What policies of an explicit world do and cost, by linear solves that start from the last ones.

    mu(x, a) = nu(x) pi(a | x),           (I - discount P_pi)' nu = initial
    A(x, a)  = c(x, a) + discount (P V)(x, a) - V(x),      (I - discount P_pi) V = sum_a pi c

The gradient of <mu_theta, c> is sum over pairs of mu A grad log pi (the policy gradient theorem):
`signal` is mu A. Cost: a solve for each policy, and one for each cost whose signal is asked.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix
from journeyman.policy.linear_systems import DiscountedSystem
from journeyman.problem import Apprenticeship

REDUCTION = 1e-9
"""Solves reduce the residual of their starting point by this factor; answers are recomputed."""


@dataclass(frozen=True, eq=False)
class ExactVisits:
    """A policy's law per pair and its occupancy measure; `system` evaluates it."""

    walker: "ExactWalker"
    law: FloatArray
    measure: FloatArray
    system: DiscountedSystem = field(repr=False)

    @property
    def difference(self) -> FloatArray:
        """Psi' mu - target."""
        return self.walker.problem.difference(self.measure)

    def advantages(self, cost: FloatArray) -> FloatArray:
        """A per pair for a cost per pair."""
        world = self.walker.problem.world
        values = self.walker.values_of(self.system, world.pairs.total(self.law * cost))
        later = world.discount * (world.transition @ values)
        return np.asarray(cost + later - world.pairs.spread(values))

    def signal(self, cost: FloatArray) -> FloatArray:
        """mu A per pair: what a policy gradient sums up."""
        return self.measure * self.advantages(cost)

    def change(self, costs: Matrix, law: FloatArray) -> FloatArray:
        """How much more the policy `law` costs in each column of `costs` (pairs x columns)."""
        return np.asarray(costs.T @ (self.walker.visits(law).measure - self.measure))


class ExactWalker:
    """Evaluates policies one after the other; each solve starts from the solution before."""

    def __init__(self, problem: Apprenticeship) -> None:
        self.problem = problem
        self.steps = 0
        """Transitions drawn: none."""
        world = problem.world
        self.values = np.zeros(world.num_states)
        """Of the last cost and policy: a dual point costs nothing more."""
        self._states = world.initial * world.effective_horizon
        self._last: ExactVisits | None = None

    def visits(self, law: FloatArray) -> ExactVisits:
        """What the policy with this law does; the last answer is kept."""
        if self._last is None or self._last.law is not law:
            world = self.problem.world
            averaging = sparse.csr_array(
                (law, np.arange(world.num_pairs), world.pairs.offsets),
                shape=(world.num_states, world.num_pairs),
            )
            system = DiscountedSystem(averaging @ world.transition, world.discount)
            solved = system.solve(
                world.initial, transposed=True, guess=self._states, reduction=REDUCTION
            )
            self._states = np.maximum(solved.x, 0.0)
            measure = world.pairs.spread(self._states) * law
            self._last = ExactVisits(self, law, measure, system)
        return self._last

    def values_of(self, system: DiscountedSystem, cost: FloatArray) -> FloatArray:
        """The values of a cost per state."""
        self.values = system.solve(cost, guess=self.values, reduction=REDUCTION).x
        return self.values
