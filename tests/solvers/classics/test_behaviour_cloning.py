"""Behaviour cloning: frequencies, log-linear policies of maximum likelihood, cascading errors."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import approx_fprime

import journeyman as jm
from journeyman.progress import Event
from journeyman.solvers.classics.behaviour_cloning import DecisionLikelihood, unit_columns
from journeyman.testing import Shape, random_problem, random_world
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.solver_conformance import check_hyperparameters, check_limits
from solved_problems import DEMONSTRATED, optimum, solved_problem

CLASSES = [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()]


@cache
def demonstrated(seed=0, shape=Shape.RAGGED, **options):
    return random_problem(seed, shape=shape, trajectories=20, **options)


def random_features(problem, columns=4, seed=0):
    return np.random.default_rng(seed).normal(size=(problem.world.num_pairs, columns))


def test_with_features_it_keeps_its_limits():
    problem = demonstrated(1)
    solver = jm.solvers.BehaviourCloning(features=random_features(problem), tolerance=1e-12)
    check_hyperparameters(solver)
    check_limits(solver, problem)


def test_limits_end_the_descent_at_once_and_say_so():
    problem = demonstrated(1)
    solver = jm.solvers.BehaviourCloning(features=random_features(problem))
    late = jm.solve(problem, solver, time_limit=1e-9)
    short = jm.solve(
        problem, jm.solvers.BehaviourCloning(features=solver.features, max_iterations=1)
    )
    assert (late.status, late.work.iterations) == (jm.Status.TIME_LIMIT, 1)
    assert (short.status, short.work.iterations) == (jm.Status.STEP_LIMIT, 1)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("shape", list(Shape))
def test_counts_are_those_of_clone(shape, smoothing):
    problem = demonstrated(2, shape)
    answer = jm.solve(problem, jm.solvers.BehaviourCloning(smoothing))
    expected = jm.clone(problem.demonstrations, problem.world, smoothing=smoothing)
    np.testing.assert_array_equal(answer.policy.per_pair, expected.per_pair)
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert answer.work.expert_queries == answer.work.environment_steps == 0


@pytest.mark.parametrize("cost_class", CLASSES, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("name", DEMONSTRATED)
def test_nothing_beats_the_exact_optimum(name, cost_class):
    answer = jm.solve(solved_problem(name, cost_class), jm.solvers.BehaviourCloning())
    least = optimum(name, cost_class)
    slack = 1e-7 * answer.problem.gap_scale
    assert answer.lower_bound <= least + slack
    assert answer.value >= least - slack


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, jm.features.Features])
def test_one_feature_per_pair_gives_the_frequencies(kind):
    problem = demonstrated(3)
    columns = kind(np.eye(problem.world.num_pairs) * 7.0)
    solver = jm.solvers.BehaviourCloning(features=columns, ridge=1e-10, tolerance=1e-10)
    answer = jm.solve(problem, solver)
    counted = jm.clone(problem.demonstrations, problem.world)
    np.testing.assert_allclose(answer.policy.per_pair, counted.per_pair, atol=1e-4)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3]))
def test_the_slope_is_the_derivative(seed, smoothing):
    problem = demonstrated(seed % 8)
    loss, _ = likelihood_of(problem, seed, smoothing, ridge=0.2)
    theta = np.random.default_rng(seed).normal(size=4)
    value, slope = loss.value_and_slope(theta)
    numeric = approx_fprime(theta, lambda t: loss.value_and_slope(t)[0], 1e-7)
    np.testing.assert_allclose(slope, numeric, atol=3e-6)
    assert value >= 0


def likelihood_of(problem, seed, smoothing, ridge):
    matrix = unit_columns(random_features(problem, seed=seed))
    seen = problem.demonstrations.pairs_in(problem.world)
    return DecisionLikelihood.of(problem.world.pairs, matrix, seen, smoothing, ridge), matrix


@pytest.mark.parametrize(("smoothing", "ridge"), [(0.0, 0.05), (0.5, 1e-3), (0.5, 1e-7)])
@pytest.mark.parametrize("seed", range(3))
def test_observed_features_are_the_expected_ones(seed, smoothing, ridge):
    """The condition of maximum likelihood, from the answer's policy and nothing else."""
    problem = demonstrated(seed)
    features = random_features(problem, seed=seed) * [1.0, 1e3, 1e-3, 5.0]
    answer = jm.solve(
        problem, jm.solvers.BehaviourCloning(smoothing, features=features, ridge=ridge)
    )
    assert answer.status is jm.Status.CONVERGED
    columns, law, pairs = unit_columns(features), answer.policy.per_pair, problem.world.pairs
    seen = problem.demonstrations.pairs_in(problem.world)
    counts = np.bincount(seen, minlength=len(pairs)).astype(float)
    counts[pairs.spread(pairs.total(counts)) > 0] += smoothing
    expected = pairs.spread(pairs.total(counts)) * law
    missing = columns.T @ (counts - expected) / counts.sum()
    rises = columns - pairs.spread(pairs.total(columns * law[:, np.newaxis]))
    logs = np.log(law) - pairs.spread(pairs.total(law * np.log(law)))
    theta = np.linalg.lstsq(rises, logs, rcond=None)[0]
    assert np.abs(theta).max() > 0.1
    np.testing.assert_allclose(missing, ridge * theta, atol=np.sqrt(2e-8 * ridge))


