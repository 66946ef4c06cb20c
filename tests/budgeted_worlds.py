"""Random worlds with budgets, experts who are optimal within them, and the truth about them.

The truth is a linear program over occupancy measures written out densely: nothing of the package's
planning or evaluation is used.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize

import journeyman as jm
import rational_worlds
from journeyman.policy import extract
from journeyman.testing.random_worlds import Shape, random_world

KINDS = ("optimal", "mistakes", "soft", "as a whole")
SHAPES = (Shape.DENSE, Shape.SPARSE, Shape.ABSORBING, Shape.RAGGED, Shape.UNREACHABLE)


@dataclass(frozen=True)
class Instance:
    """A problem, the expert's own cost per pair, and the least cost within the budgets."""

    kind: str
    problem: jm.Apprenticeship
    weights: np.ndarray
    cost: np.ndarray
    least: float
    prices: np.ndarray
    measure: np.ndarray
    expert: jm.Policy

    def regret(self, policy):
        """J(policy) less the least cost within the budgets, under the expert's own cost."""
        world = self.problem.world
        return rational_worlds.cost_of_policy(world, policy, self.cost) - self.least


def best_within(world, cost, matrix, limits):
    """The least cost, a measure that has it, and prices of the budgets."""
    flow = np.zeros((world.num_states, world.num_pairs))
    flow[world.pairs.states, np.arange(world.num_pairs)] = 1
    flow -= world.discount * world.transition.toarray().T
    found = optimize.linprog(
        cost, matrix.T, limits, flow, world.initial, bounds=(0, None), method="highs"
    )
    assert found.status == 0, found.message
    return found.fun, np.maximum(found.x, 0.0), np.maximum(-found.ineqlin.marginals, 0.0)


def budgets_of(world, cost, rng):
    """One to three budgets: tight, loose or just enough, that some policy keeps with a rest."""
    count = int(rng.integers(1, 4))
    matrix = rng.uniform(-1, 1, (world.num_pairs, count))
    if rng.random() < 0.5:  # a resource that some pairs use
        matrix = (rng.random((world.num_pairs, count)) < 0.3).astype(float)
    if rng.random() < 0.1:  # one whose price can cancel the cost
        matrix[:, 0] = -cost
    none = np.full(count, 1e6)
    free = best_within(world, cost, matrix, none)[1]
    shares = rng.uniform(0, 1, count)
    inside = rng.dirichlet(np.ones(2))
    ends = [best_within(world, matrix[:, j], matrix, none)[1] for j in range(count)]
    middle = inside[0] * np.mean(ends, axis=0) + inside[1] * free
    limits = matrix.T @ middle + 0.2 * shares * np.abs(matrix.T @ (free - middle)) + 1e-3
    return tuple(
        jm.Budget(matrix[:, j], float(limits[j]), f"resource {j}") for j in range(count)
    ), matrix, limits  # fmt: skip


def soft_prices(world, cost, matrix, limits, temperature):
    """Prices of the soft problem within the budgets, as exactly as an optimiser finds them."""

    def dual(prices):
        found = jm.policy.soft_plan(world, cost + matrix @ prices, temperature=temperature)
        visits = jm.policy.occupancy(world, found.policy).measure
        value = world.initial @ found.values - limits @ prices
        return -value, limits - matrix.T @ visits

    start = np.zeros(limits.size)
    return optimize.minimize(
        dual, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * limits.size
    ).x


def recorded(world, expert, rng, count, length):
    """Episodes of a policy from the start."""
    return jm.record(world, expert, trajectories=count, horizon=length, seed=rng)


def instance(seed, kind=None):
    """A random instance: world, cost class, budgets, discount and number of episodes vary."""
    rng = np.random.default_rng([2304, seed])
    kind = KINDS[seed % len(KINDS)] if kind is None else kind
    discount = float(rng.choice(rational_worlds.DISCOUNTS))
    num_costs, count = int(rng.integers(2, 6)), int(rng.choice(rational_worlds.COUNTS))
    name = rational_worlds.CLASSES[seed % len(rational_worlds.CLASSES)]
    cost_class = rational_worlds.cost_class_of(name, num_costs, seed)
    if rng.random() < 0.4:
        world, basis = rational_worlds.small_grid(rng, discount, num_costs)
    else:
        world = random_world(
            rng, SHAPES[rng.integers(len(SHAPES))], num_states=int(rng.integers(2, 9)),
            num_actions=int(rng.integers(2, 4)), discount=discount,
        )  # fmt: skip
        basis = jm.CostBasis(rng.uniform(-1, 1, (world.num_pairs, num_costs)))
    weights = rational_worlds.one_of(cost_class, num_costs, rng)
    cost = np.asarray(basis.on(world) @ weights)
    budgets, matrix, limits = budgets_of(world, cost, rng)
    least, measure, prices = best_within(world, cost, matrix, limits)
    premise, law = jm.Rational(regret_per_step=0), np.where(measure > 1e-9, measure, 0.0)
    if kind == "soft":
        temperature = float(rng.choice([0.001, 0.01]))
        prices = soft_prices(world, cost, matrix, limits, temperature)
        soft = jm.policy.soft_plan(world, cost + matrix @ prices, temperature=temperature)
        law, premise = soft.policy.on(world), jm.SoftRational(temperature=temperature)
    if kind == "mistakes":
        sizes = np.bincount(world.pairs.states, law)[world.pairs.states]
        law = law / np.where(sizes > 0, sizes, 1) + 0.1
    expert = extract(world, law)
    demos = recorded(world, expert, rng, count, int(rng.integers(1, 40)))
    if kind == "mistakes":
        advantages = rational_worlds.optimum(world, cost + matrix @ prices)[1]
        total = advantages[demos.pairs_in(world)].sum() * (1 + 1e-7) + 1e-9
        premise = jm.Rational(regret_per_step=total / demos.num_steps)
    if kind == "as a whole":
        premise = (premise, jm.NearlyOptimal(regret=0))
    problem = jm.Apprenticeship(world, basis, demos, cost_class, budgets, expert_is=premise)
    return Instance(kind, problem, weights, cost, least, prices, measure, expert)
