import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.policy.planning import soft_plan
from journeyman.testing import Shape, random_world
from journeyman.testing.strategies import seeds, worlds
from naive import soft_planning as naive

modest_worlds = worlds().filter(lambda world: world.discount <= 0.95)
temperatures = st.sampled_from([0.05, 1.0, 7.0])


def drawn_cost(world, seed):
    return np.random.default_rng(seed).normal(size=world.num_pairs)


def magnitude(world, cost, temperature):
    largest = np.abs(cost).max() + temperature * np.log(world.pairs.max_actions)
    return (largest + 1e-300) * world.effective_horizon


def soft_values_of(world, policy, cost, temperature):
    """Cost less entropy of a policy from every state, exactly."""
    averaging = np.zeros((world.num_states, world.num_pairs))
    averaging[world.pairs.states, np.arange(world.num_pairs)] = policy.per_pair
    chain = averaging @ world.transition.toarray()
    law = policy.per_pair
    paid = cost + temperature * np.log(np.where(law > 0, law, 1.0))
    return np.linalg.solve(np.eye(world.num_states) - world.discount * chain, averaging @ paid)


@settings(max_examples=40)
@given(modest_worlds, seeds, temperatures)
def test_values_and_law_are_those_of_value_iteration(world, seed, temperature):
    cost = drawn_cost(world, seed)
    found = soft_plan(world, cost, temperature=temperature)
    values = naive.soft_optimal_values(world, cost, temperature)
    slack = naive.PRECISION + 1e-10 * magnitude(world, cost, temperature)
    np.testing.assert_allclose(found.values, values, rtol=0, atol=slack)
    law = naive.soft_law(world, cost, values, temperature)
    np.testing.assert_allclose(found.policy.per_pair, law, rtol=0, atol=4 * slack / temperature)


@settings(max_examples=40)
@given(modest_worlds, seeds, st.sampled_from([1e-12, 1e-3, 0.1, 1.0]))
def test_the_error_is_a_true_bound_at_every_tolerance(world, seed, relative):
    cost, size = drawn_cost(world, seed), magnitude(world, drawn_cost(world, seed), 1.0)
    found = soft_plan(world, cost, tolerance=relative * size)
    assert found.error <= max(relative * size, 1e-10 * size)
    optimal = np.array(naive.soft_optimal_values(world, cost, 1.0))
    slack = naive.PRECISION + 1e-11 * size
    excess = soft_values_of(world, found.policy, cost, 1.0) - optimal
    assert excess.min() >= -slack
    assert excess.max() <= found.error + slack
    assert np.abs(found.values - optimal).max() <= found.error / 2 + slack


@given(worlds(), seeds, temperatures)
def test_soft_plans_are_proven_at_every_discount(world, seed, temperature):
    cost = drawn_cost(world, seed)
    found = soft_plan(world, cost, temperature=temperature)
    assert found.error <= 1e-8 * magnitude(world, cost, temperature)
    assert found.iterations < 60


@given(modest_worlds, seeds)
def test_a_cold_soft_plan_is_a_plan(world, seed):
    cost = drawn_cost(world, seed)
    hard = jm.plan(world, cost)
    for temperature in (1e-2, 1e-4, 1e-9):
        soft = soft_plan(world, cost, temperature=temperature)
        bonus = temperature * np.log(world.pairs.max_actions) * world.effective_horizon
        slack = soft.error + hard.error + 1e-12
        assert (soft.values <= hard.values + slack).all()
        assert (soft.values >= hard.values - bonus - slack).all()


@given(worlds(), seeds, st.floats(-50, 50))
def test_a_constant_more_changes_values_and_no_law(world, seed, constant):
    cost = drawn_cost(world, seed)
    here, there = soft_plan(world, cost), soft_plan(world, cost + constant)
    moved = constant * world.effective_horizon
    allowed = here.error + there.error + 1e-12 * abs(moved)
    assert np.abs(there.values - here.values - moved).max() <= allowed
    np.testing.assert_allclose(
        here.policy.per_pair, there.policy.per_pair, rtol=0, atol=4 * allowed + 1e-12
    )


@given(worlds(), seeds)
def test_temperature_is_a_unit_of_cost(world, seed):
    cost = drawn_cost(world, seed)
    here, there = soft_plan(world, cost), soft_plan(world, 8 * cost, temperature=8.0)
    np.testing.assert_allclose(8 * here.values, there.values, rtol=0, atol=8 * here.error)


def test_a_free_world_is_walked_at_random():
    world = random_world(0, Shape.DENSE, num_actions=4)
    found = soft_plan(world, np.zeros(world.num_pairs), temperature=2.0)
    np.testing.assert_allclose(found.policy.per_pair, 0.25, rtol=1e-12)
    entropy = 2.0 * np.log(4) * world.effective_horizon
    np.testing.assert_allclose(found.values, -entropy, rtol=1e-12)


@pytest.mark.parametrize("size", [5, 24])
def test_narrow_worlds_and_others_are_proven_alike(size):
    world, basis, _ = jm.gallery.grid(size, macro_cells=2, discount=0.99)
    cost = basis.on(world) @ [3.0, 0.0, 1.0, 2.0]
    assert soft_plan(world, cost).error <= 1e-8
    other, basis, _ = jm.gallery.garnet(size * size, num_costs=1, discount=0.99)
    assert soft_plan(other, basis.on(other) @ np.ones(1)).error <= 1e-8


def test_a_warm_start_gives_the_same_values_in_fewer_iterations():
    world, basis, _ = jm.gallery.garnet(200, 3, 3, num_costs=2)
    near, cost = basis.on(world) @ [9.0, 0.0], basis.on(world) @ [9.0, 0.01]
    cold = soft_plan(world, cost)
    warm = soft_plan(world, cost, warm_start=soft_plan(world, near))
    np.testing.assert_allclose(warm.values, cold.values, rtol=0, atol=1e-9)
    assert warm.iterations < cold.iterations
    again = soft_plan(world, cost, warm_start=cold, tolerance=2 * cold.error)
    assert again.iterations == 0


def test_a_loose_tolerance_stops_early():
    world, basis, _ = jm.gallery.garnet(50, 3, 3, num_costs=1)
    cost = basis.on(world) @ np.ones(1)
    exact, loose = soft_plan(world, cost), soft_plan(world, cost, tolerance=3.0)
    assert loose.iterations < exact.iterations
    assert exact.error < loose.error <= 3.0


def test_huge_costs_neither_overflow_nor_hang():
    world = random_world(3, Shape.RAGGED, discount=0.99)
    cost = 1e12 * drawn_cost(world, 0)
    found, hard = soft_plan(world, cost), jm.plan(world, cost)
    np.testing.assert_allclose(found.values, hard.values, rtol=1e-9)
    assert np.isfinite(found.policy.per_pair).all()


@pytest.mark.parametrize("temperature", [0.0, -1.0, np.nan, np.inf, "warm"])
def test_what_is_no_temperature_is_refused(temperature):
    with pytest.raises(jm.errors.InvalidCosts, match="temperature"):
        soft_plan(random_world(1), np.zeros(5), temperature=temperature)


@pytest.mark.parametrize("cost", [np.ones(99), [np.nan] * 5, np.ones((5, 2))])
def test_what_is_no_cost_of_the_world_is_refused(cost):
    with pytest.raises(jm.errors.InvalidCosts, match="cost"):
        soft_plan(random_world(1), cost)
