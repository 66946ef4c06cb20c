import numpy as np
import pytest

import journeyman as jm

CORRIDOR = jm.World(
    [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1]],
    [1, 0, 0],
    0.9,
    choice_offsets=[0, 2, 4, 5],
)


def two_episodes(**more):
    return jm.Demonstrations([0, 1, 2, 0, 0], [0, 0, 1], [0, 2, 3], [True, False], **more)


def test_episodes_are_cut_out_of_the_flat_arrays():
    demos = two_episodes()
    assert (len(demos), demos.num_steps) == (2, 3)
    assert demos.lengths.tolist() == [2, 1]
    assert [part.tolist() for part in demos.episode(0)] == [[0, 1, 2], [0, 0]]
    assert [part.tolist() for part in demos.episode(1)] == [[0, 0], [1]]


def test_every_step_knows_its_time_episode_and_states():
    demos = two_episodes()
    assert demos.step_times.tolist() == [0, 1, 0]
    assert demos.step_episodes.tolist() == [0, 0, 1]
    assert demos.step_states.tolist() == [0, 1, 0]
    assert demos.next_states.tolist() == [1, 2, 0]
    assert demos.last_states.tolist() == [2, 0]


def test_terminated_and_truncated_are_kept_apart():
    demos = two_episodes()
    assert demos.terminated.tolist() == [True, False]
    assert demos.truncated.tolist() == [False, True]
    unknown = jm.Demonstrations([0, 1], [0], [0, 1])
    assert unknown.terminated.tolist() == [False]


def test_steps_are_pairs_of_the_world():
    assert two_episodes().pairs_in(CORRIDOR).tolist() == [0, 2, 1]


def test_episodes_come_as_one_array_each():
    demos = jm.Demonstrations.from_arrays([[0, 1, 2], [0, 0]], [[0, 0], [1]], [True, False])
    for name in ("states", "actions", "offsets", "terminated"):
        assert getattr(demos, name).tolist() == getattr(two_episodes(), name).tolist()


def test_the_terminal_state_replaces_the_end_of_terminated_episodes_only():
    given = [np.array([0, 1, 0]), np.array([0, 0])]
    demos = jm.Demonstrations.from_arrays(given, [[0, 0], [1]], [True, False], terminal_state=2)
    assert demos.states.tolist() == [0, 1, 2, 0, 0]
    assert given[0].tolist() == [0, 1, 0]


def test_concatenation_keeps_every_episode_in_order():
    longer = jm.Demonstrations([0, 0, 1], [1, 0], [0, 2])
    joined = jm.Demonstrations.concatenate([two_episodes(), longer, two_episodes()])
    assert joined.lengths.tolist() == [2, 1, 2, 2, 1]
    assert joined.terminated.tolist() == [True, False, False, True, False]
    assert [part.tolist() for part in joined.episode(2)] == [[0, 0, 1], [1, 0]]
    assert joined.pairs_in(CORRIDOR).tolist() == [0, 2, 1, 1, 0, 0, 2, 1]


@pytest.mark.parametrize(
    ("other", "known"), [([0, 2, 4, 5], True), ([0, 2, 4, 6], False), (None, False)]
)
def test_action_sets_survive_concatenation_when_all_agree(other, known):
    parts = [two_episodes(choice_offsets=[0, 2, 4, 5]), two_episodes(choice_offsets=other)]
    for order in (parts, parts[::-1]):
        assert (jm.Demonstrations.concatenate(order).pairs == CORRIDOR.pairs) is known


def test_demonstrations_cannot_be_changed():
    demos = two_episodes()
    for array in (demos.states, demos.actions, demos.offsets, demos.terminated):
        assert not array.flags.writeable


@pytest.mark.parametrize(
    ("states", "actions", "terminated", "message"),
    [
        ([0, 3], [0], [False], "episode 0 ends in state 3, outside 0..2"),
        ([0, 7, 2], [0, 0], [False], "episode 0, step 1: state 7, action 0 is not a pair"),
        ([0, 1, 0], [0, 2], [False], "episode 0, step 1: state 1, action 2 is not a pair"),
        ([0, 1], [-1], [False], "episode 0, step 0: state 0, action -1 is not a pair"),
        ([0, 1, 1], [0, 0], [False], "step 1: the step from state 1 by action 0 to state 1"),
        ([0, 1], [0], [True], "terminated but ends in state 1, which is not absorbing"),
    ],
)
def test_the_first_step_that_cannot_be_is_named(states, actions, terminated, message):
    demos = jm.Demonstrations.from_arrays([states], [actions], terminated)
    with pytest.raises(jm.errors.InvalidDemonstrations, match=message):
        demos.pairs_in(CORRIDOR)


def test_a_fault_in_a_later_episode_is_named_with_its_own_step():
    demos = jm.Demonstrations.from_arrays([[0, 1, 2], [0, 0, 2]], [[0, 0], [1, 0]])
    with pytest.raises(jm.errors.InvalidDemonstrations, match="episode 1, step 1"):
        demos.pairs_in(CORRIDOR)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0], [0]), "offsets do not start at 0"),
        (([0, 1], [0], [1, 2]), "offsets do not start at 0"),
        (([0, 1, 0], [0], [0, 1, 1]), "episode 1 has no action"),
        (([0, 1, 1], [0], [0, 1]), "states has 3 entries, expected 2"),
        (([0, 1], [0, 0], [0, 1]), "actions has 2 entries, expected 1"),
        (([0, 1], [0], [0, 1], [True, False]), "terminated has shape"),
        (([0, 0.5], [0], [0, 1]), "not a whole number"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(arguments, message):
    with pytest.raises(jm.errors.InvalidDemonstrations, match=message):
        jm.Demonstrations(*arguments)


@pytest.mark.parametrize(
    ("states", "actions", "message"),
    [
        ([], [], "0 arrays of states and 0 of actions"),
        ([[0, 1]], [], "1 arrays of states and 0 of actions"),
        ([[0, 1], [0, 1]], [[0], [0, 0]], "episode 1 has 2 states and 2 actions"),
    ],
)
def test_episodes_without_an_end_are_refused(states, actions, message):
    with pytest.raises(jm.errors.InvalidDemonstrations, match=message):
        jm.Demonstrations.from_arrays(states, actions)


def test_there_must_be_something_to_concatenate():
    with pytest.raises(jm.errors.InvalidDemonstrations, match="nothing to concatenate"):
        jm.Demonstrations.concatenate([])


def test_a_terminal_state_can_be_given_when_loading(tmp_path):
    demos = jm.Demonstrations.from_arrays([[0, 1], [1, 0, 1]], [[0], [1, 0]], [True, False])
    for name in ("demos.npz", "demos.csv"):
        demos.save(tmp_path / name)
        loaded = jm.Demonstrations.load(tmp_path / name, terminal_state=300)
        assert loaded.last_states.tolist() == [300, 1]
        assert loaded.actions.tolist() == demos.actions.tolist()


def test_small_integers_can_end_in_a_large_state():
    states = [np.array([0, 1], dtype=np.uint8)]
    demos = jm.Demonstrations.from_arrays(states, [[0]], [True], terminal_state=300)
    assert demos.last_states.tolist() == [300]
