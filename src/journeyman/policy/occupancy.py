"""Occupancy measures: the discounted number of visits a policy pays to every pair.

    mu(x, a) = sum_t discount^t Prob[x_t = x, a_t = a],      sum mu = 1/(1 - discount)

found from nu = (I - discount P_pi')^{-1} initial and mu(x, a) = nu(x) pi(a | x). Every expected
cost is linear in it: E sum_t discount^t c(x_t, a_t) = <mu, c>.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix, read_only
from journeyman.costs import CostBasis
from journeyman.errors import InvalidCosts
from journeyman.policy.discounted_system import DiscountedSystem
from journeyman.policy.policy import Policy
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
    probabilities = policy.on(world)
    system = DiscountedSystem(transition_under(world, policy), world.discount)
    guess = world.initial * world.effective_horizon
    visits = system.solve(world.initial, transposed=True, guess=guess)
    measure = world.pairs.spread(np.maximum(visits.x, 0.0)) * probabilities
    residual = float(np.abs(world.flow.residual(measure)).sum())
    return Occupancy(world, read_only(measure), residual, visits.method)


def expected_cost(world: World, policy: Policy, cost: ArrayLike) -> float:
    """Expected discounted total of a cost (per pair, per state, or states x actions)."""
    per_pair = world.pairs.flattened("cost", cost, InvalidCosts)
    return float(occupancy(world, policy).measure @ per_pair)


def transition_under(world: World, policy: Policy) -> SparseMatrix:
    """The (states x states) transition matrix of the chain that `policy` makes of `world`."""
    return averaging(world, policy) @ world.transition


def averaging(world: World, policy: Policy) -> SparseMatrix:
    """The (states x pairs) matrix that averages over a state's actions."""
    return sparse.csr_array(
        (policy.on(world), np.arange(world.num_pairs), world.pairs.offsets),
        shape=(world.num_states, world.num_pairs),
    )
