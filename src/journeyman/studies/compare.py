"""`jm.compare`: the same problems for several methods, every figure measured the same way.

Trials are the shards of an executor: who computes them, and in which order, changes no figure but
the seconds. With a directory the worker that has finished a trial writes it at once, before its
result travels, so that whatever is killed next has lost only trials that were under way. A worker
on a machine that does not see the directory cannot; what it returns is written at the end.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from journeyman.certificate.sample_sizes import require_probability
from journeyman.errors import InvalidInput
from journeyman.execution import Executor, Serial
from journeyman.progress import Event, Observer, Terminal
from journeyman.runs.interruption import Stop
from journeyman.solvers.hyperparameters import require_time_limit
from journeyman.storage import PathLike
from journeyman.studies.comparison import Comparison
from journeyman.studies.directory import StudyDirectory, keep
from journeyman.studies.fingerprint import fingerprint
from journeyman.studies.plan import Experts, Judgement, Problems, Solvers, Truths, tasks_of
from journeyman.studies.setting import setting
from journeyman.studies.task import Task
from journeyman.studies.trial import Trial


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
        observer: is told of finished trials. An executor that is given has its own.

    A trial whose method refuses the problem or fails is a row that says why. Ctrl-C raises
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
    means = _Means(executor, observer)
    means.refuse_contradictions()
    judgement = Judgement(expert, truth, failure_probability, time_limit)
    rows = list(tasks_of(problem, solvers, seeds, judgement))
    tasks = [row for row in rows if isinstance(row, Task)]
    try:
        done = iter(_all_done(tasks, means, directory))
    except Stop as stop:
        raise KeyboardInterrupt from stop
    trials = tuple(next(done) if isinstance(row, Task) else row for row in rows)
    settings = {task.names[0]: setting(task.problem) for task in reversed(tasks)}
    return Comparison(trials, failure_probability, settings)


class Shared(NamedTuple):
    """What workers have to know: all that is to be done, and where it is kept under which names."""

    tasks: Sequence[Task]
    keys: Sequence[str]
    directory: str | None


class _Means(NamedTuple):
    """Who does the work, and who is told."""

    executor: Executor | None
    observer: Observer | None

    def refuse_contradictions(self) -> None:
        if self.executor is not None and self.observer is not None:
            raise InvalidInput(
                "both executor and observer are given", "Give the observer to the executor"
            )
        if self.executor is not None and not hasattr(self.executor, "map"):
            raise InvalidInput(
                f"executor = {self.executor!r}", "Give an executor, for example Processes(2)"
            )

    def trials(self, shared: Shared) -> list[Trial]:
        numbers = range(len(shared.tasks))
        if self.executor is not None:
            return self.executor.map(tried, numbers, shared=shared)
        with ExitStack() as stack:
            display = self.observer or stack.enter_context(Terminal())
            alone = Serial(observer=counting(display, len(numbers)))
            return alone.map(tried, numbers, shared=shared)


def _all_done(tasks: Sequence[Task], means: _Means, directory: PathLike | None) -> list[Trial]:
    """The outcomes of all tasks, those that were kept before among them."""
    if directory is None:
        return means.trials(Shared(tasks, (), None))
    keys = _keys(tasks)
    place = StudyDirectory(Path(directory))
    with place.opened():
        found = {key: trial for key in keys if (trial := place.stored(key)) is not None}
        missing = {key: task for key, task in zip(keys, tasks, strict=True) if key not in found}
        shared = Shared(list(missing.values()), list(missing), str(place.path.resolve()))
        for key, trial in zip(missing, means.trials(shared), strict=True):
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


def _keys(tasks: Sequence[Task]) -> list[str]:
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
    """An observer of shards that speaks of trials."""
    out_of = "" if total is None else f" of {total}"

    def observe(event: Event, /) -> None:
        words = f"{event.iteration}{out_of} trials"
        observer(Event(words, event.elapsed, event.iteration))

    return observe
