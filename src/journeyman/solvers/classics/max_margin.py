"""The max-margin method of Abbeel and Ng: the cost that separates expert and policies best.

    maximise   t      over |w|_2 <= 1      such that   <w, m_j> >= <w, e> + t   for all j

where m_j are the expectations of the policies so far and e those of the expert, each cost
multiplied by its scale. Its dual is the point of the convex hull of the m_j nearest to e,

    minimise   |sum_j theta_j m_j - e|_2      over theta >= 0,  sum_j theta_j = 1,

whose difference to e is the best w, up to its length, and whose theta are the mixture. It is solved
as nonnegative least squares (`mixture_weights`). The next policy is a plan for the cost Psi w.

Guarantee. The distance never grows and each iteration comes at least as near as a step of
`Projection` from the same mixture would, so the same bound holds: at most 5 D^2/(a max(a, d*))
iterations, and a few more, to within a of the least gap d* for `EuclideanBall` (`nearest_mixture`).
The shares of such a step are kept whenever the least-squares engine gives nothing better. With
exact plans the method is finite besides: a policy that brings nothing new ends it.

Cost. Per iteration one plan that starts from the last one's values, one linear solve and one
least-squares problem with as many rows as costs. Of its solution at most one policy more than there
are costs has a share, where `Projection` keeps a little of every policy it has seen.

Reference: Abbeel, Ng, "Apprenticeship learning via inverse reinforcement learning", 2004, 3.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs import EuclideanBall
from journeyman.solvers.classics.nearest_mixture import NearestMixture
from journeyman.solvers.classics.projection import project
from journeyman.solvers.mixture_weights import best_weights


@dataclass(frozen=True)
class MaxMargin(NearestMixture):
    """Approach the expert by the best mixture of all policies so far, in the Euclidean norm.

    `answer.mixture` is the mixture of the paper, `answer.policy` the stationary policy with the
    same occupancy, `answer.cost_weights` the cost with the largest margin.

    Args:
        accuracy: asked-for difference of the mixture's gap for `EuclideanBall` and its lower
            bound, relative to 2N/(1 - discount) of that class.
        time_limit: seconds.
        max_iterations: generated policies before the solve stops.
    """

    def reweigh(self, differences: FloatArray, shares: FloatArray, newest: int) -> FloatArray:
        """Shares of the point nearest to the origin among all mixtures."""
        stepped = project(differences, shares, newest)
        nearest = best_weights(differences, np.zeros(differences.shape[1]), EuclideanBall()).weights
        return min(nearest, stepped, key=lambda mix: float(np.linalg.norm(mix @ differences)))
