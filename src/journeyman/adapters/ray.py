"""Tasks on a Ray cluster: one that is started here, one that runs already, or this process's own.

*Guarantee*: that of `journeyman.execution`. Ray tries again the tasks of workers and nodes
that are lost; every task brings its own seed, so nothing depends on where or when it runs.

*Tokens*: a cluster started here accepts only processes that know a token, which is drawn for it,
lies in a file that nobody else can read, and goes away with the cluster. Ray can do so from 2.52
on. The traffic itself is not encrypted: a cluster of many machines belongs into a closed network.
"""

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from journeyman.errors import InvalidInput, MissingExtra
from journeyman.execution import (
    LOSSES,
    ONE_THREAD,
    Failure,
    Lost,
    Outcome,
    Result,
    Success,
    Task,
    attempt,
    environment,
    gather,
    require_one_each,
    required_count,
    usable_cores,
)
from journeyman.progress import Observer, quiet

SHORT_PATH = "/tmp"
"""Where the files of a cluster lie: sockets need short paths, which TMPDIR may not offer."""
QUIET = {"log_to_driver": False, "logging_level": logging.ERROR}
"""Options of `ray.init` that leave the terminal to the caller."""

ONE_THREAD_WORKERS = {"runtime_env": {"env_vars": dict(ONE_THREAD)}}
"""What gives workers one thread on nodes that were started by someone else."""


