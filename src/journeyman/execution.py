"""Work in tasks: one function, many tasks, results in their order, on whatever machine.

    executor.map(function, tasks, shared=...) = [function(task, shared) for task in tasks]

*Guarantee*: the results are equal to the last bit for every executor and every number of workers,
also when workers die on the way, provided that `function` depends on its two arguments only (its
random numbers come from a seed in the task, see `seeds_of`) and does not write to `shared`.
Therefore the *number of tasks belongs to the problem*, never to the machine: whoever cuts by the
number of cores gets other sums elsewhere. `sum_in_order` adds the parts in a fixed order.

*Threads*: arithmetic uses one thread per worker. OpenBLAS splits a long product among its threads
and adds the parts, so that `x @ y` depends on the number of cores. Processes are started with
`ONE_THREAD` in their environment, and `one_blas_thread` limits the libraries of this process. Only
the OpenBLAS inside the wheels of NumPy and SciPy can be limited from within; for any other library
set `OMP_NUM_THREADS=1` before Python starts. On processors of different makes the last bits may
differ.

*Lost workers*: a task succeeds, fails with an exception of the function, or is lost with its
worker. Lost tasks are tried again; they bring their own seed, so it does not matter who computes
them, or when. Of several failures the one with the smallest number is raised, as by a plain loop.

    >>> import journeyman as jm
    >>> jm.Serial().map(divmod, [17, 42], shared=5)
    [(3, 2), (8, 2)]
"""

import ctypes
import heapq
import io
import json
import mmap
import multiprocessing
import operator
import os
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, reduce
from multiprocessing.context import SpawnContext
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from journeyman.errors import InvalidInput, TaskFailed
from journeyman.progress import Event, Observer, guarded, quiet

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

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


class KeepingExecutor(Executor, Protocol):
    """An executor whose workers stay, so that a task finds what an earlier one has left there."""

    @property
    def is_open(self) -> bool:
        """Whether workers are kept from one call to the next: inside a `with` block."""

    @property
    def slots(self) -> int:
        """How many workers there are."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *_: object) -> None: ...

    def map_on(
        self,
        workers: Sequence[int],
        function: Callable[[Task, Any], Result],
        tasks: Sequence[Task],
        *,
        shared: Any = None,
    ) -> list[Result]: ...


class Serial:
    """One task after the other, in this process."""

    is_open, slots = True, 1

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

    def map_on(
        self,
        workers: Sequence[int],
        function: Callable[[Task, Any], Result],
        tasks: Sequence[Task],
        *,
        shared: Any = None,
    ) -> list[Result]:
        """`map`: there is one worker."""
        require_one_each(workers, tasks)
        return self.map(function, tasks, shared=shared)


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
        self._pool: _ProcessPool | None = None
        self._single: _SinglePools | None = None
        self._one_at_a_time = threading.Lock()

    def __repr__(self) -> str:
        return f"Processes({self.workers})"

    @property
    def is_open(self) -> bool:
        """Whether processes are kept from one call to the next."""
        return self._pool is not None

    @property
    def slots(self) -> int:
        """How many processes there are."""
        return self.workers

    def __enter__(self) -> Self:
        if self._pool is not None:
            raise InvalidInput(f"{self} is open already", "Leave its block before it is entered")
        self._pool = _ProcessPool(self.workers)
        self._single = _SinglePools(self.workers)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None and self._single is not None:
            self._pool.close()
            self._single.close()
        self._pool, self._single = None, None

    def map(
        self,
        function: Callable[[Task, Any], Result],
        tasks: Sequence[Task],
        *,
        shared: Any = None,
    ) -> list[Result]:
        """As `Serial.map`; tasks that are lost with a process are tried again, three times."""
        if self._pool is None:
            with self:
                return self.map(function, tasks, shared=shared)
        work = list(tasks)
        with (
            self._one_at_a_time,
            _packed_work(function, shared) as place,
            self._pool.working_on(place, work),
        ):
            return gather(len(work), self._pool, LOSSES, self.observer)

    def map_on(
        self,
        workers: Sequence[int],
        function: Callable[[Task, Any], Result],
        tasks: Sequence[Task],
        *,
        shared: Any = None,
    ) -> list[Result]:
        """As `map`; task k runs in process `workers[k]`, modulo their number, and finds what
        earlier tasks have left in its modules' variables. A process that died is started anew and
        has nothing: tasks have to notice."""
        if self._single is None:
            with self:
                return self.map_on(workers, function, tasks, shared=shared)
        work = list(tasks)
        require_one_each(workers, work)
        with (
            self._one_at_a_time,
            _packed_work(function, shared) as place,
            self._single.working_on(place, work, workers),
        ):
            return gather(len(work), self._single, LOSSES, self.observer)


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


def require_one_each(workers: Sequence[int], tasks: Sequence[Any]) -> None:
    """Refuse another number of workers than of tasks."""
    if len(workers) != len(tasks):
        raise InvalidInput(
            f"{len(workers)} workers for {len(tasks)} tasks", "Name one worker for each task"
        )


def required_count(value: int, name: str) -> int:
    """`value` if it is a whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidInput(f"{name} = {value!r}", "Give a whole number of at least 1")
    return int(value)


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


