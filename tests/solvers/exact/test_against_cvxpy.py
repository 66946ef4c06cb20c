"""The exact solver against the same program written in CVXPY."""

import numpy as np
import pytest

import journeyman as jm
from class_examples import NAMES, example
from journeyman.testing import Shape, random_problem
from naive.exact_program import optimal_value

TOLERANCE = 1e-7
NUM_COSTS = 6
SCALE = (0.2, 0.5, 1.0, 1.0, 2.0, 3.0)

every_class = pytest.mark.parametrize("kind", [jm.InfinityBall, jm.EuclideanBall, jm.Simplex])
every_scale = pytest.mark.parametrize("scale", [None, SCALE], ids=["plain", "scaled"])
every_shape = pytest.mark.parametrize("shape", list(Shape), ids=lambda shape: shape.name)
every_discount = pytest.mark.parametrize("discount", [0.3, 0.9, 0.99])
every_count = pytest.mark.parametrize("num_budgets", [0, 2])


@every_class
@every_scale
@every_shape
@every_discount
@every_count
def test_value_is_the_optimum_and_proven(kind, scale, shape, discount, num_budgets):
    problem = random_problem(
        7, kind(scale), shape=shape, num_costs=NUM_COSTS, num_budgets=num_budgets, discount=discount
    )
    answer = jm.solve(problem)
    allowance = TOLERANCE * problem.gap_scale
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(optimal_value(problem), abs=allowance, rel=0)
    assert answer.value - answer.lower_bound <= allowance
    assert_budgets_are_kept(problem, answer.policy)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [Shape.RAGGED, Shape.ABSORBING], ids=lambda shape: shape.name)
@every_count
@pytest.mark.parametrize("solver", [jm.LinearProgram(), jm.ColumnGeneration()], ids=["LP", "CG"])
def test_other_classes_are_solved_as_well(name, shape, num_budgets, solver):
    problem = random_problem(
        7, example(name, NUM_COSTS), shape=shape, num_costs=NUM_COSTS, num_budgets=num_budgets
    )
    answer = jm.solve(problem, solver)
    allowance = 20 * TOLERANCE * problem.gap_scale
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(optimal_value(problem), abs=allowance, rel=0)
    assert answer.value - answer.lower_bound <= allowance
    assert_budgets_are_kept(problem, answer.policy)


@pytest.mark.parametrize("name", ["l1", "prior-infinity", "prior-l1", "box", "ratios", "flat"])
@pytest.mark.parametrize("engine", list(jm.solvers.Engine))
def test_every_engine_solves_other_classes(name, engine):
    problem = random_problem(8, example(name, NUM_COSTS), num_costs=NUM_COSTS, num_budgets=2)
    answer = jm.solve(problem, jm.LinearProgram(engine=engine))
    allowance = TOLERANCE * problem.gap_scale
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(optimal_value(problem), abs=allowance, rel=0)


@pytest.mark.parametrize("kind", [jm.InfinityBall, jm.Simplex])
@pytest.mark.parametrize("engine", list(jm.solvers.Engine))
@every_shape
@every_count
def test_every_engine_finds_the_optimum(kind, engine, shape, num_budgets):
    problem = random_problem(
        8, kind(SCALE), shape=shape, num_costs=NUM_COSTS, num_budgets=num_budgets
    )
    answer = jm.solve(problem, jm.LinearProgram(engine=engine))
    allowance = TOLERANCE * problem.gap_scale
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(optimal_value(problem), abs=allowance, rel=0)
    assert answer.value - answer.lower_bound <= allowance
    assert_budgets_are_kept(problem, answer.policy)


@every_shape
@every_discount
def test_forward_problem_without_budgets_is_planning(shape, discount):
    problem = forward_problem(shape, discount, num_budgets=0)
    plan = jm.plan(problem.world, problem.basis.matrix[:, 0])
    answer = jm.solve(problem)
    allowance = TOLERANCE * problem.gap_scale
    assert answer.value == pytest.approx(problem.world.initial @ plan.values, abs=allowance, rel=0)


@every_shape
@every_discount
def test_forward_problem_with_budgets_is_solved_and_proven(shape, discount):
    problem = forward_problem(shape, discount, num_budgets=2)
    answer = jm.solve(problem)
    allowance = TOLERANCE * problem.gap_scale
    assert answer.value == pytest.approx(optimal_value(problem), abs=allowance, rel=0)
    assert answer.value - answer.lower_bound <= allowance
    assert_budgets_are_kept(problem, answer.policy)


def forward_problem(shape, discount, num_budgets):
    drawn = random_problem(11, shape=shape, num_costs=1, num_budgets=num_budgets, discount=discount)
    return jm.Forward(drawn.world, drawn.basis, drawn.constraints)


def assert_budgets_are_kept(problem, policy):
    for budget in problem.constraints:
        spent = jm.expected_cost(problem.world, policy, budget.cost)
        unit = np.abs(budget.cost).max() * problem.world.effective_horizon
        assert spent <= budget.at_most + TOLERANCE * unit
