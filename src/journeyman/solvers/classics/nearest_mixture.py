"""The loop of Abbeel and Ng: approach the expert by mixtures of generated policies.

    x_t = a mixture of m_1 .. m_t,      w_t = (x_t - e)/|x_t - e|,      m_{t+1} = a plan for w_t

where m are expectations, e those of the expert, and norms are Euclidean after each cost was
multiplied by its scale. |x_t - e| is the gap of the mixture for `EuclideanBall`, an upper bound on
the least one; <w_t, m_{t+1} - e>, less the planner's error, is a lower bound. The loop ends when
they are within the asked accuracy a of each other. It starts where the policy that tosses coins is
worst.

Guarantee. Let D be the diameter of the set of all expectations, d* the least gap, and let a new
mixture be at least as near as the best point between the old one and the new policy. Each plan is
optimal to within 1/20 of how far the bounds are apart. Then the loop ends after at most

    5 D^2/(a max(a, d*)) + log2(|x_1 - e|/a) + 4 max(0, log(|x_1 - e|/D)) + 3     iterations.

Proof. Let s > a be the difference of the bounds, d = |x - e| >= max(a, d*), and L the bound that
the plan for w proves. If d - L < s/2, s is halved, which happens at most log2(|x_1 - e|/a) times,
and x comes no less near. Otherwise let h = (d^2 - d*^2)/2, and let g = <x - e, x - m> be the slope
towards the new policy m. The plan's error s/20 is at most (d - L)/10, so g >= 0.9 d (d - L) > q
with q = 0.9 a max(a, d*), and h <= d (d - L) <= g/0.9 by convexity. The best point between x and m
makes h smaller by at least g/2 where g >= D^2, and by g^2/(2 D^2) elsewhere. The first kind
happens while h >= D^2/2 and leaves 0.55 h, hence at most 1 + 3.4 max(0, log(|x_1 - e|/D)) times. By
the second, 1/h grows by 0.81/(2 D^2) a step, so that h <= q after 2.5 D^2/q of them, and each
further one takes q^2/(2 D^2) off, so that 2 D^2/q more leave nothing; 4.5/0.9 = 5.

Abbeel and Ng have O(k/(eps^2 (1 - discount)^2) log(k/(eps (1 - discount)))) for an expert that a
mixture can match, with features in [0, 1], hence D^2 <= k/(1 - discount)^2. The argument above does
without the logarithm; D is at most 2N/(1 - discount) whatever k is; and an expert
that cannot be matched (d* > 0, as with estimated expectations) makes it easier, not harder.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.costs import EuclideanBall
from journeyman.policy import Policy, occupancy
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import answer_of, require_suitable
from journeyman.solvers.classics.generated_policies import (
    GeneratedPolicies,
    in_class,
    squared_count,
)
from journeyman.solvers.policy_mixture import best_weights
from journeyman.solvers.running import (
    Advance,
    Watch,
    iterate,
    require_count,
    require_positive,
    require_time_limit,
)

PLANNING_SHARE = 0.05
"""A plan's error may be this share of how far the bounds are apart."""
FEWEST = 3
"""Iterations beside the sum of the guarantee: the first, the last, and one that may be clipped."""


@dataclass(frozen=True)
class NearestMixture(ABC):
    """What the methods of Abbeel and Ng have in common; they differ in `reweigh`."""

    accuracy: float = 1e-3
    time_limit: float | None = None
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        require_positive("accuracy", self.accuracy, below=1.0)
        require_time_limit(self.time_limit)
        require_count("max_iterations", self.max_iterations)

    @abstractmethod
    def reweigh(self, differences: FloatArray, shares: FloatArray, newest: int) -> FloatArray:
        """New shares of the policies, from their differences to the expert (one row each), the
        shares so far, and the number of the policy that was generated last."""

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        name = type(self).__name__
        require_suitable(problem, name)
        course = Approach(problem, self)
        status, iterations = iterate(course.advance, watch, self.max_iterations)
        policy, mixture = course.generated.mixture(course.shares)
        hardest = course.generated.hardest
        separating = course.weights if hardest is None else hardest
        at_home = type(problem.cost_class) is type(course.own.cost_class)
        count = len(course.generated)
        return answer_of(
            problem, policy, status, engine=name, mixture=mixture, recovered=separating,
            work=Work(iterations=iterations, forward_solves=iterations),
            weights=separating if at_home else None, seconds=watch.elapsed,
            log=f"{count} policies were generated, {len(mixture.candidates)} are mixed",
        )  # fmt: skip

    def iterations_needed(self, problem: Apprenticeship) -> int:
        """The guarantee's count, before anything is solved."""
        return most_iterations(problem, self.accuracy)


