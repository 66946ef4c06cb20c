"""Laws that pairs share: declared by tables, estimated together."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.errors import InvalidWorld
from journeyman.world import SharedLaws

WEAR = SharedLaws.increments(5, [0, 1, 2], num_actions=2, resets={1: 0})


def learned(states, actions, next_states, shared=WEAR, **more):
    more = {"initial": np.eye(shared.num_states)[0], **more}
    return jm.World.from_transitions(states, actions, next_states, 0.9, shared=shared, **more)


def naive_target(shape, axis, base, step, state):
    """The next state by coordinates."""
    place = list(np.unravel_index(state, shape))
    place[axis] = min(max((place[axis] if base is None else base) + step, 0), shape[axis] - 1)
    return int(np.ravel_multi_index(place, shape))


@pytest.mark.parametrize(("shape", "axis"), [((6,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 2), 1)])
def test_increments_move_one_coordinate_and_are_cut_off_at_the_ends(shape, axis):
    steps, last = [-1, 0, 2], shape[axis] - 1
    shared = SharedLaws.increments(shape, steps, num_actions=2, resets={1: last}, axis=axis)
    for state in range(int(np.prod(shape))):
        for action, base in enumerate([None, last]):
            wanted = [naive_target(shape, axis, base, step, state) for step in steps]
            assert shared.targets[state, action].tolist() == wanted
            assert shared.tells[state, action] == (len(set(wanted)) == len(wanted))
    assert shared.num_groups == 1
    assert SharedLaws.increments(shape, steps, num_actions=2, per_action=True).num_groups == 2


records = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=80
)


@given(records)
def test_a_group_has_the_frequencies_of_all_steps_that_show_their_outcome(drawn):
    drawn = [*drawn, (0, 0, 1)]
    steps = [(x, a, int(WEAR.targets[x, a, o])) for x, a, o in drawn]
    world = learned(*zip(*steps, strict=True))
    shown = Counter(o for x, a, o in drawn if WEAR.tells[x, a])
    total = sum(shown.values())
    assert world.num_pairs == 10
    assert (world.transition_counts == total).all()
    for pair, row in enumerate(world.transition.toarray()):
        wanted = np.zeros(5)
        for o in range(3):
            wanted[WEAR.targets[pair // 2, pair % 2, o]] += shown[o] / total
        np.testing.assert_allclose(row, wanted, atol=1e-15)
        image = np.unique(WEAR.targets[pair // 2, pair % 2])
        assert np.array_equal(np.flatnonzero(world.support.toarray()[pair]), image)


def test_states_that_were_never_recorded_have_the_law_of_their_group():
    world = learned([0, 0, 0, 0], [0] * 4, [0, 1, 1, 2])
    assert world.transition.toarray()[6].tolist() == [0, 0, 0, 0.25, 0.75]
    assert world.transition.toarray()[7].tolist() == [0.25, 0.5, 0.25, 0, 0]
    assert world.shared.group_tallies.tolist() == [[1, 2, 1]]
    assert world.pairs.is_complete


def test_steps_that_do_not_show_their_outcome_are_checked_and_not_counted():
    world = learned([0, 4, 4, 3], [0, 0, 0, 0], [1, 4, 4, 4])
    assert world.transition_counts.tolist() == [1] * 10
    with pytest.raises(InvalidWorld, match="step 1 leads from state 4 by action 0 to state 3"):
        learned([0, 4], [0, 0], [1, 3])


def test_actions_of_a_group_that_was_never_observed_are_not_offered():
    groups = SharedLaws.increments(5, [0, 1], num_actions=2, per_action=True)
    world = learned([0, 1], [1, 1], [0, 2], groups)
    assert world.pairs.actions.tolist() == [1] * 5
    assert world.shared.num_groups == 2


def test_known_ends_have_no_group():
    line = SharedLaws.increments(4, [0, 1], num_actions=2, per_action=True)
    world = learned([0, 1, 3], [0, 1, 1], [1, 2, 3], line, absorbing=[3])
    assert world.absorbing.tolist() == [False, False, False, True]
    assert world.pairs.actions.tolist() == [0, 1, 0, 1, 0, 1, 1]
    assert world.transition_error.tolist() == [2, 2, 2, 2, 2, 2, 0]
    assert world.shared.groups[3].tolist() == [-1, -1]
    again = learned([0, 1], [0, 1], [1, 2], line, sink=3)
    assert again.sink == 3
    assert again.pairs.actions.tolist() == [0, 1, 0, 1, 0, 1, 0]


def test_numbers_without_a_group_can_be_dropped_where_nothing_leads():
    groups, targets = np.array([[0], [0], [-1]]), np.array([[[0, 1]], [[1, 0]], [[-1, -1]]])
    shared = SharedLaws(groups, targets)
    world = learned([0, 0], [0, 0], [0, 1], shared, drop_unseen=True)
    assert world.absorbing.tolist() == [False, False, True]
    with pytest.raises(InvalidWorld, match=re.escape("state 2 has no group. Give its actions")):
        learned([0, 0], [0, 0], [0, 1], shared)


def test_numbers_with_a_group_are_states_also_where_nothing_was_recorded():
    groups = np.array([[0], [0], [1]])
    targets = np.array([[[0, 1]], [[1, 0]], [[2, 0]]])
    with pytest.raises(InvalidWorld, match="of group 1 no step was recorded"):
        learned([0, 0], [0, 0], [0, 1], SharedLaws(groups, targets), drop_unseen=True)


def test_a_step_may_stand_for_several():
    rows = {"state": [0, 1, 0], "action": [0, 0, 1], "next_state": [0, 3, 1], "count": [5, 2, 3]}
    from journeyman.world.estimation import empirical

    columns = [np.array(rows[name]) for name in ("state", "action", "next_state")]
    once = empirical(
        *columns, initial=np.eye(5)[0], initial_states=None, num_states=5, support=None,
        absorbing=[], shared=WEAR, times=np.array(rows["count"]),
    )  # fmt: skip
    repeated = [np.repeat(column, rows["count"]) for column in columns]
    world = learned(*repeated)
    assert (abs(once["transition"] - world.transition)).max() == 0
    assert once["transition_counts"].tolist() == world.transition_counts.tolist() == [10] * 10


def test_a_saved_world_keeps_what_its_pairs_share(tmp_path):
    world = learned([0, 1, 2, 0], [0, 0, 1, 1], [1, 1, 2, 1])
    world.save(tmp_path / "world.npz")
    again = jm.World.load(tmp_path / "world.npz")
    for name in ("groups", "targets", "tallies"):
        assert np.array_equal(getattr(again.shared, name), getattr(world.shared, name))
    assert abs(again.transition - world.transition).max() == 0


TABLES = {"groups": [[0, 0], [1, 0]], "targets": [[[0, 1], [1, 0]], [[1, 0], [1, 0]]]}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"groups": [[0, 2], [1, -2]]}, "groups are -2 to 2"),
        ({"groups": [[0, 2], [0, 2]]}, "no pair is in group 1"),
        ({"groups": [0, 1]}, "groups has 1 axes"),
        ({"groups": [[0, 0]]}, "groups have shape (1, 2), targets (2, 2, 2)"),
        ({"targets": [[[0, 2], [1, 0]], [[1, 0], [1, 0]]]}, "targets[0, 0, 1] = 2"),
        (
            {"targets": [[[0, 1], [1, -1]], [[1, 0], [1, 0]]]},
            "state 0, action 1 has other outcomes",
        ),
        ({"tallies": [[[1, 0], [1, 0]]]}, "tallies have shape (1, 2, 2)"),
        ({"tallies": [[[-1, 0], [1, 0]], [[1, 0], [0, 0]]]}, "count what is impossible"),
        (
            {"targets": [[[0, 0], [1, 0]], [[1, 0], [1, 0]]], "tallies": np.ones((2, 2, 2), int)},
            "where several lead to the same state",
        ),
    ],
)
def test_tables_that_make_no_sense_are_refused(changes, words):
    with pytest.raises(InvalidWorld, match=re.escape(words)):
        SharedLaws(**TABLES | changes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"steps": []}, "steps = []"),
        ({"steps": [1, 1]}, "steps = [1, 1]"),
        ({"steps": [0], "axis": 1}, "axis = 1"),
        ({"steps": [0], "resets": {1: 0}}, "resets = {1: 0}"),
        ({"steps": [0], "num_actions": 0}, "num_actions = 0"),
    ],
)
def test_increments_that_make_no_sense_are_refused(arguments, words):
    with pytest.raises(InvalidWorld, match=re.escape(words)):
        SharedLaws.increments(5, **arguments)


@pytest.mark.parametrize(
    ("steps", "more", "words"),
    [
        (([0], [2], [1]), {}, "step 0 takes action 2 in state 0, which has no group"),
        (([4], [0], [4]), {}, "of group 0 no step was recorded in a pair whose next state shows"),
        (([0], [0], [1]), {"num_states": 6, "initial": np.eye(6)[0]}, "describes 5 states"),
        (([0], [0], [1]), {"support": np.ones((5, 5))}, "a support of its own"),
    ],
)
def test_records_that_do_not_fit_are_refused(steps, more, words):
    with pytest.raises(InvalidWorld, match=re.escape(words)):
        learned(*steps, **more)


def test_a_world_whose_laws_do_not_follow_from_its_groups_is_refused():
    world = learned([0, 1, 2, 0], [0, 0, 1, 1], [1, 1, 2, 1])
    facts = {
        "initial": world.initial, "discount": 0.9, "choice_offsets": world.pairs,
        "transition_counts": world.transition_counts, "support": world.support,
        "shared": world.shared,
    }  # fmt: skip
    jm.World(world.transition, **facts)
    swapped = world.transition.toarray()
    swapped[0, :2] = swapped[0, 1::-1]
    for changes in (
        {"transition": swapped},
        {"support": None},
        {"support": np.ones((10, 5))},
        {"transition_counts": 2 * world.transition_counts},
        {"shared": SharedLaws.increments(5, [0, 1, 2], num_actions=2)},
        {"shared": SharedLaws.increments(4, [0, 1, 2], num_actions=2)},
    ):
        with pytest.raises(InvalidWorld, match="share"):
            jm.World(**{"transition": world.transition} | facts | changes)


def test_layers_of_a_horizon_share_the_laws_of_the_world():
    from journeyman.certificate.model_error import transition_radii

    world = learned([0, 1, 2, 0] * 50, [0, 0, 1, 1] * 50, [1, 1, 2, 1] * 50)
    layered = world.with_horizon(3, discount=1)
    assert layered.shared.num_groups == 1
    assert layered.shared.group_tallies.tolist() == world.shared.group_tallies.tolist()
    once, often = (transition_radii(one, 0.05).transition for one in (world, layered))
    assert np.array_equal(often, np.concatenate([once, once, np.zeros(10 + 2)]))
