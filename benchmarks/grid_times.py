"""Time against the size of region grids: IM-REINFORCE, IM-TRPO and the exact program (LPAL).

After Ho, Gupta and Ermon 2016; `benchmarks.region_grids` has the world and the expert, whose 10,000
steps were recorded. "reached" is (J_uniform - J)/(J_uniform - J_exact), where J is the gap on the
data by exact evaluation: 0 for the uniform policy, 1 for the least gap, which `jm.solve` finds.
Medians over seeds; times are CPU seconds of one thread, compiled code loaded, from the problem to
the policy and both bounds.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import journeyman as jm
from benchmarks.machine import describe_machine
from benchmarks.region_grids import RegionGrid

SIZES = (16, 32, 64, 128, 256)
SAMPLES = 10_000


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=200)
    options = parser.parse_args(arguments)
    methods: dict[str, jm.solvers.Solver] = {
        "IM-TRPO": jm.solvers.ImitationTrustRegion(max_iterations=options.iterations),
        "IM-REINFORCE": jm.solvers.ImitationReinforce(max_iterations=options.iterations),
    }
    _load(methods)
    print(
        f"Region grids, medians of {options.seeds} seeds, at most {options.iterations} iterations"
    )
    print(
        f"{'grid':>9} {'method':14}{'reached':>9}{'worst':>9}{'iterations':>12}{'seconds':>9}"
        f"{'exact':>9}"
    )
    for size in options.sizes:
        _rows(size, options.seeds, methods)


def _rows(size: int, seeds: int, methods: dict[str, jm.solvers.Solver]) -> None:
    shares: dict[str, list[float]] = {name: [] for name in methods}
    counts: dict[str, list[float]] = {name: [] for name in methods}
    seconds: dict[str, list[float]] = {name: [] for name in (*methods, "exact")}
    for seed in range(seeds):
        problem = RegionGrid(size, seed).demonstrated(SAMPLES)
        exact, spent = _timed(problem, None)
        seconds["exact"].append(spent)
        uniform = problem.gap(jm.Policy.uniform(problem.world))
        for name, method in methods.items():
            answer, spent = _timed(problem, method)
            shares[name].append((uniform - answer.value) / (uniform - exact.value))
            counts[name].append(answer.work.iterations if answer.work else 0)
            seconds[name].append(spent)
    for name in methods:
        print(
            f"{size:>4} x {size:<3} {name:14}{statistics.median(shares[name]):>9.4f}"
            f"{min(shares[name]):>9.4f}{statistics.median(counts[name]):>12.0f}"
            f"{statistics.median(seconds[name]):>9.2f}{statistics.median(seconds['exact']):>9.2f}",
            flush=True,
        )


def _timed(problem: jm.Apprenticeship, method: jm.solvers.Solver | None) -> tuple[jm.Answer, float]:
    started = time.process_time()
    answer = jm.solve(problem, method)
    return answer, time.process_time() - started


def _load(methods: dict[str, jm.solvers.Solver]) -> None:
    """Whatever is loaded or compiled once is not measured."""
    problem = RegionGrid(8, 0).demonstrated(SAMPLES)
    for method in (None, *methods.values()):
        jm.solve(problem, method, time_limit=1.0)


if __name__ == "__main__":
    print(describe_machine())
    main(sys.argv[1:])
