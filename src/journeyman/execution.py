"""Work in tasks: one function, many tasks, results in their order, on whatever machine.

    executor.map(function, tasks, shared=...) = [function(task, shared) for task in tasks]

*Guarantee*: the results are equal to the last bit for every executor and every number of workers,
also when workers die on the way, provided that `function` depends on its two arguments only (its
random numbers come from a seed in the task, see `seeds_of`) and does not write to `shared`.
Therefore the *number of tasks belongs to the problem*, never to the machine: whoever cuts by the
number of cores gets other sums elsewhere. `sum_in_order` adds the parts in a fixed order.

Arithmetic uses one thread per worker. On processors of different makes the last bits may differ.

    >>> import journeyman as jm
    >>> jm.Serial().map(divmod, [17, 42], shared=5)
    [(3, 2), (8, 2)]
"""

import ctypes
import heapq
import io
import mmap
import multiprocessing
import operator
import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from journeyman.errors import InvalidInput, TaskFailed
from journeyman.progress import Event, Observer, guarded, quiet

Task = TypeVar("Task")
Result = TypeVar("Result")
Part = TypeVar("Part")


class Executor(Protocol):
    """Anything that maps a function over tasks and returns the results in their order."""

    def map(
        self,
        function: Callable[[Task, Any], Result],
        tasks: Sequence[Task],
        *,
        shared: Any = None,
    ) -> list[Result]: ...


class Serial:
    """One task after the other, in this process."""

    def __init__(self, *, observer: Observer = quiet) -> None:
        self.observer = observer

    def __repr__(self) -> str:
        return "Serial()"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(
        self,
        function: Callable[[Task, Any], Result],
        tasks: Sequence[Task],
        *,
        shared: Any = None,
    ) -> list[Result]:
        """`[function(task, shared) for task in tasks]`; an error names its task in a note."""
        results: list[Result] = []
        progress = Progress(self.observer)
        with one_blas_thread():
            for number, task in enumerate(tasks):
                try:
                    results.append(function(task, shared))
                except Exception as error:
                    annotated(error, number, len(tasks))
                    raise
                progress.step()
        return results


class Processes:
    """Tasks in parallel, in processes of this machine.

    Inside `with Processes() as executor:` the processes are kept from one `map` to the next;
    without it they are started for one call. `function` has to stand at the top level of a module,
    and a script has to start its work under `if __name__ == "__main__":`. Arrays in `shared` are
    mapped from a temporary file by all workers, whatever their size, and arrive read-only.
    """

    def __init__(self, workers: int | None = None, *, observer: Observer = quiet) -> None:
        """`workers` processes at most, as many as there are cores if None."""
        self.workers = usable_cores() if workers is None else required_count(workers, "workers")
        self.observer = observer
        self._crew: ProcessCrew | None = None
        self._one_at_a_time = Lock()

    def __repr__(self) -> str:
        return f"Processes({self.workers})"

    def __enter__(self) -> Self:
        if self._crew is not None:
            raise InvalidInput(f"{self} is open already", "Leave its block before it is entered")
        self._crew = ProcessCrew(self.workers)
        return self

    def __exit__(self, *_: object) -> None:
        if self._crew is not None:
            self._crew.dismiss()
        self._crew = None

    def map(
        self,
        function: Callable[[Task, Any], Result],
        tasks: Sequence[Task],
        *,
        shared: Any = None,
    ) -> list[Result]:
        """As `Serial.map`; a task whose process dies is given to another one, three times."""
        if self._crew is None:
            with self:
                return self.map(function, tasks, shared=shared)
        work = list(tasks)
        with (
            self._one_at_a_time,
            briefing(function, shared) as packed,
            self._crew.brief(packed, work),
        ):
            return gather(len(work), self._crew, LOSSES, self.observer)


def seeds_of(seed: int | np.random.SeedSequence, num_tasks: int) -> list[np.random.SeedSequence]:
    """One seed per task, independent of each other; the first ones do not depend on the number.

    A seed sequence is left as it is, so that equal calls have equal answers.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return [
        np.random.SeedSequence(
            root.entropy, spawn_key=(*root.spawn_key, number), pool_size=root.pool_size
        )
        for number in range(num_tasks)
    ]


def ranges_of(total: int, size: int) -> list[tuple[int, int]]:
    """0..total cut into (start, stop) of a fixed size, the last one may be shorter.

    >>> ranges_of(10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    step = required_count(size, "size")
    return [(start, min(start + step, total)) for start in range(0, total, step)]


def sum_in_order(parts: Iterable[Part]) -> Part:
    """Numbers or arrays added from the first to the last, one rounding at a time.

    The sum of Python corrects its roundings from 3.12 on, and NumPy's adds in pairs; both give
    other bits. There has to be at least one part.
    """
    return reduce(operator.add, parts)


def usable_cores() -> int:
    """The number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def required_count(value: int, name: str) -> int:
    """`value` if it is a whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name} = {value!r}", "Give a whole number of at least 1")
    return int(value)


