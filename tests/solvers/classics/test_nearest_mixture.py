"""Both methods of Abbeel and Ng: what their guarantee says, on every problem of the catalogue."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.solvers.classics.nearest_mixture import most_iterations
from journeyman.testing import Shape, random_problem
from solved_problems import NAMES, SMALL, optimum, solved_problem

BALL = jm.EuclideanBall()
ACCURACY = 5e-3
METHODS = [jm.solvers.Projection(ACCURACY), jm.solvers.MaxMargin(ACCURACY)]
of_both = pytest.mark.parametrize("solver", METHODS, ids=lambda solver: type(solver).__name__)
of_the_catalogue = pytest.mark.parametrize("name", NAMES)


@cache
def solved(name, solver):
    """The answer, and what an observer saw on the way."""
    events = []
    return jm.solve(solved_problem(name, BALL), solver, observer=events.append), events


def expectations_of(mixture, problem):
    each = [
        jm.occupancy(problem.world, policy).expectations(problem.basis)
        for policy in mixture.candidates
    ]
    return mixture.weights @ np.array(each)


@of_both
@of_the_catalogue
def test_it_comes_within_its_accuracy_of_the_least_gap(name, solver):
    answer, _ = solved(name, solver)
    allowed = ACCURACY * answer.problem.gap_scale
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert answer.value <= optimum(name, BALL) + allowed
    assert answer.value - answer.lower_bound <= allowed * (1 + 1e-9)


@of_both
@of_the_catalogue
def test_bounds_hold_in_every_iteration_and_close_in(name, solver):
    answer, events = solved(name, solver)
    slack = 1e-7 * answer.problem.gap_scale
    upper = np.array([event.objective for event in events])
    lower = np.array([event.lower_bound for event in events])
    assert (upper >= optimum(name, BALL) - slack).all()
    assert (lower <= optimum(name, BALL) + slack).all()
    assert (np.diff(upper) <= 1e-12 * answer.problem.gap_scale).all()
    assert (np.diff(lower) >= 0).all()
    apart = upper - lower
    asked = ACCURACY * answer.problem.gap_scale
    assert apart[-1] <= asked
    assert (apart[:-1] > asked).all()


@of_both
@of_the_catalogue
def test_the_stationary_policy_has_the_expectations_of_the_mixture(name, solver):
    answer, events = solved(name, solver)
    problem = answer.problem
    theirs = expectations_of(answer.mixture, problem)
    np.testing.assert_allclose(answer.occupancy.expectations(problem.basis), theirs, atol=1e-9)
    assert answer.value == pytest.approx(events[-1].objective, abs=1e-9)


@of_both
@of_the_catalogue
def test_it_needs_no_more_iterations_than_the_guarantee_says(name, solver):
    answer, events = solved(name, solver)
    problem = answer.problem
    work = answer.work
    assert work.iterations == work.forward_solves == len(events)
    assert work.iterations <= solver.iterations_needed(problem)
    asked = ACCURACY * problem.gap_scale
    across = (problem.basis.highest - problem.basis.lowest) * problem.effective_horizon
    diameter = min(np.linalg.norm(across), problem.gap_scale)
    first = events[0].objective
    known = 5 * diameter**2 / (asked * max(asked, optimum(name, BALL)))
    known += max(0.0, np.log2(first / asked)) + 4 * max(0.0, np.log(first / diameter)) + 3
    assert work.iterations <= known


@of_both
def test_the_guarantee_depends_on_the_accuracy_as_its_square(solver):
    problem = solved_problem("garnet", BALL)
    rough, fine = (most_iterations(problem, accuracy) for accuracy in (1e-2, 1e-3))
    assert fine / rough == pytest.approx(100, rel=1e-2)
    assert solver.iterations_needed(problem) == most_iterations(problem, ACCURACY)


@of_both
@pytest.mark.parametrize("name", SMALL)
def test_a_mixture_is_a_law_over_different_policies(name, solver):
    mixture = solved(name, solver)[0].mixture
    assert mixture.weights.sum() == pytest.approx(1, abs=1e-12)
    assert (mixture.weights > 0).all()
    laws = {policy.per_pair.tobytes() for policy in mixture.candidates}
    assert len(laws) == len(mixture.candidates)


@of_both
def test_the_recovered_cost_separates_the_expert_from_every_policy(solver):
    problem = solved_problem("grid, one start", BALL)
    answer = jm.solve(problem, replace(solver, accuracy=1e-5))
    weights = answer.cost_weights
    assert np.linalg.norm(weights) == pytest.approx(1)
    least = jm.plan(problem.world, problem.cost_of(weights)).values @ problem.world.initial
    assert least - weights @ problem.target == pytest.approx(answer.value, rel=1e-2)


@of_both
def test_the_scale_of_costs_is_honoured(solver):
    bare = solved_problem("garnet, demonstrations", BALL)
    scale = np.linspace(0.2, 3.0, bare.basis.num_costs)
    ball = jm.EuclideanBall(scale)
    problem = jm.Apprenticeship(bare.world, bare.basis, bare.expectation, ball)
    answer = jm.solve(problem, solver)
    exact = jm.solve(problem, jm.LinearProgram())
    assert answer.value - exact.value <= ACCURACY * problem.gap_scale
    scaled = jm.CostBasis(bare.cost_matrix * scale)
    target = jm.ExpertExpectation(bare.target * scale)
    same = jm.solve(jm.Apprenticeship(bare.world, scaled, target, BALL), solver)
    assert same.work == answer.work
    assert same.value == pytest.approx(answer.value, abs=1e-9)


@of_both
def test_a_problem_of_another_class_is_answered_in_the_geometry_of_the_ball(solver):
    ball, cube = (solved_problem("garnet", one) for one in (BALL, jm.InfinityBall()))
    inside, outside = jm.solve(ball, solver), jm.solve(cube, solver)
    np.testing.assert_array_equal(inside.policy.per_pair, outside.policy.per_pair)
    assert outside.value == pytest.approx(cube.gap(inside.policy))
    assert outside.lower_bound <= optimum("garnet", cube.cost_class) + 1e-9


@of_both
@settings(max_examples=20)
@given(seed=st.integers(0, 200), shape=st.sampled_from(list(Shape)))
def test_random_problems_end_with_the_asked_accuracy(solver, seed, shape):
    problem = random_problem(seed, BALL, shape=shape)
    answer = jm.solve(problem, replace(solver, accuracy=0.02))
    assert answer.value - answer.lower_bound <= 0.02 * problem.gap_scale * (1 + 1e-9)
    assert answer.work.iterations <= most_iterations(problem, 0.02)


@of_both
def test_costs_that_are_all_zero_are_no_trouble(solver):
    bare = solved_problem("garnet", BALL)
    nothing = jm.CostBasis(np.zeros((bare.world.num_pairs, 2)))
    problem = jm.Apprenticeship(bare.world, nothing, jm.ExpertExpectation([3.0, 4.0]), BALL)
    answer = jm.solve(problem, solver)
    assert answer.value == pytest.approx(5.0)
    assert answer.work.iterations <= solver.iterations_needed(problem)


@of_both
@pytest.mark.parametrize(
    "wrong",
    [{"accuracy": 0.0}, {"accuracy": 1.0}, {"max_iterations": 0}, {"time_limit": -1.0}],
    ids=str,
)
def test_wrong_hyperparameters_are_refused(solver, wrong):
    with pytest.raises(jm.errors.InvalidSolver, match=next(iter(wrong))):
        replace(solver, **wrong)


@of_both
def test_budgets_are_refused_by_name(solver):
    problem = random_problem(0, BALL, num_budgets=1)
    with pytest.raises(jm.errors.InvalidProblem, match=type(solver).__name__):
        jm.solve(problem, solver)
