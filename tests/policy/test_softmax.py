"""Softmax per state: a law in every state, whatever the logits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax as reference

from journeyman.policy.table import log_softmax, softmax
from journeyman.world import Pairs

RAGGED = Pairs([0, 1, 4, 6, 7])
logits = st.lists(
    st.floats(-1e300, 1e300) | st.floats(-30, 30), min_size=len(RAGGED), max_size=len(RAGGED)
).map(np.array)


def by_state(pairs, values):
    return np.split(values, pairs.offsets[1:-1])


@given(logits)
def test_every_state_has_the_law_of_its_own_logits(values):
    expected = np.concatenate([reference(part) for part in by_state(RAGGED, values)])
    assert np.allclose(log_softmax(RAGGED, values), expected, rtol=1e-12, atol=1e-12)
    assert np.allclose(softmax(RAGGED, values), np.exp(expected), rtol=1e-12, atol=1e-300)


@given(logits)
def test_laws_sum_to_one_and_a_single_action_is_certain(values):
    law = softmax(RAGGED, values)
    assert np.allclose(RAGGED.total(law), 1.0, rtol=0, atol=1e-15 * RAGGED.max_actions)
    assert law[0] == law[-1] == 1.0
    assert log_softmax(RAGGED, values)[0] == log_softmax(RAGGED, values)[-1] == 0.0


@pytest.mark.parametrize("size", [1e300, np.finfo(float).max])
def test_the_largest_floats_are_logits_too(size):
    values = np.array([size, size, -size, 0.0, -size, -size, -size])
    assert softmax(RAGGED, values).tolist() == [1.0, 1.0, 0.0, 0.0, 0.5, 0.5, 1.0]
    assert not np.isnan(log_softmax(RAGGED, values)).any()


def test_a_common_shift_of_a_state_changes_nothing():
    pairs = Pairs.rectangular(3, 4)
    values = np.random.default_rng(0).normal(size=12)
    shifted = values + pairs.spread(np.array([5.0, -700.0, 1e3]))
    assert np.allclose(softmax(pairs, shifted), softmax(pairs, values), rtol=1e-12)


def test_a_probability_too_small_for_a_float_keeps_its_logarithm():
    assert softmax(Pairs([0, 2]), np.array([0.0, -2000.0]))[1] == 0.0
    assert log_softmax(Pairs([0, 2]), np.array([0.0, -2000.0]))[1] == -2000.0
