"""The exact program: programs (3) and (5) of the paper, solved over all occupancy measures.

    minimise   gap_W(Psi' mu - target)
    over       mu >= 0,  (B - discount P)' mu = initial,  <mu, d_j> <= b_j

where W is the cost class: a linear program for a polyhedral one (for the simplex the LPAL program
of Syed, Bowling and Schapire 2008), a second-order cone program for a Euclidean ball. The policy is
read off the optimal measure (Proposition 1). For the simplex the optimum is usually a whole face,
so a second stage minimises the sum of the scaled costs on it, to within 1e-8 of 2N/(1 - discount):
of the policies of least gap, the one of least total cost.

Guarantee. The value returned is the gap of the returned policy by exact evaluation; the lower bound
follows from the returned witness by weak duality. OPTIMAL means that they differ by at most
`tolerance` times 2N/(1 - discount), and that budgets are kept as exactly.

With discount 1 the measures are those of at most M expected steps (`occupancy_program`), and the
lower bound is about policies that expect no more. The least gap may be approached only, by policies
that hardly ever enter a cycle and then go round very often: INACCURATE is then the right word.

Cost. One row per state, cost and budget; one column per pair. Seconds up to some 10^4 states, after
which memory and time of any general engine grow steeply.

Reference: Kamoutsi, Banjac, Lygeros, "Stochastic convex optimization for provably efficient
apprenticeship learning", 2021.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from journeyman.arrays import FloatArray, require_between
from journeyman.demonstrations import clone
from journeyman.errors import InvalidSolver
from journeyman.policy import Policy
from journeyman.problem import (
    Apprenticeship,
    Witness,
    best_witness,
    infeasibility_margin,
    lower_bound,
)
from journeyman.solvers.answer import Answer, Details, Relaxation, Solution, total_surplus
from journeyman.solvers.exact.engines import (
    SMALL_PROGRAM,
    Effort,
    Engine,
    Result,
    engines_for,
    run_dual,
    run_engine,
)
from journeyman.solvers.exact.occupancy_program import (
    LinearModel,
    dual_point,
    exact_program,
    normed_rows,
    policy_of,
)
from journeyman.solvers.exact.relaxation import relax
from journeyman.solvers.exact.second_stage import second_stage_of
from journeyman.solvers.running import (
    Status,
    Watch,
    require_count,
    require_kind,
    require_time_limit,
)

MOST_CALLS = 1000
"""Generated policies behind each number of a relaxation."""
NEXT_TO_NOTHING = 1e-6
"""A suggested bound below this share of 2N/(1 - discount) may be worse than none."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """The last iterate of an engine, a measure and a dual point, to be judged by the data.

    Only `status` INFEASIBLE and limits are the engine's own word.
    """

    status: Status
    measure: FloatArray
    weights: FloatArray
    values: FloatArray
    prices: FloatArray
    engine: str
    log: str
    surplus_bound: float | None = None
    """For `Simplex`: no policy of the same gap has a larger total surplus."""

    def witness(self, problem: Apprenticeship) -> Witness:
        """The dual point as it is, or the origin where that proves more.

        For a class that contains the zero cost the origin proves that no gap is negative.
        """
        if not np.isfinite(self.values).all():
            return best_witness(problem, self.weights, self.prices)
        witness = Witness(self.weights, self.values, self.prices)
        if problem.cost_class.contains_zero and self._proves_nothing(problem, witness):
            nothing = (np.zeros_like(part) for part in (self.weights, self.values, self.prices))
            return Witness(*nothing)
        return witness

    def _proves_nothing(self, problem: Apprenticeship, witness: Witness) -> bool:
        gains = problem.world.initial @ self.values - self.weights @ problem.target
        gains -= self.prices @ problem.limits
        if gains > NEXT_TO_NOTHING * problem.gap_scale:
            return False  # the bound is not much smaller
        return lower_bound(problem, witness) <= 0


def candidate_of_linear(
    problem: Apprenticeship, model: LinearModel, engine: Engine, effort: Effort, watch: Watch
) -> Candidate:
    """The optimum of a linear program; for `Simplex` the one of least total cost."""
    first = _candidate(problem, run_engine(model, engine, effort, watch))
    if not problem.cost_class.has_surplus or first.status is not Status.OPTIMAL:
        return first
    second = second_stage_of(problem, model, first.measure, engine, effort, watch)
    label = f"{first.engine}, then {second.engine}" if second.engine else first.engine
    best = replace(first, status=second.status, engine=label, log=first.log + second.log)
    if second.status is not Status.OPTIMAL:
        return best
    return replace(best, measure=second.measure, surplus_bound=second.surplus_bound)


def candidate_of_ball(
    problem: Apprenticeship, model: LinearModel, effort: Effort, watch: Watch
) -> Candidate:
    """The optimum for a Euclidean ball by Clarabel."""
    return _candidate(problem, run_dual(model, effort, watch, normed_rows(problem)))


def _candidate(problem: Apprenticeship, found: Result) -> Candidate:
    measure, dual = found.columns[: problem.world.num_pairs], dual_point(problem, found.row_duals)
    return Candidate(found.status, measure, *dual, found.engine, found.log)


ROUNDING = 1e-12
"""Value and bound may differ by this share of the value whatever the tolerance."""


@dataclass(frozen=True)
class LinearProgram:
    """Solve the exact program with a general engine.

    Args:
        engine: by default Clarabel, once more with all care when that was not exact enough (small
            programs are solved with all care at once), and engines of HiGHS behind it; the simplex
            method for small programs with budgets, which it keeps to the last digit. The Euclidean
            ball always uses Clarabel.
        threads: for the engine.
        time_limit: seconds for building and solving.
        tolerance: asked-for difference of value and lower bound, relative to 2N/(1 - discount).
    """

    reaches_goals: ClassVar[bool] = True
    takes_averages: ClassVar[bool] = True
    engine: Engine | None = None
    threads: int = 1
    time_limit: float | None = None
    tolerance: float = 1e-7

    def __post_init__(self) -> None:
        require_kind("engine", self.engine, Engine | None, "Give a jm.solvers.Engine, or None")
        require_count("threads", self.threads)
        require_time_limit(self.time_limit)
        require_between("tolerance", self.tolerance, 0, 1, InvalidSolver, "Use for example 1e-7")

    def run(self, problem: Apprenticeship, watch: Watch) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        started = time.perf_counter()
        engines = self._engines(problem)
        suggest = next(engines)
        built = time.perf_counter()
        answer = self._judge(problem, suggest(watch=watch), watch)
        for suggest in engines:
            if answer.status not in (Status.INACCURATE, Status.FAILED) or watch.must_stop:
                break
            answer = self._judge(problem, suggest(watch=watch), watch)
        return replace(
            answer, build_seconds=built - started, solve_seconds=time.perf_counter() - built
        )

    def _engines(self, problem: Apprenticeship) -> Iterator[Callable[..., Candidate]]:
        """Ways to find a candidate, the first one best; the model is built once."""
        once = self._effort(problem)
        efforts = dict.fromkeys((once, replace(once, careful=True)))
        model = exact_program(problem)
        if normed_rows(problem) is not None:
            for effort in efforts:
                yield partial(candidate_of_ball, problem, model, effort)
            return
        if self.engine is None and not _wants_vertex(problem):
            for effort in efforts:
                yield partial(candidate_of_linear, problem, model, Engine.CLARABEL, effort)
        for engine in engines_for(problem.world.num_pairs, self.engine):
            yield partial(candidate_of_linear, problem, model, engine, once)

    def _effort(self, problem: Apprenticeship) -> Effort:
        careful = problem.world.num_pairs <= SMALL_PROGRAM
        return Effort(self.tolerance, self.threads, problem.world.effective_horizon, careful)

    def _judge(self, problem: Apprenticeship, candidate: Candidate, watch: Watch) -> Answer:
        """Recompute every number from the data, and let them decide about the status."""
        status = candidate.status
        if status is Status.INFEASIBLE or (status is Status.FAILED and problem.constraints):
            return self._infeasible(problem, candidate, watch)
        if status in (Status.OPTIMAL, Status.INACCURATE):
            policy = policy_of(problem, candidate.measure)
            solution = Solution.of(problem, policy, candidate.witness(problem))
            if not self._keeps_budgets(problem, solution):
                return self._infeasible(problem, candidate, watch)
            if not self._is_close(problem, solution):
                solution = _sharpened(problem, candidate, solution)
            good = self._is_optimal(problem, solution, candidate)
            status = Status.OPTIMAL if good else Status.INACCURATE
        else:
            witness = best_witness(problem, candidate.weights, candidate.prices)
            solution = _best_at_hand(problem, candidate.measure, witness)
        return _answer(problem, status, candidate, solution)

    def _infeasible(self, problem: Apprenticeship, candidate: Candidate, watch: Watch) -> Answer:
        """The budgets may be impossible: INFEASIBLE only if that can be proven.

        Without budgets every world has a policy, and an engine that finds none is wrong.
        """
        relaxation = None
        if problem.world.has_goal:
            if problem.constraints and infeasibility_margin(problem, candidate.prices) > 0:
                return _answer(problem, Status.INFEASIBLE, candidate, None)
        elif problem.constraints and not watch.must_stop:
            relaxation = relax(problem, self.tolerance, watch, MOST_CALLS)
        if relaxation is not None and infeasibility_margin(problem, relaxation.prices) > 0:
            return _answer(problem, Status.INFEASIBLE, candidate, None, relaxation)
        witness = best_witness(problem, candidate.weights, candidate.prices)
        solution = _best_at_hand(problem, candidate.measure, witness)
        if watch.must_stop:
            return _answer(problem, watch.stop_status, candidate, solution)
        return _answer(problem, Status.INACCURATE, candidate, solution, relaxation)

    def _keeps_budgets(self, problem: Apprenticeship, solution: Solution) -> bool:
        sizes = np.array([budget.size for budget in problem.constraints])
        allowed = self.tolerance * 2 * sizes * problem.world.effective_horizon
        return bool((solution.overspending <= allowed).all())

    def _allowed(self, problem: Apprenticeship, solution: Solution) -> float:
        return max(self.tolerance * problem.gap_scale, ROUNDING * abs(solution.value))

    def _is_close(self, problem: Apprenticeship, solution: Solution) -> bool:
        return solution.value - solution.lower_bound <= self._allowed(problem, solution)

    def _is_optimal(
        self, problem: Apprenticeship, solution: Solution, candidate: Candidate
    ) -> bool:
        if not problem.cost_class.has_surplus:
            return self._is_close(problem, solution)
        if candidate.surplus_bound is None:
            return False
        missing = candidate.surplus_bound - total_surplus(problem, solution.occupancy.measure)
        is_largest = missing <= self._allowed(problem, solution) * problem.basis.num_costs
        return self._is_close(problem, solution) and is_largest


def _sharpened(problem: Apprenticeship, candidate: Candidate, solution: Solution) -> Solution:
    """The same policy, with values that are optimal for the suggested weights."""
    witness = best_witness(problem, candidate.weights, candidate.prices)
    bound = lower_bound(problem, witness)
    if bound <= solution.lower_bound:
        return solution
    return replace(solution, witness=witness, lower_bound=bound)


def _wants_vertex(problem: Apprenticeship) -> bool:
    """A vertex keeps budgets to the last digit; a small program can afford one."""
    return bool(problem.constraints) and problem.world.num_pairs <= SMALL_PROGRAM


def _answer(
    problem: Apprenticeship,
    status: Status,
    candidate: Candidate,
    solution: Solution | None,
    relaxation: Relaxation | None = None,
) -> Answer:
    details = Details(relaxation=relaxation)
    return Answer(problem, status, candidate.engine, solution, details, log=candidate.log)


def _best_at_hand(problem: Apprenticeship, measure: FloatArray, witness: Witness) -> Solution:
    """The best of an unfinished measure's policy, the cloned one and the uniform one."""
    goal = problem.world.has_goal
    candidates = [problem.fastest.policy if goal else Policy.uniform(problem.world)]
    if problem.demonstrations is not None:
        candidates.append(clone(problem.demonstrations, problem.world))
    if measure.size == problem.world.num_pairs and np.isfinite(measure).all():
        candidates.append(policy_of(problem, measure))
    solutions = [Solution.of(problem, policy, witness) for policy in candidates]
    return min(solutions, key=lambda s: (max(s.overspending.max(initial=0.0), 0.0), s.value))
