"""The pictures of docs/reading-policies.md: a policy twice, a certificate, a trace, a comparison.

    python -P examples/plots.py [--size 8] [--output docs/images]

Needs the extra `plot`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import journeyman as jm

LAWS = [[0.9, 0.1, 0], [0, 0.7, 0.3], [1, 0, 0], [1, 0, 0]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    parser.add_argument("--size", type=int, default=8, help="of the grid")
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    for name, axes in pictures(options.size).items():
        path = options.output / f"plot-{name}.png"
        axes.figure.savefig(path, dpi=90)
        sys.stdout.write(f"{path}\n")


def pictures(size: int) -> dict[str, object]:
    """Axes by name, each in a figure of its own."""
    from matplotlib.figure import Figure

    def axes(width: float, height: float) -> object:
        return Figure(figsize=(width, height), layout="constrained").subplots()

    walls = [(3, 3), (3, 4), (4, 4)] if size > 5 else []
    world, basis, expert = jm.gallery.grid(size, walls=walls)
    demos = jm.record(world, expert, trajectories=500, horizon=120, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    answer = jm.solve(problem, jm.ColumnGeneration())
    pump = jm.World(
        LAWS, [1, 0, 0], 0.9, choice_offsets=[0, 1, 3, 4], observed_actions=[0, 0, 1, 1],
        state_names=["pump-ok", "pump-worn", "pump-broken"], action_names=["run", "replace"],
    )  # fmt: skip
    methods = {
        "linear program": jm.LinearProgram(), "weights": jm.solvers.MultiplicativeWeights(),
        "cloning": jm.solvers.BehaviourCloning(),
    }  # fmt: skip

    def recorded(seed: int) -> jm.Apprenticeship:
        return jm.Apprenticeship(
            world, basis, jm.record(world, expert, trajectories=500, horizon=120, seed=seed)
        )

    compared = jm.compare(recorded, methods, seeds=range(3), expert=expert)
    drawn = jm.Policy([1, 0.3, 0.7, 1], pump.pairs)
    return {
        "policy": jm.plot.policy(world, answer.policy, ax=axes(6.4, 5.4)),
        "policy-bars": jm.plot.policy(pump, drawn, ax=axes(6.4, 2.3)),
        "certificate": jm.certify(problem, answer).plot(ax=axes(7.0, 3.2)),
        "trace": answer.plot_trace(ax=axes(6.4, 3.4)),
        "comparison": compared.plot(ax=axes(7.0, 2.8)),
    }


if __name__ == "__main__":
    main()
