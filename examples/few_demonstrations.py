"""Behaviour cloning and GAIL with very few demonstrations: the true gap to the expert.

Cloning learns a law for every state it has seen and nothing about the others. GAIL asks for an
occupancy like the demonstrated one, with a discriminator over the costs' features or over single
pairs; it may use the world. The gap is measured against the expert's exact expectations, which no
method is shown, and divided by that of the uniform policy; medians over seeds.

    python examples/few_demonstrations.py [--size 6] [--seeds 20] [--horizon 40]
"""

import argparse
import os
import statistics
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import journeyman as jm

COUNTS = (1, 2, 3, 4)
METHODS = {
    "cloning": None,
    "GAIL, basis": jm.solvers.AdversarialImitation(max_iterations=40),
    "GAIL, tabular": jm.solvers.AdversarialImitation(tabular_discriminator=True, max_iterations=40),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--horizon", type=int, default=40)
    options = parser.parse_args()
    show(
        f"{options.size} x {options.size} grid, demonstrations of {options.horizon} steps, "
        f"medians of {options.seeds} seeds"
    )
    show("gap to the true expert / gap of the uniform policy")
    show(f"{'trajectories':>12}" + "".join(f"{name:>15}" for name in METHODS))
    for count in COUNTS:
        runs = [gaps(options.size, count, options.horizon, seed) for seed in range(options.seeds)]
        middle = [statistics.median(run[name] for run in runs) for name in METHODS]
        show(f"{count:>12}" + "".join(f"{number:>15.3f}" for number in middle))


def show(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def gaps(size: int, trajectories: int, horizon: int, seed: int) -> dict[str, float]:
    """The true gap of every method, relative to the uniform policy's."""
    world, basis, expert = jm.gallery.grid(
        size, macro_cells=3, initial=(0, 0), randomness=0.1, seed=seed
    )
    demos = jm.record(world, expert, trajectories=trajectories, horizon=horizon, seed=seed)
    shown = jm.Apprenticeship(world, basis, demos, jm.EuclideanBall())
    exact = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    truth = jm.Apprenticeship(world, basis, exact, jm.EuclideanBall())
    unit = truth.gap(jm.Policy.uniform(world))
    found = {
        name: jm.clone(demos, world) if method is None else jm.solve(shown, method).policy
        for name, method in METHODS.items()
    }
    return {name: truth.gap(policy) / unit for name, policy in found.items()}


if __name__ == "__main__":
    main()
