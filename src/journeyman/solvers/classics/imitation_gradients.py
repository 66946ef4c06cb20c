"""IM-REINFORCE and IM-TRPO of Ho, Gupta and Ermon: descent of the gap along its worst cost.

    minimise over theta   delta(theta) = gap_W(Psi' mu_theta - target)

Both look at the cost that is worst for the policy at hand and improve the policy for it. Where the
worst cost jumps from one to another the gap has corners, and descent in the direction of one of
them gets caught; so the gap is smoothed (`CostClass.smoothed`), less and less, down to a
temperature whose error is half of the asked accuracy.

Every policy's own values are a dual point, so with exact visits a lower bound of the gap comes for
free with every iteration, and both bounds together say when to stop.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.features import Features
from journeyman.policy import Plan, Policy, plan
from journeyman.problem import Apprenticeship, Witness, lower_bound
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import answer_of, require_suitable
from journeyman.solvers.classics.policy_family import PolicyFamily, Step, TrustRegion
from journeyman.solvers.classics.policy_visits import (
    ExactEvaluator,
    ExactVisits,
    RolloutVisits,
    VisitOptions,
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
from journeyman.world import Pairs

FIRST_TEMPERATURE = 0.1
"""Relative to the largest difference between the expert and the policy that descent starts from."""
BOUND_EVERY = 25
"""Iterations between two plans for a lower bound."""
MEMORY = 0.8
"""Sampled gaps are judged by a moving average of expectations with this memory."""


class WorstCaseDescent:
    """The state of a descent: parameters, what they do, and the best that was seen."""

    def __init__(
        self, problem: Apprenticeship, family: PolicyFamily, visits: VisitOptions, accuracy: float
    ) -> None:
        self.problem, self.family = problem, family
        self.evaluator = visits.evaluator(problem)
        self.allowed = accuracy * (problem.gap_scale or 1.0)
        self.theta = np.zeros(family.num_parameters)
        self.law = family.law(self.theta)
        self.visits: ExactVisits | RolloutVisits = self.evaluator.visits(self.law)
        num_costs = problem.basis.num_costs
        self._error = problem.cost_class.smoothing_error(num_costs)
        self.coolest = self.allowed / (2 * self._error)
        self.temperature = self.coolest
        scaled = problem.cost_class.scaling(num_costs) * self.visits.difference
        self.heat(FIRST_TEMPERATURE * float(np.abs(scaled).max()))
        self.best_law, self.least = self.law, np.inf
        self.bound = 0.0 if problem.cost_class.contains_zero else -np.inf
        self.witness: FloatArray | None = None
        self.plans, self._bounds = 0, 0
        self._plan: Plan | None = None
        self._average, self._weight = np.zeros(num_costs), 0.0

    @property
    def is_exact(self) -> bool:
        return isinstance(self.evaluator, ExactEvaluator)

    @property
    def is_proven(self) -> bool:
        """Whether the best policy is proven to be within the asked accuracy of the least gap."""
        return self.is_exact and self.least - self.bound <= self.allowed

    @property
    def smoothing_error(self) -> float:
        """What smoothing can cost at the present temperature."""
        return self._error * self.temperature

    def heat(self, temperature: float) -> None:
        """Set the temperature, which does not fall below the coolest."""
        self.temperature = max(temperature, self.coolest)

    def smoothed(self, difference: FloatArray) -> tuple[float, FloatArray]:
        """The smoothed gap at the present temperature, and the cost weights that attain it."""
        return self.problem.cost_class.smoothed(difference, self.temperature)

    def move(self, theta: FloatArray, law: FloatArray) -> None:
        """Go to other parameters and look what their policy does."""
        self.theta, self.law = theta, law
        self.visits = self.evaluator.visits(law)

    def judge(self) -> float:
        """The gap of the policy at hand, kept if it is the best so far."""
        difference = self.visits.difference
        if not self.is_exact:
            self._average = MEMORY * self._average + (1 - MEMORY) * difference
            self._weight = MEMORY * self._weight + (1 - MEMORY)
            difference = self._average / self._weight
        value = self.problem.cost_class.gap(difference)
        if value < self.least:
            self.least, self.best_law = value, self.law
        return value

    def bound_by(self, weights: FloatArray) -> None:
        """With exact visits: prove by the policy's own values, and now and then by a plan's.

        A policy's own values prove little while states that it rarely visits still change; values
        that are optimal for the weights are sharper, for one forward solve.
        """
        if not isinstance(self.evaluator, ExactEvaluator):
            return
        self._prove(weights, self.evaluator.values)
        self._bounds += 1
        if self._bounds % BOUND_EVERY == 0 and not self.is_proven:
            cost = self.problem.cost_of(weights)
            self._plan = plan(self.problem.world, cost, warm_start=self._plan)
            self.plans += 1
            self._prove(weights, self._plan.values)

    def _prove(self, weights: FloatArray, values: FloatArray) -> None:
        """Keep a dual point if it proves more than the ones before."""
        proven = lower_bound(self.problem, Witness(weights, values))
        if self.witness is None or proven > self.bound:
            self.witness = weights
        self.bound = max(self.bound, proven)

    def answer(self, status: Status, engine: str, work: Work, seconds: float) -> Answer:
        """With the best policy; what was proven on the way has to hold for the answer's bounds,
        which are exact where the solves of the descent are not."""
        policy = Policy(self.best_law, self.problem.world.pairs)
        found = answer_of(
            self.problem, policy, status, engine=engine, work=work, weights=self.witness,
            seconds=seconds,
        )  # fmt: skip
        proven = found.value - found.lower_bound <= self.allowed
        if self.is_proven and status is Status.CONVERGED and not proven:
            return replace(found, status=Status.INACCURATE)
        return found


class Search(Protocol):
    """The iterations of a method on one descent."""

    def advance(self) -> Advance: ...

    def conclude(self) -> None:
        """Look at the last policy, if no iteration has."""


@dataclass(frozen=True, eq=False)
class WorstCaseMethod(ABC):
    """A search for the parameters of a policy along the cost that is worst for it."""

    engine: ClassVar[str]

    features: Features | None = None
    rollouts: int | None = None
    horizon: int | None = None
    accuracy: float = 1e-5
    max_iterations: int = 500
    time_limit: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        VisitOptions(self.rollouts, self.horizon, self.seed)
        require_positive("accuracy", self.accuracy)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    @abstractmethod
    def search(self, descent: WorstCaseDescent) -> Search:
        """The method's way to go on from where `descent` is."""

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        require_suitable(problem, type(self).__name__)
        visits = VisitOptions(self.rollouts, self.horizon, self.seed)
        family = PolicyFamily(problem.world, self.features)
        descent = WorstCaseDescent(problem, family, visits, self.accuracy)
        search = self.search(descent)
        status, iterations = iterate(search.advance, watch, self.max_iterations)
        search.conclude()
        work = Work(
            iterations=iterations, forward_solves=descent.plans,
            environment_steps=descent.evaluator.steps,
        )  # fmt: skip
        seconds = watch.elapsed
        return descent.answer(status, f"{self.engine}, {family!r}", work, seconds)