# One thread for the products of NumPy and SciPy, because the number of threads changes bits.
#
# OpenBLAS splits a long product among its threads and adds the parts, so that `x @ y` depends on
# the number of cores. Work that has to come out the same everywhere runs with one thread: processes
# are started with `ONE_THREAD` in their environment, and `one_blas_thread` holds back the libraries
# that this process has loaded or is about to load.
#
# Only the OpenBLAS that comes inside the wheels of NumPy and SciPy can be held back from within;
# for
# any other library set `OMP_NUM_THREADS=1` before Python starts.

ONE_THREAD: Mapping[str, str] = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
"""Environment of a process whose arithmetic uses one thread; it is read when libraries load."""


@contextmanager
def environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment, for processes that start meanwhile, and put them back."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold the BLAS of this process to one thread while the block runs."""
    libraries = _libraries()
    before = [count() for count, _ in libraries]
    try:
        for _, limit in libraries:
            limit(1)
        yield
    finally:
        for (_, limit), threads in zip(libraries, before, strict=True):
            limit(threads)


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], Any]]]:
    """Reader and setter of the number of threads, per library.

    SciPy's is loaded for the purpose when SciPy has not loaded it yet: a later import finds it in
    place, already held back.
    """
    import numpy as np

    site = Path(np.__file__).parents[1]
    found = []
    for pattern in ("*.libs/*openblas*", "numpy/.dylibs/*openblas*", "scipy/.dylibs/*openblas*"):
        for path in sorted(site.glob(pattern)):
            library = ctypes.CDLL(str(path))
            for ending in ("64_", ""):
                names = [f"scipy_openblas_{verb}_num_threads{ending}" for verb in ("get", "set")]
                if all(hasattr(library, name) for name in names):
                    found.append((getattr(library, names[0]), getattr(library, names[1])))
    return found


# What every worker has to know, packed once: a function, and the values all tasks share.
#
# Objects travel the way `multiprocessing` sends them, and their arrays apart from them: the arrays,
# however deep inside, are written as plain bytes to one temporary file that all workers of a
# machine
# map into memory. It is read from disk at most once, held once, and nobody can write to it.

Work: TypeAlias = tuple[Callable[[Any, Any], Any], Any]
"""A function and what it shares."""
ALIGNMENT = 64
"""Arrays start at multiples of this many bytes, as vector units like them."""
OUT_OF_BAND = 5
"""The first pickle protocol that can hand out arrays instead of copying them."""


@dataclass(frozen=True)
class Briefing:
    """A function and what it shares; the bytes of its arrays stand at `spans` of a file."""

    packed: bytes
    spans: tuple[tuple[int, int], ...]
    path: Path | None
    """None when there is not a byte in it."""

    def open(self) -> Work:
        """The function and the shared value, arrays read-only and mapped."""
        mapped = self._map()
        views = [mapped[start:stop] for start, stop in self.spans]
        function, shared = ForkingPickler.loads(self.packed, buffers=views)
        return function, shared

    def _map(self) -> memoryview:
        if self.path is None:
            return memoryview(b"")
        with self.path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


@contextmanager
def briefing(function: Callable[[Any, Any], Any], shared: Any) -> Iterator[Briefing]:
    """Pack a function and what it shares; the file goes away with the block."""
    pack(function, "function")
    arrays: list[Any] = []
    packed = _pack((function, shared), "shared", arrays)
    with TemporaryDirectory(prefix="journeyman-", ignore_cleanup_errors=True) as directory:
        path = Path(directory) / "arrays"
        spans = _write(path, [array.raw() for array in arrays])
        yield Briefing(packed, spans, path if path.stat().st_size else None)


def pack(value: Any, name: str) -> bytes:
    """The bytes a value travels as; what cannot travel is refused by name."""
    return _pack(value, name, None)


def _pack(value: Any, name: str, arrays: list[Any] | None) -> bytes:
    stream = io.BytesIO()
    collect = None if arrays is None else arrays.append
    try:
        ForkingPickler(stream, OUT_OF_BAND, True, collect).dump(value)
    except Exception as fault:
        raise InvalidInput(
            f"{name} cannot be sent to another process: {fault}",
            "Functions have to stand at the top level of a module that can be imported, and values "
            "to be plain ones, arrays or objects of such classes",
        ) from fault
    return stream.getvalue()


def _write(path: Path, arrays: Sequence[memoryview]) -> tuple[tuple[int, int], ...]:
    spans = []
    with path.open("wb") as file:
        for array in arrays:
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            start = file.tell()
            file.write(array)
            spans.append((start, file.tell()))
    return tuple(spans)


