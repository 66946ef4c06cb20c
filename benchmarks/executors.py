"""What executors cost: tasks of about a second, one worker, beside a plain loop.

`make bench-ray` runs it where Ray is installed; elsewhere Ray's row is left out, and said so.
*tasks* is the processor time of the tasks, *outside* what passes on the clock while none of them
runs (sending the shared array, handing out, collecting), *ratio* the sum of both beside that of the
loop: what one would see on a machine with nothing else to do. Starting workers is shown apart. The
last column is the time on the clock for a task that does nothing.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import journeyman as jm

EMPTY = 200
"""Number of tasks that do nothing."""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10, help="tasks of a second each")
    parser.add_argument("--megabytes", type=int, default=80, help="size of the shared array")
    options = parser.parse_args(arguments)
    rounds = calibrated_rounds()
    tasks = [(seed, rounds) for seed in jm.execution.seeds_of(0, options.tasks)]
    shared = np.random.default_rng(0).random(options.megabytes * 2**17)
    print(f"{options.tasks} tasks of about 1 s CPU, {options.megabytes} MB shared, one worker")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, Ray {ray_version()}\n")
    print(f"{'':14}{'start s':>9}{'tasks s':>9}{'outside s':>11}{'ratio':>8}{'empty task ms':>15}")
    executors: list[Callable[[], Any]] = [jm.Serial, lambda: jm.Processes(1)]
    if ray_version() != "not installed":
        executors.append(lambda: jm.Ray(num_workers=1))
    reference = None
    for make in executors:
        row = measured(make, tasks, shared)
        reference = reference or row
        if row.results != reference.results:
            raise SystemExit(f"{row.name} has other bits")
        ratio = (row.inside + row.outside) / (reference.inside + reference.outside)
        print(
            f"{row.name:14}{row.start:>9.2f}{row.inside:>9.2f}{row.outside:>11.3f}{ratio:>8.3f}"
            f"{row.empty:>15.2f}"
        )


@dataclass(frozen=True)
class Row:
    """Seconds for starting, within tasks and outside of them; milliseconds of an empty task."""

    name: str
    results: list[float]
    start: float
    inside: float
    outside: float
    empty: float


def measured(make: Callable[[], Any], tasks: Sequence[Any], shared: Any) -> Row:
    started = time.perf_counter()
    with make() as executor:
        executor.map(do_nothing, [0])
        start = time.perf_counter() - started
        started = time.perf_counter()
        results, walls, inside = zip(
            *executor.map(work_a_second, tasks, shared=shared), strict=True
        )
        outside = time.perf_counter() - started - sum(walls)
        started = time.perf_counter()
        executor.map(do_nothing, range(EMPTY))
        empty = (time.perf_counter() - started) / EMPTY * 1000
    return Row(type(executor).__name__, list(results), start, sum(inside), outside, empty)


def work_a_second(
    task: tuple[np.random.SeedSequence, int], shared: Any
) -> tuple[float, float, float]:
    """A number that depends on every draw, and the seconds it took, by clock and processor."""
    started = time.perf_counter(), time.thread_time()
    seed, rounds = task
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(rounds):
        places = rng.integers(0, len(shared), 20_000)
        total += float(shared[places] @ rng.standard_normal(20_000))
    return total, time.perf_counter() - started[0], time.thread_time() - started[1]


def do_nothing(task: int, _: Any) -> int:
    return task


def calibrated_rounds() -> int:
    """How many rounds of `work_a_second` take a second of this processor."""
    shared = np.random.default_rng(0).random(10**7)
    started = time.thread_time()
    jm.Serial().map(work_a_second, [(np.random.SeedSequence(0), 500)], shared=shared)
    return max(1, round(500 / (time.thread_time() - started)))


def ray_version() -> str:
    try:
        return version("ray")
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main(sys.argv[1:])
