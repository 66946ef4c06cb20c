"""Which trials a study has: names, problems per seed, solvers per problem, the true expert.

A method that draws nothing, on a problem that is the same for every seed, has one trial and not as
many as there are seeds: equal figures would look like evidence.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.demonstrations import ExpertExpectation
from journeyman.errors import InvalidInput, InvalidPolicy, InvalidProblem, InvalidSolver
from journeyman.policy import Policy, occupancy
from journeyman.problem import Apprenticeship
from journeyman.solvers import Solver
from journeyman.studies.task import Task, failed
from journeyman.studies.trial import Trial

OneProblem: TypeAlias = Apprenticeship | Callable[[int], Apprenticeship]
OneSolver: TypeAlias = Solver | Callable[[Apprenticeship], Solver]
Problems: TypeAlias = OneProblem | Mapping[str, OneProblem]
Solvers: TypeAlias = Solver | Mapping[str, OneSolver] | Sequence[Solver]
Experts: TypeAlias = Policy | Mapping[str, Policy] | None
Truths: TypeAlias = ExpertExpectation | Mapping[str, ExpertExpectation] | None

PROBLEM = "problem"
"""What the problem of a study is called when there is one."""


@dataclass(frozen=True)
class Judgement:
    """How policies are judged, the same for all trials of a study."""

    expert: Experts
    truth: Truths
    failure_probability: float
    time_limit: float | None

    def __post_init__(self) -> None:
        if self.expert is not None and self.truth is not None:
            raise InvalidInput("both expert and truth are given", "Give one of them")

    def expectations(self, name: str, problem: Apprenticeship) -> FloatArray | None:
        """Those of the true expert of a problem, if there is one."""
        expert, truth = (_of(name, one) for one in (self.expert, self.truth))
        if expert is not None:
            if not isinstance(expert, Policy):
                raise InvalidPolicy(
                    f"expert is a {type(expert).__name__}",
                    "Give a Policy; expectations that are known go into truth=",
                )
            return occupancy(problem.world, expert).expectations(problem.basis)
        if truth is None:
            return None
        if not isinstance(truth, ExpertExpectation):
            raise InvalidProblem(
                f"truth is a {type(truth).__name__}", "Give ExpertExpectation(values)"
            )
        if truth.values.size != problem.basis.num_costs:
            raise InvalidProblem(
                f"truth has {truth.values.size} expectations, the basis {problem.basis.num_costs} "
                "costs",
                "Give one expectation per cost",
            )
        return truth.values


def _of(name: str, given: Any) -> Any:
    """What belongs to a problem, of one for all or one for each."""
    if not isinstance(given, Mapping):
        return given
    if name not in given:
        raise InvalidProblem(
            f"the problem {name!r} has no true expert", "Give one for every problem, or for none"
        )
    return given[name]


def tasks_of(
    problems: Problems, solvers: Solvers, seeds: Iterable[int], judgement: Judgement
) -> Iterator[Task | Trial]:
    """What has to be done, in the order of problems, solvers and seeds.

    A method that cannot even be made for a problem is a trial already.
    """
    numbers = _seeds(seeds)
    methods = named_solvers(solvers)
    for problem_name, given in _named_problems(problems).items():
        drawn = not isinstance(given, Apprenticeship)
        made = {seed: _problem(problem_name, given, seed) for seed in numbers if drawn}
        fixed = None if drawn else _problem(problem_name, given, numbers[0])
        every = list(made.values()) if fixed is None else [fixed]
        truths = _truths(problem_name, every, judgement)
        for solver_name, method in methods.items():
            draws = _draws(method, every[0])
            for seed in numbers if drawn or draws else [None]:
                number = 0 if fixed is not None or seed is None else numbers.index(seed)
                names = (problem_name, solver_name, seed)
                yield _task(names, every[number], method, truths[number], judgement)


def _truths(
    name: str, problems: Sequence[Apprenticeship], judgement: Judgement
) -> list[FloatArray | None]:
    """Expectations of the true expert in every problem; one evaluation where worlds are one."""
    found: dict[tuple[int, int], FloatArray | None] = {}
    for problem in problems:
        place = (id(problem.world), id(problem.basis))
        if place not in found:
            found[place] = judgement.expectations(name, problem)
    return [found[id(problem.world), id(problem.basis)] for problem in problems]


def _task(
    names: tuple[str, str, int | None],
    problem: Apprenticeship,
    method: Any,
    truth: FloatArray | None,
    judgement: Judgement,
) -> Task | Trial:
    started = time.perf_counter()
    is_made = not hasattr(method, "run")
    try:
        solver = method(problem) if is_made else method
        if not hasattr(solver, "run"):
            raise InvalidSolver(
                f"{solver!r} is not a solver", "Return one, such as LinearProgram()"
            )
        if names[2] is not None and hasattr(solver, "seed"):
            solver = replace(solver, seed=names[2])
    except Exception as fault:
        return failed(Trial(*names, status=""), fault)
    preparing = time.perf_counter() - started if is_made else 0.0
    return Task(
        names, problem, solver, truth, judgement.time_limit, judgement.failure_probability,
        preparing,
    )  # fmt: skip


def _draws(method: Any, problem: Apprenticeship) -> bool:
    """Whether a method has a seed; of one that is made for problems, by making it once.

    Methods with `rollouts` draw only where there are some; without, their gradients are exact.
    Making a method also loads its code, so that the first timed making is like the others.
    """
    try:
        solver = method if hasattr(method, "run") else method(problem)
    except Exception:
        return False
    walks = getattr(solver, "rollouts", True)
    return hasattr(solver, "seed") and walks is not None


def _problem(name: str, given: Any, seed: int) -> Apprenticeship:
    problem = given if isinstance(given, Apprenticeship) else given(seed)
    if not isinstance(problem, Apprenticeship):
        raise InvalidProblem(
            f"{name!r} is a {type(problem).__name__}",
            "Give an Apprenticeship, or a function that returns one for a seed",
        )
    return problem


def _named_problems(problems: Any) -> dict[str, Any]:
    named = dict(problems) if isinstance(problems, Mapping) else {PROBLEM: problems}
    if not named:
        raise InvalidProblem("there is no problem", "Give an Apprenticeship")
    for name, one in named.items():
        if not (isinstance(one, Apprenticeship) or callable(one)) or isinstance(one, type):
            raise InvalidProblem(
                f"{name!r} is a {type(one).__name__}",
                "Give an Apprenticeship, or a function that returns one for a seed",
            )
    return named


def named_solvers(solvers: Any) -> dict[str, Any]:
    """Solvers by name; without names, by their classes, numbered where one occurs twice.

    >>> from journeyman.solvers import LinearProgram
    >>> list(named_solvers([LinearProgram(), LinearProgram(tolerance=1e-3)]))
    ['LinearProgram', 'LinearProgram 2']
    """
    named: dict[str, Any] = {}
    if isinstance(solvers, Mapping):
        named = dict(solvers)
    else:
        for one in solvers if isinstance(solvers, Iterable) and not _is_one(solvers) else [solvers]:
            kind = type(one).__name__
            count = 1 + sum(type(other) is type(one) for other in named.values())
            named[kind if count == 1 else f"{kind} {count}"] = one
    if not named:
        raise InvalidSolver("there is no solver", "Give at least one, such as LinearProgram()")
    for name, one in named.items():
        if isinstance(one, type):
            raise InvalidSolver(
                f"{one.__name__} is a class", f"Give a value such as {one.__name__}()"
            )
        if not (hasattr(one, "run") or callable(one)):
            raise InvalidSolver(
                f"{one!r} is not a solver"
                if name == type(one).__name__
                else f"{name!r} is {one!r}",
                "Give a value such as LinearProgram(), or a function from a problem to one",
            )
    return named


def _is_one(solvers: Any) -> bool:
    """Whether this is a single solver, or a word that was meant as one."""
    return hasattr(solvers, "run") or isinstance(solvers, str)


def _seeds(seeds: Any) -> list[int]:
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise InvalidInput(f"seeds = {seeds!r}", "Give whole numbers, for example range(5)")
    numbers = list(seeds)
    for seed in numbers:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InvalidInput(f"a seed is {seed!r}", "Give whole numbers from 0")
    if not numbers or len(set(numbers)) < len(numbers):
        raise InvalidInput(f"seeds = {numbers}", "Give at least one seed, and each of them once")
    return [int(seed) for seed in numbers]
