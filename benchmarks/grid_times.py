"""Time against the size of region grids: the exact program and the policy gradient methods.

After Ho, Gupta and Ermon 2016 (see `benchmarks.region_grids`), who report about ten minutes for
LPAL with a commercial engine at 256 x 256 and about four for IM-REINFORCE, on a machine of their
own. CPU seconds of one thread from the problem to the policy and both bounds; "share" is
(J_uniform - J)/(J_uniform - J_LPAL), where J is the gap of the policy: 1 is the optimum.
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

EXACT = "LPAL"
METHODS: dict[str, jm.Solver] = {
    EXACT: jm.ColumnGeneration(),
    "IM-REINFORCE": jm.ImitationReinforce(),
    "IM-TRPO": jm.ImitationTrustRegion(),
}
SAMPLES = 10_000
"""Recorded steps of the expert."""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[16, 32, 64, 128, 256])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    print(describe_machine())
    print(f"Region grids, medians of {options.seeds} seeds, {SAMPLES:,} recorded steps\n")
    print("size" + "".join(f"{name:>16} s   share" for name in METHODS))
    for size in options.sizes:
        trials = [_trial(size, seed) for seed in range(options.seeds)]
        medians = [
            [statistics.median(trial[name][part] for trial in trials) for part in range(2)]
            for name in METHODS
        ]
        print(f"{size:4}" + "".join(f"{s:18.2f}{share:8.4f}" for s, share in medians), flush=True)


def _trial(size: int, seed: int) -> dict[str, tuple[float, float]]:
    """CPU seconds and share of the optimum, per method."""
    problem = RegionGrid(size, seed).demonstrated(SAMPLES)
    uniform = problem.gap(jm.Policy.uniform(problem.world))
    found: dict[str, tuple[float, float]] = {}
    least = uniform
    for name, solver in METHODS.items():
        started = time.process_time()
        answer = jm.solve(problem, solver, seed=seed)
        seconds = time.process_time() - started
        if name == EXACT:
            least = answer.value
        found[name] = seconds, (uniform - answer.value) / (uniform - least)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
