"""Among the policies of least gap the simplex class takes one that surpasses the expert most."""

import numpy as np
import pytest
from hypothesis import given

import journeyman as jm
from journeyman.solvers.exact import second_stage
from journeyman.solvers.exact.engines import Effort, Engine, run_engine
from journeyman.solvers.exact.occupancy_program import exact_program, tilted_program
from journeyman.solvers.running import Watch
from journeyman.testing import Shape, random_problem
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.strategies import seeds
from naive.exact_program import best_surplus, first_surplus

BAD_EXPERT = (5.25, 4.15, 5.0)

SHAPES = [shape for shape in Shape if shape is not Shape.SINGLE_ACTION]

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
every_scale = pytest.mark.parametrize("scale", [None, (0.5, 1.0, 2.0)], ids=["plain", "scaled"])
every_engine = pytest.mark.parametrize("engine", list(jm.solvers.Engine))


@every_shape
@every_scale
def test_surplus_is_the_greatest_at_least_gap(shape, scale):
    problem = problem_with_many_optima(0, shape, scale)
    surplus = jm.solve(problem).total_surplus
    unit = problem.gap_scale
    assert surplus == pytest.approx(best_surplus(problem, slack=1e-9 * unit), abs=1e-6 * unit)
    assert surplus >= first_surplus(problem) + 1e-2 * unit


@every_shape
@every_scale
def test_surplus_costs_the_gap_next_to_nothing(shape, scale):
    problem = problem_with_many_optima(1, shape, scale)
    answer = jm.solve(problem)
    assert answer.value - answer.lower_bound <= 1e-8 * problem.gap_scale


@every_shape
@every_engine
def test_gap_and_surplus_depend_neither_on_order_nor_on_engine(shape, engine):
    problem = problem_with_many_optima(2, shape)
    expected = figures(jm.solve(problem))
    allowance = 1e-6 * problem.gap_scale
    for twin in (problem, read_backwards(problem)):
        answer = jm.solve(twin, jm.LinearProgram(engine=engine))
        assert figures(answer) == pytest.approx(expected, abs=allowance, rel=0)


@every_shape
@every_scale
def test_tilted_and_sliced_programs_agree(shape, scale, monkeypatch):
    problem = problem_with_many_optima(3, shape, scale)
    tilted = figures(jm.solve(problem, jm.LinearProgram(engine=Engine.CLARABEL)))
    monkeypatch.setattr(second_stage, "TILTS", ())
    sliced = figures(jm.solve(problem, jm.LinearProgram(engine=Engine.CLARABEL)))
    assert tilted == pytest.approx(sliced, abs=1e-6 * problem.gap_scale, rel=0)


def test_a_tilt_that_costs_gap_is_not_taken(monkeypatch):
    """With all weight on the surplus the gap is given up, so the slice has to do it."""
    problem = random_problem(4, jm.Simplex())
    expected = figures(jm.solve(problem))
    monkeypatch.setattr(second_stage, "TILTS", (1e3,))
    answer = jm.solve(problem, jm.LinearProgram(engine=Engine.CLARABEL))
    assert answer.status is jm.Status.OPTIMAL
    assert figures(answer) == pytest.approx(expected, abs=1e-6 * problem.gap_scale, rel=0)


@given(seeds)
def test_no_policy_of_the_same_gap_surpasses_the_tilted_bound(seed):
    problem = random_problem(seed, jm.Simplex(), num_budgets=1)
    share, model = 1e-2, exact_program(problem)
    found = run_engine(
        tilted_program(problem, model, share), Engine.CLARABEL, Effort(1e-7, 1), quiet_watch()
    )
    for policy in (
        random_policy(problem.world, np.random.default_rng(seed)),
        jm.solve(problem).policy,
    ):
        visits = jm.occupancy(problem.world, policy)
        if problem.overspending(visits.measure)[0] <= 0:
            bound = second_stage._tilted_bound(problem, problem.gap(visits), share, found.row_duals)
            surplus = second_stage.total_surplus(problem, visits.measure)
            assert surplus <= bound + 1e-9 * problem.gap_scale / share


