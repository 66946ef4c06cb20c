"""What becomes of a shard, and the loop that gathers all outcomes in the order of the shards.

A shard succeeds, fails with an exception of the function, or is lost with its worker. Lost shards
are given out again; they bring their own seed, so it does not matter who computes them, or when.
Of several failures the one with the smallest number is raised, as a plain loop would do.
"""

import heapq
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

from journeyman.errors import ShardFailed
from journeyman.progress import Event, Observer, guarded

LOSSES = 3
"""How often a shard is given out again after its worker was lost."""


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
            error = ShardFailed(f"{type(error).__qualname__}: {error}")
        return cls(error, trace)


@dataclass(frozen=True)
class Lost:
    """The worker is gone, and the shard with it."""

    reason: str


Outcome = Success | Failure | Lost


def attempt(function: Callable[[Any, Any], Any], shard: Any, shared: Any) -> Success | Failure:
    """Run the function on a shard, on a worker."""
    try:
        return Success(function(shard, shared))
    except Exception as error:
        return Failure.of(error)


class Crew(Protocol):
    """Workers that take shards by number."""

    @property
    def slots(self) -> int:
        """How many shards can be under way at once."""

    def submit(self, number: int) -> None:
        """Give out a shard."""

    def finished(self) -> Iterable[tuple[int, Outcome]]:
        """Wait until there are outcomes, and return them."""


def gather(count: int, crew: Crew, losses: int, observer: Observer) -> list[Any]:
    """The results of shards 0..count-1 in this order; raises the first failure."""
    results: list[Any] = [None] * count
    lost: Counter[int] = Counter()
    waiting, under_way = list(range(count)), set[int]()
    end, ending = count, None  # shards from `end` on do not matter any more
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
    """The error, with a note that names its shard."""
    error.add_note(f"in shard {number} of 0..{count - 1}" + (f"; there:\n{trace}" if trace else ""))
    return error


def _error_of(ending: Failure | Lost, number: int, count: int) -> Exception:
    if isinstance(ending, Failure):
        return annotated(ending.error, number, count, ending.trace)
    error = ShardFailed(
        f"shard {number} was lost with its worker whenever it was tried, at last because "
        f"{ending.reason}. If memory ran out, use fewer workers or smaller shards; otherwise run "
        "the shard with Serial() to see what it does to its process."
    )
    return annotated(error, number, count)


class Progress:
    """Tells an observer how many shards are done."""

    def __init__(self, observer: Observer) -> None:
        self._observer = guarded(observer)
        self._started = time.monotonic()
        self._done = 0

    def step(self) -> None:
        self._done += 1
        self._observer(Event("shards", time.monotonic() - self._started, self._done))
