"""An expert within known budgets and an unknown cost: what records prove, and what carries over.

    python -m benchmarks.inverse_constraints [--seeds 5] [--first-seed 0] [--episodes 10 100]

The set-up of Schlaginhaufen and Kamgarpour 2023 as far as it is known here: a 6x6 grid, discount
.9, actions that fail with .1, budgets of .02, costs in an l1, l2 or infinity ball. Assumed: a
failed action is replaced by a uniformly drawn one; one cost per cell; starts are uniform over the
first and the last row; there are two budgets, each on the share of the discounted time spent in
three cells of the middle (.02/(1 - discount) in discounted visits); hidden weights are drawn
uniformly and scaled to the sphere. Their expert is regularised by entropy, this one is optimal: it
randomises where a budget makes it. Their method descends on costs and prices; here both lie in a
set, and what holds for all of the set is proven.

*bound*: on the regret of the policy learned, to the best within the budgets, in percent of what
bounded costs allow; *regret*: its true one. *plain*: in how many worlds the same premise without
budgets is refuted. *lowered* (budgets smaller by a quarter), *changed* (actions fail with .5,
budgets twice as large): regret of the best policy for the cost in the middle of the set, in percent
of what the random policy within the budgets loses; *one*: for the cost of `ConstrainedInverse`.
*cloned*: of the cloned policy under the changed laws, whether it keeps the budgets or not. Medians
over worlds.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import journeyman as jm
from journeyman.arrays import FloatArray
from journeyman.gallery.grid_world import floor
from journeyman.policy import occupancy
from journeyman.problem.rational import RationalSet

SIZE, DISCOUNT, SHARE, LENGTH = 6, 0.9, 0.02, 100
REGIONS = (((2, 1), (2, 2), (3, 1)), ((2, 4), (3, 3), (3, 4)))
CLASSES: dict[str, Any] = {
    "l1": jm.costs.L1Ball, "l2": jm.EuclideanBall, "infinity": jm.InfinityBall,
}  # fmt: skip
NORMS = {"l1": 1, "l2": 2, "infinity": np.inf}
COLUMNS = (
    "bound", "regret", "plain", "lowered", "changed", "lowered, one", "changed, one", "cloned",
)  # fmt: skip


def world_with(slip: float) -> jm.World:
    starts = np.zeros((SIZE, SIZE))
    starts[[0, SIZE - 1]] = 1 / (2 * SIZE)
    return floor(SIZE, slip=slip, discount=DISCOUNT, initial=starts.ravel())


def budgets(world: jm.World, share: float = SHARE) -> tuple[jm.Budget, ...]:
    """At most so large a share of the discounted time in each region."""
    found = []
    for number, region in enumerate(REGIONS):
        inside = np.zeros(world.num_states)
        inside[[SIZE * row + column for row, column in region]] = 1
        found.append(jm.Budget(inside, share * world.effective_horizon, f"region {number}"))
    return tuple(found)


def best_within(world: jm.World, cost: FloatArray, limits: Sequence[jm.Budget]) -> jm.Policy:
    answer = jm.solve(jm.Forward(world, cost, limits), jm.LinearProgram())
    assert answer.status is jm.Status.OPTIMAL, answer.status
    return answer.policy


def total(world: jm.World, policy: jm.Policy, cost: FloatArray) -> float:
    return float(cost @ occupancy(world, policy).measure)


def elsewhere(
    world: jm.World, limits: Sequence[jm.Budget], cost: FloatArray, learned: FloatArray,
    cloned: jm.Policy,
) -> tuple[float, float]:  # fmt: skip
    """Percent of what the random policy loses, by the best policy for the learned cost and by the
    cloned one."""
    best = total(world, best_within(world, cost, limits), cost)
    problem = jm.Apprenticeship(
        world, jm.CostBasis(np.eye(world.num_states)), jm.ExpertExpectation(np.zeros(SIZE**2)),
        constraints=limits,
    )  # fmt: skip
    random = total(world, RationalSet.of(problem).random_policy, cost) - best
    policies = (best_within(world, learned, limits), cloned)
    first, second = (100 * (total(world, one, cost) - best) / random for one in policies)
    return first, second


def measured(name: str, seed: int, episodes: int) -> tuple[float, ...]:
    rng = np.random.default_rng([seed, episodes])
    world, basis = world_with(0.1), jm.CostBasis(np.eye(SIZE**2))
    weights = rng.uniform(-1, 1, SIZE**2)
    weights /= np.linalg.norm(weights, NORMS[name])
    cost, limits = np.asarray(basis.on(world) @ weights), budgets(world)
    expert = best_within(world, cost, limits)
    demos = jm.record(world, expert, trajectories=episodes, horizon=LENGTH, seed=rng)
    premise = jm.Rational(regret_per_step=1e-9)
    problem = jm.Apprenticeship(world, basis, demos, CLASSES[name](), limits, premise)
    plain = jm.Apprenticeship(world, basis, demos, CLASSES[name](), expert_is=premise)
    answer = jm.solve(problem)
    regret = jm.certify(problem, answer).regret
    assert regret is not None
    lost = total(world, answer.policy, cost) - total(world, expert, cost)
    if lost > regret.bound + 1e-6:
        raise AssertionError(f"{name}, seed {seed}: regret {lost}, bound {regret.bound}")
    middle = np.asarray(basis.on(world) @ RationalSet.of(problem).central_weights())
    cloned, other = jm.clone(demos, world), world_with(0.5)
    inverse = jm.solve(problem, jm.solvers.ConstrainedInverse())
    assert inverse.recovered is not None
    one, found, clone = np.asarray(basis.on(world) @ inverse.recovered), [], 0.0
    for learned in (middle, one):
        lowered, _ = elsewhere(world, budgets(world, 0.75 * SHARE), cost, learned, cloned)
        changed, clone = elsewhere(other, budgets(other, 2 * SHARE), cost, learned, cloned)
        found += [lowered, changed]
    unit, refuted = 100 / regret.trivial_bound, RationalSet.of(plain).is_refuted
    return unit * regret.bound, unit * lost, float(refuted), *found, clone


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, nargs="+", default=[10, 100])
    given = parser.parse_args(arguments)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    print(f"{'ball':<10}{'episodes':>9}" + "".join(f"{one:>14}" for one in COLUMNS))
    for name in CLASSES:
        for episodes in given.episodes:
            found = np.array([measured(name, seed, episodes) for seed in seeds])
            row = [f"{value:.3g}" for value in np.median(found, axis=0)]
            row[2] = f"{int(found[:, 2].sum())} of {len(seeds)}"
            print(f"{name:<10}{episodes:>9}" + "".join(f"{one:>14}" for one in row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
