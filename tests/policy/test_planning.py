import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.policy import steps
from journeyman.testing import Shape, random_world
from journeyman.testing.strategies import seeds, worlds
from naive import planning as naive


@pytest.fixture(scope="module", params=["dense", "plain", "compiled"], autouse=True)
def size(request):
    """Worlds count as that small, or not."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "dense":
            patch.setattr(steps, "DENSE_STATES", 0)
        if request.param == "compiled":
            patch.setattr(steps, "PLAIN_STATES", 0)
        yield


modest_worlds = worlds().filter(lambda world: world.discount <= 0.95)


def values_of(world, policy, cost):
    """The exact value of a policy in every state."""
    averaging = np.zeros((world.num_states, world.num_pairs))
    averaging[world.pairs.states, np.arange(world.num_pairs)] = policy.per_pair
    chain = averaging @ world.transition.toarray()
    return np.linalg.solve(np.eye(world.num_states) - world.discount * chain, averaging @ cost)


def drawn_cost(world, seed):
    return np.random.default_rng(seed).normal(size=world.num_pairs)


def magnitude(world, cost):
    return np.abs(cost).max() * world.effective_horizon


@settings(max_examples=40)
@given(modest_worlds, seeds)
def test_a_plan_is_as_good_as_value_iteration(world, seed):
    cost = drawn_cost(world, seed)
    reached = values_of(world, jm.plan(world, cost).policy, cost)
    optimal = naive.optimal_values(world, cost)
    slack = naive.PRECISION + 1e-10 * magnitude(world, cost)
    np.testing.assert_allclose(reached, optimal, rtol=0, atol=slack)


@settings(max_examples=40)
@given(modest_worlds, seeds, st.sampled_from([1e-12, 1e-3, 0.1, 1.0]))
def test_the_error_is_a_true_bound_at_every_tolerance(world, seed, relative):
    cost = drawn_cost(world, seed)
    found = jm.plan(world, cost, tolerance=relative * magnitude(world, cost))
    optimal = naive.optimal_values(world, cost)
    slack = naive.PRECISION + 1e-11 * magnitude(world, cost)
    assert (values_of(world, found.policy, cost) - optimal).max() <= found.error + slack
    change = world.pairs.smallest(cost + world.discount * world.transition @ found.values)
    change = (change - found.values) * world.effective_horizon
    assert found.error == pytest.approx(np.ptp(change), abs=slack)
    assert (found.values + change.min() <= optimal + slack).all()
    assert (optimal <= found.values + change.max() + slack).all()


@given(worlds(), seeds)
def test_plans_are_proven_optimal_at_every_discount(world, seed):
    cost = drawn_cost(world, seed)
    assert jm.plan(world, cost).error <= 1e-8 * magnitude(world, cost)


def test_a_loose_tolerance_stops_early_with_an_honest_error():
    world, basis, _ = jm.gallery.garnet(50, 3, 3, num_costs=1)
    cost = basis.on(world) @ np.ones(1)
    exact, loose = jm.plan(world, cost), jm.plan(world, cost, tolerance=3.0)
    assert loose.iterations < exact.iterations
    assert exact.error < loose.error <= 3.0
    excess = (values_of(world, loose.policy, cost) - exact.values).max()
    assert 0 < excess <= loose.error


def test_a_warm_start_gives_the_same_values_in_fewer_iterations():
    world, basis, _ = jm.gallery.garnet(200, 3, 3, num_costs=2)
    near, cost = basis.on(world) @ [1.0, 0.0], basis.on(world) @ [1.0, 0.01]
    cold = jm.plan(world, cost)
    warm = jm.plan(world, cost, warm_start=jm.plan(world, near))
    np.testing.assert_allclose(warm.values, cold.values, rtol=0, atol=1e-9)
    assert warm.iterations <= cold.iterations
    again = jm.plan(world, cost, warm_start=cold, tolerance=2 * cold.error)
    assert again.iterations == 0
    np.testing.assert_array_equal(again.policy.per_pair, cold.policy.per_pair)


def test_among_equal_actions_the_first_is_taken():
    world = random_world(0, Shape.PERIODIC, num_actions=3)
    found = jm.plan(world, np.ones(world.num_states))
    assert found.policy.probabilities(np.arange(5)).tolist() == [[1, 0, 0]] * 5


def test_a_free_world_costs_nothing():
    found = jm.plan(random_world(0), np.zeros(5))
    assert found.error == 0
    assert not found.values.any()


def test_an_expensive_step_to_a_free_place_is_worth_it():
    world = jm.World([[1, 0], [0, 1], [0, 1]], [1, 0], 0.5, choice_offsets=[0, 2, 3])
    dear, cheap = jm.plan(world, [1.0, 2.1, 0.0]), jm.plan(world, [1.0, 1.9, 0.0])
    assert dear.policy.per_pair.tolist() == [1, 0, 1]
    assert cheap.policy.per_pair.tolist() == [0, 1, 1]
    np.testing.assert_allclose([dear.values, cheap.values], [[2, 0], [1.9, 0]], atol=1e-10)


@pytest.mark.parametrize("tolerance", [None, 1e9])
def test_a_plan_cannot_be_changed(tolerance):
    found = jm.plan(random_world(1), np.arange(5.0), tolerance=tolerance)
    assert not found.values.flags.writeable


@pytest.mark.parametrize("cost", [np.ones(99), [np.nan] * 5, np.ones((5, 2))])
def test_what_is_no_cost_of_the_world_is_refused(cost):
    with pytest.raises(jm.errors.InvalidCosts, match="cost"):
        jm.plan(random_world(1), cost)


@given(worlds(), seeds, st.sampled_from([1e-9, 1.0, 100.0]))
def test_values_are_within_half_the_error_of_optimal(world, seed, tolerance):
    cost = np.random.default_rng(seed).uniform(-1, 1, world.num_pairs)
    exact, found = jm.plan(world, cost), jm.plan(world, cost, tolerance=tolerance)
    slack = 1e-9 * world.effective_horizon
    assert np.abs(found.values - exact.values).max() <= (found.error + exact.error) / 2 + slack
