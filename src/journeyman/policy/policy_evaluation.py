"""What a policy does and what it costs: its occupancy measure, values and advantages.

The occupancy measure is the discounted number of visits to every pair,

    mu(x, a) = sum_t discount^t Prob[x_t = x, a_t = a],      sum mu = 1/(1 - discount)

found from nu = (I - discount P_pi')^{-1} initial and mu(x, a) = nu(x) pi(a | x). Every expected
cost is linear in it: E sum_t discount^t c(x_t, a_t) = <mu, c>. Values are what the future costs
from each state on, action values what it costs to take an action once and then to follow the
policy, advantages how much more that is, for every cost psi_i of a basis:

    V_i = (I - discount P_pi)^{-1} c_i,      c_i(x) = sum_a pi(a | x) psi_i(x, a)
    Q_i(x, a) = psi_i(x, a) + discount sum_y P(y | x, a) V_i(y)
    A_i(x, a) = Q_i(x, a) - V_i(x)

All are linear in the cost: under c_w = Psi w they are V w, Q w and A w, and the policy is optimal
for c_w in every state exactly if A w >= 0 in every pair.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, Matrix, dense, read_only
from journeyman.costs import CostBasis
from journeyman.errors import InvalidCosts
from journeyman.policy.linear_systems import DiscountedSystem, averaging, transition_under
from journeyman.policy.table import Policy
from journeyman.world import World


@dataclass(frozen=True, eq=False)
class Occupancy:
    """The occupancy measure of a policy, as exactly as it could be computed.

    `residual` is |initial - (B - discount P)' measure|_1, recomputed from `measure`: the true
    occupancy is within `residual / (1 - discount)` of `measure` in the 1-norm.
    """

    world: World
    measure: FloatArray
    residual: float
    method: str

    @property
    def of_states(self) -> FloatArray:
        """The mass of each state."""
        return self.world.pairs.total(self.measure)

    def expectations(self, basis: CostBasis) -> FloatArray:
        """Psi' measure: the expected discounted total of every basis cost."""
        return np.asarray(basis.on(self.world).T @ self.measure)


def occupancy(world: World, policy: Policy) -> Occupancy:
    """The occupancy measure of `policy` in `world`.

    >>> world = World([[0, 1], [1, 0]], [1, 0], 0.5)
    >>> occupancy(world, Policy([[1.0], [1.0]])).measure.round(12).tolist()
    [1.333333333333, 0.666666666667]
    """
    system = DiscountedSystem(transition_under(world, policy), world.discount)
    guess = world.initial * world.effective_horizon
    visits = system.solve(world.initial, transposed=True, guess=guess)
    measure = world.pairs.spread(np.maximum(visits.x, 0.0)) * policy.on(world)
    residual = float(np.abs(world.flow.residual(measure)).sum())
    return Occupancy(world, read_only(measure), residual, visits.method)


def expected_cost(world: World, policy: Policy, cost: ArrayLike) -> float:
    """Expected discounted total of a cost (per pair, per state, or states x actions)."""
    per_pair = world.pairs.flattened("cost", cost, InvalidCosts)
    return float(occupancy(world, policy).measure @ per_pair)


def value_functions(world: World, policy: Policy, costs: Matrix) -> FloatArray:
    """(states x costs): the expected discounted total of every cost (pairs x costs).

    >>> world = World([[0, 1], [1, 0]], [1, 0], 0.5)
    >>> value_functions(world, Policy([[1.0], [1.0]]), np.eye(2)).round(12).tolist()
    [[1.333333333333, 0.666666666667], [0.666666666667, 1.333333333333]]
    """
    system = DiscountedSystem(transition_under(world, policy), world.discount)
    immediate = dense(averaging(world, policy.on(world)) @ costs)
    columns = [system.solve(np.ascontiguousarray(column)).x for column in immediate.T]
    return read_only(np.column_stack(columns))


def action_values(world: World, policy: Policy, costs: Matrix) -> tuple[FloatArray, FloatArray]:
    """Q (pairs x costs) and V (states x costs)."""
    values = value_functions(world, policy, costs)
    return np.asarray(dense(costs) + world.discount * (world.transition @ values)), values


def advantages(world: World, policy: Policy, costs: Matrix) -> FloatArray:
    """A (pairs x costs): what a step aside costs more than the policy; negative: it pays.

    >>> world = World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> advantages(world, Policy([[1.0, 0.0]]), np.array([[1.0], [3.0]])).tolist()
    [[0.0], [2.0]]
    """
    Q, V = action_values(world, policy, costs)
    return np.asarray(Q - world.pairs.spread(V))
