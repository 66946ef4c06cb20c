import json
import os
import random
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import journeyman as jm
from fuzzing import tried
from journeyman.storage import UNPACKED_LIMIT, load_arrays, save_arrays, write_atomically
from journeyman.testing.strategies import policies, seeds, worlds

DTYPES = st.one_of(
    nps.boolean_dtypes(),
    nps.integer_dtypes(endianness="?"),
    nps.unsigned_integer_dtypes(endianness="?"),
    nps.floating_dtypes(endianness="?"),
    nps.complex_number_dtypes(),
    nps.datetime64_dtypes(),
    nps.byte_string_dtypes(),
    nps.unicode_string_dtypes(),
)
ARRAYS = nps.arrays(DTYPES, nps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
VIEWS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "transposed": np.transpose,
    "every second": lambda array: array[..., ::2] if array.ndim else array,
}
WORLD = jm.World(
    [[0, 0.25, 0.75], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [0.5, 0.5, 0], 0.9,
    choice_offsets=[0, 2, 3, 4], coordinates=[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]],
    state_names=["Anfang", "größer", "終"], action_names=["go", "stay"], sink=2,
)  # fmt: skip
DEMOS = jm.Demonstrations([0, 1, 2, 2, 0, 0], [0, 0, 0, 1], [0, 3, 4], [True, False])
VALUES = {"world": WORLD, "policy": jm.Policy.uniform(WORLD), "demonstrations": DEMOS}
SAVING_FOR_EVER = """
import sys
import numpy as np
from journeyman.storage import save_arrays
for count in range(10**9):
    save_arrays(sys.argv[1], "counter", 1, {"a": np.full(50000, count), "b": np.arange(count)})
    print(count, flush=True)
"""


def there_and_back(value, name="value"):
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        value.save(path)
        return type(value).load(path)


def content(value):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "value"
        value.save(path)
        return path.read_bytes()


def load(kind, damaged):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "value"
        path.write_bytes(damaged)
        return kind.load(path)


def assert_same_world(one, other):
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(
            getattr(one.transition, part), getattr(other.transition, part)
        )
    np.testing.assert_array_equal(one.initial, other.initial)
    np.testing.assert_array_equal(one.coordinates, other.coordinates)
    assert one.pairs == other.pairs
    for fact in ("discount", "state_names", "action_names", "sink"):
        assert getattr(one, fact) == getattr(other, fact)


def assert_same_demonstrations(one, other):
    for part in ("states", "actions", "offsets", "terminated"):
        np.testing.assert_array_equal(getattr(one, part), getattr(other, part), strict=True)


@given(ARRAYS, st.sampled_from(sorted(VIEWS)))
def test_an_array_comes_back_bit_by_bit(array, view):
    given_array = VIEWS[view](array)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "arrays"
        save_arrays(path, "test", 1, {"given": given_array}, note="größer")
        facts, arrays = load_arrays(path, "test", 1)
    loaded = arrays["given"]
    assert facts["note"] == "größer"
    assert (loaded.dtype, loaded.shape) == (given_array.dtype, given_array.shape)
    assert loaded.tobytes() == given_array.tobytes()
    assert not loaded.flags.writeable


@given(worlds())
def test_a_world_comes_back_exactly(world):
    assert_same_world(there_and_back(world), world)


def test_geometry_names_and_sink_come_back_with_their_world():
    assert_same_world(there_and_back(WORLD), WORLD)


def test_a_sink_found_by_numpy_can_be_saved():
    absorbing = np.flatnonzero(WORLD.absorbing)[0]
    world = jm.World(np.eye(3), [1, 0, 0], 0.9, sink=absorbing)
    assert there_and_back(world).sink == absorbing


@given(st.data(), worlds())
def test_a_policy_comes_back_exactly(data, world):
    policy = data.draw(policies(world))
    loaded = there_and_back(policy)
    assert loaded.pairs == policy.pairs
    np.testing.assert_array_equal(loaded.per_pair, policy.per_pair)


@given(st.data(), worlds(), seeds)
def test_demonstrations_come_back_exactly_in_both_formats(data, world, seed):
    demos = jm.record(world, data.draw(policies(world)), trajectories=3, horizon=5, seed=seed)
    native, text = there_and_back(demos), there_and_back(demos, "demos.csv")
    assert_same_demonstrations(native, demos)
    assert_same_demonstrations(text, demos)
    assert native.pairs == demos.pairs


def test_columns_of_a_csv_file_may_stand_in_any_order_among_others(tmp_path):
    path = tmp_path / "demos.csv"
    path.write_text("note,terminated,action,state,t,episode\nhm,,1,0,0,a\n,True,,2,1,a\n")
    loaded = jm.Demonstrations.load(path)
    assert_same_demonstrations(loaded, jm.Demonstrations([0, 2], [1], [0, 1], [True]))


@pytest.mark.parametrize("name", VALUES)
def test_a_file_is_an_npz_without_pickle(name, tmp_path):
    path = tmp_path / name
    VALUES[name].save(path)
    with np.load(path, allow_pickle=False) as archive:
        assert not any(
            archive[member].dtype.hasobject for member in archive if member != "header.json"
        )
        assert f'"kind": "{name}"'.encode() in archive["header.json"]


def test_equal_values_make_equal_files_whatever_the_time(tmp_path, monkeypatch):
    policy = jm.Policy([[0.25, 0.75], [1.0, 0.0]])
    policy.save(tmp_path / "one.npz")
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    policy.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def zeros(path, size):
    """A native file that unpacks to `size` bytes of zeros and little else."""
    header = json.dumps({"kind": "test", "version": 1})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", header)
        with archive.open("a.npy", "w", force_zip64=True) as member:
            facts = {"descr": "|u1", "fortran_order": False, "shape": (size,)}
            np.lib.format.write_array_header_1_0(member, facts)
            for first in range(0, size, 1 << 22):
                member.write(bytes(min(1 << 22, size - first)))
    return path


