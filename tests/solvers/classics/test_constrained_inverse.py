"""Costs of a class and prices of budgets that explain a soft-optimal expert."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.gallery.grid_world import floor
from journeyman.policy import occupancy
from journeyman.solvers import ConstrainedInverse
from journeyman.testing.random_worlds import Shape, random_problem


def soft_within(temperature=0.05):
    """A soft-optimal expert on a 4 x 4 grid who has to pay for a region."""
    world = floor(4, slip=0.1, discount=0.9)
    basis = jm.CostBasis(np.eye(16)[:, 1:])
    weights = np.random.default_rng(3).uniform(-0.6, 0.6, 15)
    use = np.zeros(16)
    use[[5, 6]] = 1.0
    weights[[4, 5]] = -0.5  # where it would like to be
    price = 0.6
    pairs = world.pairs.states
    cost = np.asarray(basis.on(world) @ weights) + price * use[pairs]
    expert = jm.policy.soft_plan(world, cost, temperature=temperature).policy
    visits = occupancy(world, expert)
    limit = float(use[pairs] @ visits.measure)
    target = jm.ExpertExpectation(np.asarray(visits.expectations(basis)))
    budget = jm.Budget(use, limit, "region")
    return world, basis, target, budget, expert


def test_a_soft_optimal_expert_within_a_budget_is_found_again():
    """Its policy is the only solution; its cost is one of several."""
    world, basis, target, budget, expert = soft_within()
    problem = jm.Apprenticeship(world, basis, target, constraints=budget)
    answer = jm.solve(problem, ConstrainedInverse(temperature=0.05, tolerance=1e-8))
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert np.abs(answer.policy.on(world) - expert.on(world)).max() < 0.02
    assert answer.value < 1e-4
    assert answer.solution.overspending.max() < 1e-5
    assert answer.log.startswith("prices of the budgets: region ")
    again = np.asarray(basis.on(world) @ answer.recovered)
    price = float(answer.log.rsplit(" ", 1)[1])
    use = budget.on(world)
    found = jm.policy.soft_plan(world, again + price * use, temperature=0.05).policy
    assert np.abs(found.on(world) - answer.policy.on(world)).max() < 1e-3


def value_of(problem, weights, prices, temperature):
    """F from its definition."""
    cost = problem.cost_of(weights) + problem.budget_matrix @ prices
    plan = jm.policy.soft_plan(problem.world, cost, temperature=temperature)
    paid = weights @ problem.target + prices @ problem.limits
    return float(paid - problem.world.initial @ plan.values)


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()])
def test_no_other_cost_and_price_explain_the_expert_better(cost_class):
    problem = random_problem(3, cost_class, num_budgets=1)
    temperature = 0.1 * problem.cost_unit
    answer = jm.solve(problem, ConstrainedInverse(temperature=0.1, tolerance=1e-9))
    price = np.array([float(answer.log.rsplit(" ", 1)[1])])
    least = value_of(problem, answer.recovered, price, temperature)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(5):
            near = cost_class.admit(answer.recovered + size * rng.normal(size=problem.num_costs))
            other = np.maximum(price + size * rng.normal(size=1), 0.0)
            assert value_of(problem, near, other, temperature) >= least - 1e-6 * problem.gap_scale


def test_lower_temperatures_approach_the_exact_program():
    problem = random_problem(1, jm.InfinityBall(), num_budgets=1)
    best = jm.solve(problem, jm.LinearProgram()).value
    gaps = [
        jm.solve(problem, ConstrainedInverse(temperature=temperature)).value - best
        for temperature in (0.3, 0.01)
    ]
    actions = np.log(problem.world.pairs.max_actions)
    for temperature, gap in zip((0.3, 0.01), gaps, strict=True):
        most = temperature * problem.cost_unit * actions * problem.effective_horizon
        assert gap <= most + 1e-5 * problem.gap_scale
    assert gaps[1] < gaps[0]


@pytest.mark.parametrize(
    "wrong", [{"temperature": 0}, {"tolerance": 1}, {"max_iterations": 0}, {"time_limit": -1}]
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(jm.errors.InvalidSolver):
        ConstrainedInverse(**wrong)


def with_limit(problem, beyond):
    """The problem with the least limit of its budget that a policy keeps, and so much more."""
    world, cost = problem.world, problem.budget_matrix[:, 0]
    least = jm.expected_cost(world, jm.plan(world, cost).policy, cost)
    budget = jm.Budget(cost, least + beyond * world.effective_horizon, "resource")
    expert = problem.expectation
    return jm.Apprenticeship(world, problem.basis, expert, problem.cost_class, budget)


@pytest.mark.parametrize("shape", [Shape.DENSE, Shape.SINGLE_ACTION, Shape.ABSORBING])
def test_budgets_that_nobody_can_keep_are_infeasible(shape):
    problem = with_limit(random_problem(1, shape=shape, num_budgets=1), -0.02)
    answer = jm.solve(problem, ConstrainedInverse())
    assert answer.status is jm.Status.INFEASIBLE
    assert answer.relaxation.increase == pytest.approx(0.2, rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cost_class", [jm.Simplex(), jm.costs.L1Ball()], ids=lambda one: one.name)
def test_budgets_that_can_just_be_kept_are_kept(cost_class, seed):
    """Their prices are beyond the first limit."""
    problem = random_problem(seed, cost_class, shape=Shape.ABSORBING, num_budgets=1)
    problem = with_limit(problem, 1e-10)
    answer = jm.solve(problem, ConstrainedInverse())
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert answer.solution.overspending.max() <= 1e-5 * problem.world.effective_horizon


def test_a_known_cost_has_no_expert():
    forward = jm.Forward(floor(2), np.ones(4))
    with pytest.raises(jm.errors.InvalidProblem, match="learns from an expert"):
        jm.solve(forward, ConstrainedInverse())
