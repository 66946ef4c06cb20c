"""How many forward solves the methods that mix planned policies need for an accuracy.

    python examples/convergence_of_classics.py [--size 16] [--demonstrations 5] [--discount 0.95]
                                               [--accuracies 0.3 0.1 0.03 0.01 0.003]
                                               [--limit 4000]

A slippery grid with 16 region costs and an expert known from a few demonstrations. The accuracy is
that of the gap per step, (upper - lower bound)(1 - discount), of the class that a method was made
for: `EuclideanBall` for both methods of Abbeel and Ng, `Simplex` for MWAL; `ColumnGeneration`
(columns) solves either. `theorem` is the number of iterations after which MWAL has its accuracy
without looking. More than `--limit` solves are not waited for.
"""

import argparse
import os
import sys
from collections.abc import Sequence

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import journeyman as jm

ACCURACIES = [0.3, 0.1, 0.03, 0.01, 0.003]
COLUMNS = ("accuracy", "Projection", "MaxMargin", "columns", "MWAL", "theorem", "columns")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--demonstrations", type=int, default=5)
    parser.add_argument("--discount", type=float, default=0.95)
    parser.add_argument("--accuracies", type=float, nargs="+", default=ACCURACIES)
    parser.add_argument("--limit", type=int, default=4000, help="of forward solves")
    options = parser.parse_args(arguments)
    world, basis, expert = jm.gallery.grid(options.size, macro_cells=4, discount=options.discount)
    demos = jm.record(
        world, expert, trajectories=options.demonstrations,
        horizon=round(6 * world.effective_horizon), seed=0,
    )  # fmt: skip
    ball = jm.Apprenticeship(world, basis, demos, jm.EuclideanBall())
    simplex = jm.Apprenticeship(world, basis, demos, jm.Simplex())
    sys.stdout.write(f"{'':>10}{'EuclideanBall':>36}{'Simplex':>36}\n")
    sys.stdout.write("".join(f"{name:>{10 + 2 * (k > 0)}}" for k, name in enumerate(COLUMNS)))
    for accuracy in options.accuracies:
        numbers = [
            *solves_in_the_ball(ball, accuracy, options.limit),
            *solves_in_the_simplex(simplex, accuracy, options.limit),
        ]
        sys.stdout.write(f"\n{accuracy:>10g}" + "".join(f"{number:>12}" for number in numbers))
        sys.stdout.flush()
    sys.stdout.write("\n")


def solves_in_the_ball(problem: jm.Apprenticeship, accuracy: float, limit: int) -> list[str]:
    """Forward solves of the projection method, of max margin and of column generation."""
    asked = relative(problem, accuracy)
    solvers = [
        kind(asked, max_iterations=limit) for kind in (jm.solvers.Projection, jm.solvers.MaxMargin)
    ]
    return [*(solves(problem, one) for one in solvers), calls(problem, asked)]


def solves_in_the_simplex(problem: jm.Apprenticeship, accuracy: float, limit: int) -> list[str]:
    """Forward solves of MWAL, what its theorem asks for, and those of column generation."""
    asked = relative(problem, accuracy)
    solver = jm.solvers.MultiplicativeWeights(asked, max_iterations=limit)
    needed = f"{solver.iterations_needed(problem):,}"
    return [solves(problem, solver), needed, calls(problem, asked)]


def solves(problem: jm.Apprenticeship, solver: jm.solvers.Solver) -> str:
    """How many it took, or that the limit did not suffice."""
    answer = jm.solve(problem, solver)
    more = "> " if answer.status is jm.Status.STEP_LIMIT else ""
    return f"{more}{answer.work.forward_solves:,}"


def calls(problem: jm.Apprenticeship, asked: float) -> str:
    """Policies that column generation plans."""
    answer = jm.solve(problem, jm.ColumnGeneration(asked * problem.gap_scale))
    return f"{len(answer.bounds_trace):,}"


def relative(problem: jm.Apprenticeship, accuracy: float) -> float:
    """From an accuracy per step to a share of the trivial bound."""
    return accuracy * problem.effective_horizon / problem.gap_scale


if __name__ == "__main__":
    main()
