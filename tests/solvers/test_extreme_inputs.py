"""Every method on degenerate worlds and costs of any size: no exception or warning, true bounds.

Warnings are errors in all tests, so an overflow or an invalid value anywhere fails here.
"""

from itertools import cycle

import numpy as np
import pytest

import journeyman as jm


def corridor(length, discount):
    """Forwards and backwards from one end; a start in a single state."""
    rows = np.zeros((length, 2, length))
    for state in range(length):
        rows[state, 0, min(state + 1, length - 1)] = 1.0
        rows[state, 1, max(state - 1, 0)] = 1.0
    return jm.World(rows.reshape(2 * length, length), np.eye(length)[0], discount)


WORLDS = {
    "one pair": jm.World([[1.0]], [1.0], 0.9),
    "one state": jm.World(np.ones((3, 1)), [1.0], 0.99),
    "absorbed at the start": jm.World([[1, 0], [0, 1], [0, 1], [0, 1]], [0, 1], 0.95),
    "corridor": corridor(20, 0.9),
    "short memory": corridor(24, 0.01),
    "discount near one": corridor(8, 0.99999),
}
SIZES = [1e-99, 1e-50, 1.0, 1e50, 1e99]


def bases(world):
    ordinary = np.random.default_rng(0).uniform(-1, 1, (world.num_pairs, 2))
    mixed = ordinary.copy()
    mixed[1::2] *= 1e-200
    ends = np.zeros((world.num_pairs, 2))
    ends[0, 0] = ends[-1, 1] = 1.0
    yield 1.0, jm.CostBasis(np.zeros((world.num_pairs, 2)))
    yield 1.0, jm.CostBasis(ordinary * [1.0, 0.0])
    yield 1.0, jm.CostBasis(mixed)
    yield 1.0, jm.CostBasis(ends)
    yield 1e80, jm.CostBasis(ordinary * [1e-80, 1e80])
    for size in SIZES:
        yield size, jm.CostBasis(size * ordinary)


def over_features(method, **settings):
    def made(world):
        cells = min(4, world.num_states)
        return method(jm.features.partition(world, num_cells=cells), **settings)

    return made


METHODS = {
    "LinearProgram": lambda _: jm.LinearProgram(),
    "ColumnGeneration": lambda _: jm.ColumnGeneration(),
    "Projection": lambda _: jm.solvers.Projection(),
    "MaxMargin": lambda _: jm.solvers.MaxMargin(),
    "MultiplicativeWeights": lambda _: jm.solvers.MultiplicativeWeights(max_iterations=50),
    "MaximumEntropy": lambda _: jm.solvers.MaximumEntropy(),
    "ConstrainedInverse": lambda _: jm.solvers.ConstrainedInverse(),
    "MaximumLikelihood": lambda _: jm.solvers.MaximumLikelihood(max_iterations=50),
    "GaussianProcessCosts": lambda _: jm.solvers.GaussianProcessCosts(max_iterations=20),
    "FeatureConstruction": lambda _: jm.solvers.FeatureConstruction(max_iterations=2),
    "MaximumMarginPlanning": lambda _: jm.solvers.MaximumMarginPlanning(max_iterations=50),
    "ConsistentCosts": lambda _: jm.solvers.ConsistentCosts(max_iterations=50),
    "InverseProgram": lambda _: jm.solvers.InverseProgram(),
    "SampledInverseProgram": lambda _: jm.solvers.SampledInverseProgram(max_iterations=20),
    "PolicyMatching": lambda _: jm.solvers.PolicyMatching(max_iterations=20),
    "OccupancyMirrorDescent": lambda _: jm.solvers.OccupancyMirrorDescent(max_iterations=300),
    "PriorMirrorDescent": lambda _: jm.solvers.PriorMirrorDescent(max_iterations=300),
    "ProximalPointImitation": lambda _: jm.solvers.ProximalPointImitation(
        max_iterations=3, inner_iterations=40
    ),
    "OfflineProximalImitation": lambda _: jm.solvers.OfflineProximalImitation(inner_iterations=40),
    "StochasticSubgradient": over_features(jm.StochasticSubgradient, steps=2500),
    "ReducedProgram": over_features(jm.ReducedProgram),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("world", WORLDS)
def test_any_size_and_any_degenerate_world(world, method):
    world = WORLDS[world]
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=8, horizon=30, seed=0)
    classes = cycle([jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()])
    for (size, basis), cost_class in zip(bases(world), classes, strict=False):
        problem = jm.Apprenticeship(world, basis, demos, cost_class)
        answer = jm.solve(problem, METHODS[method](world))
        rounding = 1e-12 * size * world.effective_horizon
        assert np.isfinite(answer.value)
        assert answer.lower_bound <= answer.value + rounding
        assert np.isfinite(answer.policy.on(world)).all()
