"""Mirror descent with a prior: prices that explain the expert and stay near what is known of them.

    min over occupancies mu   max over w in W
        <mu, c_w> - <w, target> - strength |w - prior|^2/(2 (1 - discount))

*where* the prior is a first guess of the weights and `strength` says what it costs to leave it, in
costs of a step. It is played as a saddle point of shares of pairs (or of features), weights and
values by sampled transitions (`occupancy_game`), and its weights are the answer's `recovered`.

*What the weights are.* For exact laws the minimum over mu is f(w) = least total of c_w - <w,
target>, concave and never positive where an expert has the target; zero for the weights for which
the expert is optimal. So the optimum w* is the proximal point of the prior for -f, and for every
w_E in W for which the expert is optimal

    |w* - w_E|^2  <=  |prior - w_E|^2 - |w* - prior|^2:

whatever the strength, w* is nearer to the truth than the prior, unless the prior explains the
expert already. (The line from w* to w_E: the objective is strongly concave with modulus
strength/(1 - discount) =: s, f(w*) <= 0 = f(w_E).) Nothing follows about weights for which the
expert is not optimal: an expert with prices of its own draws w* towards these.

*Relation to `PriorBall`.* The same w* and policy solve the problem for the class {w in W : |w -
prior| <= |w* - prior|}: strength is the price of leaving a Euclidean ball around the prior, so
every strength stands for one radius. With `PriorBall(prior, radius)` one declares how wrong the
prior can be and is protected against all of that; with a strength one looks for weights.

*Guarantee.* The averages of T sweeps are a saddle point to within the bound of `occupancy_game`. In
an explicit world the value is recomputed from the laws from both sides, and by strong concavity the
weights are within sqrt(2 (upper - lower)/s) of w*: the log says how far (`weight_error`). CONVERGED
means that the sides are within `accuracy`, in units of 2N/(1 - discount). The gap of the policy,
and its certificate, are about the class W as for every method.

*Cost.* As `OccupancyMirrorDescent`; a look projects onto W once more.

*Reference.* Junca, Leiva, "Apprenticeship learning with prior beliefs using inverse optimization",
2025 (a cost of its own for every pair is the basis of all pairs' indicators).
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from journeyman.arrays import FloatArray, assign, real_array
from journeyman.errors import InvalidSolver
from journeyman.problem import Apprenticeship, lower_bound
from journeyman.problem.bounds import witness_from_plan
from journeyman.solvers.answer import Answer, Solution
from journeyman.solvers.classics.answering import require_suitable
from journeyman.solvers.classics.occupancy_game import Prior, hardest_near
from journeyman.solvers.classics.occupancy_mirror_descent import Settings, play
from journeyman.solvers.running import Watch, require_positive


@dataclass(frozen=True, eq=False)
class PriorMirrorDescent(Settings):
    """Weights near a prior that explain the expert, and a policy that is optimal for them.

    Args:
        prior: the weights as far as they are known; by default the middle of the class.
        strength: cost of a step that leaving the prior by one costs twice; the smaller, the more
            the demonstrations count.
        features: columns of occupancies, see `OccupancyMirrorDescent`, as the rest.
        value_features: functions of states.
        accuracy: of the saddle point at which to stop, relative to 2N/(1 - discount).
        max_iterations: sweeps; each draws one transition for every column.
        batch: transitions of a sweep in a stepped world.
        seed: of all draws.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, _ = jm.gallery.grid(4, macro_cells=2)
    >>> truth = np.array([1.0, 0.5, 0.2, 0.0])
    >>> expert = jm.plan(world, basis.on(world) @ truth).policy
    >>> visits = jm.occupancy(world, expert).expectations(basis)
    >>> problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(visits))
    >>> prior = np.array([0.0, 0.5, 0.2, 0.4])
    >>> found = jm.solve(problem, PriorMirrorDescent(prior, 0.1, accuracy=0.002)).recovered
    >>> bool(np.linalg.norm(found - truth) < np.linalg.norm(prior - truth))
    True
    """

    prior: FloatArray | None = None
    strength: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("strength", self.strength)
        if self.prior is not None:
            assign(self, prior=real_array("prior", self.prior, ndim=1, refusal=InvalidSolver))

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, type(self).__name__)
        prior = Prior(self._weights(problem), float(self.strength))
        answer = play(self, problem, prior, watch, "mirror descent with a prior")
        if not isinstance(answer.solution, Solution) or answer.recovered is None:
            return answer
        error = weight_error(problem, answer.solution, answer.recovered, prior)
        return replace(
            answer,
            log=f"{answer.log}; the weights are within {error:.3g} of the best ones (2-norm), "
            f"{float(np.linalg.norm(answer.recovered - prior.weights)):.3g} from the prior",
        )

    def _weights(self, problem: Apprenticeship) -> FloatArray:
        if self.prior is None:
            form = problem.cost_class.kernel_form(problem.num_costs)
            return form.centre if not len(form.points) else form.points.mean(axis=0)
        if self.prior.size != problem.num_costs:
            raise InvalidSolver(
                f"the prior has {self.prior.size} weights, the problem {problem.num_costs} costs",
                "Give one weight per cost",
            )
        return self.prior


def weight_error(
    problem: Apprenticeship, solution: Solution, weights: FloatArray, prior: Prior
) -> float:
    """How far the weights are from w* at most: the objective is strongly concave in w, its optimum
    lies below what the policy leaves open and not below what a plan for the weights proves."""
    modulus = prior.strength * problem.effective_horizon
    admitted = problem.cost_class.admit(weights)
    difference = problem.difference(solution.occupancy.measure)
    upper, _ = hardest_near(problem.cost_class, prior.weights, modulus, difference)
    lower = lower_bound(problem, witness_from_plan(problem, admitted, ()))
    lower -= modulus / 2 * float(((admitted - prior.weights) ** 2).sum())
    moved = float(np.linalg.norm(admitted - weights))
    return math.sqrt(2 * max(upper - lower, 0.0) / modulus) + moved
