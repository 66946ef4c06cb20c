"""A reward that is a conjunction, learned from 64 short episodes, and tried in a new world.

    python examples/nonlinear_costs.py [--size 16] [--demonstrations 64] [--seed 1] [--picture F]

An objectworld (`jm.gallery.objectworld`): cells near an object of outer colour 1 are bad, but good
if one of outer colour 2 is nearer still. Three methods learn a cost from the same record: two that
make it a function of the features, and maximum entropy, whose cost is a combination of them.
Printed is what the policies that are optimal for these costs lose under the expert's own one, as a
share of what uniformly random actions lose, in the same world and in a new drawing of objects; then
the functions in words. The picture shows the costs.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small systems: threads only get in the way

import numpy as np

import journeyman as jm

METHODS: dict[str, jm.solvers.Solver] = {
    "Gaussian process": jm.solvers.GaussianProcessCosts(),
    "regression tree": jm.solvers.FeatureConstruction(),
    "maximum entropy": jm.solvers.MaximumEntropy(),
}
ELSEWHERE = 1000
MAP, GAP, TOP = 168, 24, 52
LOW, MIDDLE, HIGH = np.array([[0, 114, 178], [242, 241, 236], [200, 82, 0]])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--demonstrations", type=int, default=64, help="episodes of 8 steps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--picture", type=Path, help="an SVG file")
    options = parser.parse_args(arguments)
    here, there = (
        jm.gallery.objectworld(options.size, seed=seed)
        for seed in (options.seed, options.seed + ELSEWHERE)
    )
    demos = jm.record(
        here.world, here.expert, trajectories=options.demonstrations, horizon=8, seed=options.seed
    )
    problem = jm.Apprenticeship(here.world, here.basis, demos)
    maps = {"expert's own": [per_pair(one, one.cost) for one in (here, there)]}
    lines, words = [f"{'':<18}{'same world':>12}{'new world':>12}"], list[str]()
    for name, solver in METHODS.items():
        answer = jm.solve(problem, solver)
        maps[name] = [learned(answer, one) for one in (here, there)]
        shares = [loss(one, cost) for one, cost in zip((here, there), maps[name], strict=True)]
        lines.append(f"{name:<18}" + "".join(f"{share:>12.1%}" for share in shares))
        if answer.nonlinear is not None:
            words += ["", f"{name}:", answer.nonlinear.in_words()]
    sys.stdout.write("\n".join([*lines, *words]) + "\n")
    if options.picture is not None:
        options.picture.write_text(picture(maps, options.size), encoding="utf-8")


def per_pair(example: jm.gallery.HiddenCostExample, cost: np.ndarray) -> np.ndarray:
    return cost[example.world.pairs.states]


def learned(answer: jm.solvers.Answer, example: jm.gallery.HiddenCostExample) -> np.ndarray:
    """The cost that a method has learned, in any world with the same features."""
    if answer.nonlinear is not None:
        return answer.nonlinear.on(example.world, example.basis)
    return np.asarray(example.basis.on(example.world) @ answer.recovered)


def loss(example: jm.gallery.HiddenCostExample, cost: np.ndarray) -> float:
    world, own = example.world, example.cost
    policies = (jm.plan(world, cost).policy, jm.plan(world, own).policy, jm.Policy.uniform(world))
    paid, least, chance = (jm.expected_cost(world, one, own) for one in policies)
    return (paid - least) / (chance - least)


def picture(maps: dict[str, list[np.ndarray]], size: int) -> str:
    """Rows for the two worlds, a column for every cost, in units of its standard deviation."""
    width, height = GAP + len(maps) * (MAP + GAP), TOP + 2 * (MAP + GAP) + 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="system-ui,sans-serif" font-size="13">',
        "<title>Costs of every cell: the expert's own and three learned ones</title>",
        "<desc>Upper row: the world of the record. Lower row: a new drawing of objects. Blue cells "
        "are sought, orange ones avoided.</desc>",
        f'<rect width="{width}" height="{height}" fill="#fcfcfb"/>',
        f'<text x="{GAP}" y="20" fill="#5c5b57">Above: the world of the record. Below: a new one. '
        "Blue cells are sought, orange ones avoided.</text>",
    ]
    for column, (name, rows) in enumerate(maps.items()):
        left = GAP + column * (MAP + GAP)
        parts.append(f'<text x="{left}" y="{TOP - 8}" fill="#1c1c1a">{escape(name)}</text>')
        for row, cost in enumerate(rows):
            cells = cost.reshape(size * size, -1)[:, 0]
            levels = (cells - cells.mean()) / (cells.std() or 1.0)
            top = TOP + row * (MAP + GAP)
            squares: dict[str, str] = {}
            for k, level in enumerate(levels):
                corner = f"M{k % size} {k // size}h1v1h-1z"
                squares[colour(level)] = squares.get(colour(level), "") + corner
            parts.append(
                f'<g transform="translate({left} {top}) scale({MAP / size:g})" '
                'shape-rendering="crispEdges">'
            )
            parts += [f'<path fill="{fill}" d="{path}"/>' for fill, path in squares.items()]
            parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def colour(level: float) -> str:
    """From blue over white to orange, between two standard deviations below and above the mean."""
    share = min(abs(level) / 2, 1.0)
    mixed = MIDDLE + share * ((HIGH if level > 0 else LOW) - MIDDLE)
    return "#" + "".join(f"{round(float(part)):02x}" for part in mixed)


if __name__ == "__main__":
    main()
