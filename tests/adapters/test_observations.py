"""Observations and logged probabilities in the formats that hold them."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import journeyman as jm
from journeyman.errors import InvalidDemonstrations, InvalidFile

DATA = Path(__file__).parent.parent / "data" / "demonstrations"
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


@pytest.mark.parametrize("form", ["arrow", "parquet"])
@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_minari_boxes_in_columns(tmp_path, monkeypatch, form, shape):
    """As Minari itself writes them."""
    minari = pytest.importorskip("minari")
    from gymnasium import spaces
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    demos, buffers = observed(axes=shape, logged=False), []
    for episode, terminated in enumerate(demos.terminated):
        states, actions = demos.episode(episode)
        last = np.arange(actions.size) == actions.size - 1
        buffers.append(
            EpisodeBuffer(observations=states, actions=actions, rewards=np.zeros(actions.size),
                          terminations=last & terminated, truncations=last & ~terminated)
        )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minari.create_dataset_from_buffers(
            "box-v0", buffers, observation_space=spaces.Box(-9, 9, shape, dtype=np.float64),
            action_space=spaces.Discrete(3), algorithm_name="none", data_format=form,
        )  # fmt: skip
    assert_same(demos, jm.read_demonstrations(tmp_path / "box-v0"))
    path = tmp_path / "box-v0" / "data" / "metadata.json"
    facts = json.loads(path.read_text())
    space = json.dumps({"type": "Box", "shape": [5]})
    path.write_text(json.dumps(facts | {"observation_space": space}))
    with pytest.raises(InvalidFile, match=r"observations holds .* numbers, and its space has the"):
        jm.read_demonstrations(tmp_path / "box-v0")


def test_vectors_that_imitation_saved():
    demos = jm.read_demonstrations(DATA / "imitation_vectors")
    wanted = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    assert np.array_equal(demos.states, wanted)
    assert demos.actions.tolist() == [0, 1, 0, 0, 1, 0, 1, 0]
    assert demos.terminated.tolist() == [True, False]


def test_vectors_of_unequal_lengths_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    columns = {"obs": [[[1.0, 2.0], [3.0]]], "acts": [[0]], "infos": [["{}"]], "terminal": [True]}
    shutil.copytree(DATA / "imitation_vectors", tmp_path / "run")
    (file,) = (tmp_path / "run").glob("*.arrow")
    table = pa.table(columns)
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(InvalidFile, match="obs holds lists of 1 and of 2 numbers"):
        jm.read_demonstrations(tmp_path / "run")


def test_imitation_is_written_with_ids_only(tmp_path):
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


def boxes(path, observations, actions=None, shape=(3,)):
    """A data set of one episode, written by hand."""
    h5py = pytest.importorskip("h5py")
    data = path / "data"
    data.mkdir(parents=True)
    facts = {
        "observation_space": json.dumps({"type": "Box", "shape": list(shape)}),
        "action_space": json.dumps({"type": "Discrete", "n": 2}),
        "total_episodes": 1,
    }
    (data / "metadata.json").write_text(json.dumps(facts))
    with h5py.File(data / "main_data.hdf5", "w") as file:
        group = file.create_group("episode_0")
        observations(group)
        count = 2 if actions is None else actions
        for name in ("actions", "terminations", "truncations"):
            group.create_dataset(name, data=np.zeros(count, dtype=np.int64))
    return path


def test_hostile_boxes(tmp_path):
    cases = {
        "huge": lambda one: one.create_dataset(
            "observations", shape=(10**9, 3), dtype="f8", chunks=(1000, 3)
        ),
        "nan": lambda one: one.create_dataset("observations", data=np.full((3, 3), np.nan)),
        "texts": lambda one: one.create_dataset("observations", data=np.full((3, 3), b"a")),
        "short": lambda one: one.create_dataset("observations", data=np.zeros((2, 3))),
        "wide": lambda one: one.create_dataset("observations", data=np.zeros((3, 4))),
        "bomb": lambda one: one.create_dataset(
            "observations", shape=(3, 3), dtype="f8", chunks=(10**7, 3), maxshape=(None, 3),
            compression="gzip",
        ),
    }  # fmt: skip
    words = {
        "huge": "would take about", "nan": "not finite", "texts": "has shape", "short": "2 obs",
        "wide": "has shape", "bomb": "comes in chunks",
    }  # fmt: skip
    for name, make in cases.items():
        with pytest.raises((InvalidFile, jm.errors.TooLarge), match=words[name]):
            jm.read_demonstrations(boxes(tmp_path / name, make))
    sound = boxes(tmp_path / "sound", lambda one: one.create_dataset(
        "observations", data=np.arange(9.0).reshape(3, 3), compression="gzip"))  # fmt: skip
    assert jm.read_demonstrations(sound).states.shape == (3, 3)


def test_parquet_with_unequal_columns_or_endless_numbers(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    base = {"episode": [0, 0], "t": [0, 1], "action": [0, 1], "terminated": [False, True]}
    cases = {
        "as many of both": {"state_0": [0.5, 1.0], "state_1": [1.0, 2.0], "next_state_0": [1.0, 3]},
        "expected a finite number": {"state_0": [0.5, np.inf], "next_state_0": [np.inf, 3.0]},
        "state is not where": {"state_0": [0.5, 1.0], "next_state_0": [2.0, 3.0]},
        "expected numbers": {"state_0": ["a", "b"], "next_state_0": [1.0, 2.0]},
        "state_0 is empty": {"state_0": [0.5, None], "next_state_0": [1.0, 2.0]},
    }
    for number, (words, more) in enumerate(cases.items()):
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(pa.table(base | more), path)
        with pytest.raises(InvalidFile, match=words):
            jm.read_demonstrations(path)
