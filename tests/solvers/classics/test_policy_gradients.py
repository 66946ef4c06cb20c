"""Gradients of the smoothed gap: exact ones by finite differences, sampled ones by their mean."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.classics.policy_family import PolicyFamily
from journeyman.solvers.classics.policy_visits import (
    ExactEvaluator,
    RolloutEvaluator,
    default_horizon,
)
from journeyman.testing import Shape, random_problem
from journeyman.testing.random_worlds import random_policy

CLASSES = [jm.InfinityBall([1.0, 0.5, 2.0]), jm.EuclideanBall(), jm.Simplex([1.0, 3.0, 0.5])]


def differences(function, point, size=1e-6):
    steps = size * np.eye(point.size)
    return np.array([(function(point + e) - function(point - e)) / (2 * size) for e in steps])


@pytest.mark.parametrize("cost_class", CLASSES, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("temperature", [1e-3, 0.3, 10.0])
def test_the_smoothed_gap_is_near_the_gap_and_its_weights_are_its_gradient(cost_class, temperature):
    for z in np.random.default_rng(0).normal(size=(20, 3)):
        value, weights = cost_class.smoothed(z, temperature)
        error = cost_class.smoothing_error(3) * temperature
        above = isinstance(cost_class, jm.Simplex)
        off = value - cost_class.gap(z) if above else cost_class.gap(z) - value
        assert -1e-12 <= off <= error + 1e-12
        assert np.allclose(cost_class.admit(weights), weights)
        slopes = differences(lambda x: cost_class.smoothed(x, temperature)[0], z)
        assert np.allclose(slopes, weights, atol=1e-5 / temperature)


@pytest.mark.parametrize("kind", ["tabular", "log-linear"])
@pytest.mark.parametrize("shape", [Shape.RAGGED, Shape.ABSORBING, Shape.UNREACHABLE])
@pytest.mark.parametrize("cost_class", CLASSES, ids=lambda c: type(c).__name__)
def test_exact_gradients_agree_with_finite_differences(cost_class, shape, kind):
    problem = random_problem(1, cost_class, shape=shape)
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(problem.world.num_pairs, 3))
    family = PolicyFamily(
        problem.world, None if kind == "tabular" else jm.features.Features(columns)
    )
    theta = rng.normal(size=family.num_parameters)

    def objective(point):
        policy = jm.Policy(family.law(point), problem.world.pairs.offsets)
        difference = problem.difference(jm.occupancy(problem.world, policy).measure)
        return cost_class.smoothed(difference, 0.5)[0]

    visits = ExactEvaluator(problem).visits(family.law(theta))
    _, weights = cost_class.smoothed(visits.difference, 0.5)
    gradient = family.gradient(visits.law, visits.signal(problem.cost_of(weights)))
    assert np.allclose(gradient, differences(objective, theta), atol=1e-6)


def test_exact_changes_are_differences_of_expectations():
    problem = random_problem(0)
    evaluator = ExactEvaluator(problem)
    one, two = (random_policy(problem.world, seed) for seed in (1, 2))
    visits = evaluator.visits(one.per_pair)
    measures = [jm.occupancy(problem.world, policy).measure for policy in (one, two)]
    change = problem.cost_matrix.T @ (measures[1] - measures[0])
    assert np.allclose(visits.change(problem.cost_matrix, two.per_pair), change, atol=1e-8)


@pytest.mark.parametrize("shape", [Shape.RAGGED, Shape.ABSORBING])
def test_sampled_gradients_have_the_exact_one_as_their_mean(shape):
    """Up to the horizon, which leaves 1e-4 of the mass out here; 5 standard errors are allowed."""
    problem = random_problem(2, shape=shape, num_states=4, discount=0.7)
    family = PolicyFamily(problem.world)
    theta = np.random.default_rng(0).normal(size=family.num_parameters)
    law, weights = family.law(theta), np.array([1.0, -0.5, 0.3])
    cost = problem.cost_of(weights)
    exact = ExactEvaluator(problem).visits(law)
    wanted = family.gradient(law, exact.signal(cost))
    evaluator = RolloutEvaluator(problem, rollouts=2000, horizon=26, seed=0)
    drawn = [evaluator.visits(law) for _ in range(60)]
    for found, truth in (
        ([family.gradient(law, visits.signal(cost)) for visits in drawn], wanted),
        ([visits.measure for visits in drawn], exact.measure),
    ):
        mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
        assert (np.abs(mean - truth) <= 5 * error + 3e-4).all()
        assert np.abs(mean - truth).max() < 0.1 * np.abs(truth).max()


@pytest.mark.parametrize("shape", [Shape.RAGGED, Shape.ABSORBING])
def test_the_sampled_surrogate_has_the_sampled_gradient(shape):
    problem = random_problem(3, shape=shape)
    family = PolicyFamily(problem.world)
    theta = np.random.default_rng(1).normal(size=family.num_parameters)
    visits = RolloutEvaluator(problem, 15, None, 0).visits(family.law(theta))
    weights = np.array([0.2, 1.0, -0.4])
    slopes = differences(
        lambda point: visits.change(problem.cost_matrix, family.law(point)) @ weights, theta
    )
    gradient = family.gradient(visits.law, visits.signal(problem.cost_of(weights)))
    assert np.allclose(slopes, gradient, atol=1e-6)


def test_returns_are_discounted_sums_and_go_on_at_rest():
    """State 0 leads to state 1 by either action; state 1 is never left and costs 2 per step."""
    world = jm.World([[0, 1], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    basis = jm.CostBasis([[1.0], [3.0], [2.0]])
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0]))
    evaluator = RolloutEvaluator(problem, 4, 10, 0)
    visits = evaluator.visits(np.array([0.5, 0.5, 1.0]))
    first = problem.cost_matrix[visits.pairs[0], 0]
    assert np.allclose(visits.returns(problem.cost_matrix)[0, :, 0], first + 0.5 * 4)
    assert visits.measure[2] == pytest.approx(1.0)
    assert evaluator.steps == 4


def test_one_walk_has_no_baseline_and_the_horizon_follows_the_discount():
    problem = random_problem(0)
    visits = RolloutEvaluator(problem, 1, 5, 0).visits(problem.world.pairs.uniform)
    assert np.isfinite(visits.signal(problem.cost_of(np.ones(3)))).all()
    assert 0.5 ** default_horizon(0.5) <= 0.01 < 0.5 ** (default_horizon(0.5) - 1)


def test_the_baseline_of_a_walk_is_the_mean_of_the_others():
    problem = random_problem(4)
    visits = RolloutEvaluator(problem, 3, 6, 0).visits(problem.world.pairs.uniform)
    cost, discount = problem.cost_of(np.array([1.0, 2.0, -1.0])), problem.world.discount
    costs = cost[visits.pairs]
    left = np.array(
        [[discount ** np.arange(6 - t) @ costs[t:, k] for k in range(3)] for t in range(6)]
    )
    signal = np.zeros(problem.world.num_pairs)
    for t, k in np.ndindex(6, 3):
        others = [left[t, j] for j in range(3) if j != k]
        signal[visits.pairs[t, k]] += discount**t / 3 * (left[t, k] - np.mean(others))
    assert np.allclose(visits.signal(cost), signal)
