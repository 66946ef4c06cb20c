"""`jm.compare`: the same problems for several methods, everything measured the same way.

Trials are the tasks of an executor: who computes them, and in which order, changes nothing but the
seconds. With a directory the worker that has finished a trial writes it at once, before its
result travels, so that whatever is killed next has lost only trials that were under way. A worker
on a machine that does not see the directory cannot; what it returns is written at the end.
"""

import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray
from journeyman.certificate.concentration import require_probability
from journeyman.demonstrations import ExpertExpectation
from journeyman.errors import InvalidInput, InvalidPolicy, InvalidProblem, InvalidSolver
from journeyman.execution import Executor, Serial
from journeyman.policy import Policy, occupancy
from journeyman.problem import Apprenticeship
from journeyman.progress import Event, Observer, Terminal
from journeyman.runs.interruption import Stop
from journeyman.solvers import Solver
from journeyman.solvers.running import require_time_limit
from journeyman.storage import PathLike, digest
from journeyman.studies.comparison import Comparison
from journeyman.studies.directory import StudyDirectory, keep
from journeyman.studies.trial import PlannedTrial, Trial, failed

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
) -> Iterator[PlannedTrial | Trial]:
    """What has to be done, in the order of problems, solvers and seeds.

    A method that draws nothing, on a problem that is the same for every seed, has one trial and
    not as many as there are seeds: equal numbers would look like evidence. A method that cannot
    even be made for a problem is a trial already.
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
) -> PlannedTrial | Trial:
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
    return PlannedTrial(
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
    if not isinstance(problem, Apprenticeship) or problem.expert is None:
        raise _no_problem(name, problem)
    return problem


def _named_problems(problems: Any) -> dict[str, Any]:
    named = dict(problems) if isinstance(problems, Mapping) else {PROBLEM: problems}
    if not named:
        raise InvalidProblem("there is no problem", "Give an Apprenticeship")
    for name, one in named.items():
        if not (isinstance(one, Apprenticeship) or callable(one)) or isinstance(one, type):
            raise _no_problem(name, one)
    return named


def _no_problem(name: str, given: object) -> InvalidProblem:
    return InvalidProblem(
        f"{name!r} is a {type(given).__name__}",
        "Give an Apprenticeship, or a function that returns one for a seed",
    )


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


def compare(
    problem: Problems,
    solvers: Solvers,
    seeds: Iterable[int] = (0,),
    *,
    expert: Experts = None,
    truth: Truths = None,
    failure_probability: float = 0.05,
    executor: Executor | None = None,
    directory: PathLike | None = None,
    time_limit: float | None = None,
    observer: Observer | None = None,
) -> Comparison:
    """Run every solver on every problem with every seed, and set the outcomes side by side.

    Args:
        problem: an `Apprenticeship`, or a function from a seed to one, so that every seed has
            demonstrations of its own; several in a mapping from names.
        solvers: values such as `LinearProgram()`, or a mapping from names to them. In a mapping
            also functions from a problem to a solver, for features made from its demonstrations;
            their time is counted. A `seed` of a solver is replaced by that of the trial.
        seeds: whole numbers. A method that draws nothing has one trial per problem.
        expert: the policy behind the demonstrations, where it is known: true gaps are then those
            to its exact expectations. A mapping for several problems with experts of their own.
        truth: instead of `expert`, its expectations.
        failure_probability: of each certificate.
        executor: runs the trials, by default one after the other; `Processes()` and `Ray()` need
            problems and solvers that can be sent there. Seconds are taken on the worker.
        directory: where finished trials are kept; a repeated call does only what is missing.
        time_limit: seconds for each solver, before its own.
        observer: is notified of finished trials. An executor that is given has its own.

    A trial whose method refuses the problem or fails is a row with the reason. Ctrl-C raises
    `KeyboardInterrupt`; what was finished is kept in the directory.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4)
    >>> demos = jm.record(world, expert, trajectories=50, horizon=50, seed=0)
    >>> problem = jm.Apprenticeship(world, basis, demos)
    >>> found = compare(problem, [jm.LinearProgram(), jm.ColumnGeneration()], expert=expert)
    >>> [(one.solver, one.status) for one in found.trials]
    [('LinearProgram', 'OPTIMAL'), ('ColumnGeneration', 'OPTIMAL')]
    """
    require_probability(failure_probability)
    require_time_limit(time_limit)
    _refuse_contradictions(executor, observer)
    judgement = Judgement(expert, truth, failure_probability, time_limit)
    rows = list(tasks_of(problem, solvers, seeds, judgement))
    tasks = [row for row in rows if isinstance(row, PlannedTrial)]
    try:
        done = iter(_all_done(tasks, directory, executor, observer))
    except Stop as stop:
        raise KeyboardInterrupt from stop
    trials = tuple(next(done) if isinstance(row, PlannedTrial) else row for row in rows)
    descriptions = {task.names[0]: problem_in_words(task.problem) for task in reversed(tasks)}
    return Comparison(trials, failure_probability, descriptions)


class Shared(NamedTuple):
    """What workers have to know: all that is to be done, and where it is kept under which names."""

    tasks: Sequence[PlannedTrial]
    keys: Sequence[str]
    directory: str | None


def _refuse_contradictions(executor: Executor | None, observer: Observer | None) -> None:
    if executor is not None and observer is not None:
        raise InvalidInput(
            "both executor and observer are given", "Give the observer to the executor"
        )
    if executor is not None and not hasattr(executor, "map"):
        raise InvalidInput(f"executor = {executor!r}", "Give an executor, for example Processes(2)")


def _in_tasks(shared: Shared, executor: Executor | None, observer: Observer | None) -> list[Trial]:
    """All trials, on the executor or one after the other."""
    numbers = range(len(shared.tasks))
    if executor is not None:
        return executor.map(tried, numbers, shared=shared)
    with ExitStack() as stack:
        display = observer or stack.enter_context(Terminal())
        alone = Serial(observer=counting(display, len(numbers)))
        return alone.map(tried, numbers, shared=shared)


def _all_done(
    tasks: Sequence[PlannedTrial],
    directory: PathLike | None,
    executor: Executor | None,
    observer: Observer | None,
) -> list[Trial]:
    """The outcomes of all tasks, those that were kept before among them."""
    if directory is None:
        return _in_tasks(Shared(tasks, (), None), executor, observer)
    keys = _keys(tasks)
    place = StudyDirectory(Path(directory))
    with place.opened():
        found = {key: trial for key in keys if (trial := place.stored(key)) is not None}
        missing = {key: task for key, task in zip(keys, tasks, strict=True) if key not in found}
        shared = Shared(list(missing.values()), list(missing), str(place.path.resolve()))
        for key, trial in zip(missing, _in_tasks(shared, executor, observer), strict=True):
            found[key] = trial
            if trial.is_final and place.stored(key) is None:
                place.store(key, trial)
    return [task.named(found[key]) for key, task in zip(keys, tasks, strict=True)]


def tried(number: int, shared: Shared) -> Trial:
    """A trial on a worker, kept there as soon as it is made."""
    trial = shared.tasks[number].trial()
    if shared.directory is not None and trial.is_final:
        keep(shared.directory, shared.keys[number], trial)
    return trial


def _keys(tasks: Sequence[PlannedTrial]) -> list[str]:
    """Names of files; every problem is read once, however many solvers it has."""
    words: dict[int, str] = {}
    for task in tasks:
        if id(task.problem) not in words:
            words[id(task.problem)] = fingerprint(task.problem, f"the problem {task.names[0]!r}")
    return [
        task.key(words[id(task.problem)], fingerprint(task.solver, f"the solver {task.names[1]!r}"))
        for task in tasks
    ]


def counting(observer: Observer, total: int | None = None) -> Observer:
    """An observer of tasks that reports trials."""
    out_of = "" if total is None else f" of {total}"

    def observe(event: Event, /) -> None:
        words = f"{event.iteration}{out_of} trials"
        observer(Event(words, event.elapsed, event.iteration))

    return observe


def problem_in_words(problem: Apprenticeship) -> str:
    """World, costs, their class, and what is known of the expert, for the page of a study.

    >>> import journeyman as jm
    >>> world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    >>> demos = jm.record(world, expert, trajectories=20, horizon=30, seed=0)
    >>> problem_in_words(jm.Apprenticeship(world, basis, demos, jm.Simplex()))
    '16 states and 64 pairs, discount 0.95; 4 costs, class Simplex; 20 demonstrations'
    """
    world, demos = problem.world, problem.demonstrations
    parts = [
        f"{world.num_states:,} states and {world.num_pairs:,} pairs, discount {world.discount:g}",
        f"{_counted(problem.basis.num_costs, 'cost')}, class {type(problem.cost_class).__name__}",
    ]
    if problem.constraints:
        parts.append(_counted(len(problem.constraints), "budget"))
    known = "expectations" if demos is None else _counted(len(demos), "demonstration")
    return "; ".join([*parts, known])


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# A word for the content of problems and solvers, the same in every process and on every machine.
#
# Frozen values are walked field by field and arrays enter by their bytes. Functions, and classes
# that are not of this library, enter by module, name and source, so that editing one makes another
# word; a function also by its place in the source, since two lambdas may share a line, by its
# defaults and by the variables of its module that it names. Pickles would not do: equal values can
# have unequal ones. What cannot be distinguished by its content is refused; it could be mistaken
# for something else after a restart.
#
# *Not detected*: changes in functions of other modules that a function calls, and in installed
# packages, which only have versions.

PLAIN = (type(None), str, bool, int, float, np.ndarray)
"""What `digest` takes as it is."""
VERSIONED = frozenset({"journeyman", *sys.stdlib_module_names})
"""Packages whose classes are known by the versions of this library and of Python."""
NO_MATTER = ("executor", "time_limit", "note")
"""Fields that decide where and how long work is done, the limit in force being counted apart, and
what is only said."""


def fingerprint(value: Any, name: str) -> str:
    """The word of a value; `name` says whose it is when it has none.

    >>> fingerprint((1, 2.0, "three"), "example") == fingerprint([1, 2.0, "three"], "example")
    True
    """
    return digest(_parts(value, name))


def _parts(value: Any, name: str) -> Any:
    """Nested lists of what `digest` knows."""
    if isinstance(value, Enum | PurePath):
        return [_kind(value), str(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        value = value.tolist()
    if isinstance(value, PLAIN) or sparse.issparse(value):
        return value
    if isinstance(value, tuple | list | Mapping):
        return _members(value, name)
    if is_dataclass(value) and not isinstance(value, type):
        return [_kind(value), *_sources(type(value), name), *_fields(value, name)]
    return _code(value, name)


def _members(value: Any, name: str) -> list[Any]:
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: (str(key), type(key).__name__))
        return ["mapping", *([_parts(key, name), _parts(value[key], name)] for key in keys)]
    return [_parts(one, name) for one in value]


def _fields(value: Any, name: str) -> list[Any]:
    return [
        [one.name, _parts(getattr(value, one.name), f"{name}.{one.name}")]
        for one in fields(value)
        if one.name not in NO_MATTER
    ]


def _code(value: Any, name: str) -> list[Any]:
    """A function by its source, a method with what it belongs to, a partial with its arguments."""
    if isinstance(value, partial):
        return [
            "partial",
            *(_parts(part, name) for part in (value.func, value.args, value.keywords)),
        ]
    if isinstance(value, MethodType):
        return [value.__name__, _parts(value.__self__, name)]
    if isinstance(value, FunctionType) and value.__closure__ is None:
        return [_source(value, name), *_function(value, name)]
    if isinstance(value, type):
        return [f"{value.__module__}.{value.__qualname__}", _source(value, name)]
    raise _unknown(value, name)


def _function(value: FunctionType, name: str, users: tuple[FunctionType, ...] = ()) -> list[Any]:
    """What the source of a function does not say: where in it the function is, defaults, and the
    variables of its module that it names."""
    around = [
        [outer, _around(value.__globals__[outer], f"{name}, {outer}", (*users, value))]
        for outer in sorted(_names(value.__code__) & value.__globals__.keys())
    ]
    defaults = [value.__defaults__, value.__kwdefaults__]
    return [_place(value.__code__), _parts(defaults, name), around]


def _names(code: CodeType) -> set[str]:
    """Names that a function uses, and those of functions within."""
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


def _place(code: CodeType) -> list[int]:
    """First and last column of what a function does; lambdas may share a line."""
    places = [(first, last) for _, _, first, last in code.co_positions() if first and last]
    return [min((one for one, _ in places), default=0), max((one for _, one in places), default=0)]


def _around(value: Any, name: str, users: tuple[FunctionType, ...]) -> Any:
    """Something that functions use: data by content, code of their own module by source."""
    if isinstance(value, ModuleType):
        return value.__name__
    value = inspect.unwrap(value) if hasattr(value, "__wrapped__") else value
    if not isinstance(value, type | FunctionType | BuiltinFunctionType | np.ufunc):
        return _parts(value, name)
    module = getattr(value, "__module__", "")
    if module != users[-1].__module__ or value in users:
        return f"{module}.{value.__name__}"
    inner = _function(value, name, users) if isinstance(value, FunctionType) else []
    return [_source(value, name), *inner]


def _sources(kind: type, name: str) -> list[str]:
    """Of a class and those it is made of, as far as they are not versioned with this library."""
    return [
        _source(one, name)
        for one in kind.__mro__
        if one.__module__.partition(".")[0] not in VERSIONED
    ]


def _source(value: Any, name: str) -> str:
    try:
        return f"{value.__module__}.{value.__qualname__}: {inspect.getsource(value)}"
    except (OSError, TypeError):
        raise _unknown(value, name) from None


def _unknown(value: Any, name: str) -> InvalidInput:
    return InvalidInput(
        f"{name} holds {value!r}, which could not be recognised after a restart",
        "Build it of dataclasses, arrays and functions of a module without variables of their "
        "surroundings, or leave the directory out",
    )


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
