"""Demonstrations from files know their lines, through every change, copy and process."""

import copy
import pickle

import numpy as np
import pytest

import journeyman as jm
from journeyman.studies.compare import fingerprint

TEXT = """episode,t,state,action,next_state,terminated
a,0,0,0,1,

a,1,1,0,0,
b,0,0,0,1,
b,1,1,1,1,
"""
"""The blank third line is no row; in the last one state 1 stays, which the world has not."""


@pytest.fixture
def world():
    laws = np.array([[[0, 1], [1, 0]], [[1, 0], [1, 0]]], dtype=float)
    return jm.World.from_arrays(laws, [1, 0], 0.9)


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "walk.csv"
    place.write_text(TEXT)
    return place


def refusal(demos, world):
    with pytest.raises(jm.errors.InvalidDemonstrations) as caught:
        demos.pairs_in(world)
    return caught.value.what


@pytest.mark.parametrize("read", [jm.Demonstrations.load, jm.read_demonstrations])
def test_what_a_problem_refuses_is_named_by_file_and_line(path, world, read):
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match=r"walk.csv, line 6: episode 1, step 1: .*0"
    ):
        jm.Apprenticeship(world, jm.CostBasis(np.eye(2)), read(path))


def test_selections_joins_and_copies_keep_the_lines(path, world):
    demos = jm.read_demonstrations(path)
    sound = jm.Demonstrations([0, 1], [0], [0, 1])
    for changed, words in (
        (demos.subset(np.array([1])), "line 6: episode 0, step 1"),
        (demos.subset(np.array([0, 1])).subset(np.array([1])), "line 6: episode 0, step 1"),
        (jm.Demonstrations.concatenate([sound, demos]), "line 6: episode 2, step 1"),
        (jm.Demonstrations.concatenate([demos, sound]), "line 6: episode 1, step 1"),
        (demos.with_ends(truncated_at=2), "line 6: episode 1, step 1"),
        (copy.deepcopy(demos), "line 6: episode 1, step 1"),
        (pickle.loads(pickle.dumps(demos)), "line 6: episode 1, step 1"),
    ):
        assert f"walk.csv, {words}" in refusal(changed, world)
    wrong = jm.Demonstrations([0, 0], [0], [0, 1])
    joined = jm.Demonstrations.concatenate([sound, wrong])
    assert joined.origin is None
    assert refusal(jm.Demonstrations.concatenate([wrong, demos]), world).startswith("episode 0")


def test_lines_are_those_of_the_file_when_it_was_read(path, world):
    demos = jm.read_demonstrations(path)
    path.unlink()
    assert "walk.csv, line 6: episode 1" in refusal(demos, world)


@pytest.mark.parametrize(
    ("name", "form", "place"),
    [
        ("walk.parquet", "parquet", "row 3"),
        ("walk.npz", "npz", "episode 1, step 1"),
        ("walk-v0", "minari", "episode_1, row 1"),
        ("walk", "imitation", "trajectory 1, step 1"),
    ],
)
def test_other_formats_name_their_own_places(path, world, tmp_path, name, form, place):
    jm.write_demonstrations(jm.read_demonstrations(path), tmp_path / name, format=form)
    words = refusal(jm.read_demonstrations(tmp_path / name), world)
    assert f"{tmp_path / name}, {place}: episode 1, step 1: the step from state 1" in words


def test_the_origin_decides_nothing(path):
    read = jm.read_demonstrations(path)
    made = jm.Demonstrations(read.states, read.actions, read.offsets, read.terminated)
    assert fingerprint(read, "demos") == fingerprint(made, "demos")


def test_a_step_that_a_declared_support_excludes_is_a_contradiction():
    steps = ([0, 0, 1, 1, 2], [0] * 5, [0, 1, 1, 2, 0])
    support = [[1, 1, 0], [1, 1, 1], [1, 1, 1]]
    world = jm.World.from_transitions(*steps, 0.9, initial=[1, 0, 0], support=support)
    demos = jm.Demonstrations([0, 1, 2, 0, 2], [0, 0, 0, 0], [0, 4])
    with pytest.raises(
        jm.errors.InvalidDemonstrations,
        match=r"by action 0 to state 2 contradicts the declared support.*allow it there",
    ):
        demos.pairs_in(world)
    assert jm.Demonstrations([1, 0], [0], [0, 1]).pairs_in(world).tolist() == [1]