# What becomes of a task, and the loop that gathers all outcomes in the order of the tasks.
#
# A task succeeds, fails with an exception of the function, or is lost with its worker. Lost tasks
# are given out again; they bring their own seed, so it does not matter who computes them, or when.
# Of several failures the one with the smallest number is raised, as a plain loop would do.

LOSSES = 3
"""How often a task is given out again after its worker was lost."""


@dataclass(frozen=True)
class Success:
    """The function returned."""

    result: Any


@dataclass(frozen=True)
class Failure:
    """The function raised; `trace` says where, on the worker."""

    error: Exception
    trace: str

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """The failure of an exception that may have to travel; if it cannot, its words do."""
        trace = "".join(traceback.format_exception(error))
        try:
            ForkingPickler.loads(ForkingPickler.dumps(error))
        except Exception:
            error = TaskFailed(f"{type(error).__qualname__}: {error}")
        return cls(error, trace)


@dataclass(frozen=True)
class Lost:
    """The worker is gone, and the task with it."""

    reason: str


Outcome = Success | Failure | Lost


def attempt(function: Callable[[Any, Any], Any], task: Any, shared: Any) -> Success | Failure:
    """Run the function on a task, on a worker."""
    try:
        return Success(function(task, shared))
    except Exception as error:
        return Failure.of(error)


class Crew(Protocol):
    """Workers that take tasks by number."""

    @property
    def slots(self) -> int:
        """How many tasks can be under way at once."""

    def submit(self, number: int) -> None:
        """Give out a task."""

    def finished(self) -> Iterable[tuple[int, Outcome]]:
        """Wait until there are outcomes, and return them."""


def gather(count: int, crew: Crew, losses: int, observer: Observer) -> list[Any]:
    """The results of tasks 0..count-1 in this order; raises the first failure."""
    results: list[Any] = [None] * count
    lost: Counter[int] = Counter()
    waiting, under_way = list(range(count)), set[int]()
    end, ending = count, None  # tasks from `end` on do not matter any more
    progress = Progress(observer)
    while min([*waiting[:1], *under_way], default=end) < end:
        while waiting and waiting[0] < end and len(under_way) < crew.slots:
            under_way.add(waiting[0])
            crew.submit(heapq.heappop(waiting))
        for number, outcome in crew.finished():
            under_way.discard(number)
            if isinstance(outcome, Success):
                results[number] = outcome.result
                progress.step()
            elif isinstance(outcome, Lost) and lost[number] < losses:
                lost[number] += 1
                heapq.heappush(waiting, number)
            elif number < end:
                end, ending = number, outcome
    if ending is not None:
        raise _error_of(ending, end, count)
    return results


def annotated(error: Exception, number: int, count: int, trace: str = "") -> Exception:
    """The error, with a note that names its task."""
    error.add_note(f"in task {number} of 0..{count - 1}" + (f"; there:\n{trace}" if trace else ""))
    return error


def _error_of(ending: Failure | Lost, number: int, count: int) -> Exception:
    if isinstance(ending, Failure):
        return annotated(ending.error, number, count, ending.trace)
    error = TaskFailed(
        f"task {number} was lost with its worker whenever it was tried, at last because "
        f"{ending.reason}. If memory ran out, use fewer workers or smaller tasks; otherwise run "
        "the task with Serial() to see what it does to its process."
    )
    return annotated(error, number, count)


class Progress:
    """Tells an observer how many tasks are done."""

    def __init__(self, observer: Observer) -> None:
        self._observer = guarded(observer)
        self._started = time.monotonic()
        self._done = 0

    def step(self) -> None:
        self._done += 1
        self._observer(Event("tasks", time.monotonic() - self._started, self._done))


# Worker processes on this machine: fresh ones (spawned, not forked) that serve until dismissed.
#
# A worker gets the briefing of a map once and tasks one at a time, each through a pipe of its own,
# so it is known which task was lost when a worker dies. Nothing is left behind: workers ignore
# Ctrl-C, which their parent handles by ending them, and end themselves when the parent is gone.

READY = b"ready"
"""The first word of a worker: its process has started and found this module."""
PATIENCE = 5.0
"""Seconds a dismissed worker has for leaving by itself."""
CONTEXT = multiprocessing.get_context("spawn")
"""Forked processes would inherit locks of threads they do not have."""


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    ready: bool = False
    briefing: Briefing | None = None
    task: int | None = None