class Approach:
    """Generated policies, the shares of their mixture and its distance from the expert."""

    def __init__(self, problem: Apprenticeship, method: "NearestMixture") -> None:
        self.own, tossing = in_class(problem, EuclideanBall), Policy.uniform(problem.world)
        self.accuracy = method.accuracy * (self.own.gap_scale or 1.0)
        self.generated = GeneratedPolicies(self.own)
        self.shares = np.zeros(0)
        self._turn(self.own.difference(occupancy(self.own.world, tossing).measure))
        self._reweigh = method.reweigh
        self._scale = self.own.cost_class.scaling(problem.basis.num_costs)

    def advance(self) -> Advance:
        """Plan for the weights at hand, mix anew, and turn to where the mixture is worst."""
        apart = max(self.distance - self.generated.lower_bound, self.accuracy)
        newest = self.generated.answer(self.weights, PLANNING_SHARE * apart)
        differences = self._scale * (self.generated.expectations - self.own.target)
        shares = np.zeros(len(self.generated))
        shares[: self.shares.size] = self.shares
        self.shares = self._reweigh(differences, shares, newest) if shares.any() else _alone(newest)
        self._turn(self.shares @ self.generated.expectations - self.own.target)
        close = self.distance - self.generated.lower_bound <= self.accuracy
        return Advance(self.distance, self.generated.lower_bound, converged=close)

    def _turn(self, difference: FloatArray) -> None:
        """To the weights under which a mixture with this difference to the expert is worst."""
        self.distance = self.own.cost_class.gap(difference)
        self.weights = self.own.cost_class.worst_case(difference)


def most_iterations(problem: Apprenticeship, accuracy: float) -> int:
    """What the guarantee says before anything is known about d* and the start."""
    own = in_class(problem, EuclideanBall)
    basis, scale = own.basis, own.cost_class.scaling(own.basis.num_costs)
    horizon = own.effective_horizon
    across = float(np.linalg.norm(scale * (basis.highest - basis.lowest))) * horizon
    diameter = min(across, own.gap_scale)
    farthest = own.gap_scale / 2 + float(np.linalg.norm(scale * own.target))
    if diameter == 0:
        return FEWEST
    asked = accuracy * own.gap_scale
    halvings = max(0.0, np.log2(farthest / asked))
    few = halvings + 4 * max(0.0, np.log(farthest / diameter))
    return squared_count(np.sqrt(5) * diameter / asked, few) + FEWEST


def _alone(number: int) -> FloatArray:
    shares = np.zeros(number + 1)
    shares[number] = 1.0
    return shares


@dataclass(frozen=True)
class Projection(NearestMixture):
    """Approach the expert by mixing policies, in the Euclidean norm of expectations.

    `answer.mixture` is the mixture of the paper, `answer.policy` the stationary policy with the
    same occupancy, `answer.cost_weights` the cost under which the expert was hardest to match.

        w = x - e,      m = expectations of a plan for the cost Psi w,
        x <- x + step (m - x),      step = <x - e, x - m>/|x - m|^2, cut to [0, 1]

    where x are the expectations of the mixture at hand and e those of the expert, each cost
    multiplied by its scale. x is the point nearest to e on the way from the old x to m, so this is
    the method of Frank and Wolfe with exact steps for the distance from the expert.

    Guarantee. The distance never grows. After at most 5 D^2/(a max(a, d*)) iterations, and a few
    whose number grows with log(1/a), the mixture's gap for `EuclideanBall` is within a of the least
    one, d*; D <= 2N/(1 - discount) is the diameter of all expectations. `nearest_mixture` has the
    whole sum, its proof, and how it compares with the paper's. Bounds on both sides are known all
    the while, and the loop ends as soon as they meet to within a, usually long before.

    The paper projects on the whole line through x and m. The foot lies between them when a mixture
    can match the expert, but not always otherwise, and beyond m there is no policy: steps are cut
    at one.

    Cost. Per iteration one plan that starts from the last one's values, and one linear solve.

    Reference: Abbeel, Ng, "Apprenticeship learning via inverse reinforcement learning", 2004, 3.1.

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


@dataclass(frozen=True)
class MaxMargin(NearestMixture):
    """Approach the expert by the best mixture of all policies so far, in the Euclidean norm.

    `answer.mixture` is the mixture of the paper, `answer.policy` the stationary policy with the
    same occupancy, `answer.cost_weights` the cost with the largest margin.

        maximise   t      over |w|_2 <= 1      such that   <w, m_j> >= <w, e> + t   for all j

    where m_j are the expectations of the policies so far and e those of the expert, each cost
    multiplied by its scale. Its dual is the point of the convex hull of the m_j nearest to e,

        minimise   |sum_j theta_j m_j - e|_2      over theta >= 0,  sum_j theta_j = 1,

    whose difference to e is the best w, up to its length, and whose theta are the mixture. It is
    solved as nonnegative least squares (`mixture_weights`). The next policy is a plan for the cost
    Psi w.

    Guarantee. The distance never grows and each iteration comes at least as near as a step of
    `Projection` from the same mixture would, so the same bound holds: at most 5 D^2/(a max(a, d*))
    iterations, and a few more, to within a of the least gap d* for `EuclideanBall`
    (`nearest_mixture`). The shares of such a step are kept whenever the least-squares engine gives
    nothing better. With exact plans the method is finite besides: a policy that brings nothing new
    ends it.

    Cost. Per iteration one plan that starts from the last one's values, one linear solve and one
    least-squares problem with as many rows as costs. Of its solution at most one policy more than
    there are costs has a share, where `Projection` keeps a little of every policy it has seen.

    Reference: Abbeel, Ng, "Apprenticeship learning via inverse reinforcement learning", 2004, 3.

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
