"""Proximal points: the dual and its gradient, exact steps, the catalogue, records alone."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import journeyman as jm
from class_examples import NAMES as CLASSES
from class_examples import example
from journeyman.solvers.classics.proximal_point_imitation import LogisticBellman
from journeyman.solvers.running import Watch
from journeyman.testing import Shape, random_problem
from solved_problems import DEMONSTRATED, SMALL, optimum, solved_problem

SOLVER = jm.solvers.ProximalPointImitation()
OFFLINE = jm.solvers.OfflineProximalImitation()
NEAR = 0.01


def dual_of(problem, eta=1.0, alpha=0.4, features=None):
    world = problem.world
    return LogisticBellman(problem, features, world.transition, world.initial, eta, alpha)


def uniform(problem):
    policy = jm.Policy.uniform(problem.world)
    visits = jm.occupancy(problem.world, policy)
    return visits.measure / problem.effective_horizon, policy.per_pair


@pytest.mark.parametrize("name", CLASSES)
def test_the_gradient_is_that_of_finite_differences(name):
    problem = random_problem(4, example(name, 3), shape=Shape.DENSE, trajectories=5)
    dual, (shares, law) = dual_of(problem), uniform(problem)
    rng = np.random.default_rng(0)
    point = rng.uniform(0.1, 0.4, dual.start().size)
    _, gradient = dual.value(point, shares, law)
    for _ in range(3):
        direction = rng.normal(size=point.size)
        ends = [dual.value(point + step * direction, shares, law)[0] for step in (1e-6, -1e-6)]
        assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-5)


def primal(problem, shares, law, eta, alpha):
    """The step by CVXPY: the least value, and the measure."""
    world, h = problem.world, problem.effective_horizon
    mu = cp.Variable(world.num_pairs, nonneg=True)
    owner = np.eye(world.num_states)[world.pairs.states]
    visits = owner @ (owner.T @ mu)
    gap = cp.norm1(np.asarray(problem.cost_matrix).T @ mu - problem.target)
    distance = cp.sum(cp.kl_div(mu, h * shares)) / eta
    conditional = cp.sum(cp.rel_entr(mu, cp.multiply(law, visits))) / alpha
    program = cp.Problem(
        cp.Minimize(gap + distance + conditional),
        [world.flow.matrix().T @ mu == world.initial],
    )
    program.solve(solver=cp.CLARABEL)
    return program.value, mu.value


@pytest.mark.parametrize("seed", range(2))
def test_a_step_is_that_of_cvxpy(seed):
    problem = random_problem(seed, jm.InfinityBall(), shape=Shape.DENSE)
    dual, (shares, law) = dual_of(problem), uniform(problem)
    with Watch("test", lambda event: None, None) as watch:
        found = dual.maximum(shares, law, dual.start(), 2000, watch)
    value, measure = primal(problem, shares, law, dual.eta, dual.alpha)
    assert found.value == pytest.approx(value, abs=1e-5 * problem.gap_scale)
    policy = jm.Policy(found.law, problem.world.pairs.offsets)
    mine = jm.occupancy(problem.world, policy).measure
    np.testing.assert_allclose(mine, measure, atol=2e-3 * problem.effective_horizon)


@pytest.mark.parametrize("kind", [jm.InfinityBall(), jm.Simplex()], ids=lambda one: one.name)
@pytest.mark.parametrize("name", SMALL)
def test_the_catalogue_is_solved_within_forty_steps(name, kind):
    problem = solved_problem(name, kind)
    answer = jm.solve(problem, replace(SOLVER, max_iterations=40))
    least = optimum(name, kind)
    assert answer.value - least <= NEAR * problem.gap_scale
    assert answer.lower_bound <= least + 1e-7 * problem.gap_scale


def test_steps_never_lose_what_was_found():
    problem, events = solved_problem("garnet", jm.Simplex()), []
    jm.solve(problem, replace(SOLVER, max_iterations=6), observer=events.append)
    gaps = [event.objective for event in events]
    assert gaps == sorted(gaps, reverse=True)
    bounds = [event.lower_bound for event in events if event.lower_bound is not None]
    assert bounds == sorted(bounds)
    assert max(bounds) <= optimum("garnet", jm.Simplex()) + 1e-9


def test_features_of_q_functions_restrict_a_step():
    problem = solved_problem("grid, demonstrations", jm.InfinityBall())
    features = jm.features.partition(problem.world, problem.demonstrations, num_cells=9)
    short = replace(SOLVER, max_iterations=3)
    answer = jm.solve(problem, replace(short, features=features))
    assert answer.value >= optimum("grid, demonstrations", jm.InfinityBall()) - 1e-9
    with pytest.raises(jm.errors.InvalidInput, match="pairs"):
        jm.solve(problem, replace(short, features=jm.features.Features(np.ones((3, 1)))))


@pytest.mark.parametrize("name", DEMONSTRATED)
def test_offline_the_recorded_actions_are_taken(name):
    """No better than its data, and no worse than acting at random."""
    problem = solved_problem(name, jm.InfinityBall())
    answer = jm.solve(problem, OFFLINE)
    at_random = problem.gap(jm.Policy.uniform(problem.world))
    assert answer.value <= at_random
    assert answer.work.environment_steps == answer.work.forward_solves == 0


def test_offline_needs_records():
    problem = solved_problem("garnet", jm.InfinityBall())
    with pytest.raises(jm.errors.InvalidProblem, match="demonstrations"):
        jm.solve(problem, OFFLINE)


def test_they_keep_the_promises_of_solvers():
    jm.testing.check_solver(replace(SOLVER, max_iterations=2, inner_iterations=30), seeds=1)
    jm.testing.check_solver(replace(OFFLINE, inner_iterations=30), seeds=1, trajectories=5)


@pytest.mark.parametrize(
    "wrong", [{"step": 0.0}, {"inner_iterations": 0}, {"accuracy": 0.0}, {"features": 1}], ids=str
)
def test_wrong_hyperparameters_are_refused(wrong):
    with pytest.raises(jm.errors.InvalidSolver, match=next(iter(wrong))):
        replace(SOLVER, **wrong)


def test_budgets_are_refused_by_name():
    with pytest.raises(jm.errors.InvalidProblem, match="ProximalPointImitation"):
        jm.solve(random_problem(0, num_budgets=1), SOLVER)