@pytest.mark.parametrize("engine", [None, Engine.SIMPLEX])
def test_costs_that_add_up_to_the_same_need_no_second_stage(engine):
    drawn = random_problem(5)
    share = np.random.default_rng(5).random((drawn.world.num_pairs, 1))
    basis = jm.CostBasis(np.hstack([share, 1 - share]))
    problem = jm.Apprenticeship(drawn.world, basis, jm.ExpertExpectation([1.0, 2.0]), jm.Simplex())
    answer = jm.solve(problem, jm.LinearProgram(engine=engine))
    assert answer.status is jm.Status.OPTIMAL
    assert "then" not in answer.engine
    assert answer.total_surplus == pytest.approx(3.0 - drawn.world.effective_horizon)


def test_cheaper_action_is_taken_where_the_gap_does_not_see_it():
    """Actions 0 and 1 share the least gap; action 2 would be cheapest, at a larger gap."""
    world = jm.World([[1.0], [1.0], [1.0]], [1.0], 0.5)
    basis = jm.CostBasis([[0.5, 1.0], [0.5, 0.0], [1.0, -1.0]])
    expert = jm.ExpertExpectation([1.5, 2.5])
    answer = jm.solve(jm.Apprenticeship(world, basis, expert, jm.Simplex()))
    assert answer.value == pytest.approx(-0.5, abs=1e-7)
    assert answer.total_surplus == pytest.approx(3.0, abs=1e-7)
    assert answer.policy.probabilities([0])[0] == pytest.approx([0.0, 1.0, 0.0], abs=1e-7)


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.EuclideanBall()])
def test_classes_that_match_the_expert_have_no_surplus(cost_class):
    assert jm.solve(random_problem(6, cost_class)).total_surplus is None


def test_infinity_ball_copies_the_bad_driver():
    answer = jm.solve(driving(jm.InfinityBall()))
    assert answer.value == pytest.approx(0.0, abs=1e-7)
    assert rewards(answer) == pytest.approx(BAD_EXPERT, abs=1e-7)


def test_simplex_surpasses_the_bad_driver():
    speed, no_collision, on_road = rewards(jm.solve(driving(jm.Simplex())))
    assert speed > 5.25 + 1.0
    assert no_collision > 4.15 + 0.1
    assert on_road >= 5.0 - 1e-6


@pytest.mark.parametrize(
    ("cost_class", "optimum"), [(jm.Simplex(), -5.0), (jm.InfinityBall(), 12.09985)]
)
def test_driving_against_an_expert_without_rewards(cost_class, optimum):
    answer = jm.solve(driving(cost_class, expert=(0.0, 0.0, 0.0)))
    assert answer.value == pytest.approx(optimum, abs=1e-5)


def quiet_watch():
    return Watch("test", lambda event: None)


def figures(answer):
    return answer.value, answer.total_surplus


def rewards(answer):
    basis = answer.problem.basis
    return basis.as_given(answer.occupancy.expectations(basis))


def driving(cost_class, expert=BAD_EXPERT):
    world, basis, _ = jm.gallery.driving()
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation.from_rewards(expert), cost_class)


def problem_with_many_optima(seed, shape, scale=None):
    """No policy changes the first cost, and it alone decides the gap of many policies."""
    drawn = random_problem(seed, shape=shape)
    matrix, target = drawn.basis.matrix.copy(), drawn.target.copy()
    matrix[:, 0] = 0.0
    target[0] = -0.1 * drawn.world.effective_horizon
    expert = jm.ExpertExpectation(target)
    return jm.Apprenticeship(drawn.world, jm.CostBasis(matrix), expert, jm.Simplex(scale))


def read_backwards(problem):
    """The same problem with states, actions and costs in reverse order."""
    world = problem.world
    mirrored = jm.World(
        world.transition.toarray()[::-1, ::-1],
        world.initial[::-1],
        world.discount,
        choice_offsets=world.num_pairs - world.pairs.offsets[::-1],
    )
    basis = jm.CostBasis(problem.basis.matrix[::-1, ::-1])
    expert = jm.ExpertExpectation(problem.target[::-1])
    return jm.Apprenticeship(mirrored, basis, expert, problem.cost_class)
