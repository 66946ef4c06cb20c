"""What IM-REINFORCE and IM-TRPO are told, and how either is run: they differ in their search."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

from journeyman.problem import Program
from journeyman.problem.features import Features
from journeyman.solvers.answer import Answer, Work
from journeyman.solvers.classics.answering import require_apprenticeship
from journeyman.solvers.classics.policy_family import PolicyFamily
from journeyman.solvers.classics.visiting import Visiting
from journeyman.solvers.classics.worst_case_descent import WorstCaseDescent
from journeyman.solvers.hyperparameters import require_count, require_positive, require_time_limit
from journeyman.solvers.watch import Advance, Watch, iterate


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
        Visiting(self.rollouts, self.horizon, self.seed)
        require_positive("accuracy", self.accuracy)
        require_count("max_iterations", self.max_iterations)
        require_time_limit(self.time_limit)

    @abstractmethod
    def search(self, descent: WorstCaseDescent) -> Search:
        """The method's way to go on from where `descent` is."""

    def run(self, problem: Program, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        given = require_apprenticeship(problem, type(self).__name__)
        visiting = Visiting(self.rollouts, self.horizon, self.seed)
        family = PolicyFamily(given.world, self.features)
        descent = WorstCaseDescent(given, family, visiting, self.accuracy)
        search = self.search(descent)
        status, iterations = iterate(search.advance, watch, self.max_iterations)
        search.conclude()
        work = Work(
            iterations=iterations, forward_solves=descent.plans,
            environment_steps=descent.walker.steps,
        )  # fmt: skip
        seconds = time.perf_counter() - started
        return descent.answer(status, f"{self.engine}, {family!r}", work, seconds)
