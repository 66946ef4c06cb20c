"""Budgets: kept when they can be, and explained when they cannot."""

from dataclasses import replace

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.exact import linear_program
from journeyman.testing import Shape, random_problem
from naive.exact_program import increase_weights, least_weighted_increase

CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]
SHAPES = [Shape.DENSE, Shape.SPARSE, Shape.ABSORBING, Shape.RAGGED, Shape.UNREACHABLE]
ANSWER_FIELDS = [
    "policy", "occupancy", "witness", "cost_weights", "value", "lower_bound", "overspending",
]  # fmt: skip

every_class = pytest.mark.parametrize("kind", CLASSES)
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)


@every_class
@every_shape
def test_binding_budget_is_kept_and_has_a_price(kind, shape):
    free = random_problem(5, kind(), shape=shape, num_costs=6)
    unbound = jm.solve(free)
    cost = -free.cost_of(unbound.cost_weights)
    least = least_spending(free.world, cost)
    spent = jm.expected_cost(free.world, unbound.policy, cost)
    bound = jm.solve(with_budgets(free, [jm.Budget(cost, (least + spent) / 2)]))
    assert bound.status is jm.Status.OPTIMAL
    assert bound.overspending[0] == pytest.approx(0.0, abs=1e-7 * free.gap_scale)
    assert bound.value >= unbound.value + 1e-3 * free.gap_scale
    assert bound.witness.budget_prices[0] > 0.0


@every_class
def test_budget_at_the_edge_of_the_possible_is_kept(kind):
    free = random_problem(5, kind())
    cost = np.random.default_rng(5).uniform(-1, 1, free.world.num_pairs)
    least = least_spending(free.world, cost)
    answer = jm.solve(with_budgets(free, [jm.Budget(cost, least)]))
    spent = jm.expected_cost(free.world, answer.policy, cost)
    assert answer.status is jm.Status.OPTIMAL
    assert spent == pytest.approx(least, abs=1e-6 * free.world.effective_horizon)


@every_class
def test_budget_missed_by_no_more_than_rounding_ends_with_a_policy(kind):
    free = random_problem(5, kind())
    cost = np.random.default_rng(5).uniform(-1, 1, free.world.num_pairs)
    unit = np.abs(cost).max() * free.world.effective_horizon
    budget = jm.Budget(cost, least_spending(free.world, cost) - 1e-14 * unit)
    answer = jm.solve(with_budgets(free, [budget]))
    assert answer.status is jm.Status.OPTIMAL
    assert answer.overspending[0] <= 1e-8 * unit


@pytest.mark.parametrize("unit", [1e-9, 1e-6, 1.0, 1e6, 1e9])
@pytest.mark.parametrize("share", [0.9, 1.1])
def test_the_unit_of_a_budget_does_not_matter(unit, share):
    world, basis, expert = jm.gallery.grid(6)
    cost = np.random.default_rng(0).random(world.num_pairs)
    least = least_spending(world, cost)
    demos = jm.record(world, expert, trajectories=20, horizon=60, seed=0)
    budget = jm.Budget(cost * unit, share * least * unit)
    answer = jm.solve(jm.Apprenticeship(world, basis, demos, constraints=[budget]))
    if share > 1:
        assert answer.status is jm.Status.OPTIMAL
        assert answer.overspending[0] <= 1e-7 * unit * world.effective_horizon
    else:
        assert answer.status is jm.Status.INFEASIBLE
        assert answer.relaxation.least == pytest.approx([least * unit], rel=1e-7)
        assert answer.relaxation.increase == pytest.approx([0.1 * least * unit], rel=1e-6)


@every_class
@pytest.mark.parametrize("discount", [0.99, 0.999])
def test_impossible_budgets_are_proven_at_any_discount(kind, discount):
    world, basis, expert = jm.gallery.grid(12, discount=discount)
    cost = np.random.default_rng(1).random(world.num_pairs)
    budget = jm.Budget(cost, 0.9 * least_spending(world, cost))
    demos = jm.record(world, expert, trajectories=20, horizon=100, seed=0)
    problem = jm.Apprenticeship(world, basis, demos, kind(), [budget])
    answer = jm.solve(problem)
    assert answer.status is jm.Status.INFEASIBLE
    assert jm.problem.infeasibility_margin(problem, answer.relaxation.prices) > 0


def test_no_prices_prove_that_possible_budgets_are_impossible():
    problem = random_problem(3, num_budgets=3)
    rng = np.random.default_rng(0)
    margins = [jm.problem.infeasibility_margin(problem, rng.exponential(size=3)) for _ in range(50)]
    assert max(margins) < 0


@every_class
def test_impossible_budget_ends_without_a_policy_but_with_a_relaxation(kind):
    answer = jm.solve(clashing_problem(0, kind, Shape.RAGGED))
    assert answer.status is jm.Status.INFEASIBLE
    assert answer.solution is None
    assert answer.relaxation is not None
    assert "INFEASIBLE: the constraints exclude each other: 'budget' would have to" in repr(answer)


@pytest.mark.parametrize("asked", ANSWER_FIELDS)
def test_asking_for_what_is_not_there_names_the_remedy(asked):
    answer = jm.solve(clashing_problem(0, jm.InfinityBall, Shape.RAGGED))
    with pytest.raises(jm.errors.NoSolution, match=r"exclude each other; answer\.relax"):
        getattr(answer, asked)


