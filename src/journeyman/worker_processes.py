"""Worker processes on this machine: fresh ones (spawned, not forked) that serve until dismissed.

A worker gets the briefing of a map once and shards one at a time, each through a pipe of its own,
so it is known which shard was lost when a worker dies. Nothing is left behind: workers ignore
Ctrl-C, which their parent handles by ending them, and end themselves when the parent is gone.
"""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

from journeyman.blas_threads import ONE_THREAD, environment
from journeyman.briefing import Briefing, Work, pack
from journeyman.errors import InvalidInput, ShardFailed
from journeyman.shard_outcome import Failure, Lost, Outcome, attempt

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
    shard: int | None = None


class ProcessCrew:
    """Up to `slots` processes; used as a `Crew` between `brief` and its end."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._workers: list[_Worker] = []
        self._lost: list[tuple[int, Outcome]] = []

    @contextmanager
    def brief(self, briefing: Briefing, shards: Sequence[Any]) -> Iterator[None]:
        """Take up a map; whoever is still at work when the block ends, by whatever, is ended."""
        self._briefing, self._shards, self._lost = briefing, shards, []
        for worker in [worker for worker in self._workers if not worker.process.is_alive()]:
            self._end(worker)
        try:
            while len(self._workers) < min(self.slots, len(shards)):
                self._workers.append(_start())
            yield
        finally:
            for worker in [worker for worker in self._workers if worker.shard is not None]:
                self._end(worker)

    def submit(self, number: int) -> None:
        """Give shard `number` to a free worker."""
        packed = pack(self._shards[number], f"shard {number}")
        worker = next((worker for worker in self._workers if worker.shard is None), None)
        if worker is None:
            worker = _start()
            self._workers.append(worker)
        worker.shard = number
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
            busy = [worker for worker in self._workers if worker.shard is not None]
            sources = [source for worker in busy for source in _sources(worker)]
            heard = set(wait(sources, timeout=0 if outcomes else None))
            for worker in busy:
                number = worker.shard
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
            if worker.shard is None:
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
        worker.shard = None
        return _unpacked(message)

    def _bury(self, worker: _Worker) -> Lost:
        """Take a dead worker off the list; one that never started is not worth a second try."""
        worker.process.join(PATIENCE)
        code = worker.process.exitcode
        self._end(worker)
        if not worker.ready and code is not None and code >= 0:
            raise ShardFailed(
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
    """The life of a worker: briefings and shards come in, outcomes go out."""
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
        shard = ForkingPickler.loads(packed)
    except Exception as error:
        return Failure.of(error)
    return attempt(function, shard, shared)


def _packed(outcome: Outcome) -> bytes:
    try:
        return pack(outcome, "the result")
    except InvalidInput as refusal:
        return pack(Failure.of(refusal), "the failure")
