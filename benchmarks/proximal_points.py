"""Proximal point imitation in small worlds after Viano, Kamoutsi, Neu, Krawczuk and Cevher (2022).

    river     6 states: swimming up succeeds 9 times in 10, what pays is at the far end
    states    2 states: a large reward now, and a risk of paying for it later
    tree      11 states: the first choice decides, 8 leaves return to the root
    sea       5 x 5: a diver who has to steer right all the time, pushed aside 1 time in 5
    windy     10 x 10 with gusts (`jm.gallery.windy_grid`)

Discount 0.99, of the windy grid 0.7. Every pair is a cost of its own, the class is `EuclideanBall`,
the expert is optimal for the hidden reward and leaves records of 100 steps. Printed is how well the
policies of methods do under the hidden reward, from 0 for uniformly random actions to 1 for the
expert; medians of the seeds, the worst one in brackets. Steps and seeds of the draws are those of
the record. *asked* are proximal points in the same world, asked by callables, ten large steps of
5,000 pairs; *offline* sees nothing but the records.

The worlds are those of the authors' code, as far as it says; the paper's figures have several
thousand environment steps on their axes, and neither they nor the peers in them are repeated here.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

import journeyman as jm
from benchmarks.machine import describe_machine
from benchmarks.successors import EveryPair, asked_by_callables
from journeyman.arrays import FloatArray

DISCOUNT, STEPS = 0.99, 100
RECORDS = (1, 5, 20)
Hidden = tuple[jm.World, FloatArray]
"""A world with the cost that nobody is told."""


def world_of(laws: FloatArray, cost: FloatArray) -> Hidden:
    """From (states x actions x states) and (states x actions), started in the first state."""
    states, actions, _ = laws.shape
    matrix = sparse.csr_array(laws.reshape(states * actions, states))
    offsets = np.arange(states + 1) * actions
    first = np.eye(states)[0]
    return jm.World(matrix, first, DISCOUNT, choice_offsets=offsets), cost.ravel()


def river() -> Hidden:
    laws, reward = np.zeros((6, 2, 6)), np.zeros((6, 2))
    laws[0, 0, [0, 1]] = 0.1, 0.9
    laws[0, 1, 0], reward[0, 1] = 1.0, 0.005
    for x in range(1, 5):
        laws[x, 0, [x - 1, x, x + 1]] = 0.05, 0.05, 0.9
    laws[5, 0, [4, 5]] = 0.1, 0.9
    reward[5, 0] = 0.9
    for x in range(1, 6):
        laws[x, 1, x - 1] = 1.0
    return world_of(laws, -reward)


def states() -> Hidden:
    laws = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])
    return world_of(laws, -np.array([[1.0, 6.0], [-3.0, -3.0]]))


def tree() -> Hidden:
    laws, reward = np.zeros((11, 2, 11)), np.zeros((11, 2))
    laws[0, 0, 1] = laws[0, 1, 2] = 1.0
    for x in (1, 2):
        for a in range(2):
            leaf = 3 + 4 * (x - 1) + 2 * a
            laws[x, a, [leaf, leaf + 1]] = 0.5
    reward[2] = 1.0
    laws[3:, :, 0] = 1.0
    return world_of(laws, -reward)


def sea(side: int = 5) -> Hidden:
    laws, reward = np.zeros((side * side, 2, side * side)), np.zeros((side * side, 2))
    for x in range(side * side):
        row, column = divmod(x, side)
        reward[x, 1] -= 0.01 / side
        if row == side - 1:
            laws[x, :, 0] = 1.0
            reward[x] += (1 + 0.01 / side) * (column == side - 1)
            continue
        for a, way in enumerate((-1, 1)):
            laws[x, a, (row + 1) * side + column] += 1 / side
            laws[x, a, (row + 1) * side + min(max(column + way, 0), side - 1)] += 1 - 1 / side
    return world_of(laws, -reward)


def windy() -> Hidden:
    world = jm.gallery.windy_grid().world
    costs = jm.gallery.windy_costs()
    return world, costs[world.pairs.states]


WORLDS: dict[str, Callable[[], Hidden]] = {
    "river": river, "states": states, "tree": tree, "sea": sea, "windy": windy,
}  # fmt: skip
METHODS = ("exact", "proximal points", "asked", "offline", "cloning")


def solved(problem: jm.Apprenticeship, method: str, seed: int) -> Any:
    """The policy of a method."""
    if method == "exact":
        return jm.solve(problem).policy
    if method == "proximal points":
        return jm.solve(problem, jm.solvers.ProximalPointImitation(max_iterations=50)).policy
    if method == "offline":
        return jm.solve(problem, jm.solvers.OfflineProximalImitation()).policy
    if method == "cloning":
        return jm.solve(problem, jm.solvers.BehaviourCloning()).policy
    world, question = problem.world, asked_by_callables(problem)
    solver = jm.solvers.ProximalPointImitation(
        EveryPair(world), step=50.0, max_iterations=10, samples=5000, seed=seed
    )
    law = jm.solve(question, solver).policy.probabilities(np.arange(world.num_states))
    return jm.Policy(law.ravel(), world.pairs.offsets)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", choices=list(WORLDS), default=list(WORLDS))
    options = parser.parse_args(arguments)
    print(describe_machine())
    print(f"{'':14}" + "".join(f"{name:>18}" for name in METHODS) + "   CPU s")
    for name in options.only:
        world, cost = WORLDS[name]()
        expert = jm.plan(world, cost).policy
        basis = jm.CostBasis(sparse.eye_array(world.num_pairs, format="csr"))
        ends = [jm.expected_cost(world, one, cost) for one in (jm.Policy.uniform(world), expert)]
        for count in RECORDS:
            cells, began = [], time.process_time()
            for method in METHODS:
                reached = []
                for seed in range(options.seeds):
                    demos = jm.record(world, expert, trajectories=count, horizon=STEPS, seed=seed)
                    problem = jm.Apprenticeship(world, basis, demos, jm.EuclideanBall())
                    paid = jm.expected_cost(world, solved(problem, method, seed), cost)
                    reached.append((ends[0] - paid) / (ends[0] - ends[1]))
                cells.append(f"{statistics.median(reached):10.3f} ({min(reached):.2f})")
            seconds = (time.process_time() - began) / options.seeds
            line = "".join(f"{cell:>18}" for cell in cells)
            print(f"{name:8}{count:4}  {line}{seconds:8.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
