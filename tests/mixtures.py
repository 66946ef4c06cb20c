"""A small world with two sides to every decision, as a world of callables, and naive twins."""

import numpy as np

import journeyman as jm

CLASSES = {
    "l1": jm.InfinityBall(),
    "l2": jm.EuclideanBall(),
    "simplex": jm.Simplex(),
    "scaled l1": jm.InfinityBall([1.0, 0.2, 3.0]),
    "scaled l2": jm.EuclideanBall([1.0, 0.2, 3.0]),
    "scaled simplex": jm.Simplex([1.0, 0.2, 3.0]),
}


class Tabulated:
    """Costs of pairs from a table, as a function of states and actions."""

    def __init__(self, table):
        self.table = table

    def __call__(self, states, actions):
        return self.table[states, actions]


def small_world(seed=0, discount=0.8, num_states=6, num_actions=3):
    """A world, its three costs in [0, 1] as functions and as a basis."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(num_states, 0.3), num_states * num_actions)
    world = jm.World(rows, rng.dirichlet(np.ones(num_states)), discount)
    table = rng.uniform(size=(num_states, num_actions, 3)) ** 3
    costs = jm.CostFunctions(Tabulated(table), ["a", "b", "c"], lowest=0, highest=1)
    return world, costs, jm.CostBasis(table.reshape(-1, 3))


def random_policies(world, count, seed=0):
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.full(world.pairs.max_actions, 0.3), (count, world.num_states))
    return [jm.Policy(law) for law in laws]


def expectations(world, basis, policies):
    return np.array([jm.occupancy(world, one).expectations(basis) for one in policies])


def naive_optimum(matrix, target, cost_class):
    """The least gap of a mixture, by a modelling language."""
    import cvxpy as cp

    theta = cp.Variable(len(matrix), nonneg=True)
    z = cp.multiply(cost_class.scaling(target.size), matrix.T @ theta - target)
    gap = {
        jm.InfinityBall: cp.norm1, jm.EuclideanBall: cp.norm2, jm.Simplex: cp.max,
    }[type(cost_class)](z)  # fmt: skip
    problem = cp.Problem(cp.Minimize(gap), [cp.sum(theta) == 1])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


class OnlySteps:
    """A world that can be sampled, and nothing else."""

    def __init__(self, world):
        self.num_states, self.num_actions = world.num_states, world.num_actions
        self.discount = world.discount
        self.draw_initial = world.draw_initial
        self.initial_probability = world.initial_probability
        self._world = world

    def step(self, rng, states, actions):
        laws = self._world.successors(states, actions)
        sums = np.cumsum(laws.probabilities, axis=1)
        drawn = (sums <= rng.random(len(states))[:, np.newaxis]).sum(axis=1)
        rows = np.arange(len(states))
        return laws.states[rows, np.minimum(drawn, laws.states.shape[1] - 1)]
