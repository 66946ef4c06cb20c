"""What `ColumnGeneration`, `SmoothedProgram` and `BandedProgram` share: a search with two bounds.

A search (`column_search.BoundedSearch`) has after every call a policy, whose gap bounds the optimum
from above, and a dual point, which bounds it from below. Here is what is made of it: budgets whose
prices are raised, a proof that they exclude each other, the second stage of `Simplex`, and an
answer whose numbers are computed anew from the data.
"""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from journeyman.arrays import read_only, require_between
from journeyman.errors import InvalidSolver
from journeyman.problem import Apprenticeship
from journeyman.solvers.answer import Answer, Details, Solution, Work
from journeyman.solvers.exact.column_search import (
    SAFETY,
    BoundedSearch,
    evaluated,
    generate,
    is_optimal,
    keep_budgets,
)
from journeyman.solvers.exact.dual_set import UnitProgram
from journeyman.solvers.exact.relaxation import budgets_exclude_each_other, relax
from journeyman.solvers.exact.second_stage import (
    FIRST_SHARE,
    has_second_stage,
    near,
)
from journeyman.solvers.running import Status, Watch, require_count, require_time_limit

RELATIVE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class SearchedProgram(ABC):
    """The exact program by a search."""

    takes_averages: ClassVar[bool] = True
    tolerance: float | None = None
    time_limit: float | None = None
    max_calls: int = 1000
    memory_limit: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            require_between(
                "tolerance", self.tolerance, 0, np.inf, InvalidSolver,
                "Give a positive difference of costs, or None",
            )  # fmt: skip
        require_time_limit(self.time_limit)
        require_count("max_calls", self.max_calls)
        if self.memory_limit is not None and not self.memory_limit > 0:
            raise InvalidSolver(
                f"memory_limit = {self.memory_limit}", "Give bytes above 0, or None"
            )

    @staticmethod
    @abstractmethod
    def _searching() -> type[BoundedSearch]:
        """The search."""

    @staticmethod
    @abstractmethod
    def _second_stage(
        problem: Apprenticeship, first: BoundedSearch, tolerance: float, most: int
    ) -> Answer:
        """The policy of largest surplus among those of least gap."""

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        tolerance = self._tolerance(problem)
        share = FIRST_SHARE if has_second_stage(problem) else SAFETY
        memory = np.inf if self.memory_limit is None else float(self.memory_limit)
        search = self._searching()(UnitProgram.of(problem), share * tolerance, watch, memory)
        status = self._search(problem, search)
        if status is Status.INFEASIBLE:
            relaxation = relax(problem, search.tolerance, watch, self.max_calls)
            answer = Answer(
                problem, status, search.description, None, Details(relaxation=relaxation)
            )
        else:
            answer = self._judge(problem, search, status, tolerance)
        details = replace(
            answer.details, bounds_trace=read_only(np.array(search.trace).reshape(-1, 3)),
            work=answer.work or Work(iterations=search.calls, forward_solves=search.calls),
        )  # fmt: skip
        return replace(answer, details=details, solve_seconds=time.perf_counter() - started)

    def _judge(
        self, problem: Apprenticeship, search: BoundedSearch, status: Status, tolerance: float
    ) -> Answer:
        """The best policy, after a second stage if there is one; its numbers say what it is."""
        ended = status in (Status.OPTIMAL, Status.INACCURATE)
        if has_second_stage(problem) and ended and search.gap <= near(search, tolerance):
            return self._second_stage(problem, search, tolerance, self.max_calls - search.calls)
        solution = _solution(problem, search, tolerance)
        if status is Status.OPTIMAL and not is_optimal(problem, solution, tolerance):
            status = Status.INACCURATE
        return Answer(problem, status, search.description, solution)

    def _tolerance(self, problem: Apprenticeship) -> float:
        if self.tolerance is not None:
            return float(self.tolerance)
        return RELATIVE_TOLERANCE * (problem.gap_scale or 1.0)

    def _search(self, problem: Apprenticeship, search: BoundedSearch) -> Status:
        """Generate; when budgets stay broken, ask whether they can be kept and raise prices."""
        status = generate(search, self.max_calls)
        broken = status is Status.OPTIMAL and search.excess > search.tolerance
        if broken and budgets_exclude_each_other(
            problem, search.tolerance, search.watch, self.max_calls
        ):
            return Status.INFEASIBLE
        return keep_budgets(search, self.max_calls, status)


def _solution(problem: Apprenticeship, search: BoundedSearch, tolerance: float) -> Solution:
    """The policy of the best mixture, as good as the search has promised."""
    witness = search.task.witness(search.best.dual, search.best.values)
    promised = search.upper * search.task.unit + (1 - SAFETY) / 2 * tolerance
    return evaluated(problem, search, witness, lambda solution: solution.value <= promised)