FIRST_MOMENT, SECOND_MOMENT = 0.9, 0.9
"""Memory of the means of gradients and of their squares. The second is short: softmax gradients
vanish with the probability of an action, and steps must not remember the time before."""
NEGLIGIBLE = 1e-10
"""Gradients below this share of the largest one ever seen count as zero."""
SLOWING = 20
"""Iterations over which steps become shorter by a factor of 1.4 for the first time."""
REINFORCE_COOLING = 0.97
"""The temperature's share of itself in the iteration before."""


@dataclass(frozen=True, eq=False)
class ImitationReinforce(WorstCaseMethod):
    """IM-REINFORCE of Ho, Gupta and Ermon (2016).

        minimise over theta   delta(theta) = max { <w, Psi' mu_theta - target> : w in W }
        gradient              sum over pairs of mu(x, a) A_w(x, a) grad log pi_theta(a | x)

    where w is the worst cost of the policy at hand and A_w its advantages under that cost.

    *Where.* Visits and advantages are linear solves, or with `rollouts` come from walks: discounted
    costs to go, less a baseline. Policies are tabular, or log-linear in `features`.

    *What differs from the paper.* Steps are those of Adam, a running mean of gradients over the
    root of a running mean of their squares, of length step_size/sqrt(1 + k/20) in iteration k:
    gradients of states differ by magnitudes with how often they are visited, and no single step
    suits all. The worst cost is smoothed with a temperature that falls by a fixed share per
    iteration. The best policy is kept; with rollouts it is chosen by a moving average of sampled
    expectations.

    *Guarantee.* The paper promises convergence to a local minimum. In the tabular family with exact
    visits CONVERGED means that the best gap is within `accuracy` (of 2N/(1 - discount)) of a proven
    lower bound. The bound that a policy's own values give is weak while the policy still changes
    much in some states, so now and then an optimal policy of the worst cost is planned; these are
    counted as forward solves. With features it means the same, and is reached only where the family
    has such a policy; with rollouts nothing is proven and all iterations are made.

    *Cost.* Two sparse solves per iteration; with rollouts the walks.

    Reference: Ho, Gupta, Ermon, "Model-free imitation learning with policy optimization", ICML
    2016; Kingma, Ba, "Adam: a method for stochastic optimization", 2015.

    Args:
        features: of log-linear policies; None searches all policies.
        rollouts: walks drawn per iteration; None computes gradients exactly.
        horizon: longest walk; by default 1 % of the discounted time is left out.
        step_size: length of the first steps, in units of logits.
        accuracy: asked-for distance to the least gap, relative to 2N/(1 - discount).
        max_iterations: steps before the run ends.
        time_limit: seconds.
        seed: of the walks.
    """

    engine: ClassVar[str] = "IM-REINFORCE"

    step_size: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("step_size", self.step_size)

    def search(self, descent: WorstCaseDescent) -> Search:
        """Steps of Adam from where `descent` is."""
        return _ReinforceSearch(descent, self.step_size)


