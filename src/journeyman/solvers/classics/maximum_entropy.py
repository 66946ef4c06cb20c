"""Maximum causal entropy: of all policies that match the expert, the one that assumes least.

    maximise   H(mu) = -sum_{x,a} mu(x, a) log( mu(x, a)/mu(x) )
    over       mu >= 0,  (B - discount P)' mu = initial,  Psi' mu = target

*where* mu(x) = sum_a mu(x, a), and H(mu) = E sum_t -discount^t log pi(a_t | x_t) is the discounted
causal entropy of mu's policy. Its Lagrangian dual is smooth and convex,

    minimise over w   <w, target> - <initial, V_w>,        gradient   target - Psi' mu_w

with V_w the soft values and mu_w the occupancy of the soft-optimal policy of the cost Psi w at
temperature 1 (`policy.soft_planning`): the answer's policy is that policy, and `answer.recovered`
is w, the cost under which that policy is soft-optimal.

*Not maximum likelihood.* w is the cost with the largest likelihood when every decision at time t of
the records counts discount^t times and the records are complete, or are continued by the fitted
policy itself where they are cut off. Likelihood counts all decisions alike and needs nothing beyond
the cut. On records that are cut off, whose target rests on a continuation by somebody else, and on
records that are weighted otherwise, another cost explains the recorded actions better.

Estimated targets are often out of reach of every policy, and the dual is then unbounded. What is
solved is therefore, with z the mismatch Psi' mu - target in the units below,

    maximise   rate H(mu) - |z|^2 / (2 ridge),        whose solution has   z = ridge u,

which always has exactly one solution. Without a `ridge` of your own it starts at 1e-2 and is
lowered until either

- the policy *matches*: |z|_2 <= tolerance, which happens whenever a policy of positive
  probabilities matches the expert; or
- matching is *proven impossible*: the recovered cost w separates the target from all policies, no
  policy's |z|_2 is below a bound d > tolerance (a plan for w and weak duality), and this policy's
  is at most 1.25 d.

`answer.log` says which, with figures. Between the two lie targets on the very edge of the reachable
set, such as the exact expectations of a deterministic expert, which have no finite w: the mismatch
falls with every iteration until `max_iterations` is over (STEP_LIMIT).

Units. z_i is scale_i (psi_i' mu - target_i)/U with the scale of the problem's cost class and U the
Euclidean norm of the scaled target, or of the attainable ranges of the scaled costs where that is
less: tolerance 1e-6 means expectations that agree to 1e-6 of what the expert totals, and of what
policies can differ by. In a continuing world U is of the order of N/(1 - discount), with N the
largest Euclidean norm of a scaled row of Psi; where episodes end it is of the size of an episode's
total, however near 1 the discount is. `rate` is N/U.

*Guarantee.* CONVERGED: the gradient of the dual is below `tolerance`, hence (strong duality) the
policy is the solution up to that. A matched policy's gap is at most tolerance x sqrt(number of
costs) x U for every class. Among policies, the solution predicts the actions of
whoever has the target's expectations with the least log loss in the worst case (Ziebart, Bagnell
and Dey). The papers state this for finite horizons and rewards; here it is for costs and discounted
sums without end, for which the duality is the same (Bloem and Bambos).

*Method.* L-BFGS-B of SciPy for the first ridge, truncated Newton steps for those that follow.
*Cost.* Per evaluation some 2 to 10 sparse systems for the soft plan and one adjoint for mu_w; per
Newton step two systems for each product with the second derivative. In narrow worlds (grids)
systems share one factor. No dense matrix of states.

*Reference.* Ziebart, Maas, Bagnell and Dey, "Maximum entropy inverse reinforcement learning", 2008;
Ziebart, Bagnell and Dey, "Modeling interaction via the principle of maximum causal entropy", 2010;
Bloem and Bambos, "Infinite time horizon maximum causal entropy inverse reinforcement learning",
2014.
"""

import time
from dataclasses import dataclass

from journeyman.problem import Program
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import answer_of, require_apprenticeship
from journeyman.solvers.classics.entropy_dual import EntropyDual
from journeyman.solvers.classics.ridge_path import RidgePath, Stopped
from journeyman.solvers.hyperparameters import (
    require_count,
    require_positive,
    require_time_limit,
)
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch


@dataclass(frozen=True)
class MaximumEntropy:
    """The maximum causal entropy policy that matches the expert's expectations.

    Args:
        tolerance: asked-for mismatch of the expectations, relative to the size of the expert's, or
            to how far apart those of two policies can be where that is less.
        ridge: weight of |u|^2/2 in the dual, for an expert who is not to be matched exactly; by
            default lowered until the policy matches, or until no policy can.
        max_iterations: steps of L-BFGS and of Newton's method together.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world = jm.World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> basis, expert = jm.CostBasis([[1.0], [0.0]]), jm.ExpertExpectation([0.5])
    >>> problem = jm.Apprenticeship(world, basis, expert)
    >>> answer = jm.solve(problem, MaximumEntropy())
    >>> answer.policy.probabilities([0]).round(5).tolist(), answer.recovered.round(4).tolist()
    ([[0.25, 0.75]], [1.0986])
    """

    tolerance: float = 1e-6
    ridge: float | None = None
    max_iterations: int = 500
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_positive("tolerance", self.tolerance, below=1)
        if self.ridge is not None:
            require_positive("ridge", self.ridge)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    def run(self, problem: Program, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        apprenticeship = require_apprenticeship(problem, type(self).__name__)
        dual = EntropyDual(apprenticeship)
        path = RidgePath(dual, self.tolerance, watch, self.max_iterations)
        try:
            path.follow(self.ridge)
            status = Status.CONVERGED
        except Stopped as stopped:
            path.turn_back()
            status = stopped.status
        return answer_of(
            apprenticeship,
            path.point.plan.policy,
            status,
            engine="L-BFGS-B, truncated Newton",
            work=Work(iterations=path.iterations, forward_solves=dual.plans),
            recovered=dual.weights(path.point.u),
            seconds=time.perf_counter() - started,
            log=path.words,
        )
