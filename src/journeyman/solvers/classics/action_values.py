"""What it costs to take an action once and then to follow a policy, for every cost of a basis.

    Q_i(x, a) = psi_i(x, a) + discount sum_y P(y | x, a) V_i(y)
    A_i(x, a) = Q_i(x, a) - V_i(x)

where V_i are the policy's value functions. Both are linear in the cost: under c_w = Psi w they are
Q w and A w, and the policy is optimal for c_w in every state exactly if A w >= 0 in every pair.
"""

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix
from journeyman.policy import Policy
from journeyman.policy.values import value_functions
from journeyman.world import World


def action_values(world: World, policy: Policy, costs: Matrix) -> tuple[FloatArray, FloatArray]:
    """Q (pairs x costs) and V (states x costs)."""
    values = value_functions(world, policy, costs)
    now = costs.toarray() if sparse.issparse(costs) else costs
    return np.asarray(now + world.discount * (world.transition @ values)), values


def advantages(world: World, policy: Policy, costs: Matrix) -> FloatArray:
    """A (pairs x costs): what a step aside costs more than the policy; negative: it pays.

    >>> world = World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> advantages(world, Policy([[1.0, 0.0]]), np.array([[1.0], [3.0]])).tolist()
    [[0.0], [2.0]]
    """
    Q, V = action_values(world, policy, costs)
    return np.asarray(Q - world.pairs.spread(V))
