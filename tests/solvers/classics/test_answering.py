"""Answers of the classic methods: bounds are recomputed, and decide what is called optimal."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.answer import Work
from journeyman.solvers.classics.answering import (
    answer_of,
    require_demonstrations,
    require_suitable,
)
from journeyman.solvers.classics.generated_policies import GeneratedPolicies
from journeyman.testing import random_problem


def answer(problem, policy, status=jm.Status.CONVERGED, **given):
    return answer_of(problem, policy, status, engine="by hand", work=Work(iterations=3), **given)


def test_an_optimal_policy_with_separating_weights_is_called_optimal():
    problem = random_problem(0, jm.EuclideanBall())
    exact = jm.solve(problem)
    found = answer(problem, exact.policy, weights=exact.witness.cost_weights)
    assert found.status is jm.Status.OPTIMAL
    assert found.value == pytest.approx(exact.value)
    assert found.work.iterations == 3


def test_a_run_cut_short_is_not_called_optimal():
    problem = random_problem(0, jm.EuclideanBall())
    exact = jm.solve(problem)
    weights = exact.witness.cost_weights
    found = answer(problem, exact.policy, jm.Status.TIME_LIMIT, weights=weights)
    assert found.status is jm.Status.TIME_LIMIT


def test_any_other_policy_keeps_its_status_and_its_bounds_hold():
    problem = random_problem(0, jm.Simplex())
    policy = jm.Policy.uniform(problem.world)
    found = answer(problem, policy)
    assert found.status is jm.Status.CONVERGED
    assert found.value == pytest.approx(problem.gap(policy))
    assert found.lower_bound <= jm.solve(problem).value + 1e-9
    assert found.total_surplus is not None


def test_a_recovered_cost_goes_before_the_separating_one():
    problem = random_problem(0)
    policy = jm.Policy.uniform(problem.world)
    assert answer(problem, policy).cost_weights is not None
    recovered = answer(problem, policy, recovered=np.array([3.0, -7.0, 0.0]))
    assert recovered.cost_weights.tolist() == [3.0, -7.0, 0.0]
    assert np.abs(recovered.witness.cost_weights).max() <= 1


def test_a_mixture_and_its_stationary_policy_have_equal_expectations():
    problem = random_problem(1)
    generated = GeneratedPolicies(problem)
    for weights in ([1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, -1.0]):
        generated.answer(np.array(weights), 1e-9)
    assert len(generated) == 3
    measures = [generated.measure(k) for k in range(3)]
    stationary, mixture = generated.mixture(np.array([1.0, -1e-18, 3.0]))
    assert mixture.weights.tolist() == [0.25, 0.75]
    expected = 0.25 * measures[0] + 0.75 * measures[2]
    found = jm.occupancy(problem.world, stationary).measure
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_budgets_and_known_costs_are_refused():
    with pytest.raises(jm.errors.InvalidProblem, match="Projection cannot keep budgets"):
        require_suitable(random_problem(0, num_budgets=2), "Projection")
    world = random_problem(0).world
    with pytest.raises(jm.errors.InvalidProblem, match="a Forward has none"):
        require_suitable(jm.Forward(world, np.ones(world.num_pairs)), "Projection")


def test_a_method_that_needs_demonstrations_says_so():
    with pytest.raises(jm.errors.InvalidProblem, match="DAgger needs demonstrations"):
        require_demonstrations(random_problem(0), "DAgger")
    demos = require_demonstrations(random_problem(0, trajectories=4), "DAgger")
    assert len(demos) == 4