class _ReinforceSearch:
    """The iterations, with Adam's running means."""

    def __init__(self, descent: WorstCaseDescent, step_size: float) -> None:
        self.descent, self.step_size = descent, step_size
        self.iteration, self.largest = 0, 0.0
        self.first = np.zeros_like(descent.theta)
        self.second = np.zeros_like(descent.theta)

    def conclude(self) -> None:
        """The last policy was judged when it was moved to."""

    def advance(self) -> Advance:
        descent = self.descent
        if self.iteration:
            theta = descent.family.restrained(descent.theta - self._next())
            descent.move(theta, descent.family.law(theta))
            descent.heat(REINFORCE_COOLING * descent.temperature)
        self.iteration += 1
        objective = descent.judge()
        _, weights = descent.smoothed(descent.visits.difference)
        signal = descent.visits.signal(descent.problem.cost_of(weights))
        self._remember(descent.family.gradient(descent.law, signal))
        descent.bound_by(weights)
        return Advance(objective, descent.bound if descent.is_exact else None, descent.is_proven)

    def _remember(self, gradient: FloatArray) -> None:
        self.largest = max(self.largest, float(np.abs(gradient).max()))
        self.first = FIRST_MOMENT * self.first + (1 - FIRST_MOMENT) * gradient
        self.second = SECOND_MOMENT * self.second + (1 - SECOND_MOMENT) * gradient**2

    def _next(self) -> FloatArray:
        """The step of Adam."""
        count = self.iteration
        mean = self.first / (1 - FIRST_MOMENT**count)
        size = np.sqrt(self.second / (1 - SECOND_MOMENT**count)) + NEGLIGIBLE * self.largest
        length = self.step_size / np.sqrt(1 + count / SLOWING)
        return np.asarray(length * np.divide(mean, size, out=np.zeros_like(mean), where=size > 0))


COOLING = 0.7
"""The temperature falls to this share of itself when greedy actions promise less than smoothing
costs, or"""
SMALL_GAIN = 0.03
"""in log-linear families when an iteration gains less than this share of that."""
SAMPLED_COOLING = 0.97
"""In every iteration, where gains are hidden in noise."""
NO_GAIN, STALLED = 1e-4, 10
"""So many iterations at the lowest temperature that gain less than this share of the accuracy end
a run in a log-linear family: nothing moves any more."""