Work: TypeAlias = tuple[Callable[[Any, Any], Any], Any]
"""A function and what all its tasks share."""
ALIGNMENT = 64
"""Arrays start at multiples of this many bytes, as vector units like them."""
OUT_OF_BAND = 5
"""The first pickle protocol that can hand out arrays instead of copying them."""
OBJECT_FILE, ARRAY_FILE, SPAN_FILE = "objects", "arrays", "spans.json"


@contextmanager
def _packed_work(function: Callable[[Any, Any], Any], shared: Any) -> Iterator[Path]:
    """A temporary directory with the function and what it shares.

    Objects travel the way `multiprocessing` sends them, and their arrays apart from them: the
    arrays, however deep inside, are written as plain bytes to one file that all workers map into
    memory. It is read from disk at most once, held once, and nobody can write to it.
    """
    pack(function, "function")
    arrays: list[Any] = []
    packed = _pack((function, shared), "shared", arrays)
    with TemporaryDirectory(prefix="journeyman-", ignore_cleanup_errors=True) as directory:
        place = Path(directory)
        spans = _write(place / ARRAY_FILE, [array.raw() for array in arrays])
        (place / SPAN_FILE).write_text(json.dumps(spans), encoding="ascii")
        (place / OBJECT_FILE).write_bytes(packed)
        yield place


@lru_cache(maxsize=1)
def _unpacked_work(place: Path) -> Work:
    """What `_packed_work` has written, on a worker: arrays are read-only and mapped."""
    mapped = memoryview(b"")
    if (place / ARRAY_FILE).stat().st_size:
        with (place / ARRAY_FILE).open("rb") as file:
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    spans = json.loads((place / SPAN_FILE).read_text(encoding="ascii"))
    views = [mapped[start:stop] for start, stop in spans]
    packed = (place / OBJECT_FILE).read_bytes()
    function, shared = ForkingPickler.loads(packed, buffers=views)
    return function, shared


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


LOSSES = 3
"""How often a task is tried again after its worker was lost."""


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


class Workers(Protocol):
    """Takes tasks by number and returns what became of them."""

    @property
    def slots(self) -> int:
        """How many tasks can be under way at once."""

    def submit(self, number: int) -> None:
        """Give out a task."""

    def finished(self) -> Iterable[tuple[int, Outcome]]:
        """Wait until there are outcomes, and return them."""


def gather(count: int, workers: Workers, losses: int, observer: Observer) -> list[Any]:
    """The results of tasks 0..count-1 in this order; raises the first failure.

    A lost task is tried again `losses` times. Where a whole pool is lost with one of its processes,
    tasks are lost that did no harm: so the last time a task runs with no other beside it.
    """
    results: list[Any] = [None] * count
    lost: Counter[int] = Counter()
    waiting, under_way = list(range(count)), set[int]()
    end, ending = count, None  # tasks from `end` on do not matter any more
    progress = Progress(observer)

    def has_room() -> bool:
        if not waiting or waiting[0] >= end or len(under_way) >= workers.slots:
            return False
        last_tries = [number for number in (waiting[0], *under_way) if lost[number] == losses > 0]
        return not (last_tries and under_way)

    while min([*waiting[:1], *under_way], default=end) < end:
        while has_room():
            under_way.add(waiting[0])
            workers.submit(heapq.heappop(waiting))
        for number, outcome in workers.finished():
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
    """Reports to an observer how many tasks are done."""

    def __init__(self, observer: Observer) -> None:
        self._observer = guarded(observer)
        self._started = time.monotonic()
        self._done = 0

    def step(self) -> None:
        self._done += 1
        self._observer(Event("tasks", time.monotonic() - self._started, self._done))


