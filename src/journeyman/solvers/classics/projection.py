"""The projection method of Abbeel and Ng: step towards each new policy as far as it helps.

    w = x - e,      m = expectations of a plan for the cost Psi w,
    x <- x + step (m - x),      step = <x - e, x - m>/|x - m|^2, cut to [0, 1]

where x are the expectations of the mixture at hand and e those of the expert, each cost multiplied
by its scale. x is the point nearest to e on the way from the old x to m, so this is the method of
Frank and Wolfe with exact steps for the distance from the expert.

Guarantee. The distance never grows. After at most 5 D^2/(a max(a, d*)) iterations, and a few whose
number grows with log(1/a), the mixture's gap for `EuclideanBall` is within a of the least one, d*;
D <= 2N/(1 - discount) is the diameter of all expectations. `nearest_mixture` has the whole sum, its
proof, and how it compares with the paper's. Bounds on both sides are known all the while, and the
loop ends as soon as they meet to within a, usually long before.

The paper projects on the whole line through x and m. The foot lies between them when a mixture can
match the expert, but not always otherwise, and beyond m there is no policy: steps are cut at one.

Cost. Per iteration one plan that starts from the last one's values, and one linear solve.

Reference: Abbeel, Ng, "Apprenticeship learning via inverse reinforcement learning", 2004, 3.1.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.solvers.classics.nearest_mixture import NearestMixture


@dataclass(frozen=True)
class Projection(NearestMixture):
    """Approach the expert by mixing policies, in the Euclidean norm of expectations.

    `answer.mixture` is the mixture of the paper, `answer.policy` the stationary policy with the
    same occupancy, `answer.cost_weights` the cost under which the expert was hardest to match.

    Args:
        accuracy: asked-for difference of the mixture's gap for `EuclideanBall` and its lower
            bound, relative to 2N/(1 - discount) of that class.
        time_limit: seconds.
        max_iterations: generated policies before the solve stops.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(5, macro_cells=2)
    >>> target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    >>> problem = jm.Apprenticeship(world, basis, target, jm.EuclideanBall())
    >>> answer = jm.solve(problem, Projection(accuracy=0.01))
    >>> answer.value - answer.lower_bound <= 0.01 * problem.gap_scale
    True
    """

    def reweigh(self, differences: FloatArray, shares: FloatArray, newest: int) -> FloatArray:
        """Shares of the point nearest to the origin between the mixture and the newest policy."""
        return project(differences, shares, newest)


def project(differences: FloatArray, shares: FloatArray, newest: int) -> FloatArray:
    """Shares of the point nearest to the origin between the mixture and the newest policy."""
    here = shares @ differences
    way = differences[newest] - here
    length = float(way @ way)
    step = float(np.clip(-(here @ way) / length, 0.0, 1.0)) if length > 0 else 0.0
    moved = (1.0 - step) * shares
    moved[newest] += step
    return moved
