"""Damaged files and noise: every reader gives demonstrations or a refusal, whatever it is given.

`make fuzz` tries many more examples, other ones every time.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from fuzzing import tried

DATA = Path(__file__).parents[1] / "data" / "demonstrations"
SOUND = jm.Demonstrations([0, 1, 2, 0, 0], [0, 0, 1], [0, 2, 3], [True, False])
LOG = b"episode,t,state,action,next_state,terminated\na,0,5,2,6,\na,1,6,0,7,1\nb,0,5,1,9,0\n"
TARGETS = {
    "npz": ("demos.npz", ""), "csv": ("demos.csv", ""), "log": ("log.csv", ""),
    "parquet": ("demos.parquet", ""), "arrow": ("imitation", "data-00000-of-00001.arrow"),
    "state": ("imitation", "state.json"), "hdf5": ("hdf5-v0", "data/main_data.hdf5"),
    "metadata": ("hdf5-v0", "data/metadata.json"),
    "minari-arrow": ("arrow-v0", "data/0/part-0.arrow"),
    "minari-parquet": ("parquet-v0", "data/0/part-0.parquet"),
}  # fmt: skip
"""For each reader what is read, and the file in it that is damaged."""
TELLING = st.sampled_from([0, 1, 127, 128, 255, ord("0"), ord("-"), ord(","), ord('"'), 10])


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A directory with a sound file of each kind."""
    folder = tmp_path_factory.mktemp("fuzzed")
    for name in ("demos.npz", "demos.csv", "demos.parquet"):
        jm.write_demonstrations(SOUND, folder / name)
    (folder / "log.csv").write_bytes(LOG)
    shutil.copytree(DATA / "imitation_lake", folder / "imitation")
    for form in ("hdf5", "arrow", "parquet"):
        shutil.copytree(DATA / "minari_lake" / f"{form}-v0", folder / f"{form}-v0")
    return folder


def require_answer(path):
    """Demonstrations that hold what they promise, or a refusal."""
    try:
        demos = jm.read_demonstrations(path)
    except jm.errors.InvalidInput:
        return
    assert (demos.lengths >= 1).all()
    assert demos.states.min() >= 0
    assert demos.actions.min() >= 0
    assert demos.states.dtype == demos.actions.dtype == np.int64


@pytest.mark.fuzz
@pytest.mark.parametrize("target", TARGETS)
def test_damaged_files_are_read_or_refused(sound, target):
    path, file = sound / TARGETS[target][0], sound / Path(*TARGETS[target])
    data = file.read_bytes()
    told = np.flatnonzero(np.frombuffer(data, np.uint8))
    place = st.one_of(st.integers(0, len(data) - 1), st.sampled_from(told.tolist()))
    change = st.tuples(place, st.one_of(TELLING, st.integers(0, 255)))

    @tried(25)
    @given(
        st.lists(change, min_size=1, max_size=6),
        st.one_of(st.none(), place),
        st.one_of(st.none(), st.tuples(place, st.binary(min_size=1, max_size=9))),
    )
    def answers(changes, end, more):
        damaged = bytearray(data)
        for at, value in changes:
            damaged[at] = value
        if more is not None:
            damaged[more[0] : more[0]] = more[1]
        file.write_bytes(damaged[:end])
        require_answer(path)

    require_answer(path)
    try:
        answers()
    finally:
        file.write_bytes(data)


@pytest.mark.fuzz
@pytest.mark.parametrize("target", TARGETS)
def test_noise_is_refused(sound, target):
    path, file = sound / TARGETS[target][0], sound / Path(*TARGETS[target])
    data = file.read_bytes()

    @tried(10)
    @given(st.integers(0, 64), st.binary(max_size=300))
    def refuses(kept, noise):
        file.write_bytes(data[:kept] + noise)
        require_answer(path)

    try:
        refuses()
    finally:
        file.write_bytes(data)


CELLS = st.one_of(
    st.integers(-1, 3).map(str),
    st.sampled_from(["", "1.0", "-", "nan", "true", "\ufeff", '"', "é"]),
)


@tried(150)
@given(st.booleans(), st.lists(st.lists(CELLS, max_size=7), max_size=8), st.sampled_from("\n\r"))
def test_tables_of_any_cells_are_read_or_refused(tmp_path_factory, log, rows, end):
    header = LOG.decode().splitlines()[0] if log else "episode,t,state,action,terminated"
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    path.write_text(end.join([header, *(",".join(row) for row in rows)]), encoding="utf-8")
    require_answer(path)