class ProcessCrew:
    """Up to `slots` processes; used as a `Crew` between `brief` and its end."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._workers: list[_Worker] = []
        self._lost: list[tuple[int, Outcome]] = []

    @contextmanager
    def brief(self, briefing: Briefing, tasks: Sequence[Any]) -> Iterator[None]:
        """Take up a map; whoever is still at work when the block ends, by whatever, is ended."""
        self._briefing, self._shards, self._lost = briefing, tasks, []
        for worker in [worker for worker in self._workers if not worker.process.is_alive()]:
            self._end(worker)
        try:
            while len(self._workers) < min(self.slots, len(tasks)):
                self._workers.append(_start())
            yield
        finally:
            for worker in [worker for worker in self._workers if worker.task is not None]:
                self._end(worker)

    def submit(self, number: int) -> None:
        """Give task `number` to a free worker."""
        packed = pack(self._shards[number], f"task {number}")
        worker = next((worker for worker in self._workers if worker.task is None), None)
        if worker is None:
            worker = _start()
            self._workers.append(worker)
        worker.task = number
        try:
            if worker.briefing is not self._briefing:
                worker.connection.send(self._briefing)
                worker.briefing = self._briefing
            worker.connection.send(packed)
        except OSError:
            self._lost.append((number, self._bury(worker)))

    def finished(self) -> list[tuple[int, Outcome]]:
        """Wait until workers have finished or died."""
        while True:
            outcomes, self._lost = self._lost, []
            busy = [worker for worker in self._workers if worker.task is not None]
            sources = [source for worker in busy for source in _sources(worker)]
            heard = set(wait(sources, timeout=0 if outcomes else None))
            for worker in busy:
                number = worker.task
                outcome = None if heard.isdisjoint(_sources(worker)) else self._hear(worker)
                if number is not None and outcome is not None:
                    outcomes.append((number, outcome))
            if outcomes:
                return outcomes

    def dismiss(self) -> None:
        """End all workers: the free ones find their pipe closed and leave."""
        for worker in self._workers:
            worker.connection.close()
        for worker in list(self._workers):
            if worker.task is None:
                worker.process.join(PATIENCE)
            self._end(worker)

    def _hear(self, worker: _Worker) -> Outcome | None:
        """What a worker says, None if only that it is ready."""
        try:
            if not worker.connection.poll():
                raise EOFError
            message = worker.connection.recv_bytes()
        except (EOFError, OSError):
            return self._bury(worker)
        if message == READY:
            worker.ready = True
            return None
        worker.task = None
        return _unpacked(message)

    def _bury(self, worker: _Worker) -> Lost:
        """Take a dead worker off the list; one that never started is not worth a second try."""
        worker.process.join(PATIENCE)
        code = worker.process.exitcode
        self._end(worker)
        if not worker.ready and code is not None and code >= 0:
            raise TaskFailed(
                "a worker process could not start; what it printed says why. Workers import the "
                "main script: it has to be a file, and to start its work under "
                "`if __name__ == '__main__':`."
            )
        return Lost(_cause(code))

    def _end(self, worker: _Worker) -> None:
        worker.process.kill()
        worker.process.join()
        worker.process.close()
        worker.connection.close()
        self._workers.remove(worker)


def _start() -> _Worker:
    here, there = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_serve, args=(there,), daemon=True, name="journeyman worker")
    with environment(ONE_THREAD):
        process.start()
    there.close()
    return _Worker(process, here)


def _sources(worker: _Worker) -> tuple[Connection, int]:
    """What wakes a wait: a word of the worker, or its end."""
    return worker.connection, worker.process.sentinel


def _cause(code: int | None) -> str:
    if code is None:
        return "its process stopped answering"
    if code < 0:
        return f"its process was killed by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"


def _unpacked(message: bytes) -> Outcome:
    try:
        outcome: Outcome = ForkingPickler.loads(message)
    except Exception as error:
        return Failure.of(error)
    return outcome


def _serve(connection: Connection) -> None:
    """The life of a worker: briefings and tasks come in, outcomes go out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection.send_bytes(READY)
    work: Work | Failure | None = None
    while True:
        try:
            order = connection.recv()
            if isinstance(order, Briefing):
                work = _opened(order)
            elif work is not None:
                outcome = work if isinstance(work, Failure) else _done(work, order)
                connection.send_bytes(_packed(outcome))
        except (EOFError, OSError):  # the parent is gone, or has lost interest
            return


def _opened(briefing: Briefing) -> Work | Failure:
    try:
        return briefing.open()
    except Exception as fault:
        refusal = InvalidInput(
            f"a worker process could not open what it was sent: {fault}",
            "Functions have to stand at the top level of a module that workers can import; those "
            "of an interactive session or a notebook cannot be found",
        )
        refusal.__cause__ = fault
        return Failure.of(refusal)


def _done(work: Work, packed: bytes) -> Outcome:
    function, shared = work
    try:
        task = ForkingPickler.loads(packed)
    except Exception as error:
        return Failure.of(error)
    return attempt(function, task, shared)


def _packed(outcome: Outcome) -> bytes:
    try:
        return pack(outcome, "the result")
    except InvalidInput as refusal:
        return pack(Failure.of(refusal), "the failure")
