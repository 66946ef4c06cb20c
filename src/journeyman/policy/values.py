"""Value functions: what a policy's future costs from each state on.

V_i = (I - discount P_pi)^{-1} c_i,      c_i(x) = sum_a pi(a | x) psi_i(x, a)
"""

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, read_only
from journeyman.policy.discounted_system import DiscountedSystem
from journeyman.policy.occupancy import averaging, transition_under
from journeyman.policy.policy import Policy
from journeyman.world import World


def value_functions(world: World, policy: Policy, costs: Matrix) -> FloatArray:
    """(states x costs): the expected discounted total of every cost (pairs x costs).

    >>> world = World([[0, 1], [1, 0]], [1, 0], 0.5)
    >>> value_functions(world, Policy([[1.0], [1.0]]), np.eye(2)).round(12).tolist()
    [[1.333333333333, 0.666666666667], [0.666666666667, 1.333333333333]]
    """
    system = DiscountedSystem(transition_under(world, policy), world.discount)
    now = averaging(world, policy) @ costs
    immediate = np.asarray(now.toarray() if sparse.issparse(now) else now)
    columns = [system.solve(np.ascontiguousarray(column)).x for column in immediate.T]
    return read_only(np.column_stack(columns))
