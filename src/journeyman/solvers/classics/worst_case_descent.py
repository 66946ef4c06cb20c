"""What the two methods of Ho, Gupta and Ermon share: one problem, descended along its worst cost.

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
from journeyman.solvers.classics.policy_family import PolicyFamily
from journeyman.solvers.classics.policy_visits import (
    ExactEvaluator,
    ExactVisits,
    RolloutVisits,
    VisitOptions,
)
from journeyman.solvers.hyperparameters import require_count, require_positive, require_time_limit
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Advance, Watch, iterate

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
