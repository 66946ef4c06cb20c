import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm

SIZES = st.lists(st.integers(1, 10**6), min_size=1, max_size=3)


@given(SIZES, st.integers(0, 2**32 - 1))
def test_digits_and_states_are_inverse_to_each_other(sizes, seed):
    radix = jm.world.MixedRadix(sizes)
    states = np.random.default_rng(seed).integers(radix.num_states, size=20)
    digits = radix.digits(states)
    assert digits.dtype == np.int64
    assert ((digits >= 0) & (digits < sizes)).all()
    np.testing.assert_array_equal(radix.states(digits), states)
    np.testing.assert_array_equal(radix.strides @ digits.T, states)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_states_are_numbered_like_the_entries_of_an_array(sizes):
    radix = jm.world.MixedRadix(sizes)
    everything = np.arange(radix.num_states)
    expected = np.column_stack(np.unravel_index(everything, sizes))
    np.testing.assert_array_equal(radix.digits(everything), expected)
    np.testing.assert_array_equal(radix.states(expected), everything)


@pytest.mark.parametrize(
    "sizes", [[2**63 - 1], [7, 7, 73, 127, 337, 92737, 649657], [2] * 62, [1, 3, 1]]
)
def test_ids_are_exact_up_to_the_last_one(sizes):
    radix = jm.world.MixedRadix(sizes)
    last = [radix.num_states - 1]
    assert radix.digits(last).tolist() == [[size - 1 for size in sizes]]
    assert radix.states(radix.digits(last)).tolist() == last


def test_nothing_asked_is_nothing_answered():
    radix = jm.world.MixedRadix([4, 3])
    assert radix.digits([]).shape == (0, 2)
    assert radix.states(np.empty((0, 2), dtype=np.int64)).shape == (0,)
    assert radix.states(np.empty((0, 2))).dtype == np.int64


def test_whole_floats_are_digits():
    assert jm.world.MixedRadix([4, 3]).states([[1.0, 2.0]]).tolist() == [5]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: jm.world.MixedRadix([]), "at least one factor"),
        (lambda: jm.world.MixedRadix([3, 0]), r"sizes = \[3, 0\]"),
        (lambda: jm.world.MixedRadix([2] * 63), "more than int64 can count"),
        (lambda: jm.world.MixedRadix([1.5]), "not a whole number"),
        (lambda: jm.world.MixedRadix([4, 3]).digits([0, 12]), r"states\[1\] = 12 is outside 0..11"),
        (lambda: jm.world.MixedRadix([4, 3]).digits([-1]), r"states\[0\] = -1"),
        (
            lambda: jm.world.MixedRadix([4, 3]).states([[1, 2], [1, 3]]),
            r"digits\[\(1, 1\)\] = 3 .* 0..2",
        ),
        (lambda: jm.world.MixedRadix([4, 3]).states([[1, 2, 0]]), "3 columns for 2 factors"),
        (lambda: jm.world.MixedRadix([4, 3]).states([1, 2]), "expected 2"),
        (lambda: jm.world.MixedRadix([4, 3]).states([[0.5, 1]]), "not a whole number"),
    ],
)
def test_wrong_sizes_states_and_digits_are_refused(wrong, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        wrong()
