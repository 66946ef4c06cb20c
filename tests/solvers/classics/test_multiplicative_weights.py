"""MWAL: its theorem, the mixture that it is about, its bounds, and how it slows down."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.testing import Shape, random_problem
from solved_problems import NAMES, SMALL, optimum, solved_problem

SIMPLEX = jm.Simplex()
ACCURACY = 0.04
SOLVER = jm.solvers.MultiplicativeWeights(ACCURACY)
of_the_catalogue = pytest.mark.parametrize("name", NAMES)


@cache
def solved(name, solver=SOLVER):
    """The answer, and what an observer saw on the way."""
    events = []
    return jm.solve(solved_problem(name, SIMPLEX), solver, observer=events.append), events


@of_the_catalogue
def test_it_comes_within_its_accuracy_of_the_least_gap(name):
    answer, _ = solved(name)
    allowed = ACCURACY * answer.problem.gap_scale
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert answer.value <= optimum(name, SIMPLEX) + allowed
    assert answer.value - answer.lower_bound <= allowed * (1 + 1e-9)
    assert answer.work.iterations <= SOLVER.iterations_needed(answer.problem)


@pytest.mark.parametrize("name", SMALL)
def test_all_iterations_of_the_theorem_keep_its_promise_and_the_bounds_agree(name):
    whole = jm.solvers.MultiplicativeWeights(0.08, stop_early=False)
    answer, events = solved(name, whole)
    allowed = 0.08 * answer.problem.gap_scale
    assert len(events) == answer.work.iterations == whole.iterations_needed(answer.problem)
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert answer.value <= optimum(name, SIMPLEX) + allowed
    assert events[-1].objective - events[-1].lower_bound <= allowed


@of_the_catalogue
def test_bounds_hold_in_every_iteration(name):
    answer, events = solved(name)
    slack = 1e-7 * answer.problem.gap_scale
    lower = np.array([event.lower_bound for event in events])
    assert min(event.objective for event in events) >= optimum(name, SIMPLEX) - slack
    assert lower.max() <= optimum(name, SIMPLEX) + slack
    assert (np.diff(lower) >= 0).all()


@of_the_catalogue
def test_the_stationary_policy_has_the_expectations_of_the_uniform_mixture(name):
    answer, events = solved(name)
    problem, mixture = answer.problem, answer.mixture
    each = [
        jm.occupancy(problem.world, one).expectations(problem.basis) for one in mixture.candidates
    ]
    theirs = mixture.weights @ np.array(each)
    np.testing.assert_allclose(answer.occupancy.expectations(problem.basis), theirs, atol=1e-9)
    counts = mixture.weights * answer.work.iterations
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    assert answer.value == pytest.approx(events[-1].objective, abs=1e-9)


def mwal_by_hand(problem, iterations, rate):
    """The method as the paper writes it, for rewards, with exact plans; the mean of all rows."""
    rewards, expert = -np.asarray(problem.cost_matrix), -problem.target
    weights, total = np.ones(expert.size), np.zeros(expert.size)
    for _ in range(iterations):
        best = jm.plan(problem.world, -(rewards @ (weights / weights.sum()))).policy
        mine = rewards.T @ jm.occupancy(problem.world, best).measure
        weights = weights * np.exp(-rate * (mine - expert))
        total += mine
    return total / iterations


def test_it_is_the_method_of_the_paper():
    problem = solved_problem("dense", SIMPLEX)
    solver = jm.solvers.MultiplicativeWeights(0.08, stop_early=False)
    needed = solver.iterations_needed(problem)
    low = (problem.basis.lowest * problem.effective_horizon - problem.target).min()
    high = (problem.basis.highest * problem.effective_horizon - problem.target).max()
    rate = np.sqrt(8 * np.log(problem.basis.num_costs) / needed) / (high - low)
    mine = -jm.solve(problem, solver).occupancy.expectations(problem.basis)
    theirs = mwal_by_hand(problem, needed, rate)
    allowed = 0.1 * 0.08 * problem.gap_scale  # plans are rough
    np.testing.assert_allclose(mine, theirs, atol=allowed)


def test_the_count_of_the_theorem():
    """Three costs in [0, 1], an expert at the lower end: R = 1/(1 - discount)."""
    world = jm.gallery.garnet(10, discount=0.75).world
    matrix = np.zeros((world.num_pairs, 3))
    matrix[0] = 1.0
    target = jm.ExpertExpectation(np.zeros(3))
    problem = jm.Apprenticeship(world, jm.CostBasis(matrix), target, SIMPLEX)
    asked = 0.1 * 2 * 4.0
    expected = np.ceil(4.0**2 * np.log(3) / (2 * (0.9 * asked) ** 2))
    assert jm.solvers.MultiplicativeWeights(0.1).iterations_needed(problem) == expected
    finer = jm.solvers.MultiplicativeWeights(0.01).iterations_needed(problem)
    assert finer / expected == pytest.approx(100, rel=0.1)


def test_it_slows_down_with_the_square_of_the_accuracy():
    problem = solved_problem("dense", SIMPLEX)
    rough, fine = (
        jm.solve(problem, jm.solvers.MultiplicativeWeights(accuracy)).work.iterations
        for accuracy in (0.04, 0.01)
    )
    assert 8 <= fine / rough <= 32


def test_one_cost_needs_one_plan():
    bare = solved_problem("garnet", SIMPLEX)
    one = jm.CostBasis(np.asarray(bare.cost_matrix[:, [0]]))
    problem = jm.Apprenticeship(bare.world, one, jm.ExpertExpectation([1.0]), SIMPLEX)
    answer = jm.solve(problem, SOLVER)
    assert answer.work.iterations == 1
    assert answer.value == pytest.approx(jm.solve(problem).value, abs=ACCURACY)


def test_the_scale_of_costs_is_honoured():
    bare = solved_problem("garnet, demonstrations", SIMPLEX)
    scale = np.linspace(0.2, 3.0, bare.basis.num_costs)
    problem = jm.Apprenticeship(bare.world, bare.basis, bare.expectation, jm.Simplex(scale))
    answer, exact = jm.solve(problem, SOLVER), jm.solve(problem, jm.LinearProgram())
    assert answer.value - exact.value <= ACCURACY * problem.gap_scale
    target = jm.ExpertExpectation(bare.target * scale)
    scaled = jm.Apprenticeship(bare.world, jm.CostBasis(bare.cost_matrix * scale), target, SIMPLEX)
    assert jm.solve(scaled, SOLVER).work == answer.work


def test_a_problem_of_another_class_is_answered_in_the_geometry_of_the_simplex():
    simplex, cube = (solved_problem("garnet", one) for one in (SIMPLEX, jm.InfinityBall()))
    inside, outside = jm.solve(simplex, SOLVER), jm.solve(cube, SOLVER)
    np.testing.assert_array_equal(inside.policy.per_pair, outside.policy.per_pair)
    assert outside.value == pytest.approx(cube.gap(inside.policy))
    assert outside.lower_bound <= optimum("garnet", cube.cost_class) + 1e-9


@settings(max_examples=20)
@given(seed=st.integers(0, 100), shape=st.sampled_from(list(Shape)))
def test_random_problems_end_with_the_asked_accuracy(seed, shape):
    problem = random_problem(seed, SIMPLEX, shape=shape)
    solver = replace(SOLVER, accuracy=0.1)
    answer = jm.solve(problem, solver)
    assert answer.value - answer.lower_bound <= 0.1 * problem.gap_scale * (1 + 1e-9)
    assert answer.work.iterations <= solver.iterations_needed(problem)


def test_costs_that_are_all_zero_are_no_trouble():
    bare = solved_problem("garnet", SIMPLEX)
    nothing = jm.CostBasis(np.zeros((bare.world.num_pairs, 2)))
    problem = jm.Apprenticeship(bare.world, nothing, jm.ExpertExpectation([3.0, -4.0]), SIMPLEX)
    assert jm.solve(problem, SOLVER).value == pytest.approx(4.0)


def test_the_log_says_how_many_iterations_the_theorem_asked_for():
    answer, _ = solved("garnet")
    needed = SOLVER.iterations_needed(answer.problem)
    assert answer.work.iterations < needed
    assert f"{answer.work.iterations} iterations, of {needed} that the theorem" in answer.log


def test_a_limit_of_iterations_is_said():
    problem = solved_problem("garnet", SIMPLEX)
    answer = jm.solve(problem, replace(SOLVER, max_iterations=5))
    assert answer.status is jm.Status.STEP_LIMIT
    assert answer.work.forward_solves == 5


@pytest.mark.parametrize(
    "wrong",
    [{"accuracy": 0.0}, {"accuracy": 1.0}, {"max_iterations": 0}, {"stop_early": 1}],
    ids=str,
)
def test_wrong_hyperparameters_are_refused(wrong):
    with pytest.raises(jm.errors.InvalidSolver, match=next(iter(wrong))):
        replace(SOLVER, **wrong)


def test_budgets_are_refused_by_name():
    problem = random_problem(0, SIMPLEX, num_budgets=1)
    with pytest.raises(jm.errors.InvalidProblem, match="MultiplicativeWeights"):
        jm.solve(problem, SOLVER)


def test_an_accuracy_beyond_float64_is_not_said_to_be_reached():
    """With one cost the theorem asks for one plan, which cannot be as exact as that."""
    world, basis, expert = jm.gallery.garnet(30, num_costs=1, discount=0.9999, seed=0)
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis) - 1.0)
    problem = jm.Apprenticeship(world, basis, target, jm.Simplex())
    for stop_early in (True, False):
        solver = jm.solvers.MultiplicativeWeights(1e-15, stop_early=stop_early)
        assert solver.iterations_needed(problem) == 1
        answer = jm.solve(problem, solver)
        assert answer.status is jm.Status.STEP_LIMIT
        assert answer.work.iterations == 1


@pytest.mark.parametrize(
    "method", [jm.solvers.MultiplicativeWeights, jm.solvers.Projection, jm.solvers.MaxMargin]
)
def test_theorems_that_ask_for_more_than_can_be_counted(method):
    problem = solved_problem(SMALL[1], jm.Simplex())
    solver = method(1e-200, max_iterations=3)
    assert solver.iterations_needed(problem) >= 10**18
    assert jm.solve(problem, solver).status is jm.Status.STEP_LIMIT
