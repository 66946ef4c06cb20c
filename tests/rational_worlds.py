"""Random worlds with experts who satisfy a premise about their own cost, and the truth about them.

The truth is computed densely from the definitions: nothing of the package's planning or evaluation
is used.
"""

from dataclasses import dataclass

import numpy as np

import class_examples
import journeyman as jm
from journeyman.testing.random_worlds import Shape, random_world

KINDS = ("optimal", "mistakes", "odd steps", "soft", "as a whole")
CLASSES = ("infinity", "euclidean", "simplex", *class_examples.NAMES)
DISCOUNTS = (0.5, 0.8, 0.9, 0.95, 0.99)
COUNTS = (1, 2, 5, 9, 50)


@dataclass(frozen=True)
class Instance:
    """A problem, the expert's own cost per pair, its optimal values and advantages."""

    kind: str
    problem: jm.Apprenticeship
    weights: np.ndarray
    cost: np.ndarray
    values: np.ndarray
    advantages: np.ndarray

    def regret(self, policy):
        """J(policy) - J* under the expert's own cost."""
        world = self.problem.world
        return cost_of_policy(world, policy, self.cost) - world.initial @ self.values


def cost_of_policy(world, policy, cost):
    choice = np.asarray(policy.on(world))
    rows = choice[:, None] * world.transition.toarray()
    own = np.zeros((world.num_states, world.num_states))
    paid = np.zeros(world.num_states)
    np.add.at(own, world.pairs.states, rows)
    np.add.at(paid, world.pairs.states, choice * cost)
    return world.initial @ np.linalg.solve(np.eye(world.num_states) - world.discount * own, paid)


def optimum(world, cost):
    """Optimal values by policy iteration over dense matrices, and the advantages of all pairs."""
    law, states = world.transition.toarray(), world.pairs.states
    first = world.pairs.offsets[:-1]
    chosen = first.copy()
    for _ in range(1000):
        system = np.eye(world.num_states) - world.discount * law[chosen]
        values = np.linalg.solve(system, cost[chosen])
        q = cost + world.discount * law @ values
        best = np.minimum.reduceat(q, first)
        better = np.array([
            start + int(np.argmin(q[start:end]))
            for start, end in zip(first, world.pairs.offsets[1:], strict=True)
        ])  # fmt: skip
        improved = q[better] < values - 1e-12 * (1 + np.abs(values))
        if not improved.any():
            break
        chosen = np.where(improved, better, chosen)
    return values, np.maximum(q - best[states], 0.0)


def cost_class_of(name, num_costs, seed):
    named = {"infinity": jm.InfinityBall, "euclidean": jm.EuclideanBall, "simplex": jm.Simplex}
    if name not in named:
        return class_examples.example(name, num_costs, seed)
    scale = np.random.default_rng(seed).uniform(0.3, 2, num_costs) if seed % 3 == 0 else None
    return named[name](scale)


def one_of(cost_class, num_costs, rng):
    """Weights of the class: an extreme point, or a mixture of several."""
    points = [cost_class.worst_case(rng.normal(size=num_costs)) for _ in range(rng.integers(1, 5))]
    return rng.dirichlet(np.ones(len(points))) @ np.array(points)


def small_grid(rng, discount, num_costs):
    return grid(int(rng.integers(3, 6)), num_costs, rng, discount, float(rng.choice([0.0, 0.3])))


def grid(size, num_costs, rng, discount=0.9, slip=0.3):
    """A grid with one random one-hot cost per state, slips to both sides and a uniform start."""
    law = np.zeros((size * size * 4, size * size))
    moves = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    for state in range(size * size):
        i, j = divmod(state, size)
        for a in range(4):
            for d, p in ((a, 1 - slip), ((a + 1) % 4, slip / 2), ((a + 3) % 4, slip / 2)):
                k = min(max(i + moves[d][0], 0), size - 1)
                m = min(max(j + moves[d][1], 0), size - 1)
                law[4 * state + a, size * k + m] += p
    costs = np.zeros((size * size, num_costs))
    costs[np.arange(size * size), rng.integers(0, num_costs, size * size)] = 1
    start = np.full(size * size, size**-2.0)
    return jm.World(law, start, discount), jm.CostBasis(costs)


def acted(world, advantages, kind, rng, count, length, soft=None):
    """Episodes of an expert who breaks ties at random; with mistakes, or mistakes at odd steps."""
    pairs, law = world.pairs, world.transition.toarray()
    states, actions = [], []
    for _ in range(count):
        x = rng.choice(world.num_states, p=world.initial)
        seen, taken = [x], []
        for t in range(length):
            own = np.arange(pairs.offsets[x], pairs.offsets[x + 1])
            good = own[advantages[own] <= 1e-13]
            errs = kind == "mistakes" or (kind == "odd steps" and t % 2)
            s = rng.choice(own if errs and rng.random() < 0.3 else good)
            if soft is not None:
                s = rng.choice(own, p=soft[own] / soft[own].sum())
            x = rng.choice(world.num_states, p=law[s])
            taken.append(pairs.actions[s])
            seen.append(x)
        states.append(seen)
        actions.append(taken)
    return jm.Demonstrations.from_arrays(states, actions)


def instance(seed, kind=None):
    """A random instance: world, cost class, discount and number of demonstrations vary."""
    rng = np.random.default_rng([1606, seed])
    kind = KINDS[seed % len(KINDS)] if kind is None else kind
    discount, count = rng.choice(DISCOUNTS), int(rng.choice(COUNTS))
    num_costs = int(rng.integers(2, 6))
    cost_class = cost_class_of(CLASSES[seed % len(CLASSES)], num_costs, seed)
    if rng.random() < 0.4:
        world, basis = small_grid(rng, discount, num_costs)
    else:
        shapes = (Shape.DENSE, Shape.SPARSE, Shape.ABSORBING, Shape.RAGGED, Shape.UNREACHABLE)
        world = random_world(
            rng, shapes[rng.integers(len(shapes))], num_states=int(rng.integers(2, 9)),
            num_actions=int(rng.integers(2, 4)), discount=discount,
        )  # fmt: skip
        basis = jm.CostBasis(rng.uniform(-1, 1, (world.num_pairs, num_costs)))
    weights = one_of(cost_class, num_costs, rng)
    cost = np.asarray(basis.on(world) @ weights)
    values, advantages = optimum(world, cost)
    soft, premise = None, jm.Rational(regret_per_step=0)
    if kind == "soft":
        temperature = float(rng.choice([0.001, 0.01]))
        soft = jm.policy.soft_plan(world, cost, temperature=temperature).policy.on(world)
        premise = jm.SoftRational(temperature=temperature)
    demos = acted(world, advantages, kind, rng, count, int(rng.integers(1, 40)), soft)
    recorded = advantages[demos.pairs_in(world)]
    if kind in ("mistakes", "odd steps"):
        total = recorded.sum() * (1 + 1e-9) + 1e-12
        premise = jm.Rational(regret_per_step=total / demos.num_steps)
    if kind == "as a whole":
        premise = (jm.Rational(regret_per_step=0), jm.NearlyOptimal(regret=0))
    problem = jm.Apprenticeship(world, basis, demos, cost_class, expert_is=premise)
    return Instance(kind, problem, weights, cost, values, advantages)
