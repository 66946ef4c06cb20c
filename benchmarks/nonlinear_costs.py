"""Costs that are nonlinear in the features: what methods lose under the expert's own cost.

Levine, Popovic and Koltun (2010, 2011) record episodes of 8 steps in an objectworld, or on a
highway, learn a cost, and plan with it, in the same world and in a new drawing of objects. Printed
is the *expected value difference*: what the policy that is optimal for the learned cost pays more
than the optimal one under the expert's own cost, as a share of what uniformly random actions pay
more; medians over worlds, with the largest one in brackets. The clone (counts, uniform where there
is no record) has no cost to go elsewhere with.

    objectworld    indicators "closer than r" as features; the expert is optimal
    continuous     the same with distances
    erring         the same with indicators; the expert is soft-optimal at temperature 0.3
    linear         the same with a reward that is linear in the indicators
    highway        three lanes, four speeds, police
    linear highway

World k has seed k for its objects and for the record, the new one seed k + 1000. `seconds` are CPU
seconds of one thread for learning. `--csv` keeps every loss and spares those that it has already;
`examples/nonlinear_costs.py` draws them.
"""

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import journeyman as jm
from benchmarks.machine import describe_machine
from journeyman.execution import one_blas_thread

Make = Callable[[int, int], jm.gallery.HiddenCostExample]


WORLDS: dict[str, Make] = {
    "objectworld": lambda size, seed: jm.gallery.objectworld(size, seed=seed),
    "continuous": lambda size, seed: jm.gallery.objectworld(size, continuous=True, seed=seed),
    "erring": lambda size, seed: jm.gallery.objectworld(size, temperature=0.3, seed=seed),
    "linear": lambda size, seed: jm.gallery.objectworld(size, linear=True, seed=seed),
    "highway": lambda size, seed: jm.gallery.highway(2 * size, seed=seed),
    "linear highway": lambda size, seed: jm.gallery.highway(2 * size, seed=seed, linear=True),
}
METHODS: dict[str, jm.solvers.Solver] = {
    "GPIRL": jm.solvers.GaussianProcessCosts(),
    "FIRL": jm.solvers.FeatureConstruction(),
    "maximum entropy": jm.solvers.MaximumEntropy(),
    "maximum likelihood": jm.solvers.MaximumLikelihood(starts=1, max_iterations=30),
    "cloning": jm.solvers.BehaviourCloning(),
}
STEPS, ELSEWHERE = 8, 1000
Row = tuple[str, int, int, str, float, float, float]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--demonstrations", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--size", type=int, default=16, help="32 in the papers")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--csv", type=Path, help="every loss; what is in it is not done again")
    options = parser.parse_args(arguments)
    print(describe_machine())
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(f"size {options.size}, seeds {seeds[0]}..{seeds[-1]}; shares of what random actions lose")
    print(f"{'':<14}{'episodes':>9}  {'':<20}{'same world':>18}{'new world':>18}{'seconds':>9}")
    known = {} if options.csv is None else _kept(options.csv)
    cells = [(name, count) for name in options.worlds for count in options.demonstrations]
    with one_blas_thread():
        for seed in seeds:
            for cell in cells:
                missing = [one for one in options.methods if (*cell, seed, one) not in known]
                rows = _losses(options.size, *cell, seed, missing) if missing else []
                known |= {row[:4]: row for row in rows}
                if options.csv is not None:
                    _keep(options.csv, rows)
    for cell in cells:
        for method in options.methods:
            _show([known[*cell, seed, method] for seed in seeds])


def _losses(size: int, name: str, count: int, seed: int, methods: Sequence[str]) -> list[Row]:
    here, there = (WORLDS[name](size, one) for one in (seed, seed + ELSEWHERE))
    demos = jm.record(here.world, here.expert, trajectories=count, horizon=STEPS, seed=seed)
    problem = jm.Apprenticeship(here.world, here.basis, demos)
    rows: list[Row] = []
    for method in methods:
        start = time.process_time()
        answer = jm.solve(problem, METHODS[method])
        seconds = time.process_time() - start
        at_home, elsewhere = _policies(answer, here, there)
        rows.append(
            (name, count, seed, method, _loss(here, at_home), _loss(there, elsewhere), seconds)
        )
    return rows


def _policies(
    answer: jm.solvers.Answer,
    here: jm.gallery.HiddenCostExample,
    there: jm.gallery.HiddenCostExample,
) -> tuple[jm.Policy, jm.Policy | None]:
    """The optimal policies for the learned cost; of a method without one its own, here only."""
    if answer.nonlinear is not None:
        costs = [answer.nonlinear.on(one.world, one.basis) for one in (here, there)]
    elif answer.recovered is not None:
        costs = [np.asarray(one.basis.on(one.world) @ answer.recovered) for one in (here, there)]
    else:
        return answer.policy, None
    policies = [
        jm.plan(one.world, cost).policy for one, cost in zip((here, there), costs, strict=True)
    ]
    return policies[0], policies[1]


def _loss(example: jm.gallery.HiddenCostExample, policy: jm.Policy | None) -> float:
    if policy is None:
        return float("nan")
    world, cost = example.world, example.cost
    paid, least, chance = (
        jm.expected_cost(world, one, cost)
        for one in (policy, jm.plan(world, cost).policy, jm.Policy.uniform(world))
    )
    return (paid - least) / (chance - least)


def _show(rows: list[Row]) -> None:
    """A line for one method."""
    words = []
    for column in (4, 5):
        losses = np.array([row[column] for row in rows], dtype=float)
        plain = f"{np.median(losses):.1%} ({losses.max():.0%})"
        words.append("-" if np.isnan(losses).any() else plain)
    name, count, _, method = rows[0][:4]
    seconds = float(np.mean([row[6] for row in rows]))
    print(
        f"{name:<15}{count:>8}  {method:<20}{words[0]:>18}{words[1]:>18}{seconds:>9.2f}", flush=True
    )


HEADER = ("world", "episodes", "seed", "method", "here", "elsewhere", "seconds")


def _kept(path: Path) -> dict[tuple[str, int, int, str], Row]:
    if not path.exists():
        return {}
    with path.open(newline="") as stream:
        lines = list(csv.reader(stream))[1:]
    rows: list[Row] = [
        (name, int(count), int(seed), method, float(here), float(elsewhere), float(seconds))
        for name, count, seed, method, here, elsewhere, seconds in lines
    ]
    return {row[:4]: row for row in rows}


def _keep(path: Path, rows: list[Row]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as stream:
        writer = csv.writer(stream)
        if new:
            writer.writerow(HEADER)
        writer.writerows(rows)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
