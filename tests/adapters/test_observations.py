"""Observations and logged probabilities in the formats that hold them."""

import json

import numpy as np
import pytest

import journeyman as jm
from journeyman.errors import InvalidDemonstrations, InvalidFile

FORMATS = {"npz": "demos.npz", "csv": "demos.csv", "parquet": "demos.parquet"}


def observed(seed=0, axes=(3,), logged=True):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, 12)
    states = [rng.normal(size=(n + 1, *axes)) for n in lengths]
    actions = [rng.integers(0, 3, n) for n in lengths]
    chances = [rng.uniform(0.1, 1, n) for n in lengths] if logged else None
    return jm.Demonstrations.from_arrays(
        states, actions, rng.random(12) < 0.5, probabilities=chances
    )


def assert_same(one, other):
    for name in ("states", "actions", "offsets", "terminated"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    if one.probabilities is not None:
        assert np.array_equal(one.probabilities, other.probabilities)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("ids", [False, True])
def test_written_and_read_back(tmp_path, form, ids):
    pytest.importorskip("pyarrow")
    demos = observed()
    if ids:
        states = np.arange(demos.states.shape[0]) % 7
        demos = jm.Demonstrations(
            states, demos.actions, demos.offsets, demos.terminated,
            probabilities=demos.probabilities,
        )  # fmt: skip
    path = tmp_path / FORMATS[form]
    jm.write_demonstrations(demos, path)
    again = jm.read_demonstrations(path)
    assert_same(demos, again)
    assert again.has_ids is ids


def test_images_are_kept_by_the_native_format_as_they_are(tmp_path):
    demos = observed(axes=(4, 5), logged=False)
    pixels = jm.Demonstrations(
        (demos.states * 40).astype(np.uint8), demos.actions, demos.offsets, demos.terminated
    )
    pixels.save(tmp_path / "images.npz")
    again = jm.Demonstrations.load(tmp_path / "images.npz")
    assert again.states.dtype == np.uint8
    assert_same(pixels, again)


def test_minari_boxes(tmp_path):
    pytest.importorskip("minari")
    demos = observed(logged=False)
    jm.write_demonstrations(demos, tmp_path / "box-v0", format="minari")
    assert_same(demos, jm.read_demonstrations(tmp_path / "box-v0"))
    path = tmp_path / "box-v0" / "data" / "metadata.json"
    facts = json.loads(path.read_text())
    for space, words in (
        ({"type": "Box", "shape": [2]}, "has shape"),
        ({"type": "Box", "shape": [0]}, "a Box of shape"),
        ({"type": "Box", "shape": "x"}, "a Box of shape"),
        ({"type": "Dict"}, "neither Discrete nor a Box"),
    ):
        path.write_text(json.dumps(facts | {"observation_space": json.dumps(space)}))
        with pytest.raises(InvalidFile, match=words):
            jm.read_demonstrations(tmp_path / "box-v0")
    box = json.dumps({"type": "Box", "shape": [3]})
    path.write_text(json.dumps(facts | {"action_space": box}))
    with pytest.raises(InvalidFile, match="continuous actions"):
        jm.read_demonstrations(tmp_path / "box-v0")


def test_imitation_holds_ids_only(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(InvalidDemonstrations, match="needs ids"):
        jm.write_demonstrations(observed(), tmp_path / "run", format="imitation")


LOG = "episode,t,state_0,state_1,action,next_state_0,next_state_1,terminated,expert_probability\n"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("0,0,0.5,x,1,2,3,0,0.5\n", "line 2: state_1 is 'x', expected a number"),
        ("0,0,0.5,nan,1,2,3,0,0.5\n", "line 2: state_1 is 'nan'"),
        ("0,0,0.5,1,1,2,3,0,0.5\n0,1,2,4,1,2,3,0,0.5\n", "line 3: state is 2.0, 4.0, but"),
        ("0,0,0.5,1,1,2,3,0,0\n", "line 2: expert_probability is 0.0"),
        ("0,0,0.5,1,1,2,3,0,1.5\n", "line 2: expert_probability is 1.5"),
        ("0,0,0.5,1,a,2,3,0,1\n", "line 2: action is 'a'"),
    ],
)
def test_the_first_wrong_line_is_named(tmp_path, rows, words):
    path = tmp_path / "log.csv"
    path.write_text(LOG + rows)
    with pytest.raises(InvalidFile, match=words):
        jm.read_demonstrations(path)


def test_a_log_of_observations(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG + "a,0,0.5,1,1,2,3,0,0.5\na,1,2,3,0,4,5,1,1\nb,0,7,8,2,9,9,0,0.25\n")
    demos = jm.read_demonstrations(path)
    assert demos.states.tolist() == [[0.5, 1], [2, 3], [4, 5], [7, 8], [9, 9]]
    assert demos.terminated.tolist() == [True, False]
    assert demos.probabilities.tolist() == [0.5, 1, 0.25]
    world, _, _ = jm.gallery.grid(4)
    with pytest.raises(InvalidDemonstrations, match="hold observations"):
        jm.read_demonstrations(path, world=world)


def test_parts_keep_observations_and_probabilities():
    demos = observed()
    some = demos.subset([3, 1])
    assert np.array_equal(some.episode(0)[0], demos.episode(3)[0])
    start = demos.offsets[3]
    assert np.array_equal(
        some.probabilities[: some.lengths[0]], demos.probabilities[start:][: some.lengths[0]]
    )
    joined = jm.Demonstrations.concatenate([some, demos.subset([0])])
    assert joined.probabilities.size == joined.num_steps
    mixed = jm.Demonstrations.concatenate([some, observed(1, logged=False)])
    assert mixed.probabilities is None
    with pytest.raises(InvalidDemonstrations, match="shape"):
        jm.Demonstrations.concatenate([some, observed(axes=(2,))])
