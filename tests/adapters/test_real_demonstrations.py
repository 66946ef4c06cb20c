"""Data sets made by the real packages; the scripts that made them lie beside them."""

from pathlib import Path

import gymnasium
import pytest

import journeyman as jm

DATA = Path(__file__).parents[1] / "data" / "demonstrations"
MINARI = [DATA / "minari_lake" / f"{form}-v0" for form in ("hdf5", "arrow", "parquet")]


@pytest.fixture(scope="module")
def lake():
    return jm.World.from_gymnasium(gymnasium.make("FrozenLake-v1"), discount=0.9)


@pytest.mark.parametrize("path", [*MINARI, MINARI[0] / "data" / "main_data.hdf5"], ids=str)
def test_what_minari_recorded_is_read(path, lake):
    demos = jm.read_demonstrations(path)
    assert demos.states.tolist() == [0, 1, 5, 0, 0, 0, 1, 0, 0, 4, 0]
    assert demos.actions.tolist() == [3, 2, 2, 1, 1, 0, 0, 0]
    assert demos.offsets.tolist() == [0, 2, 5, 8]
    assert demos.terminated.tolist() == [True, False, False]
    there = jm.read_demonstrations(path, world=lake)
    assert there.states.tolist() == [0, 1, lake.sink, *demos.states[3:]]


def test_what_imitation_saved_is_read():
    demos = jm.read_demonstrations(DATA / "imitation_lake")
    assert demos.states.tolist() == [0, 0, 4, 8, 0, 1, 5, 0, 0, 1, 5, 0, 4, 5]
    assert demos.actions.tolist() == [0, 0, 0, 3, 2, 2, 1, 1, 0, 3]
    assert demos.offsets.tolist() == [0, 3, 5, 8, 10]
    assert demos.terminated.all()


def test_a_world_finds_what_imitation_calls_terminal_and_is_not(lake):
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match=r"trajectory 0, step 3: .* not absorbing"
    ):
        jm.read_demonstrations(DATA / "imitation_lake", world=lake)


def test_the_time_limit_of_imitation_can_be_named(lake):
    path = DATA / "imitation_lake"
    with pytest.raises(jm.errors.InvalidDemonstrations, match=r"truncated_at=3"):
        jm.read_demonstrations(path, world=lake)
    demos = jm.read_demonstrations(path, world=lake, truncated_at=3)
    assert demos.terminated.tolist() == [False, True, True, True]
    assert demos.last_states.tolist() == [8, lake.sink, lake.sink, lake.sink]
    assert jm.read_demonstrations(path, truncated_at=3).terminated.tolist() == [0, 1, 0, 1]


def test_a_named_terminal_state_is_one_of_the_world(lake):
    path = DATA / "imitation_lake"
    named = {"world": lake, "truncated_at": 3}
    found = jm.read_demonstrations(path, **named, terminal_state=lake.sink)
    assert found.last_states.tolist() == [8, lake.sink, lake.sink, lake.sink]
    for wrong in (5, 400):
        with pytest.raises(
            jm.errors.InvalidDemonstrations, match=rf"= {wrong} is not an absorbing .* 16"
        ):
            jm.read_demonstrations(path, **named, terminal_state=wrong)
