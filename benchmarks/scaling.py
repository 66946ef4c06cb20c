"""How cost grows, in three charts: with the states of a world that is never enumerated, with the
states of the exact program, and with the workers that share the rows.

*large*: SGD-AL in networks of eight queues whose buffers grow from 2 to 99, at equal features.
*exact*: column generation on grids and garnets, certified to 1e-3 (1 - discount included).
*workers*: blocks of rows drawn by 1 to 2 processes, beside a plain loop, seconds on the clock.

Every run of the first two is a process of its own with one thread, and its numbers are CPU seconds.
`--charts DIRECTORY` writes the pictures of docs/scaling.md.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from examples.line_chart import Axis, Panel, Series, line_chart

import journeyman as jm
from benchmarks.exact_program import OURS, OWN_PATIENCE
from benchmarks.exact_program import Row as ExactRow
from benchmarks.large_worlds import features_of, in_fresh_process
from benchmarks.machine import describe_machine
from journeyman.problem.drawn import LEARNING
from journeyman.solvers.reduced.rows import _block

BUFFERS = (2, 4, 9, 20, 45, 99)
EXACT = {
    "grid, discount .95": [f"grid:{size}:8:0.95:1e-3" for size in (32, 64, 128, 256, 512)],
    "garnet, discount .99": [f"garnet:{size}:8:0.99:1e-3" for size in (1000, 10_000, 100_000)],
}
BLOCKS, BLOCK_ROWS = 48, 1 << 14
STATES = Axis("states", log=True)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["large", "exact", "workers"])
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--charts", type=Path, help="directory for the pictures")
    options = parser.parse_args(arguments)
    print(describe_machine())
    charts = {
        "large": lambda: large_chart(options.steps),
        "exact": exact_chart,
        "workers": workers_chart,
    }
    for part in options.parts:
        chart = charts[part]()
        if options.charts:
            (options.charts / f"scaling-{part}.svg").write_text(chart, encoding="utf-8")


def large_chart(steps: int) -> str:
    print(f"\n{'buffers':>8}{'states':>10}{'rows / CPU s':>14}{'peak MB':>9}")
    rows = []
    for buffer in BUFFERS:
        numbers = in_fresh_process(8, steps, buffer)
        rows.append(numbers)
        print(
            f"{buffer:>8}{numbers['states']:>10.2g}{numbers['rate']:>14.0f}{numbers['peak']:>9.0f}",
            flush=True,
        )
    states = [row["states"] for row in rows]
    speed = Series("rows of SGD-AL", states, [row["rate"] for row in rows])
    memory = Series("peak memory", states, [row["peak"] for row in rows])
    return line_chart(
        "SGD-AL from 6,561 to 10¹⁶ states",
        "Rows per second and peak memory of eight queues hardly change with the states.",
        [
            Panel("Speed", STATES, Axis("rows per CPU second", log=True), [speed]),
            Panel("Memory", STATES, Axis("MB, interpreter included", log=True), [memory]),
        ],
    )


def exact_chart() -> str:
    print(f"\n{'':28}{'states':>10}{'CPU s':>9}{'peak MB':>9}")
    times, peaks = [], []
    for name, instances in EXACT.items():
        states, seconds, memory = [], [], []
        for instance in instances:
            row = ExactRow(OURS, instance, OWN_PATIENCE, None).measured(1)
            kind, size = instance.split(":")[:2]
            states.append(int(size) ** 2 if kind == "grid" else int(size))
            seconds.append(row.seconds)
            memory.append(row.runs[0]["peak"] / 1e6)
            print(f"{instance:28}{states[-1]:>10}{seconds[-1]:>9.2f}{memory[-1]:>9.0f}", flush=True)
        slope = np.polyfit(np.log(states), np.log(seconds), 1)[0]
        print(f"{name}: seconds grow like n^{slope:.2f}")
        times.append(Series(name, states, seconds))
        peaks.append(Series(name, states, memory))
    return line_chart(
        "The exact program, certified to 1e-3",
        "CPU seconds and memory of column generation against states, both on logarithmic axes.",
        [
            Panel("Time", STATES, Axis("CPU seconds", log=True), times),
            Panel("Memory", STATES, Axis("MB above the loaded problem", log=True), peaks),
        ],
    )


def workers_chart() -> str:
    network = jm.gallery.queues(8)
    features = features_of(network)
    tasks = [(0, BLOCK_ROWS, LEARNING, block) for block in range(BLOCKS)]
    print(f"\n{BLOCKS} blocks of {BLOCK_ROWS} rows\n{'workers':>8}{'seconds':>9}{'times':>7}")
    alone, seconds = 0.0, []
    counts = range(os.cpu_count() or 1)
    for workers in (0, *(count + 1 for count in counts)):
        with jm.Processes(workers) if workers else jm.Serial() as executor:
            executor.map(_block, tasks[:2], shared=features)  # starts the workers, compiles
            started = time.perf_counter()
            executor.map(_block, tasks, shared=features)
            taken = time.perf_counter() - started
        alone = alone or taken
        seconds.append(taken)
        print(f"{workers or 'loop':>8}{taken:>9.2f}{alone / taken:>7.2f}", flush=True)
    ideal = [alone / max(workers, 1) for workers in range(len(seconds))]
    panel = Panel(
        f"{BLOCKS} blocks of rows", Axis("workers (0: a plain loop)"), Axis("seconds"),
        [Series("measured", range(len(seconds)), seconds),
         Series("ideal", range(len(ideal)), ideal)],
    )  # fmt: skip
    return line_chart("Rows drawn by several processes", "Seconds fall with workers.", [panel])


if __name__ == "__main__":
    main(sys.argv[1:])