@dataclass(frozen=True, eq=False)
class ImitationTrustRegion(WorstCaseMethod):
    """IM-TRPO of Ho, Gupta and Ermon (2016).

        minimise over theta   delta(theta) = max { <w, Psi' mu_theta - target> : w in W }

    One iteration: the policy's expectations (one occupancy), the cost that is worst for them, its
    advantages (one value function), and a step along the natural gradient that stays within
    `radius` in mean Kullback-Leibler divergence and lowers the surrogate (`trust_region_step`).

    *Where.* Exact visits are linear solves and the surrogate is the objective itself; with
    `rollouts` visits are drawn, and the surrogate is the paper's: the worst case over W of the
    expectations that the walks have when they are weighted by ratios of probabilities. Policies are
    tabular, or log-linear in `features`.

    *What differs from the paper.* The worst cost is smoothed, with a temperature that falls as soon
    as the policy is nearly optimal for the smoothed cost; the paper takes the worst cost itself,
    and its descent gets caught where that jumps. In the exact mode successive directions are
    conjugate, the best policy is kept, and both bounds are computed.

    *Guarantee.* The paper promises a local minimum of delta. In the tabular family with exact
    visits more holds: delta is convex in the occupancy measure, a stationary point of the smoothed
    gap is its global minimum, and smoothing costs at most half of `accuracy`. CONVERGED means that
    the difference of the best gap and a proven lower bound is at most `accuracy` of 2N/(1 -
    discount); now and then an optimal policy of the worst cost is planned for that bound and
    counted as a forward solve. With features CONVERGED means that, or that nothing moves any more,
    as in a local minimum. With rollouts nothing is proven and all iterations are made.

    *Cost.* Two sparse solves per iteration, and one more for every step that was too long; with
    rollouts the walks, times the number of costs.

    Reference: Ho, Gupta, Ermon, "Model-free imitation learning with policy optimization", ICML
    2016.

    Args:
        features: of log-linear policies; None searches all policies.
        rollouts: walks drawn per iteration; None computes visits exactly.
        horizon: longest walk; by default 1 % of the discounted time is left out.
        radius: largest mean divergence of a step.
        accuracy: asked-for distance to the least gap, relative to 2N/(1 - discount).
        max_iterations: steps before the run ends.
        time_limit: seconds.
        seed: of the walks.
    """

    engine: ClassVar[str] = "IM-TRPO"

    radius: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("radius", self.radius)

    def search(self, descent: WorstCaseDescent) -> Search:
        """Steps within the trust region from where `descent` is."""
        return _TrustRegionSearch(descent, self.radius)


class _TrustRegionSearch:
    """The iterations."""

    def __init__(self, descent: WorstCaseDescent, radius: float) -> None:
        self.descent = descent
        self.region = TrustRegion(descent.family, radius, is_smooth=descent.is_exact)
        self.idle = 0

    def conclude(self) -> None:
        """Judge the policy that the last step led to."""
        self.descent.judge()

    def advance(self) -> Advance:
        descent = self.descent
        objective = descent.judge()
        value, weights = descent.smoothed(descent.visits.difference)
        signal = descent.visits.signal(descent.problem.cost_of(weights))
        step = self._step(value, signal)
        descent.bound_by(weights)
        done = descent.is_proven or self._stalls(value - step.value)
        left = _improvable(descent.problem.world.pairs, descent.law, signal)
        descent.move(step.theta, step.law)
        self._cool(value - step.value, left)
        return Advance(objective, descent.bound if descent.is_exact else None, done)

    def _step(self, value: float, signal: FloatArray) -> Step:
        descent, visits = self.descent, self.descent.visits

        def surrogate(law: FloatArray) -> float:
            moved = visits.difference + visits.change(descent.problem.cost_matrix, law)
            return descent.smoothed(moved)[0]

        return self.region.step(
            descent.theta, descent.law, visits.measure, value, signal, surrogate
        )

    def _cool(self, gain: float, left: float) -> None:
        descent = self.descent
        if not descent.is_exact:
            descent.heat(SAMPLED_COOLING * descent.temperature)
        elif (
            left <= descent.smoothing_error
            if descent.family.is_tabular
            else gain <= SMALL_GAIN * descent.smoothing_error
        ):
            descent.heat(COOLING * descent.temperature)

    def _stalls(self, gain: float) -> bool:
        descent = self.descent
        if descent.family.is_tabular or not descent.is_exact:
            return False
        coolest = descent.temperature <= descent.coolest
        self.idle = self.idle + 1 if coolest and gain <= NO_GAIN * descent.allowed else 0
        return self.idle >= STALLED


def _improvable(pairs: Pairs, law: FloatArray, signal: FloatArray) -> float:
    """What a greedy policy would gain in the states that are visited now: E_x max_a (-A)."""
    advantages = np.divide(signal, law, out=np.zeros_like(law), where=law > 0)
    return -float(pairs.smallest(advantages).sum())
