"""What it buys to know that the expert is deterministic, or stationary.

Instance: 9 x 9 grid, moves slip to either side with probability .15 each, 8 random one-hot costs of
states, discount .9, uniform start, demonstrations of 100 steps by an optimal policy of a random
cost; the policy of `learn`, failure probability .05. Printed are medians over seeds of the bound in
percent of 2N/(1 - discount), without a premise and with each, the true gap of the policy that was
learned with `Deterministic`, and how many bounds were below the truth (none may be).

    python -m benchmarks.known_laws --seeds 20

`--side 512` measures seconds at that size instead: certificates of a cloned policy, 4 costs.
"""

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

import journeyman as jm

SIDE, COSTS, SLIP, DISCOUNT, HORIZON = 9, 8, 0.3, 0.9, 100
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
PREMISES: dict[str, tuple[jm.Stationary | jm.Deterministic, ...]] = {
    "none": (),
    "stationary": (jm.Stationary(),),
    "deterministic": (jm.Deterministic(),),
}
CLASSES = {"infinity ball": jm.InfinityBall(), "Simplex": jm.Simplex()}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--demonstrations", type=int, nargs="+", default=[9, 20, 50])
    parser.add_argument("--side", type=int, help="measure seconds on a grid of this size")
    options = parser.parse_args(arguments)
    if options.side is not None:
        _seconds(options.side)
        return
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    print(f"{'class':14} {'demonstrations':>14} {'none':>7} {'stationary':>11} "
          f"{'deterministic':>14} {'true gap':>9} {'false':>6}")  # fmt: skip
    for name in CLASSES:
        for count in options.demonstrations:
            _row(name, count, seeds)


def _row(name: str, count: int, seeds: range) -> None:
    shares: dict[str, list[float]] = {premise: [] for premise in PREMISES}
    gaps, false = [], 0
    for seed in seeds:
        world, basis, expert = instance(seed, CLASSES[name].contains_zero)
        demos = jm.record(world, expert, trajectories=count, horizon=HORIZON, seed=seed)
        true = jm.policy.occupancy(world, expert).expectations(basis)
        for premise, declared in PREMISES.items():
            apprentice = jm.learn(world, basis, demos, cost_class=CLASSES[name], expert_is=declared)
            scale = apprentice.problem.gap_scale
            own = jm.policy.occupancy(world, apprentice.policy).expectations(basis)
            gap = CLASSES[name].gap(own - true)
            false += apprentice.certificate.bound < gap
            shares[premise].append(apprentice.certificate.bound / scale)
        gaps.append(gap / scale)
    none, stationary, deterministic = (100 * np.median(one) for one in shares.values())
    print(f"{name:14} {count:14} {none:6.1f}% {stationary:10.1f}% {deterministic:13.2f}% "
          f"{100 * np.median(gaps):8.2f}% {false:6}", flush=True)  # fmt: skip


def instance(seed: int, both_signs: bool) -> tuple[jm.World, jm.CostBasis, jm.Policy]:
    """A grid, its costs, and an expert that is optimal for a random one of them."""
    rng = np.random.default_rng(seed)
    law = np.zeros((SIDE * SIDE * 4, SIDE * SIDE))
    for state in range(SIDE * SIDE):
        for action in range(4):
            for turn, chance in ((0, 1 - SLIP), (1, SLIP / 2), (3, SLIP / 2)):
                down, right = MOVES[(action + turn) % 4]
                row = min(max(state // SIDE + down, 0), SIDE - 1)
                column = min(max(state % SIDE + right, 0), SIDE - 1)
                law[4 * state + action, row * SIDE + column] += chance
    world = jm.World(law, np.full(SIDE * SIDE, 1 / SIDE**2), DISCOUNT)
    basis = jm.CostBasis(np.eye(COSTS)[rng.integers(COSTS, size=SIDE * SIDE)])
    weights = rng.uniform(-1, 1, COSTS) if both_signs else rng.dirichlet(np.ones(COSTS))
    return world, basis, jm.plan(world, basis.on(world) @ weights).policy


def _seconds(side: int) -> None:
    world, basis, _ = jm.gallery.grid(side)
    few = jm.CostBasis(basis.on(world)[:, :4])
    expert = jm.plan(world, few.on(world) @ np.array([1.0, 0.5, -0.5, -1.0])).policy
    demos = jm.record(world, expert, trajectories=50, horizon=100, seed=0)
    policy = jm.clone(demos, world)
    for premise, declared in PREMISES.items():
        begun = time.perf_counter()
        problem = jm.Apprenticeship(world, few, demos, jm.EuclideanBall(), expert_is=declared)
        certificate = jm.certify(problem, policy)
        taken = time.perf_counter() - begun
        share = certificate.bound / problem.gap_scale
        print(f"{world.num_pairs} pairs, {premise}: {taken:.1f} s, {100 * share:.2f}%", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
