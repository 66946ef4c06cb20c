"""The bound that needs no data: what every policy's gap stays below because costs are bounded.

    gap_W(Psi' mu - e) <= 2 N h                              e the expectations of some policy
    gap_W(Psi' mu - x) <= N h + gap_W(h c - x)               x any target that is taken as exact

where h = 1/(1 - discount) and N is the largest cost of the class in any pair after the middle c of
each cost's range is subtracted, where that makes it smaller: Psi' mu = h c + (Psi - 1 c')' mu.
"""

import numpy as np

from journeyman.certificate.sample_sizes import centred_bound
from journeyman.problem import Apprenticeship, Program


def trivial_bound(problem: Program) -> float:
    """No policy of the world has a larger gap."""
    rounding = (problem.basis.num_costs + 8) * float(np.finfo(float).eps)
    largest = centred_bound(problem, problem.cost_class) * problem.world.effective_horizon
    largest *= 1 + rounding
    if isinstance(problem, Apprenticeship) and not problem.expectation.is_declared:
        return 2 * largest
    smaller = largest < problem.trivial_bound / 2
    centre = problem.basis.centre if smaller else np.zeros(problem.basis.num_costs)
    resting = problem.world.effective_horizon * centre
    distance = problem.cost_class.gap(resting - problem.target)
    sizes = problem.trivial_bound + float(np.abs(problem.target).sum())
    return largest + distance + rounding * sizes