class Ray:
    """Tasks in parallel, on a Ray cluster.

        with jm.Ray(num_workers=2) as executor:
            results = executor.map(function, tasks, shared=arrays)

    `address` None starts Ray on this machine, and shuts it down at the end of the block; if this
    process is connected to a cluster already, that connection is used and left as it is. An address
    ("10.0.0.1:6379", "auto") joins a cluster that runs; journeyman and the module of the function
    have to be installed on its nodes. Without a block, the connection lives for one `map`.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        num_workers: int | None = None,
        token_file: str | Path | None = None,
        object_store_memory: int | None = None,
        observer: Observer = quiet,
    ) -> None:
        """`num_workers` tasks at most at once, as many as there are cores if None.

        `token_file` holds the token of the cluster at `address`; None leaves it to Ray's own
        settings (`RAY_AUTH_MODE` and `RAY_AUTH_TOKEN_PATH`). `object_store_memory` are the bytes
        a cluster started here sets aside for shared arrays and results, Ray's default if None.
        """
        _require_fitting(address, token_file, object_store_memory)
        self.address = address
        self.num_workers = (
            None if num_workers is None else required_count(num_workers, "num_workers")
        )
        self.token_file = token_file
        self.object_store_memory = object_store_memory
        self.observer = observer
        self._open: ExitStack | None = None
        self._actors: list[Any] = []

    @property
    def is_open(self) -> bool:
        """Whether the connection is kept from one call to the next."""
        return self._open is not None

    def __repr__(self) -> str:
        return f"Ray(address={self.address!r}, num_workers={self.num_workers})"

    def __enter__(self) -> Self:
        if self._open is not None:
            raise InvalidInput(f"{self} is open already", "Leave its block before it is entered")
        with ExitStack() as stack:
            self._per_task = stack.enter_context(self._connected())
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._end_actors()
            self._open.close()
        self._open = None

    def map(
        self,
        function: Callable[[Task, Any], Result],
        tasks: Sequence[Task],
        *,
        shared: Any = None,
    ) -> list[Result]:
        """As `Serial.map`; `shared` travels once per node, and arrays arrive there read-only."""
        if self._open is None:
            with self:
                return self.map(function, tasks, shared=shared)
        work = list(tasks)
        workers = _RayWorkers(function, work, shared, self.slots, self._per_task)
        try:
            return gather(len(work), workers, 0, self.observer)
        finally:
            workers.cancel()

    def map_on(
        self,
        workers: Sequence[int],
        function: Callable[[Task, Any], Result],
        tasks: Sequence[Task],
        *,
        shared: Any = None,
    ) -> list[Result]:
        """As `map`; task k runs in actor `workers[k]`, modulo their number, and finds what earlier
        tasks have left in its modules' variables. An actor that died, perhaps with its node, is
        started anew and has nothing: tasks have to notice."""
        if self._open is None:
            with self:
                return self.map_on(workers, function, tasks, shared=shared)
        work = list(tasks)
        require_one_each(workers, work)
        if not self._actors:
            options = {
                "max_restarts": -1, "max_task_retries": LOSSES,
                "scheduling_strategy": "SPREAD", **self._per_task,
            }  # fmt: skip
            made = _ray().remote(_Actor).options(**options)
            self._actors = [made.remote() for _ in range(self.slots)]
        chosen = [self._actors[number % len(self._actors)] for number in workers]
        calls = _ActorCalls(function, work, shared, chosen)
        try:
            return gather(len(work), calls, 0, self.observer)
        finally:
            if calls.under_way:
                self._end_actors()

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        return max(self.num_workers or int(_ray().cluster_resources().get("CPU", 1)), 1)

    def _end_actors(self) -> None:
        for actor in self._actors:
            _ray().kill(actor)
        self._actors = []

    @contextmanager
    def _connected(self) -> Iterator[dict[str, Any]]:
        """A connection for the length of the block; yields the options of each task."""
        ray = _ray()
        if ray.is_initialized():
            if self.address is not None:
                raise InvalidInput(
                    f"address = {self.address!r}, but this process is connected to Ray already",
                    "Leave out the address to use that connection, or call ray.shutdown() before",
                )
            yield ONE_THREAD_WORKERS
        elif self.address is not None:
            with _identified(self.token_file), _joined(self.address):
                yield {}
        else:
            with _own_cluster(self.num_workers or usable_cores(), self.object_store_memory):
                yield {}


class _RayWorkers:
    """The cluster as `Workers`. Ray itself tries lost tasks again."""

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        tasks: Sequence[Any],
        shared: Any,
        slots: int,
        per_task: dict[str, Any],
    ) -> None:
        self.slots = slots
        self._ray = _ray()
        self._tasks = tasks
        self._work = self._ray.put((function, shared))
        options = {"num_cpus": 1, "max_retries": LOSSES, **per_task}
        self._task = self._ray.remote(_attempt).options(**options)
        self.under_way: dict[Any, int] = {}

    def submit(self, number: int) -> None:
        """Hand a task to Ray."""
        self.under_way[self._task.remote(self._work, self._tasks[number])] = number

    def finished(self) -> list[tuple[int, Outcome]]:
        """Wait for a task to end, well or badly."""
        ready, _ = self._ray.wait(list(self.under_way), num_returns=1)
        return [(self.under_way.pop(reference), self._outcome(reference)) for reference in ready]

    def cancel(self) -> None:
        """End what is still under way, by whatever the gathering was stopped."""
        for reference in self.under_way:
            self._ray.cancel(reference, force=True)

    def _outcome(self, reference: Any) -> Outcome:
        from ray.exceptions import RayError, RayTaskError

        try:
            outcome: Outcome = self._ray.get(reference)
        except RayTaskError as error:  # not one of the function: `attempt` returns those
            return Failure(_transport_error(error), str(error))
        except RayError as error:
            return Lost(str(error))
        return outcome


class _ActorCalls(_RayWorkers):
    """Calls of given actors as `Workers`; each actor takes one after the other."""

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        tasks: Sequence[Any],
        shared: Any,
        actors: Sequence[Any],
    ) -> None:
        super().__init__(function, tasks, shared, max(len(tasks), 1), {})
        self._actors = actors

    def submit(self, number: int) -> None:
        """Hand a task to its actor."""
        call = self._actors[number].attempt.remote(self._work, self._tasks[number])
        self.under_way[call] = number


class _Actor:
    """A Ray worker that stays."""

    def attempt(self, work: tuple[Callable[[Any, Any], Any], Any], task: Any) -> Success | Failure:
        return _attempt(work, task)


def _transport_error(error: Exception) -> InvalidInput:
    return InvalidInput(
        "a Ray worker could not open what it was sent, or not send its result: "
        + str(error).strip().splitlines()[-1],
        "Modules of functions and values have to be installed on every node, journeyman among them",
    )


def _attempt(work: tuple[Callable[[Any, Any], Any], Any], task: Any) -> Success | Failure:
    """The task of a Ray worker."""
    function, shared = work
    return attempt(function, task, shared)


@contextmanager
def _joined(address: str) -> Iterator[None]:
    """A connection to a cluster that runs."""
    with ExitStack() as stack:
        stack.callback(_ray().shutdown)
        try:
            _ray().init(address=address, **ONE_THREAD_WORKERS, **QUIET)
        except (ConnectionError, RuntimeError) as fault:
            raise InvalidInput(
                f"no Ray cluster can be joined at {address!r}: {fault}",
                "See that it runs, and that token_file, or RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH, "
                "name its token",
            ) from fault
        yield


@contextmanager
def _own_cluster(num_workers: int, object_store_memory: int | None) -> Iterator[None]:
    """A cluster on this machine that nobody else can use."""
    with TemporaryDirectory(prefix="jm-", dir=SHORT_PATH, ignore_cleanup_errors=True) as directory:
        token_file = Path(directory) / "token"
        token_file.touch(mode=0o600)
        token_file.write_text(secrets.token_hex(32), encoding="ascii")
        with _identified(token_file), ExitStack() as stack:
            stack.callback(_ray().shutdown)
            with environment({**ONE_THREAD, "RAY_USAGE_STATS_ENABLED": "0"}):
                _ray().init(
                    address="local",
                    num_cpus=num_workers,
                    object_store_memory=object_store_memory,
                    include_dashboard=False,
                    _temp_dir=directory,
                    **QUIET,
                )
            yield


@contextmanager
def _identified(token_file: str | Path | None) -> Iterator[None]:
    """Speak to clusters with the token in a file while the block runs, None: as before."""
    if token_file is None:
        yield
        return
    settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token_file)}
    with ExitStack() as stack:
        stack.callback(_reread_token)
        stack.enter_context(environment({**settings, "RAY_AUTH_TOKEN": ""}))
        _reread_token()
        yield


def _reread_token() -> None:
    """Ray reads its settings on import and keeps them; let it look again."""
    from ray._raylet import AuthenticationTokenLoader, Config

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


def _ray() -> Any:
    try:
        import ray
        from ray._raylet import AuthenticationTokenLoader  # noqa: F401
    except ImportError:
        raise MissingExtra("Ray 2.52 or later", "ray") from None
    return ray


def _require_fitting(
    address: str | None, token_file: str | Path | None, object_store_memory: int | None
) -> None:
    if address is None and token_file is not None:
        raise InvalidInput(
            "token_file without address",
            "Give the address of the cluster; one that is started here draws its own token",
        )
    if address is not None and object_store_memory is not None:
        raise InvalidInput(
            "object_store_memory of a cluster that runs already",
            "Leave it out: it is set where the nodes are started",
        )
