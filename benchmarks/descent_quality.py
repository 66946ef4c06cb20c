"""How good SGD-AL is with its defaults, against the exact minimum of the same loss.

Slippery grids with 16 macro-cell costs, discount 0.95, uniform start, an expert that follows a
hidden cost and acts uniformly in 30 % of cases, 200 demonstrations of 150 steps (the trivial bound
is 40). For every seed: the least loss L* over the default features (ReducedProgram), the loss of
SGD-AL's average after 10 and 60 seconds on one core (a run ends early once its proven error is
within the second target), and the gap of its policy to the true expert by exact evaluation.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import numpy as np

import journeyman as jm

TRIVIAL = 40.0
EARLY, LATE = 10.0, 60.0


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[16, 32])
    parser.add_argument("--seeds", type=int, nargs="*", default=list(range(10)))
    options = parser.parse_args(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    print("SGD-AL with its defaults (64 cells x 4 actions, exact penalties)")
    for size in options.sizes:
        _report(size, options.seeds)


def _report(size: int, seeds: Sequence[int]) -> None:
    print(f"\n{size} x {size}: targets L - L* <= max(20 % of L*, 0.4) in 10 s, "
          "max(5 % of L*, 0.1) in 60 s")  # fmt: skip
    print(f"{'seed':>6}{'L*':>9}{'L, 10 s':>10}{'L, end':>9}{'end s':>8}{'proven':>9}{'gap':>8}")
    rows = []
    for seed in seeds:
        least, early, late, seconds, proven, gap = _run(size, seed)
        rows.append((least, early, late, gap))
        print(
            f"{seed:>6}{least:>9.3f}{early:>10.3f}{late:>9.3f}{seconds:>8.1f}{proven:>9.3f}{gap:>8.3f}"
        )
    least, early, late, gap = np.array(rows).T
    soon = (early - least <= np.maximum(0.2 * least, 0.01 * TRIVIAL)).sum()
    later = (late - least <= np.maximum(0.05 * least, 0.0025 * TRIVIAL)).sum()
    print(f"median{np.median(least):>9.3f}{np.median(early):>10.3f}{np.median(late):>9.3f}"
          f"{'':17}{np.median(gap):>8.3f}")  # fmt: skip
    print(f"targets met: {soon} of {len(rows)} in 10 s, {later} of {len(rows)} in 60 s")


def _run(size: int, seed: int) -> tuple[float, float, float, float, float, float]:
    world, basis, expert = jm.gallery.grid(size, macro_cells=4, seed=seed)
    demos = jm.record(world, expert, trajectories=200, horizon=150, seed=seed)
    problem = jm.Apprenticeship(world, basis, demos)
    truth = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    features = jm.features.partition(world, demos)
    best = jm.solve(problem, jm.ReducedProgram(features)).reduced
    assert best is not None
    jm.solve(problem, jm.StochasticSubgradient(features, steps=10))  # compile
    accuracy = 0.9 * max(0.05 * best.loss, 0.0025 * TRIVIAL)
    solver = jm.StochasticSubgradient(features, steps=10**9, accuracy=accuracy, time_limit=LATE)
    answer = jm.solve(problem, solver, observer=lambda event: None)
    assert answer.optimisation is not None
    assert answer.reduced is not None
    trace = answer.optimisation.trace
    early = [point.loss for point in trace if point.seconds <= EARLY][-1]
    gap = jm.Apprenticeship(world, basis, truth).gap(answer.occupancy)
    proven = answer.reduced.optimisation_error
    return best.loss, early, answer.reduced.loss, answer.solve_seconds, proven, gap


if __name__ == "__main__":
    main(sys.argv[1:])
