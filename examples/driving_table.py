"""The bad driver of Syed and Schapire: who copies it, and who drives better.

    python examples/driving_table.py [--accuracy 0.002]

A car on a three-lane road (`jm.gallery.driving`) with three reward features; the published expert
drives at the middle speed and collides. Abbeel and Ng match its features, faults included. MWAL and
LPAL only refuse to be worse than it in any feature, so they may be better. The columns are expected
discounted totals of the features (more is better); `behind` is the largest shortfall in any of
them, `ahead` how much more than the expert's the sum of all three is. `LinearProgram` with
`Simplex` is LPAL and a second stage, which takes the best of LPAL's many optima.
"""

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np

import journeyman as jm

MATCHING = 1e-4
"""Accuracy of the methods that match features, as a share of the trivial bound."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accuracy", type=float, default=0.002, help="of MWAL")
    accuracy = parser.parse_args(arguments).accuracy
    world, basis, expert = jm.gallery.driving()
    ball = jm.Apprenticeship(world, basis, expert, jm.EuclideanBall())
    simplex = jm.Apprenticeship(world, basis, expert, jm.Simplex())
    rows = {"expert (published)": basis.as_given(expert.values)}
    for name, problem, solver in (
        ("Projection", ball, jm.solvers.Projection(MATCHING)),
        ("MaxMargin", ball, jm.solvers.MaxMargin(MATCHING)),
        ("MWAL", simplex, jm.solvers.MultiplicativeWeights(accuracy)),
        ("LPAL, two stages", simplex, jm.LinearProgram()),
    ):
        answer = jm.solve(problem, solver)
        rows[name] = basis.as_given(answer.occupancy.expectations(basis))
    sys.stdout.write(table(rows, basis.names))


def table(rows: dict[str, np.ndarray], names: Sequence[str]) -> str:
    """Features line by line, beside the first row's."""
    expert = next(iter(rows.values()))
    lines = ["".join([f"{'':<20}", *(f"{name:>14}" for name in (*names, "behind", "ahead"))])]
    for name, earned in rows.items():
        numbers = [
            *earned,
            max(0.0, float((expert - earned).max())),
            float((earned - expert).sum()),
        ]
        lines.append(
            "".join([f"{name:<20}", *(f"{round(number, 3) + 0.0:>14.3f}" for number in numbers)])
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
