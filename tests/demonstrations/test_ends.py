"""Time limits that recorders mark as terminations: named, suspected, read as what they are."""

import warnings

import numpy as np
import pytest

import journeyman as jm

LIMIT = 4


def walks(count, *, terminated, states=6, seed=0):
    """Random walks on a ring of states, which end nowhere; all as long as the limit."""
    draw = np.random.default_rng(seed)
    moves = draw.integers(0, 2, size=(count, LIMIT))
    visited = np.cumsum(np.column_stack([np.zeros(count, int), 2 * moves - 1]), axis=1) % states
    return [*visited], [*moves], [terminated] * count


def test_ends_at_the_limit_are_truncated_and_the_others_are_given_their_state():
    demos = jm.Demonstrations([0, 1, 1, 0, 0], [0, 1, 0], [0, 2, 3], terminated=[1, 1])
    ended = demos.with_ends(truncated_at=2, terminal_state=7)
    assert ended.terminated.tolist() == [False, True]
    assert ended.states.tolist() == [0, 1, 1, 0, 7]
    assert demos.terminated.all()


def test_every_door_has_the_same_option(tmp_path):
    states, actions = [[0, 1, 2], [0, 3]], [[0, 0], [1]]
    given = {"truncated_at": 2, "terminal_state": 9}
    demos = jm.Demonstrations.from_arrays(states, actions, [True, True])
    found = [jm.Demonstrations.from_arrays(states, actions, [True, True], **given)]
    for name in ("demos.npz", "demos.csv"):
        demos.save(tmp_path / name)
        found.append(jm.Demonstrations.load(tmp_path / name, **given))
    for form in ("npz", "csv", "parquet", "minari", "imitation"):
        path = tmp_path / f"by-{form}-v0"
        jm.write_demonstrations(demos, path, format=form)
        found.append(jm.read_demonstrations(path, format=form, **given))
    for one in found:
        assert one.terminated.tolist() == [False, True]
        assert one.last_states.tolist() == [2, 9]


def test_an_episode_beyond_the_limit_contradicts_it(tmp_path):
    path = tmp_path / "demos.csv"
    path.write_text("episode,t,state,action,next_state\n0,0,0,0,1\n0,1,1,0,2\n0,2,2,0,3\n")
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match=r"demos.csv, line 4: episode 0.* 3 steps"
    ):
        jm.read_demonstrations(path, truncated_at=2)


@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True, float("nan")])
def test_the_limit_is_a_whole_number(value):
    demos = jm.Demonstrations([0, 1, 1], [0, 1], [0, 2])
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match=r"truncated_at = .* whole number from 1"
    ):
        demos.with_ends(truncated_at=value)


@pytest.mark.parametrize("states", [6, 10**9])
def test_a_suspicious_length_is_a_warning_that_teaches_the_option(tmp_path, states):
    arrays = walks(12, terminated=True, states=states)
    with pytest.warns(UserWarning, match=rf"12 of 12 .* truncated_at={LIMIT}"):
        demos = jm.Demonstrations.from_arrays(*arrays)
    for name in ("demos.csv", "demos.parquet"):
        jm.write_demonstrations(demos, tmp_path / name)
        with pytest.warns(UserWarning, match=rf"{name}: .* truncated_at={LIMIT}"):
            jm.read_demonstrations(tmp_path / name)


@pytest.mark.parametrize(
    "arrays",
    [
        walks(12, terminated=False),
        ([[0, 1, 2]] * 12, [[0, 0]] * 12, [True] * 12),
        ([[0, 1, 2, 2], [0, 0, 1, 2]], [[0, 0, 0]] * 2, [True, True]),
        ([[0, 1, 5], [0, 1, 6]], [[0, 0], [0, 1]], [True, True]),
        (
            [[0, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]], [[0, 0]] * 4, [True, True, False, False],
        ),
        ([[0, 5], [0, 6], [0, 7], [0, 8], [0, 9]], [[0]] * 5, [True] * 5),
    ],
    ids=["truncated", "one way", "rests on", "few", "told apart", "single steps"],
)  # fmt: skip
def test_ordinary_records_are_no_reason_for_a_warning(arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.Demonstrations.from_arrays(*arrays)


def test_a_world_refuses_them_and_says_which_option_helps():
    ring = jm.World.from_arrays(
        np.array([np.roll(np.eye(6), step, axis=1) for step in (-1, 1)]).transpose(1, 0, 2),
        np.eye(6)[0], 0.9,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="time limit"):
        demos = jm.Demonstrations.from_arrays(*walks(12, terminated=True))
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match=rf"not absorbing.*truncated_at={LIMIT}"
    ):
        demos.pairs_in(ring)
    assert demos.with_ends(truncated_at=LIMIT).pairs_in(ring).size == 12 * LIMIT


def test_a_given_terminal_state_does_not_silence_the_warning(tmp_path):
    states, actions, terminated = walks(12, terminated=True, states=3)
    with pytest.warns(UserWarning, match="time limit"):
        demos = jm.Demonstrations.from_arrays(states, actions, terminated, terminal_state=3)
    assert set(demos.last_states) == {3}
    with pytest.warns(UserWarning, match="time limit"):
        jm.write_demonstrations(
            jm.Demonstrations.from_arrays(states, actions, terminated), tmp_path / "demos.csv"
        )
    steps = np.array([(x, a, (x + 2 * a - 1) % 3) for x in range(3) for a in range(2)] * 20)
    log = [f"{x},{a},{y},0" for x, a, y in steps] + ["0,0,0,1", "1,1,1,1"]
    (tmp_path / "log.csv").write_text("\n".join(["state,action,next_state,terminated", *log]))
    world = jm.read_world(tmp_path / "log.csv", options={"discount": "0.9", "initial": "0"})
    given = {"world": world, "terminal_state": 3}
    with pytest.raises(
        jm.errors.InvalidDemonstrations,
        match=rf"truncated_at={LIMIT}.* give terminal_state=3, the end that was added",
    ):
        jm.read_demonstrations(tmp_path / "demos.csv", world=world)
    for one in (given, {"terminal_state": 3}):
        with pytest.warns(UserWarning, match=rf"demos.csv: .* truncated_at={LIMIT}"):
            jm.read_demonstrations(tmp_path / "demos.csv", **one)
    with pytest.warns(UserWarning, match=rf"demos.csv: .* truncated_at={LIMIT}"):
        jm.Demonstrations.load(tmp_path / "demos.csv", terminal_state=3)
    demos = jm.read_demonstrations(tmp_path / "demos.csv", **given, truncated_at=LIMIT)
    assert not demos.terminated.any()


def test_both_remedies_are_named_when_some_terminated_before_the_limit():
    world = jm.World.from_arrays(np.full((2, 1, 2), 0.5), [1, 0], 0.9)
    demos = jm.Demonstrations([0, 1, 0, 0, 1], [0, 0, 0], [0, 2, 3], terminated=[1, 1])
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match=r"1 of 2 such .* truncated_at=2, .* terminal_state="
    ):
        demos.pairs_in(world)