@every_class
@every_shape
def test_weighted_increase_is_the_least_possible(kind, shape):
    problem = clashing_problem(1, kind, shape)
    relaxation = jm.solve(problem).relaxation
    total = increase_weights(problem) @ relaxation.increase
    assert (relaxation.increase >= 0).all()
    assert total == pytest.approx(least_weighted_increase(problem), rel=1e-6)


@every_class
@every_shape
def test_the_increased_limits_are_possible_and_smaller_ones_are_not(kind, shape):
    problem = clashing_problem(2, kind, shape)
    increase = jm.solve(problem).relaxation.increase
    enough, too_little = (raised(problem, share * increase) for share in (1 + 1e-6, 0.999))
    assert jm.solve(enough).status is jm.Status.OPTIMAL
    assert jm.solve(too_little).status is jm.Status.INFEASIBLE


@every_class
def test_policy_of_a_relaxation_keeps_the_increased_limits(kind):
    problem = clashing_problem(3, kind, Shape.DENSE)
    relaxation = jm.solve(problem).relaxation
    for budget, extra in zip(problem.constraints, relaxation.increase, strict=True):
        spent = jm.expected_cost(problem.world, relaxation.policy, budget.cost)
        assert spent <= budget.at_most + extra + 1e-7 * problem.world.effective_horizon


@every_class
@every_shape
def test_least_limit_is_the_least_spending_under_the_other_budgets(kind, shape):
    problem = clashing_problem(4, kind, shape)
    first, second = problem.constraints
    expected = [
        least_spending(problem.world, first.cost, [second]),
        least_spending(problem.world, second.cost, [first]),
    ]
    least = jm.solve(problem).relaxation.least
    assert least == pytest.approx(expected, abs=1e-6 * problem.world.effective_horizon)
    assert (least > problem.limits).all()


@every_class
def test_least_limit_is_infinite_when_the_others_exclude_each_other(kind):
    clash = clashing_problem(6, kind, Shape.DENSE)
    harmless = jm.Budget(np.ones(clash.world.num_pairs), 2 * clash.world.effective_horizon)
    least = jm.solve(with_budgets(clash, [*clash.constraints, harmless])).relaxation.least
    assert np.isinf(least).tolist() == [False, False, True]


@every_class
@pytest.mark.parametrize("level", [0.0, 0.5, -0.5])
def test_constant_cost_is_relaxed_to_what_every_policy_spends(kind, level):
    free = random_problem(8, kind(), discount=0.9)
    spent = level * free.world.effective_horizon
    cost = np.full(free.world.num_pairs, level)
    impossible = jm.solve(with_budgets(free, [jm.Budget(cost, spent - 1.0)]))
    assert impossible.status is jm.Status.INFEASIBLE
    assert impossible.relaxation.increase == pytest.approx([1.0])
    assert impossible.relaxation.least == pytest.approx([spent])
    harmless = jm.solve(with_budgets(free, [jm.Budget(cost, spent + 1.0)]))
    assert harmless.value == pytest.approx(jm.solve(free).value, abs=1e-7 * free.gap_scale)


@pytest.mark.parametrize("engine", list(jm.solvers.Engine))
def test_engines_agree_about_the_impossible(engine):
    problem = clashing_problem(9, jm.InfinityBall, Shape.SPARSE)
    answer = jm.solve(problem, jm.LinearProgram(engine=engine))
    total = increase_weights(problem) @ answer.relaxation.increase
    assert answer.status is jm.Status.INFEASIBLE
    assert total == pytest.approx(least_weighted_increase(problem), rel=1e-6)


def test_impossible_budgets_are_proven_even_where_every_engine_fails(monkeypatch):
    problem = clashing_problem(9, jm.InfinityBall, Shape.SPARSE)
    engine = linear_program.candidate_of_linear

    def failing(*args, **named):
        return replace(engine(*args, **named), status=jm.Status.FAILED)

    monkeypatch.setattr(linear_program, "candidate_of_linear", failing)
    answer = jm.solve(problem, jm.LinearProgram())
    assert answer.status is jm.Status.INFEASIBLE
    total = increase_weights(problem) @ answer.relaxation.increase
    assert total == pytest.approx(least_weighted_increase(problem), rel=1e-6)


def clashing_problem(seed, kind, shape):
    """Two budgets, each possible alone: nearly opposite costs, both limited near their least."""
    free = random_problem(seed, kind(), shape=shape)
    rng = np.random.default_rng(seed)
    cost = rng.uniform(-1, 1, free.world.num_pairs)
    opposite = rng.uniform(-0.2, 0.2, cost.size) - 0.5 * cost
    budgets = []
    for d in (cost, opposite):
        least, most = least_spending(free.world, d), -least_spending(free.world, -d)
        budgets.append(jm.Budget(d, least + 0.1 * (most - least)))
    return with_budgets(free, budgets)


def least_spending(world, cost, others=()):
    return jm.solve(jm.Forward(world, cost, others)).value


def raised(problem, increase):
    pairs = zip(problem.constraints, increase, strict=True)
    return with_budgets(problem, [jm.Budget(b.cost, b.at_most + extra) for b, extra in pairs])


def with_budgets(problem, budgets):
    return jm.Apprenticeship(
        problem.world, problem.basis, problem.expectation, problem.cost_class, budgets
    )
