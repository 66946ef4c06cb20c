"""How well apprentices do with 1 to 100,000 recorded steps of the expert, on region grids.

After Ho, Gupta and Ermon 2016 (see `benchmarks.region_grids` for the world, the expert and the
measure: 0 is the uniform policy, 1 the expert, in a cost that no method knows). Medians over seeds,
each with its own hidden cost and demonstrations. Methods that maximise something else than this
number may exceed 1: `Simplex` asks for at least the expert's, not for a copy.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from examples.line_chart import Axis, Panel, Series, line_chart

import journeyman as jm
from benchmarks.machine import describe_machine
from benchmarks.region_grids import RegionGrid

METHODS: dict[str, jm.solvers.Solver] = {
    "LPAL (exact program)": jm.ColumnGeneration(),
    "IM-REINFORCE": jm.solvers.ImitationReinforce(),
    "IM-TRPO": jm.solvers.ImitationTrustRegion(),
    "MWAL": jm.solvers.MultiplicativeWeights(max_iterations=300),
    "projection": jm.solvers.Projection(max_iterations=300),
    "behaviour cloning": jm.solvers.BehaviourCloning(),
}
SAMPLES = tuple(10**power for power in range(6))
Table = dict[str, list[float]]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--samples", type=int, nargs="*", default=list(SAMPLES))
    parser.add_argument("--chart", type=Path, help="an SVG file to draw")
    options = parser.parse_args(arguments)
    print(describe_machine())
    print(f"Region grid {options.size} x {options.size}, medians of {options.seeds} seeds\n")
    print(f"{'recorded steps':22}" + "".join(f"{count:>10,}" for count in options.samples))
    found: Table = {}
    for name, solver in METHODS.items():
        found[name] = [
            _median(solver, options.size, count, options.seeds) for count in options.samples
        ]
        print(f"{name:22}" + "".join(f"{number:10.3f}" for number in found[name]), flush=True)
    if options.chart:
        options.chart.write_text(_chart(found, options.samples), encoding="utf-8")


def _median(solver: jm.solvers.Solver, size: int, samples: int, seeds: int) -> float:
    numbers = []
    for seed in range(seeds):
        grid = RegionGrid(size, seed)
        answer = jm.solve(grid.demonstrated(samples), solver, seed=seed)
        numbers.append(grid.performance(answer.policy))
    return statistics.median(numbers)


def _chart(found: Table, samples: Sequence[int]) -> str:
    series = [Series(name, samples, numbers) for name, numbers in found.items()]
    axes = Axis("recorded steps of the expert", log=True), Axis("0 uniform, 1 expert")
    panel = Panel("Performance in the hidden cost", *axes, series)
    words = "Performance rises with the number of recorded steps; the expert's is 1."
    return line_chart("Performance against expert samples", words, [panel])


if __name__ == "__main__":
    main(sys.argv[1:])