class _ProcessPool:
    """Processes of this machine as `Workers`: the pool of the standard library, started anew when
    one of its processes dies.

    The pool gives up all its tasks when a process dies. Those that had not finished are reported as
    lost, and a new pool is started for the next task.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._pool: ProcessPoolExecutor | None = None
        self.under_way: dict[Future[bytes], int] = {}

    @contextmanager
    def working_on(self, place: Path, tasks: Sequence[Any]) -> Iterator[None]:
        """Take up a map; if tasks are under way when the block ends, their processes are killed."""
        self._place, self._tasks = place, tasks
        try:
            yield
        finally:
            if self.under_way:
                for process in self._context.processes:
                    process.kill()
                self.close()
                self.under_way.clear()

    def submit(self, number: int) -> None:
        """Hand a task to the pool."""
        from concurrent.futures import Future
        from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor

        packed = pack(self._tasks[number], f"task {number}")
        if self._pool is None:
            self._context = _Context()
            self._started = self._context.Event()
            self._pool = ProcessPoolExecutor(
                self.slots, self._context, initializer=_begin_worker, initargs=(self._started,)
            )
        try:
            with environment(ONE_THREAD):  # processes are started here, when they are needed
                future = self._pool.submit(_attempt_packed, self._place, packed)
        except BrokenProcessPool as error:
            future = Future()
            future.set_exception(error)
        self.under_way[future] = number

    def finished(self) -> list[tuple[int, Outcome]]:
        """Wait until tasks have finished, or were lost."""
        from concurrent.futures import FIRST_COMPLETED, wait

        done, others = wait(self.under_way, return_when=FIRST_COMPLETED)
        reason = ""
        if any(future.exception() is not None for future in done):
            done |= wait(others).done  # the pool is broken: the others have finished, or are lost
            reason = self._cause()
        return [(self.under_way.pop(future), _outcome(future, reason)) for future in done]

    def close(self) -> None:
        """Let the processes leave."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _cause(self) -> str:
        """Why a process of a broken pool died; the pool ends the others by SIGTERM."""
        self.close()
        codes = [process.exitcode for process in self._context.processes]
        if not self._started.is_set() and max(codes) > 0:
            raise TaskFailed(
                "a worker process could not start; what it printed says why. Workers import the "
                "main script: it has to be a file, and to start its work under "
                "`if __name__ == '__main__':`."
            )
        code = next((code for code in codes if code != -signal.SIGTERM), -signal.SIGTERM)
        if code < 0:
            return f"its process was killed by {signal.Signals(-code).name}"
        return f"its process ended with exit code {code}"


class _SinglePools:
    """Pools of one process each as `Workers`, so that it is known which process runs a task."""

    def __init__(self, count: int) -> None:
        self._pools = [_ProcessPool(1) for _ in range(count)]
        self.slots = 0

    @contextmanager
    def working_on(
        self, place: Path, tasks: Sequence[Any], workers: Sequence[int]
    ) -> Iterator[None]:
        """Take up a map: every task is handed out at once, and waits in the pool it belongs to."""
        self.slots, self._workers = max(len(tasks), 1), workers
        with ExitStack() as stack:
            for pool in self._pools:
                stack.enter_context(pool.working_on(place, tasks))
            yield

    def submit(self, number: int) -> None:
        """Hand a task to its pool."""
        self._pools[self._workers[number] % len(self._pools)].submit(number)

    def finished(self) -> list[tuple[int, Outcome]]:
        """Wait until tasks of some pool have finished, or were lost."""
        from concurrent.futures import FIRST_COMPLETED, wait

        waiting = [future for pool in self._pools for future in pool.under_way]
        done = wait(waiting, return_when=FIRST_COMPLETED).done
        return [
            outcome
            for pool in self._pools
            if not done.isdisjoint(pool.under_way)
            for outcome in pool.finished()
        ]

    def close(self) -> None:
        """Let the processes leave."""
        for pool in self._pools:
            pool.close()


class _Context(SpawnContext):
    """Fresh processes, which are remembered; forked ones would inherit locks of threads they do
    not have."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[Any] = []

    def Process(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]  # noqa: N802
        process = SpawnContext.Process(*args, **kwargs)
        self.processes.append(process)
        return process


def _begin_worker(started: Any) -> None:
    """The first act of a worker: the parent handles Ctrl-C, and takes the worker with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    started.set()


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _attempt_packed(place: Path, packed: bytes) -> bytes:
    """A task of the pool. Outcomes travel as bytes: one that cannot be unpacked is no fault of the
    pool's."""
    try:
        function, shared = _unpacked_work(place)
    except Exception as fault:
        refusal = InvalidInput(
            f"a worker process could not open what it was sent: {fault}",
            "Functions have to stand at the top level of a module that workers can import; those "
            "of an interactive session or a notebook cannot be found",
        )
        refusal.__cause__ = fault
        return pack(Failure.of(refusal), "the failure")
    try:
        task = ForkingPickler.loads(packed)
    except Exception as error:
        return pack(Failure.of(error), "the failure")
    try:
        return pack(attempt(function, task, shared), "the result")
    except InvalidInput as refusal:
        return pack(Failure.of(refusal), "the failure")


def _outcome(future: "Future[bytes]", reason: str) -> Outcome:
    if future.exception() is not None:
        return Lost(reason)
    try:
        outcome: Outcome = ForkingPickler.loads(future.result())
    except Exception as error:
        return Failure.of(error)
    return outcome
