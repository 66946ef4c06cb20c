"""Policy matching: cost weights whose smoothed optimal policy acts like the expert, state by state.

    minimise over w      J(w) = sum_x rho(x) sum_a (pi_w(a | x) - pi_E(a | x))^2
    where                pi_w(a | x) is proportional to exp(-sharpness Q*_w(x, a))

Q*_w are the optimal action values of the cost c_w = Psi w, and rho is how often the expert is seen
in each state, with sum 1, so that J lies between 0 and 2. Only the product of `sharpness` and w
matters; `recovered` is w.

Gradient. Where the optimal action g(x) is unique, Q* has the derivative of the fixed point
dQ = Psi + discount P dV with dV(x) = dQ(x, g(x)), that is the action values of g under every basis
cost (one linear solve per cost), and

    d pi_w(a | x) = -sharpness pi_w(a | x) (dQ(x, a) - sum_b pi_w(b | x) dQ(x, b))

Where actions tie, Q* has kinks; the planner's choice then gives one of several derivatives. At
w = 0 all of them tie, and the expert's own policy takes the place of g.

The natural gradient divides by the metric that policies induce on weights,

    G = sum_x rho(x) sum_a d pi_w(a | x) d pi_w(a | x)',      w - G^+ grad J/2

which, weighted by rho as J is, is the Gauss-Newton step of J. It does not depend on how costs are
parametrised: Psi M and M^-1 w lead to the same policies for any invertible M. Directions that G
does not see, such as a constant added to all costs, are left alone; the scale of a cost class does
not matter. Steps are cut so that no sharpness Q changes by more than LARGEST_MOVE against its
state's mean, and halved until J falls by a share of what the gradient promises.

Guarantee. J falls with every iteration. CONVERGED means that the natural gradient promises less
than `accuracy`: a stationary point, which need not be the least J, because J is not convex; the
paper promises no more. J = 0 is reached if the expert is such a policy and no kink is in the way.
INACCURATE means that no step along the natural gradient or the gradient lowers J: a kink. In any
case J bounds how differently policy and expert act where the expert was seen:

    sum_x rho(x) |pi_w(. | x) - pi_E(. | x)|_1 <= sqrt(A J),     A the largest number of actions

The answer's policy is pi_w. The expert is the policy `expert`, or else cloned from the
demonstrations.

Cost. Per iteration one linear solve per cost, a few plans, and pairs x costs^2 operations.

Reference: Neu and Szepesvari, "Apprenticeship learning using inverse reinforcement learning and
gradient methods", UAI 2007.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.policy import Plan, Policy, plan
from journeyman.policy.policy_evaluation import action_values
from journeyman.policy.table import softmax
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import (
    ExpertPolicy,
    answer_of,
    expert_policy,
    require_expert_policy,
    require_suitable,
)
from journeyman.solvers.running import (
    Advance,
    Status,
    Watch,
    iterate,
    require_count,
    require_positive,
    require_time_limit,
)

UNSEEN = 1e-10
"""Eigenvalues of the metric below this, in units of its diagonal, are directions left alone."""
ROUNDING = 1e-12
"""So are costs that move the policy by less than this share of the logits they move."""
LARGEST_MOVE = 4.0
"""No logit of the policy moves further than this in one step, in first order."""
SUFFICIENT = 1e-4
"""Share of the promised decrease that a step has to bring."""
HALVINGS = 30


@dataclass(frozen=True)
class PolicyMatching:
    """Match the expert's actions by the smoothed optimal policy of a cost.

    Args:
        sharpness: of the smoothed policy; larger values go with smaller recovered weights.
        expert: the expert's policy; by default cloned from the demonstrations.
        accuracy: the decrease of J below which its natural gradient counts as zero.
        max_iterations: natural gradient steps.
        time_limit: seconds.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    >>> demos = jm.record(world, expert, trajectories=50, horizon=60, seed=0)
    >>> answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.PolicyMatching())
    >>> answer.recovered.size, answer.log.startswith("J fell from ")
    (4, True)
    """

    sharpness: float = 1.0
    expert: Policy | None = None
    accuracy: float = 1e-9
    max_iterations: int = 200
    time_limit: float | None = None

    def __post_init__(self) -> None:
        require_positive("sharpness", self.sharpness)
        require_expert_policy(self.expert)
        require_positive("accuracy", self.accuracy)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, "PolicyMatching")
        known = expert_policy(problem, self.expert, "PolicyMatching")
        search = _Search(Mismatch(problem, known, float(self.sharpness)), self.accuracy, watch)
        status, iterations = iterate(search.advance, watch, self.max_iterations)
        point = search.point
        return answer_of(
            problem, Policy(point.law, problem.world.pairs),
            Status.INACCURATE if search.stuck and status is Status.CONVERGED else status,
            engine="natural gradient", recovered=point.weights,
            work=Work(iterations=iterations, forward_solves=search.plans),
            seconds=watch.elapsed,
            log=f"J fell from {search.first:.6g} to {point.value:.6g}; {known.source}",
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Point:
    """Weights with the policy that they make, and J."""

    weights: FloatArray
    law: FloatArray
    """pi_w per pair."""
    value: float
    plan: Plan


@dataclass(frozen=True, eq=False)
class Slope:
    """Where J falls from a point."""

    gradient: FloatArray
    natural: FloatArray
    """-G^+ grad J / 2."""
    move: float
    """The largest change of a logit along `natural`."""


@dataclass(frozen=True, eq=False)
class Mismatch:
    """J of one problem, by weights."""

    problem: Apprenticeship
    expert: ExpertPolicy
    sharpness: float

    @cached_property
    def density(self) -> FloatArray:
        """rho at every pair."""
        visits = self.expert.visits
        return self.problem.world.pairs.spread(visits / visits.sum())

    def at(self, weights: FloatArray, warm_start: Plan | None = None) -> Point:
        """The policy of `weights`, by one plan."""
        world, cost = self.problem.world, self.problem.cost_of(weights)
        found = plan(world, cost, warm_start=warm_start)
        Q = cost + world.discount * (world.transition @ found.values)
        law = softmax(world.pairs, -self.sharpness * Q)
        value = float(self.density @ (law - self.expert.policy.per_pair) ** 2)
        return Point(weights, law, value, found)

    def slope(self, point: Point) -> Slope:
        """Gradient and natural gradient of J, by one linear solve per cost."""
        world, pairs = self.problem.world, self.problem.world.pairs
        optimal = point.plan.policy if point.weights.any() else self.expert.policy
        dQ, _ = action_values(world, optimal, self.problem.cost_matrix)
        law = point.law[:, np.newaxis]
        against = dQ - pairs.spread(pairs.total(law * dQ))
        derivative = -self.sharpness * law * against
        weighted = self.density[:, np.newaxis] * derivative
        gradient = 2 * weighted.T @ (point.law - self.expert.policy.per_pair)
        largest = self.sharpness * np.abs(dQ).max(axis=0)
        natural = -_inverted(derivative.T @ weighted, gradient, largest) / 2
        move = self.sharpness * float(np.abs(against @ natural).max())
        return Slope(gradient, natural, move)


class _Search:
    """The present point, and the steps that lead on from it."""

    def __init__(self, mismatch: Mismatch, accuracy: float, watch: Watch) -> None:
        self._mismatch, self._accuracy, self._watch = mismatch, accuracy, watch
        self.plans = 1
        self.point = mismatch.at(np.zeros(mismatch.problem.basis.num_costs))
        self.first = self.point.value
        self.stuck = False

    def advance(self) -> Advance:
        """One step; converged when the natural gradient promises nothing more, or none helps."""
        slope = self._mismatch.slope(self.point)
        promised = -float(slope.gradient @ slope.natural) / 2
        if promised <= self._accuracy:
            return Advance(self.point.value, converged=True)
        share = min(1.0, LARGEST_MOVE / slope.move)
        size = float(np.linalg.norm(slope.natural) / np.linalg.norm(slope.gradient))
        for direction in (share * slope.natural, -share * size * slope.gradient):
            found = self._lower(slope.gradient, direction)
            if found is not None:
                self.point = found
                return Advance(found.value)
        self.stuck = not self._watch.must_stop
        return Advance(self.point.value, converged=self.stuck)

    def _lower(self, gradient: FloatArray, direction: FloatArray) -> Point | None:
        """The first point along `direction`, halved again and again, that is low enough."""
        fall = SUFFICIENT * float(gradient @ direction)
        for halving in range(HALVINGS):
            if self._watch.must_stop:
                return None
            share = 0.5**halving
            tried = self._mismatch.at(self.point.weights + share * direction, self.point.plan)
            self.plans += 1
            if tried.value <= self.point.value + share * fall:
                return tried
        return None


def _inverted(metric: FloatArray, gradient: FloatArray, largest: FloatArray) -> FloatArray:
    """metric^+ gradient, with what is only rounding taken for zero.

    Each cost is measured by its own entry of the metric's diagonal, and left alone where that is
    rounding beside `largest`, the largest change of a logit that the cost brings about.
    """
    sizes = np.sqrt(np.maximum(np.diag(metric), 0.0))
    seen = sizes > ROUNDING * largest
    units = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=seen)
    eigenvalues, vectors = np.linalg.eigh(metric * np.outer(units, units))
    kept = eigenvalues > UNSEEN
    inverse = np.divide(1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=kept)
    return np.asarray(units * (vectors @ (inverse * (vectors.T @ (units * gradient)))))
