"""Policies by a rule agree with the laws they stand for."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.policy.function_policy import chosen_share, drawn_actions

PARITY = jm.policy.RulePolicy(lambda states: states % 3, 3)
TWIN = jm.FunctionPolicy(lambda states: np.eye(3)[states % 3], 3)
STATES = np.random.default_rng(0).integers(2**60, size=50)


def test_a_rule_is_a_law_with_a_single_one():
    assert np.array_equal(PARITY.probabilities(STATES), TWIN.probabilities(STATES))
    assert np.array_equal(PARITY.actions(STATES), STATES % 3)


def test_a_rule_spends_as_many_numbers_as_the_law_would():
    streams = np.random.default_rng(1), np.random.default_rng(1)
    drawn = [
        policy.sample(STATES, rng) for policy, rng in zip((PARITY, TWIN), streams, strict=True)
    ]
    assert np.array_equal(*drawn)
    assert streams[0].random() == streams[1].random()


@pytest.mark.parametrize("policy", [PARITY, TWIN])
def test_shares_and_draws_are_those_of_the_law(policy):
    actions = np.arange(50) % 3
    expected = policy.probabilities(STATES)[np.arange(50), actions]
    assert np.array_equal(chosen_share(policy, STATES, actions), expected)
    uniforms = np.random.default_rng(2).random(50)
    assert np.array_equal(drawn_actions(policy, STATES, uniforms), STATES % 3)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda states: states % 4, "actions"),
        (lambda states: states[:-1] % 3, "50"),
        (lambda states: states % 3 + 0.5, "not a whole number"),
    ],
)
def test_what_a_rule_returns_is_checked(rule, message):
    with pytest.raises(jm.errors.InvalidPolicy, match=message):
        jm.policy.RulePolicy(rule, 3).actions(STATES)


def test_a_table_is_no_rule():
    with pytest.raises(jm.errors.InvalidPolicy, match="rule is a list"):
        jm.policy.RulePolicy([0, 1], 2)


def test_a_rule_says_what_it_is():
    assert repr(jm.policy.RulePolicy(np.sign, 2)) == "RulePolicy(sign, 2 actions)"


def test_a_law_that_is_the_same_everywhere_is_held_once():
    even = jm.FunctionPolicy(lambda states: np.broadcast_to(0.25, (states.size, 4)), 4)
    laws = even.probabilities(STATES)
    assert laws.strides[0] == 0
    assert np.array_equal(laws, np.full((50, 4), 0.25))
    with pytest.raises(jm.errors.InvalidPolicy, match=r"sum to 1"):
        jm.FunctionPolicy(lambda x: np.broadcast_to(0.3, (x.size, 4)), 4).probabilities(STATES)


def test_a_rule_predicts_the_same_deterministic_or_not():
    observed = STATES[:6].reshape(2, 3)
    for deterministic in (False, True):
        actions, carried = PARITY.predict(observed, state=("kept",), deterministic=deterministic)
        assert np.array_equal(actions, observed % 3)
        assert carried == ("kept",)
