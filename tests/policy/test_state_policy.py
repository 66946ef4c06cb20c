import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.testing.random_worlds import Shape, random_policy, random_world


@given(st.integers(0, 2**32 - 1))
def test_a_table_by_a_function_is_the_policy_of_the_table(seed):
    world = random_world(seed, Shape.DENSE)
    policy = random_policy(world, seed)
    table = policy.probabilities(np.arange(world.num_states))
    twin = jm.FunctionPolicy(lambda states: table[states], world.num_actions)
    states = np.random.default_rng(seed).integers(world.num_states, size=30)
    np.testing.assert_array_equal(twin.probabilities(states), policy.probabilities(states))
    np.testing.assert_array_equal(twin.sample(states, seed=7), policy.sample(states, seed=7))


def test_it_is_asked_where_no_table_reaches():
    parity = jm.FunctionPolicy(lambda states: np.eye(3)[states % 3], 3)
    states = np.array([2**62, 2**62 + 1])
    assert parity.sample(states, seed=0).tolist() == (states % 3).tolist()
    assert parity.probabilities([]).shape == (0, 3)
    assert parity.sample([], seed=0).shape == (0,)


def test_a_generator_goes_on_where_it_stands():
    coin = jm.FunctionPolicy(lambda states: np.full((states.size, 2), 0.5), 2)
    rng = np.random.default_rng(0)
    first, second = (coin.sample(np.zeros(40, dtype=np.int64), rng) for _ in range(2))
    assert first.tolist() != second.tolist()
    assert coin.sample(np.zeros(40, dtype=np.int64), 0).tolist() == first.tolist()


def test_laws_that_nearly_sum_to_one_are_normalised():
    nearly = jm.FunctionPolicy(lambda states: np.tile([0.5, 0.5 + 5e-9], (states.size, 1)), 2)
    np.testing.assert_allclose(nearly.probabilities([0]).sum(), 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("law", [[0.5, 0.6], [-0.5, 1.5], [np.nan, 1.0], [0.0, 0.0]], ids=str)
def test_what_is_no_law_is_named_with_its_state(law):
    policy = jm.FunctionPolicy(
        lambda states: np.where((states == 9)[:, np.newaxis], law, [1.0, 0.0]), 2
    )
    assert policy.sample([3], seed=0).tolist() == [0]
    with pytest.raises(jm.errors.InvalidPolicy, match="the probabilities of state 9 are"):
        policy.sample([3, 9], seed=0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: jm.FunctionPolicy(np.eye(2), 2), "a table goes into Policy"),
        (lambda: jm.FunctionPolicy(np.sin, 0), "num_actions = 0"),
        (lambda: jm.FunctionPolicy(np.sin, 1.5), "not a whole number"),
        (lambda: jm.FunctionPolicy(np.sin, 2).probabilities([1, 2]), r"shape \(2, 2\)"),
        (lambda: jm.FunctionPolicy(np.sin, 2).probabilities([[1]]), "states has 2 axes"),
    ],
)
def test_wrong_functions_are_refused(wrong, message):
    with pytest.raises(jm.errors.InvalidPolicy, match=message):
        wrong()


def test_its_name_is_that_of_the_function():
    assert repr(jm.FunctionPolicy(np.sin, 2)) == "FunctionPolicy(sin, 2 actions)"
