"""What certificates say with few demonstrations when nothing is declared about the expert.

    garnet           30 states, 3 actions, 3 successors a pair, 4 random costs, discount 0.95, a
                     random expert; infinity ball
    grid, simplex    slippery 8x8 grid, 16 costs, discount 0.95; `Simplex`
    grid, both ways  the same; infinity ball, 2^16 vertices

Demonstrations have 150 steps; `learn`, failure probability 0.05. Printed are medians over seeds of
the certified bound as a share of 2 N/(1 - discount), N the largest cost of the class in any pair,
what it was at most asked to be, how often the bound was below the true gap (known by exact
evaluation of the expert), and the estimate that was best most often.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

import journeyman as jm

ASKED = {
    "garnet": {50: 0.08, 200: 0.025, 2_000: 0.0035},
    "grid, simplex": {50: 0.16, 200: 0.08, 2_000: 0.015},
    "grid, both ways": {50: 0.36, 200: 0.18, 2_000: 0.036},
}
Instance = tuple[jm.World, jm.CostBasis, jm.Policy, jm.costs.CostClass]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--demonstrations", type=int, nargs="+", default=[50, 200, 2_000])
    parser.add_argument("--instances", nargs="+", choices=list(ASKED), default=list(ASKED))
    options = parser.parse_args(arguments)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(f"Few demonstrations, no premise about the expert (seeds {seeds[0]}..{seeds[-1]})")
    print(f"  {'instance':<18}{'demos':>7}{'share':>9}{'worst':>9}{'asked':>8}{'below truth':>13}")
    for name in options.instances:
        for count in options.demonstrations:
            _row(name, count, seeds)


def _row(name: str, count: int, seeds: range) -> None:
    shares, below, best = [], 0, Counter[str]()
    for seed in seeds:
        world, basis, expert, cost_class = INSTANCES[name](seed)
        demos = jm.record(world, expert, trajectories=count, horizon=150, seed=seed)
        certificate = jm.learn(world, basis, demos, cost_class=cost_class).certificate
        exact = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
        truth = jm.Apprenticeship(world, basis, exact, cost_class)
        below += certificate.bound < truth.gap(certificate.policy)
        largest = cost_class.pointwise_bound(basis.on(world))
        shares.append(certificate.bound / (2 * largest * world.effective_horizon))
        best[certificate.best.estimate] += 1
    share, asked = float(np.median(shares)), ASKED[name].get(count)
    limit = "" if asked is None else f"{asked:.2%}{' ' if share <= asked else '!'}"
    print(
        f"  {name:<18}{count:>7,}{share:>9.2%}{max(shares):>9.2%}{limit:>8}"
        f"{below:>9} of {len(shares)}   {best.most_common(1)[0][0]}",
        flush=True,
    )


def _garnet(seed: int) -> Instance:
    rng = np.random.default_rng([7, seed])
    states, actions = 30, 3
    rows = np.zeros((states * actions, states))
    for row in rows:
        row[rng.choice(states, 3, replace=False)] = rng.dirichlet(np.ones(3))
    world = jm.World(rows, rng.dirichlet(np.ones(states)), 0.95)
    basis = jm.CostBasis(rng.uniform(-1, 1, (states * actions, 4)))
    expert = jm.Policy(rng.dirichlet(np.full(actions, 0.3), size=states))
    return world, basis, expert, jm.InfinityBall()


def _grid(cost_class: jm.costs.CostClass) -> Callable[[int], Instance]:
    def instance(seed: int) -> Instance:
        world, basis, expert = jm.gallery.grid(8, seed=seed)
        return world, basis, expert, cost_class

    return instance


INSTANCES: dict[str, Callable[[int], Instance]] = {
    "garnet": _garnet,
    "grid, simplex": _grid(jm.Simplex()),
    "grid, both ways": _grid(jm.InfinityBall()),
}

if __name__ == "__main__":
    main(sys.argv[1:])