def test_what_a_small_file_unpacks_to_is_limited(tmp_path):
    """For every kind of value alike, demonstrations among them."""
    bomb = zeros(tmp_path / "bomb.npz", UNPACKED_LIMIT)
    for read in (jm.World.load, jm.Policy.load, jm.Demonstrations.load):
        with pytest.raises(jm.errors.InvalidFile, match=r"unpack to 300000\d+ bytes.*zip -0"):
            read(bomb)


def test_a_limit_may_be_given_and_is_kept(tmp_path):
    path = zeros(tmp_path / "zeros.npz", 1 << 20)
    with pytest.raises(jm.errors.InvalidFile, match="more than the 1000000 that are allowed"):
        load_arrays(path, "test", 1, memory_limit=1_000_000)
    _, arrays = load_arrays(path, "test", 1, memory_limit=2 << 20)
    assert arrays["a"].size == 1 << 20
    assert load_arrays(path, "test", 1)[1]["a"].size == 1 << 20
    demos = jm.Demonstrations([0, 0], [0], [0, 1])
    demos.save(tmp_path / "demos.npz")
    with pytest.raises(jm.errors.InvalidFile, match="more than the 100 that are allowed"):
        jm.Demonstrations.load(tmp_path / "demos.npz", memory_limit=100)


def test_a_large_file_may_unpack_to_what_its_size_makes_credible(tmp_path, monkeypatch):
    monkeypatch.setattr("journeyman.storage.UNPACKED_LIMIT", 1000)
    save_arrays(tmp_path / "honest", "test", 1, {"a": np.random.default_rng(0).random(10_000)})
    assert load_arrays(tmp_path / "honest", "test", 1)[1]["a"].size == 10_000
    with pytest.raises(jm.errors.InvalidFile, match="makes credible"):
        load_arrays(zeros(tmp_path / "zeros", 1 << 20), "test", 1)


@pytest.mark.parametrize("read", [jm.World.load, jm.Demonstrations.load, jm.read_world])
def test_a_crowd_of_members_is_refused_by_the_length_of_its_directory(tmp_path, read):
    path = tmp_path / "crowd.npz"
    with zipfile.ZipFile(path, "w") as crowd:
        for number in range(12_000):
            crowd.writestr(f"{number:0100d}.npy", b"")
    with pytest.raises(jm.errors.InvalidFile, match="very many members"):
        read(str(path))


def test_a_header_of_unusual_length_is_refused(tmp_path):
    path = tmp_path / "long.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"kind": "test", "version": 1}))
        archive.writestr("a.npy", b"\x93NUMPY\x02\x00" + (1 << 20).to_bytes(4, "little"))
    with pytest.raises(jm.errors.InvalidFile, match="unusual length"):
        load_arrays(path, "test", 1)


def test_a_file_of_an_older_schema_is_read(tmp_path):
    save_arrays(tmp_path / "old", "test", 1, {"a": np.arange(3)})
    _, arrays = load_arrays(tmp_path / "old", "test", 2)
    assert arrays["a"].tolist() == [0, 1, 2]


def test_an_array_that_lost_its_name_is_missed():
    """The list of members at the end of a file was damaged: nothing is left out in silence."""
    damaged = content(WORLD)
    name = damaged.rindex(b"coordinates.npy")
    with pytest.raises(jm.errors.InvalidFile, match=r"'coordinates\.npx' is not an array"):
        load(jm.World, damaged[: name + 14] + b"x" + damaged[name + 15 :])


def test_an_array_under_another_name_is_missed():
    """Names in the directory of a ZIP file have no checksum; coordinates are optional."""
    damaged = content(WORLD).replace(b"coordinates.npy", b"coordinatez.npy")
    with pytest.raises(jm.errors.InvalidFile, match="should hold the arrays"):
        load(jm.World, damaged)


@tried(60)
@given(st.integers(0, 10**6), st.integers(1, 255))
def test_a_damaged_byte_is_refused_or_does_no_harm(position, flip):
    damaged = bytearray(content(WORLD))
    damaged[position % len(damaged)] ^= flip
    try:
        loaded = load(jm.World, damaged)
    except jm.errors.InvalidFile:
        return
    assert_same_world(loaded, WORLD)


@given(st.integers(0, 10**6))
def test_a_file_that_was_cut_short_is_refused(length):
    whole = content(WORLD)
    with pytest.raises(jm.errors.InvalidFile):
        load(jm.World, whole[: length % len(whole)])


@pytest.mark.parametrize("fault", [OSError, ValueError, KeyboardInterrupt])
def test_a_write_that_fails_keeps_the_old_file_and_leaves_no_other(fault, tmp_path):
    def write(stream):
        stream.write(b"half of the new con")
        raise fault

    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(fault):
        write_atomically(path, write)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_permissions_the_user_asked_for(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", lambda stream: None)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_save_killed_at_any_moment_leaves_a_whole_file(tmp_path):
    path = tmp_path / "counter"
    delays = random.Random(0)
    for _ in range(15):
        command = [sys.executable, "-c", SAVING_FOR_EVER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            saved = int(child.stdout.readline())
            time.sleep(delays.uniform(0, 0.03))
            child.kill()
            saved = max([saved, *map(int, child.stdout.read().split())])
        _, arrays = load_arrays(path, "counter", 1)
        count = arrays["b"].size
        assert saved <= count <= saved + 1
        np.testing.assert_array_equal(arrays["a"], np.full(50000, count))