def test_what_the_slope_proves_bounds_the_error():
    loss, _ = likelihood_of(demonstrated(4), 4, smoothing=0.1, ridge=0.1)
    rng = np.random.default_rng(0)
    theta = np.zeros(4)
    for _ in range(1000):
        theta = theta - 0.5 * loss.value_and_slope(theta)[1]
    least = loss.value_and_slope(theta)[0]
    for _ in range(20):
        value, slope = loss.value_and_slope(theta + rng.normal(size=4) * rng.exponential())
        assert 0 <= value - least <= loss.error(slope)


def test_a_feature_speaks_about_states_never_visited():
    """Two actions and one feature for the right one: five shown states teach all hundred."""
    world = jm.World(np.full((200, 100), 0.01), np.full(100, 0.01), 0.9, choice_offsets=None)
    right = np.arange(100) % 2
    basis = jm.CostBasis((world.pairs.actions != right[world.pairs.states]).astype(float))
    shown = jm.Demonstrations([3, 8, 1, 2, 9, 0], right[[3, 8, 1, 2, 9]], [0, 5])
    problem = jm.Apprenticeship(world, basis, shown)
    agreeing = (world.pairs.actions == right[world.pairs.states]).astype(float)
    by_counts = jm.solve(problem, jm.solvers.BehaviourCloning(0.0)).policy.per_pair
    by_feature = jm.solve(
        problem, jm.solvers.BehaviourCloning(0.0, features=agreeing)
    ).policy.per_pair
    assert np.isclose(by_counts, 0.5).sum() == 2 * 95
    assert (by_feature[agreeing == 1] > 0.99).all()


def test_huge_and_constant_features_do_no_harm():
    problem = demonstrated(5)
    plain = random_features(problem)
    matrix = np.column_stack([plain * 1e200, np.full(len(plain), 3.0), np.zeros(len(plain))])
    huge = jm.solve(problem, jm.solvers.BehaviourCloning(features=matrix))
    small = jm.solve(problem, jm.solvers.BehaviourCloning(features=plain))
    assert huge.status is jm.Status.CONVERGED
    np.testing.assert_allclose(huge.policy.per_pair, small.policy.per_pair, atol=1e-3)


def test_every_iteration_is_reported():
    problem = demonstrated(6)
    events: list[Event] = []
    solver = jm.solvers.BehaviourCloning(features=random_features(problem))
    answer = jm.solve(problem, solver, observer=events.append)
    losses = [event.objective for event in events]
    assert len(losses) == answer.work.iterations > 2
    assert losses == sorted(losses, reverse=True)


@given(st.integers(0, 10**6))
def test_the_gap_is_bounded_by_errors_on_the_experts_states(seed):
    """The guarantee, for any two policies and any cost."""
    world = random_world(seed, Shape.RAGGED, discount=0.8)
    expert, other = random_policy(world, seed + 1), random_policy(world, seed + 2)
    cost = np.random.default_rng(seed).uniform(-1, 1, world.num_pairs)
    visits = jm.occupancy(world, expert)
    law = visits.of_states * (1 - world.discount)
    errors = world.pairs.total(np.abs(other.per_pair - expert.per_pair)) / 2
    change = (jm.occupancy(world, other).measure - visits.measure) @ cost
    horizon, size = world.effective_horizon, np.abs(cost).max()
    assert abs(change) <= min(2 * size * horizon, 2 * size * (law @ errors) * horizon**2) + 1e-9


@pytest.mark.parametrize("error", [1e-4, 0.01, 0.3])
def test_where_one_mistake_costs_all_the_rest_the_docstring_is_exact(error):
    discount = 0.95
    world = jm.World([[1, 0], [0, 1], [0, 1]], [1, 0], discount, choice_offsets=[0, 2, 3])
    clumsy = jm.Policy([1 - error, error, 1.0], world.pairs.offsets)
    cost = jm.occupancy(world, clumsy).measure @ [0.0, 1.0, 1.0]
    assert cost == pytest.approx(error / ((1 - discount) * (1 - discount + discount * error)))


def test_hyperparameters_and_problems_that_do_not_fit_are_refused():
    problem = demonstrated(0)
    with pytest.raises(jm.errors.InvalidSolver, match="base measure"):
        jm.solvers.BehaviourCloning(features=jm.features.Features([[1.0]], base=[1.0]))
    with pytest.raises(jm.errors.InvalidCosts, match="rows"):
        jm.solve(problem, jm.solvers.BehaviourCloning(features=np.ones((3, 2))))
    with pytest.raises(jm.errors.InvalidCosts, match="not finite"):
        jm.solvers.BehaviourCloning(features=[[np.nan]])
    for wrong in ({"smoothing": -1}, {"ridge": 0}, {"tolerance": 0}, {"max_iterations": 0}):
        with pytest.raises(jm.errors.InvalidSolver):
            jm.solvers.BehaviourCloning(**wrong)
    with pytest.raises(jm.errors.InvalidProblem, match="needs demonstrations"):
        jm.solve(random_problem(0), jm.solvers.BehaviourCloning())
    with pytest.raises(jm.errors.InvalidProblem, match="budgets"):
        jm.solve(demonstrated(0, num_budgets=1), jm.solvers.BehaviourCloning())
