"""Occupancy measures of known policies as features.

    phi_k = mu^{pi_k},      u_theta = sum_k theta_k mu^{pi_k}

Guarantee: for theta in the simplex u_theta is itself an occupancy measure, so V1 = V2 = 0 and the
policy of u_theta has exactly this occupancy. Only mixtures of the given policies are in reach: use
them beside other features (`concatenate`), or where start states are matched by nothing smooth.

Cost: one policy evaluation per column. Columns are dense unless most pairs are left unvisited.
"""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from journeyman.errors import InvalidCosts
from journeyman.policy import Policy, occupancy
from journeyman.problem.features.features import Features
from journeyman.world import World

SPARSE_BELOW = 0.25
"""Share of non-zeros up to which the columns are stored sparsely."""


def occupancies(world: World, policies: Sequence[Policy]) -> Features:
    """One column per policy, of mass 1/(1 - discount).

    >>> world = World([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    >>> stay = Policy([1.0, 0.0, 1.0], [0, 2, 3])
    >>> occupancies(world, [stay, Policy.uniform(world)]).masses.round(12).tolist()
    [2.0, 2.0]
    """
    if not policies:
        raise InvalidCosts("there are no policies", "Give at least one")
    columns = np.column_stack([occupancy(world, policy).measure for policy in policies])
    if np.count_nonzero(columns) <= SPARSE_BELOW * columns.size:
        return Features(sparse.csr_array(columns)).normalised(world)
    return Features(columns).normalised(world)
