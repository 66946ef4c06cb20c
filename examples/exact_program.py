"""The exact program in a large world: both bounds on the optimum, call by call.

    python examples/exact_program.py [--size 128] [--accuracy 1e-5]
                                     [--output docs/images/bounds.svg]

A slippery grid with 64 costs and discount 0.99; the expert is known by plain means over 100
demonstrations, so no policy matches it exactly. `ColumnGeneration` runs until its policy is
certified to the accuracy. The chart has both bounds and their difference against seconds on the
clock; the table has the calls, and the numbers of the answer, which are recomputed from the data.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np
from line_chart import Axis, HorizontalLine, Panel, Series, line_chart

import journeyman as jm

MACRO_CELLS, DISCOUNT, DEMONSTRATIONS, HORIZON = 8, 0.99, 100, 690


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=128, help="cells along a side of the grid")
    parser.add_argument(
        "--accuracy", type=float, default=1e-5, help="of the certified gap per step"
    )
    parser.add_argument("--output", type=Path, default=Path("docs/images/bounds.svg"))
    options = parser.parse_args(arguments)
    problem = grid_problem(options.size)
    tolerance = options.accuracy * problem.world.effective_horizon
    jm.solve(problem, jm.ColumnGeneration(max_calls=2))  # compiled code is loaded
    answer = jm.solve(problem, jm.ColumnGeneration(tolerance=tolerance))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(picture(answer, options.accuracy), encoding="utf-8")
    sys.stdout.write(f"{table(answer)}\n\n{options.output}\n")


def grid_problem(size: int) -> jm.Apprenticeship:
    world, basis, expert = jm.gallery.grid(
        size, macro_cells=min(MACRO_CELLS, size), discount=DISCOUNT, seed=0
    )
    demos = jm.record(world, expert, trajectories=DEMONSTRATIONS, horizon=HORIZON, seed=0)
    means = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    return jm.Apprenticeship(world, basis, means)


def per_step(answer: jm.Answer) -> np.ndarray:
    """The trace with bounds on the gap per step, those times 1 - discount."""
    return answer.bounds_trace * [1.0, 1 - DISCOUNT, 1 - DISCOUNT]


def picture(answer: jm.Answer, accuracy: float) -> str:
    """Bounds and their difference against seconds, side by side."""
    seconds, lower, upper = per_step(answer).T
    proven = lower > 0
    bounds = [Series("upper bound", seconds, upper)]
    if proven.any():
        bounds.append(Series("lower bound", seconds[proven], lower[proven]))
    axis = Axis("seconds")
    return line_chart(
        "The exact program, call by call",
        f"Both bounds on the least gap, and their difference, against seconds. After {upper.size} "
        f"calls they are {lower[-1]:.4g} and {upper[-1]:.4g}; until it is first positive, the "
        "lower bound is not shown.",
        [
            Panel("Bounds on the least gap", axis, Axis("gap per step", log=True), bounds),
            Panel(
                "What is certified", axis, Axis("upper - lower bound per step", log=True),
                [Series("difference", seconds, upper - lower)],
                [HorizontalLine("asked for", accuracy)],
            ),
        ],
    )  # fmt: skip


def table(answer: jm.Answer) -> str:
    """Every call, and the answer."""
    world = answer.problem.world
    rows = [f"{world}", "", f"{'call':>4}{'seconds':>9}{'lower':>11}{'upper':>11}{'certified':>11}"]
    for call, (seconds, lower, upper) in enumerate(per_step(answer), start=1):
        rows.append(f"{call:>4}{seconds:>9.2f}{lower:>11.7f}{upper:>11.7f}{upper - lower:>11.1e}")
    left = (answer.value - answer.lower_bound) * (1 - DISCOUNT)
    return "\n".join([*rows, "", f"{answer.status.name}, certified to {left:.1e}; {answer.engine}"])


if __name__ == "__main__":
    main()
