import numpy as np
import pytest

import journeyman as jm

RAGGED = jm.world.Pairs(np.array([0, 2, 3, 6]))
RECTANGULAR = jm.world.Pairs.rectangular(3, 2)
both = pytest.mark.parametrize("pairs", [RAGGED, RECTANGULAR], ids=["ragged", "rectangular"])


def segments(pairs):
    return [range(*pairs.offsets[state : state + 2]) for state in range(pairs.num_states)]


def test_sizes_of_ragged_and_rectangular_sets():
    assert (len(RAGGED), RAGGED.num_states, RAGGED.max_actions) == (6, 3, 3)
    assert RAGGED.actions_per_state.tolist() == [2, 1, 3]
    assert not RAGGED.is_rectangular
    assert RECTANGULAR.offsets.tolist() == [0, 2, 4, 6]
    assert RECTANGULAR.is_rectangular


def test_pairs_are_state_major_with_actions_from_zero():
    assert RAGGED.states.tolist() == [0, 0, 1, 2, 2, 2]
    assert RAGGED.actions.tolist() == [0, 1, 0, 0, 1, 2]


@both
@pytest.mark.parametrize("axes", [(), (4,)])
def test_total_smallest_and_spread_go_state_by_state(pairs, axes):
    values = np.random.default_rng(0).normal(size=(len(pairs), *axes))
    rows = segments(pairs)
    np.testing.assert_allclose(pairs.total(values), [sum(values[k] for k in part) for part in rows])
    np.testing.assert_array_equal(pairs.smallest(values), [values[part].min(0) for part in rows])
    of_states = values[: pairs.num_states]
    spread = pairs.spread(of_states)
    for state, part in enumerate(rows):
        for pair in part:
            np.testing.assert_array_equal(spread[pair], of_states[state])


@both
def test_index_inverts_states_and_actions(pairs):
    assert pairs.index(pairs.states, pairs.actions).tolist() == list(range(len(pairs)))


@pytest.mark.parametrize(
    ("states", "actions", "message"),
    [
        ([0, 1, 2], [1, 1, 1], r"actions\[1\] = 1, but state 1 has actions 0..0"),
        ([0, 2], [0, -1], r"actions\[1\] = -1"),
        ([0, 3], [0, 0], r"states\[1\] = 3 is outside 0..2"),
        ([-1], [0], r"states\[0\] = -1"),
        ([0.5], [0], "not a whole number"),
        ([0, 1], [0], "1 entries, expected 2"),
    ],
)
def test_the_first_unknown_pair_is_named(states, actions, message):
    with pytest.raises(jm.errors.InvalidInput, match=message):
        RAGGED.index(states, actions)


def test_a_table_is_zero_where_a_state_lacks_the_action():
    table = RAGGED.table(np.arange(1.0, 7.0))
    assert table.tolist() == [[1, 2, 0], [3, 0, 0], [4, 5, 6]]
    assert RECTANGULAR.table(np.arange(6.0)).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_rows_per_state_are_repeated_and_rows_per_pair_kept():
    per_state, per_pair = np.array([[1.0], [2.0], [3.0]]), np.arange(6.0)[:, np.newaxis]
    repeated = RAGGED.per_pair("cost", per_state, jm.errors.InvalidCosts)
    assert repeated.ravel().tolist() == [1, 1, 2, 3, 3, 3]
    assert RAGGED.per_pair("cost", per_pair, jm.errors.InvalidCosts) is per_pair
    with pytest.raises(
        jm.errors.InvalidCosts, match="cost has 4 rows, but the world has 3 states and 6"
    ):
        RAGGED.per_pair("cost", np.ones(4), jm.errors.InvalidCosts)


def test_pairs_are_equal_by_value():
    assert jm.world.Pairs(np.array([0, 2, 4, 6])) == RECTANGULAR
    assert RAGGED != RECTANGULAR
    assert RAGGED != 6


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0], "no state"),
        ([1, 2], r"choice_offsets\[0\] = 1"),
        ([0, 2, 2, 3], "leave state 1 without an action"),
        ([0, 2, 1], "leave state 1 without an action"),
        ([0.0, 1.5], "not a whole number"),
    ],
)
def test_offsets_that_describe_no_action_sets_are_refused(offsets, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        jm.world.Pairs(offsets)
