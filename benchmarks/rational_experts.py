"""What a premise about the expert's own cost buys: bounds on the regret, refutations, time, advice.

    python -m benchmarks.rational_experts tightness | noise | brown | scale | active [--seeds A B]

*tightness*, *noise*, *active*: 9x9 grid, moves slip to both sides with .15 each, 8 random one-hot
state costs, discount .9, uniform start, demonstrations of 100 steps; percent of 2N/(1 - discount).
*brown*: the set-up of Brown and Niekum 2018 (nine starts, one demonstration from each, weights of
1-norm at most 1) beside their published .95 value at risk, which is a posterior quantile and not a
bound. *scale*: `RationalProgram` beside `LinearProgram` on larger grids, in CPU seconds.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

import journeyman as jm
from journeyman.policy import extract, occupancy
from journeyman.problem.rational import RationalSet

LENGTH = 100
CLASSES: dict[str, tuple[Any, Callable[[np.random.Generator, int], Any]]] = {
    "infinity ball": (jm.InfinityBall, lambda rng, n: rng.uniform(-1, 1, n)),
    "Simplex": (jm.Simplex, lambda rng, n: rng.dirichlet(np.ones(n))),
}
PUBLISHED = {1: 0.94, 5: 0.26, 9: 0.14}
"""Value at risk of Brown and Niekum, by the number of demonstrations."""
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))


def grid(
    size: int, num_costs: int, rng: np.random.Generator, discount: float = 0.9, slip: float = 0.3
) -> tuple[jm.World, jm.CostBasis]:
    """A grid with a random one-hot cost per state and a uniform start."""
    count = size * size
    row, column = np.divmod(np.arange(count), size)
    pairs, states, chances = [], [], []
    for action in range(4):
        for move, chance in (
            (action, 1 - slip), ((action + 1) % 4, slip / 2), ((action + 3) % 4, slip / 2),
        ):  # fmt: skip
            down, right = MOVES[move]
            to = np.clip(row + down, 0, size - 1) * size + np.clip(column + right, 0, size - 1)
            pairs.append(np.arange(count) * 4 + action)
            states.append(to)
            chances.append(np.full(count, chance))
    law = sparse.csr_array(
        (np.concatenate(chances), (np.concatenate(pairs), np.concatenate(states))),
        shape=(4 * count, count),
    )
    which = rng.integers(0, num_costs, count)
    costs = sparse.csr_array((np.ones(count), (np.arange(count), which)), (count, num_costs))
    return jm.World(law, np.full(count, 1 / count), discount), jm.CostBasis(costs)


def minimax(given: RationalSet) -> tuple[jm.Policy, float, float]:
    """The policy of least certified regret, its bound, and what no policy is below."""
    answer = jm.solve(given.problem, jm.solvers.RationalProgram())
    found = answer.regret
    bound = found.bound if found is not None else 0.0
    return answer.policy, bound, found.lower_bound if found is not None else 0.0


def regret(problem: jm.Apprenticeship, policy: jm.Policy, weights: Any, best: Any) -> float:
    expectations = occupancy(problem.world, policy).expectations(problem.basis)
    return float(weights @ expectations - problem.world.initial @ best.values)


def one(seed: int, name: str, count: int, noise: float, declared: Callable[[Any], float]) -> Any:
    """Bound, true regret, R of the uniform policy and whether refuted, on one instance."""
    kind, drawn = CLASSES[name]
    rng = np.random.default_rng([16, seed])
    world, basis = grid(9, 8, rng)
    weights = drawn(rng, 8)
    best = jm.plan(world, basis.on(world) @ weights)
    noisy = (1 - noise) * best.policy.on(world) + noise * world.pairs.uniform
    demos = jm.record(world, extract(world, noisy), trajectories=count, horizon=LENGTH, seed=rng)
    cost = basis.on(world) @ weights
    advantages = cost - world.flow.adjoint(best.values)
    spent = float(np.maximum(advantages[demos.pairs_in(world)], 0.0).sum())
    premise = jm.Rational(regret_per_step=declared(spent) / demos.num_steps)
    problem = jm.Apprenticeship(world, basis, demos, kind(), expert_is=premise)
    given = RationalSet.of(problem)
    policy, bound, _ = minimax(given)
    lost = regret(problem, policy, weights, best)
    return problem, weights, best, bound, lost, given.uniform_bound.value, given.is_refuted


def tightness(seeds: range) -> None:
    scale = 20.0
    rows = [
        ("strict", 0.0, lambda spent: 0.0, (1, 5, 9, 50)),
        ("total .5 declared", 0.0, lambda spent: 0.5, (9, 50)),
        ("10 % random, 1.5x declared", 0.1, lambda spent: 1.5 * spent, (9, 50)),
    ]
    for name in CLASSES:
        for title, noise, declared, counts in rows:
            for count in counts:
                found = [one(seed, name, count, noise, declared) for seed in seeds]
                bounds = np.array([row[3] for row in found]) / scale
                lost = np.array([row[4] for row in found]) / scale
                broken = int((lost > bounds + 1e-9).sum())
                print(
                    f"{name:14} {title:28} {count:3} demonstrations: bound median "
                    f"{np.median(bounds):7.2%}, 75th percentile {np.quantile(bounds, 0.75):7.2%}, "
                    f"regret {np.median(lost):8.3%}, violations {broken}, refuted "
                    f"{sum(row[6] for row in found)} of {len(found)}",
                    flush=True,
                )
        ordinary, own = [], []
        for seed in seeds:
            problem, weights, best, _, lost, *_ = one(seed, name, 9, 0.0, lambda spent: 0.0)
            demos = problem.demonstrations
            plain = jm.Apprenticeship(problem.world, problem.basis, demos, problem.cost_class)
            policy = jm.solve(plain, jm.LinearProgram()).policy
            ordinary.append(regret(plain, policy, weights, best))
            own.append(lost)
        factor = np.median(ordinary) / np.median(own)
        print(
            f"{name:14} true regret at 9: {np.median(own) / scale:.3%}, of the exact program "
            f"without the premise {np.median(ordinary) / scale:.3%}: {factor:.1f} times as much",
            flush=True,
        )


def noise(seeds: range) -> None:
    """Strict optimality declared of experts with random actions."""
    for name in CLASSES:
        for share in (0.05, 1.0):
            for count in (1, 9, 50):
                found = [one(seed, name, count, share, lambda spent: 0.0) for seed in seeds]
                refuted = np.array([row[6] for row in found])
                false = np.array([row[4] > row[3] + 1e-9 for row in found]) & ~refuted
                low = np.array([row[5] / 20.0 for row in found])
                print(
                    f"{name:14} {share:4.0%} random {count:3} demonstrations: refuted "
                    f"{refuted.sum()} of {len(found)}; not refuted and bound false {false.sum()}; "
                    f"R(uniform) of those not refuted, median "
                    f"{np.median(low[~refuted]) if (~refuted).any() else 0.0:.2%}",
                    flush=True,
                )


def brown(seeds: range) -> None:
    starts = [row * 9 + column for row in (0, 4, 8) for column in (0, 4, 8)]
    found: dict[int, list[float]] = {count: [] for count in PUBLISHED}
    broken = 0
    for seed in seeds:
        rng = np.random.default_rng([2018, seed])
        world, basis = grid(9, 8, rng)
        initial = np.zeros(81)
        initial[starts] = 1 / 9
        world = jm.World(world.transition, initial, 0.9)
        weights = rng.normal(size=8)
        weights /= np.abs(weights).sum()
        best = jm.plan(world, basis.on(world) @ weights)
        shown = []
        for start in rng.permutation(starts):
            there = jm.World(world.transition, np.eye(81)[start], 0.9)
            shown.append(jm.record(there, best.policy, trajectories=1, horizon=LENGTH, seed=rng))
        for count in PUBLISHED:
            demos = jm.Demonstrations.concatenate(shown[:count])
            problem = jm.Apprenticeship(
                world, basis, demos, jm.L1Ball(), expert_is=jm.Rational(regret_per_step=0)
            )
            policy, bound, _ = minimax(RationalSet.of(problem))
            broken += regret(problem, policy, weights, best) > bound + 1e-9
            found[count].append(bound)
    for count, published in PUBLISHED.items():
        values = np.array(found[count])
        print(
            f"{count} demonstrations: bound median {np.median(values):.3f}, mean "
            f"{values.mean():.3f}, 95th percentile {np.quantile(values, 0.95):.3f}; published .95 "
            f"value at risk {published} (a posterior quantile); {len(values)} replicates",
        )
    print(f"violations {broken}")


def scale(sizes: Sequence[int], tolerance: float, slack: float) -> None:
    for size in sizes:
        num_costs, discount = (64, 0.99) if size >= 32 else (16, 0.95)
        rng = np.random.default_rng([64, size])
        world, basis = grid(size, num_costs, rng, discount)
        best = jm.plan(world, basis.on(world) @ rng.uniform(-1, 1, num_costs))
        for count in (9, 50):
            demos = jm.record(world, best.policy, trajectories=count, horizon=150, seed=rng)
            problem = jm.Apprenticeship(
                world, basis, demos, expert_is=jm.Rational(regret_per_step=0)
            )
            times = []
            for solver in (jm.LinearProgram(), jm.solvers.RationalProgram(tolerance, slack=slack)):
                started = time.process_time()
                answer = jm.solve(problem, solver)
                times.append(time.process_time() - started)
            found = answer.regret
            assert found is not None
            print(
                f"{size}x{size}, {num_costs} costs, {count} demonstrations: exact program "
                f"{times[0]:.1f} s, rational program {times[1]:.1f} s ({times[1] / times[0]:.1f}x, "
                f"test of the premise included), {answer.status.name}; bound "
                f"{found.bound / problem.gap_scale:.3%}, lower bound "
                f"{found.lower_bound / problem.gap_scale:.3%} of 2N/(1 - discount)",
                flush=True,
            )


def active(seeds: range) -> None:
    """Further demonstrations until the bound is half of that of five random ones."""
    for name, (kind, drawn) in CLASSES.items():
        counts: dict[str, list[float]] = {"advised": [], "random": []}
        for seed in seeds:
            rng = np.random.default_rng([20, seed])
            world, basis = grid(9, 8, rng)
            best = jm.plan(world, basis.on(world) @ drawn(rng, 8)).policy
            demos = jm.record(world, best, trajectories=5, horizon=LENGTH, seed=rng)
            counts["advised"].append(_until_half(world, basis, kind(), best, demos, seed, True))
            several = [_until_half(world, basis, kind(), best, demos, [seed, at], False)
                       for at in range(3)]  # fmt: skip
            counts["random"].append(float(np.mean(several)))
        advised, random = (float(np.median(one)) for one in counts.values())
        print(
            f"{name:14} advised starts {advised:g}, random starts {random:g} further "
            f"demonstrations (medians of {len(counts['advised'])}): {advised / random:.2f}x",
            flush=True,
        )


def _until_half(
    world: Any, basis: Any, kind: Any, best: Any, demos: Any, seed: Any, advised: bool
) -> float:
    rng, first = np.random.default_rng(seed), None
    for count in range(100):
        problem = jm.Apprenticeship(
            world, basis, demos, kind, expert_is=jm.Rational(regret_per_step=0)
        )
        given = RationalSet.of(problem)
        member = given.solved(None)[1]
        bound = given.least_regret(member)
        first = bound if first is None else first
        if bound <= first / 2:
            return float(count)
        start = int(rng.integers(world.num_states))
        if advised:
            start = int(np.argmax(given.openness(member)))
        there = jm.World(world.transition, np.eye(world.num_states)[start], world.discount)
        more = jm.record(there, best, trajectories=1, horizon=LENGTH, seed=rng)
        demos = jm.Demonstrations.concatenate([demos, more])
    return 100.0


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["tightness", "noise", "brown", "scale", "active"])
    parser.add_argument(
        "--seeds", type=int, nargs=2, default=(0, 40), help="first, and behind last"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32, 64])
    parser.add_argument("--tolerance", type=float, default=1e-7, help="of the rational program")
    parser.add_argument("--slack", type=float, default=0.01, help="of the rational program")
    options = parser.parse_args(arguments)
    seeds = range(*options.seeds)
    if options.what == "scale":
        scale(options.sizes, options.tolerance, options.slack)
    else:
        {"tightness": tightness, "noise": noise, "brown": brown, "active": active}[options.what](
            seeds
        )


if __name__ == "__main__":
    main(sys.argv[1:])
