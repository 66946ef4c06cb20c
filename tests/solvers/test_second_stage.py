"""Among the policies of least gap the simplex class takes one that surpasses the expert most."""

import pytest

import journeyman as jm
from journeyman.testing import Shape, random_problem
from naive.exact_program import best_surplus, first_surplus

BAD_EXPERT = (5.25, 4.15, 5.0)

SHAPES = [shape for shape in Shape if shape is not Shape.SINGLE_ACTION]

every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
every_scale = pytest.mark.parametrize("scale", [None, (0.5, 1.0, 2.0)], ids=["plain", "scaled"])
every_engine = pytest.mark.parametrize("engine", list(jm.Engine))


@every_shape
@every_scale
def test_surplus_is_the_greatest_at_least_gap(shape, scale):
    problem = problem_with_many_optima(0, shape, scale)
    surplus = jm.solve(problem).total_surplus
    unit = problem.trivial_bound
    assert surplus == pytest.approx(best_surplus(problem, slack=1e-9 * unit), abs=1e-6 * unit)
    assert surplus >= first_surplus(problem) + 1e-2 * unit


@every_shape
@every_scale
def test_surplus_costs_the_gap_next_to_nothing(shape, scale):
    problem = problem_with_many_optima(1, shape, scale)
    answer = jm.solve(problem)
    assert answer.value - answer.lower_bound <= 1e-8 * problem.trivial_bound


@every_shape
@every_engine
def test_gap_and_surplus_depend_neither_on_order_nor_on_engine(shape, engine):
    problem = problem_with_many_optima(2, shape)
    expected = figures(jm.solve(problem))
    allowance = 1e-6 * problem.trivial_bound
    for twin in (problem, read_backwards(problem)):
        answer = jm.solve(twin, jm.LinearProgram(engine=engine))
        assert figures(answer) == pytest.approx(expected, abs=allowance, rel=0)


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
