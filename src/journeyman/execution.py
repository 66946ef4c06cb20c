"""Work in shards: one function, many shards, results in their order, on whatever machine.

    executor.map(function, shards, shared=...) = [function(shard, shared) for shard in shards]

*Guarantee*: the results are equal to the last bit for every executor and every number of workers,
also when workers die on the way, provided that `function` depends on its two arguments only (its
random numbers come from a seed in the shard, see `seeds_of`) and does not write to `shared`.
Therefore the *number of shards belongs to the problem*, never to the machine: whoever cuts by the
number of cores gets other sums elsewhere. `sum_in_order` adds the parts in a fixed order.

Arithmetic uses one thread per worker. On processors of different makes the last bits may differ.

    >>> import journeyman as jm
    >>> jm.Serial().map(divmod, [17, 42], shared=5)
    [(3, 2), (8, 2)]
"""

import operator
import os
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from threading import Lock
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from journeyman.blas_threads import one_blas_thread
from journeyman.briefing import briefing
from journeyman.errors import InvalidInput
from journeyman.progress import Observer, quiet
from journeyman.shard_outcome import LOSSES, Progress, annotated, gather
from journeyman.worker_processes import ProcessCrew

Shard = TypeVar("Shard")
Result = TypeVar("Result")
Part = TypeVar("Part")


class Executor(Protocol):
    """Anything that maps a function over shards and returns the results in their order."""

    def map(
        self,
        function: Callable[[Shard, Any], Result],
        shards: Sequence[Shard],
        *,
        shared: Any = None,
    ) -> list[Result]: ...


class Serial:
    """One shard after the other, in this process."""

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
        function: Callable[[Shard, Any], Result],
        shards: Sequence[Shard],
        *,
        shared: Any = None,
    ) -> list[Result]:
        """`[function(shard, shared) for shard in shards]`; an error names its shard in a note."""
        results: list[Result] = []
        progress = Progress(self.observer)
        with one_blas_thread():
            for number, shard in enumerate(shards):
                try:
                    results.append(function(shard, shared))
                except Exception as error:
                    annotated(error, number, len(shards))
                    raise
                progress.step()
        return results


class Processes:
    """Shards in parallel, in processes of this machine.

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
        function: Callable[[Shard, Any], Result],
        shards: Sequence[Shard],
        *,
        shared: Any = None,
    ) -> list[Result]:
        """As `Serial.map`; a shard whose process dies is given to another one, three times."""
        if self._crew is None:
            with self:
                return self.map(function, shards, shared=shared)
        work = list(shards)
        with (
            self._one_at_a_time,
            briefing(function, shared) as packed,
            self._crew.brief(packed, work),
        ):
            return gather(len(work), self._crew, LOSSES, self.observer)


def seeds_of(seed: int | np.random.SeedSequence, num_shards: int) -> list[np.random.SeedSequence]:
    """One seed per shard, independent of each other; the first ones do not depend on the number.

    A seed sequence is left as it is, so that equal calls have equal answers.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    return [
        np.random.SeedSequence(
            root.entropy, spawn_key=(*root.spawn_key, number), pool_size=root.pool_size
        )
        for number in range(num_shards)
    ]


def shards_of(total: int, size: int) -> list[tuple[int, int]]:
    """0..total cut into (start, stop) of a fixed size, the last one may be shorter.

    >>> shards_of(10, 4)
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
