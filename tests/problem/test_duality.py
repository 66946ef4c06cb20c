"""The lower bound holds for every policy, whatever witness it is given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.testing.random_worlds import random_policy, random_problem
from journeyman.testing.strategies import problems, seeds


def any_witness(problem, rng):
    """Weights outside the class, negative prices, arbitrary values."""
    return jm.problem.Witness(
        rng.normal(size=problem.basis.num_costs) * 3,
        rng.normal(size=problem.world.num_states) * problem.world.effective_horizon,
        rng.normal(size=len(problem.constraints)),
    )


@given(problems(max_budgets=0), seeds)
def test_no_policy_is_below_the_bound_of_an_arbitrary_witness(problem, seed):
    rng = np.random.default_rng(seed)
    bound = jm.problem.lower_bound(problem, any_witness(problem, rng))
    gaps = [problem.gap(random_policy(problem.world, rng)) for _ in range(5)]
    assert bound <= min(gaps) + 1e-12 * problem.gap_scale


@given(problems(max_budgets=3), seeds)
def test_no_policy_within_the_budgets_is_below_it(problem, seed):
    rng = np.random.default_rng(seed)
    bounds = [
        jm.problem.lower_bound(problem, any_witness(problem, rng)),
        jm.problem.lower_bound(
            problem, jm.problem.witness_from_plan(problem, rng.normal(size=problem.target.size), ())
        ),
    ]
    for _ in range(20):
        visits = jm.occupancy(problem.world, random_policy(problem.world, rng))
        if (problem.overspending(visits.measure) <= 0).all():
            assert max(bounds) <= problem.gap(visits) + 1e-12 * problem.gap_scale


@given(problems(max_budgets=2), seeds)
def test_solved_values_give_the_sharpest_bound_for_given_weights(problem, seed):
    rng = np.random.default_rng(seed)
    witness = any_witness(problem, rng)
    sharp = jm.problem.witness_from_plan(problem, witness.cost_weights, witness.budget_prices)
    repaired = jm.problem.Witness(sharp.cost_weights, witness.values, sharp.budget_prices)
    assert jm.problem.lower_bound(problem, sharp) >= jm.problem.lower_bound(
        problem, repaired
    ) - 1e-9 * (problem.gap_scale * (1 + np.abs(sharp.budget_prices).sum()))


@pytest.mark.parametrize("cost_class", [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()])
@pytest.mark.parametrize("damage", [1e-6, 1e-3, 1.0])
def test_a_damaged_witness_is_weaker_but_not_false(cost_class, damage):
    problem = random_problem(7, cost_class, num_budgets=2)
    answer = jm.solve(problem)
    rng = np.random.default_rng(0)
    whole = answer.witness
    damaged = jm.problem.Witness(
        whole.cost_weights + damage * rng.normal(size=whole.cost_weights.size),
        whole.values + damage * rng.normal(size=whole.values.size),
        whole.budget_prices,
    )
    bound = jm.problem.lower_bound(problem, damaged)
    assert bound < answer.lower_bound
    assert bound <= answer.value


@given(st.integers(0, 50))
def test_a_forward_problem_is_bounded_by_its_optimal_values(seed):
    world = random_problem(seed).world
    cost = np.random.default_rng(seed).uniform(-1, 1, world.num_pairs)
    problem = jm.Forward(world, cost)
    values = jm.plan(world, cost).values
    bound = jm.problem.lower_bound(problem, jm.problem.Witness([1.0], values))
    best = jm.expected_cost(world, jm.plan(world, cost).policy, cost)
    assert bound == pytest.approx(best, abs=1e-9 * problem.gap_scale)
    assert bound <= best


def test_a_witness_of_another_problem_is_refused():
    problem = random_problem(0, num_costs=3)
    with pytest.raises(jm.errors.InvalidProblem, match="2 weights"):
        jm.problem.lower_bound(
            problem, jm.problem.Witness([1.0, 1.0], np.zeros(problem.world.num_states))
        )
    with pytest.raises(jm.errors.InvalidProblem, match="values of the witness"):
        jm.problem.lower_bound(problem, jm.problem.Witness([1.0, 1.0, 1.0], np.zeros(2)))
