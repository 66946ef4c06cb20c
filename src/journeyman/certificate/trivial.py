"""The bound that needs no data: what every policy's gap stays below because costs are bounded.

    gap_W(Psi' mu - e) <= 2 N h                              e the expectations of some policy
    gap_W(Psi' mu - x) <= N h + gap_W(h c - x)               x any target that is taken as exact

where h = 1/(1 - discount) and N is the largest cost of the class in any pair after the middle c of
each cost's range is subtracted, where that makes it smaller: Psi' mu = h c + (Psi - 1 c')' mu.
"""

import numpy as np

from journeyman.certificate.sample_sizes import centred_bound
from journeyman.certificate.terms import above
from journeyman.problem import Apprenticeship, Program


def trivial_bound(problem: Program) -> float:
    """No policy of the world has a larger gap."""
    largest = centred_bound(problem, problem.cost_class) * problem.world.effective_horizon
    if isinstance(problem, Apprenticeship) and not problem.expectation.is_declared:
        return above(2 * largest)
    smaller = largest < problem.trivial_bound / 2
    centre = problem.basis.centre if smaller else np.zeros(problem.basis.num_costs)
    resting = problem.world.effective_horizon * centre
    return above(largest + problem.cost_class.gap(resting - problem.target))
