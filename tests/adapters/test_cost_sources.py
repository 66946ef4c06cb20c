"""Cost features by name: tables, built-in sets, the gallery, environments, functions."""

import csv

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame

import journeyman as jm
from fuzzing import tried
from journeyman.adapters.cost_sources import read_costs, runs_code
from journeyman.adapters.world_sources import read_world

GRID = jm.gallery.grid(4, macro_cells=2).world
RAGGED = jm.World(
    [[0, 1], [1, 0], [0.5, 0.5]], [1, 0], 0.9, choice_offsets=[0, 2, 3], coordinates=[[0], [5]]
)


def refused(match):
    return pytest.raises(jm.errors.InvalidInput, match=match)


def written(folder, header, rows):
    path = folder / "costs.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
    return str(path)


numbers = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-50)


@given(rows=st.lists(st.tuples(numbers, numbers), min_size=3, max_size=3), per_state=st.booleans())
def test_tables_come_back_to_the_last_bit(rows, per_state, tmp_path_factory):
    folder = tmp_path_factory.mktemp("costs")
    rows = rows[:2] if per_state else rows
    text = [[repr(x) for x in row] for row in rows]
    basis = read_costs(written(folder, ["energy", "delay"], text), RAGGED)
    assert basis.names == ("energy", "delay")
    assert np.array_equal(basis.matrix, np.array(rows))
    np.savez(folder / "costs.npz", costs=np.array(rows), names=["energy", "delay"])
    stored = read_costs(str(folder / "costs.npz"), RAGGED)
    assert np.array_equal(stored.matrix, basis.matrix)
    assert stored.names == basis.names


@given(order=st.permutations(range(3)))
def test_rows_with_keys_stand_in_any_order(order, tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    rows = [(0, 5.0, 0), (0, 6.0, 1), (1, 7.0, 0)]
    path = written(folder, ["state", "energy", "action"], [rows[k] for k in order])
    basis = read_costs(path, RAGGED)
    assert (basis.matrix.ravel().tolist(), basis.names) == ([5, 6, 7], ("energy",))


def test_actions_are_read_in_recorded_numbers(tmp_path):
    world = jm.World.from_transitions([0, 0, 1], [2, 5, 1], [1, 0, 0], 0.9, initial=[1, 0])
    rows = [(0, 5, 1.0), (0, 2, 2.0), (1, 1, 3.0)]
    path = written(tmp_path, ["state", "action", "cost"], rows)
    assert read_costs(path, world).matrix.ravel().tolist() == [2, 1, 3]


def partial_world():
    """State 0 has actions 2 and 5, state 1 has 1."""
    return jm.World.from_transitions([0, 0, 1], [2, 5, 1], [1, 0, 0], 0.9, initial=[1, 0])


def test_rows_of_actions_that_are_not_offered_are_left_out(tmp_path):
    world = partial_world()
    keyed = [(x, a, 10 * x + a) for a in range(8) for x in range(2)]
    basis = read_costs(written(tmp_path, ["state", "action", "wear"], keyed), world)
    assert basis.matrix.ravel().tolist() == [2, 5, 11]
    assert basis.note.endswith("13 rows are for actions that their states do not offer; left out")
    listed = [(10 * x + a,) for x in range(2) for a in range(6)]
    basis = read_costs(written(tmp_path, ["wear"], listed), world)
    assert basis.matrix.ravel().tolist() == [2, 5, 11]
    assert "9 rows" in basis.note
    np.savez(tmp_path / "costs.npz", costs=np.array(listed, float))
    stored = read_costs(str(tmp_path / "costs.npz"), world)
    problem = jm.Apprenticeship(world, stored, jm.ExpertExpectation([1.0]))
    assert problem.cost_matrix.ravel().tolist() == [2, 5, 11]
    assert problem.basis.highest.tolist() == [11]


def test_a_row_that_is_lacking_among_all_actions_is_named(tmp_path):
    keyed = [(x, a, 1.0) for x in range(2) for a in range(5)]
    with refused("0 rows for state 0, action 5"):
        read_costs(written(tmp_path, ["state", "action", "wear"], keyed), partial_world())


def ended_world(folder):
    """States 0, 1 and 3, a number that occurs nowhere, and 4, the end of terminated episodes."""
    steps = ["0,1,1,0", "0,2,0,0", "1,1,3,0", "3,1,0,0", "3,1,3,1"]
    (folder / "log.csv").write_text("\n".join(["state,action,next_state,terminated", *steps]))
    options = {"discount": "0.9", "initial": "0", "drop_unseen": "yes"}
    return read_world(folder / "log.csv", options=options)


def test_states_that_the_author_of_a_table_may_not_know_cost_nothing(tmp_path):
    world = ended_world(tmp_path)
    assert (world.num_states, world.sink) == (5, 4)
    basis = read_costs(written(tmp_path, ["state", "wear"], [(0, 1), (1, 2), (3, 3)]), world)
    assert basis.matrix.ravel().tolist() == [1, 2, 0, 3, 0]
    assert "no row for states 2, which no recorded step enters or leaves and for 4, the end" in (
        basis.note
    )
    pairs = [(0, 1, 1), (0, 2, 2), (1, 1, 3), (2, 1, 5), (3, 1, 4)]
    basis = read_costs(written(tmp_path, ["state", "action", "wear"], pairs), world)
    assert basis.matrix.ravel().tolist() == [1, 2, 3, 5, 4, 0]
    assert "no row for state 4, the end that was added for terminated episodes" in basis.note
    basis = read_costs(written(tmp_path, ["wear"], [(1,), (2,), (5,), (3,)]), world)
    assert basis.matrix.ravel().tolist() == [1, 2, 5, 3, 0]
    assert "state 4, the end" in basis.note
    whole = [(state, 1.0) for state in range(5)]
    assert not read_costs(written(tmp_path, ["state", "wear"], whole), world).note
    with refused("0 rows for state 1, and 2 in all"):
        read_costs(written(tmp_path, ["state", "wear"], [(0, 1), (3, 3)]), world)


def test_a_state_that_a_support_leads_to_needs_its_costs(tmp_path):
    steps = ([0, 0, 1], [0, 0, 0], [0, 1, 0])
    given = {"discount": 0.9, "initial": [1, 0, 0], "drop_unseen": True}
    seen = jm.World.from_transitions(*steps, **given)
    possible = jm.World.from_transitions(*steps, **given, support=[[1, 1, 1], [1, 1, 0], [0, 0, 1]])
    path = written(tmp_path, ["state", "wear"], [(0, 1), (1, 2)])
    assert read_costs(path, seen).matrix.ravel().tolist() == [1, 2, 0]
    with refused("0 rows for state 2"):
        read_costs(path, possible)


@pytest.mark.parametrize(
    "name", ["id", "ID", " Index", "", "Unnamed: 0", "row", "pair", "Machine_ID", "state_id"]
)
def test_a_column_that_numbers_the_rows_is_no_cost(tmp_path, name):
    basis = read_costs(written(tmp_path, [name, "energy"], [(1, 5), (2, 6), (3, 7)]), RAGGED)
    assert (basis.names, basis.matrix.ravel().tolist()) == (("energy",), [5, 6, 7])
    assert repr(name.strip()) in basis.note
    turned = written(tmp_path, [name, "energy"], [(1, 5), (3, 6), (2, 7)])
    with refused("line 3: .* the rows do not stand in the order of their numbers"):
        read_costs(turned, RAGGED)
    keyed = written(tmp_path, [name, "State", "energy"], [(9, 1, 5), (3, 0, 6)])
    assert read_costs(keyed, RAGGED).matrix.ravel().tolist() == [6, 5]
    with refused("no column of costs"):
        read_costs(written(tmp_path, [name], [(0,), (1,)]), RAGGED)


def test_text_in_a_column_that_is_left_out_is_no_mistake(tmp_path):
    path = written(tmp_path, ["state", "machine_id", "energy"], [(1, "M-7", 5), (0, "", 6)])
    basis = read_costs(path, RAGGED)
    assert (basis.names, basis.matrix.ravel().tolist()) == (("energy",), [6, 5])
    assert "'machine_id'" in basis.note


@pytest.mark.parametrize("name", ["id", "index", "Unnamed: 0", "machine_id", "state", "action"])
def test_a_column_of_a_data_frame_that_numbers_its_rows_is_no_cost(name):
    frame = DataFrame({name: [0, 1], "energy": [2.0, 3.0]})
    with pytest.raises(jm.errors.InvalidCosts, match=f"the column '{name}' of the data frame"):
        jm.CostBasis(frame)
    assert jm.CostBasis(DataFrame({"energy": [2.0, 3.0]})).names == ("energy",)
    assert jm.CostBasis(frame, names=["clock", "energy"]).num_costs == 2


def test_pairs_are_named_by_the_numbers_of_their_actions():
    assert read_costs("pair-indicator", partial_world()).names == (
        "state 0, action 2", "state 0, action 5", "state 1, action 1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no costs"),
        ("energy\n", "holds no costs"),
        ("1.0,2.0\n3,4\n", "a cost is named '1.0'"),
        ("energy\n1\n2\n3\n4\n5\n", "costs.csv has 5 rows .* line 6; the world has 2 states and 3"),
        ("energy\n1\nhigh\n", "line 3: energy is 'high', expected a number"),
        ("state,energy,delay\n0,1,2\n1,2, \n", "line 3: delay is empty, expected a number"),
        ("energy,delay\n1\n", "line 2: 1 cells, the first line names 2"),
        ("energy\n1\nnan\n", "not finite"),
        ("energy\n1\ninf\n", "not finite"),
        ("energy\n1\n1e300\n", "costs.csv: 'energy' has costs of size 1e\\+300"),
        ("energy,energy\n1,2\n3,4\n", "costs.csv: two costs are named 'energy'"),
        ("energy,\n1,2\n3,4\n", "a cost is named ''"),
        ("state\n0\n1\n", "no column of costs"),
        ("action,energy\n0,1\n", "not state"),
        ("state,energy\n0,1\n0,2\n", "2 rows for state 0 .lines 2 and 3."),
        ("state,energy\n0,1\n", "0 rows for state 1"),
        ("state,energy\n0,1\n7,2\n", "line 3: state is 7, outside 0..1"),
        ("state,action,energy\n0,0,1\n0,1,2\n", "0 rows for state 1, action 0"),
        ("state,action,energy\n0,2,1\n", "line 2: action is 2, but state 0 has actions 0..1"),
        ("state,energy\n0.5,1\n", "line 2: state is '0.5', expected a whole number"),
        (b"energy\n\xff\n", "not readable text"),
        ('energy\n"1\n', "not readable text"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path, content, message):
    path = tmp_path / "costs.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with refused(message):
        read_costs(str(path), RAGGED)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.ones((2, 1)), "b": np.ones((2, 1))}, "holds a, b, and not one table"),
        ({}, "holds no array"),
        ({"costs": np.ones((5, 1))}, "5 rows"),
        ({"costs": np.ones((2, 2, 2))}, "3 axes"),
        ({"costs": np.array([["a"], ["b"]])}, "not an array of real numbers"),
        ({"costs": np.ones((2, 2)), "names": np.array([1, 2])}, "names holds int64"),
        ({"costs": np.ones((2, 2)), "names": ["one"]}, "1 names for 2 costs"),
    ],
)
def test_a_wrong_file_of_arrays_is_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "costs.npz", **arrays)
    with refused(message):
        read_costs(str(tmp_path / "costs.npz"), RAGGED)


def test_rewards_are_turned_once(tmp_path):
    path = written(tmp_path, ["speed"], [[1], [2]])
    basis = read_costs(f"rewards:{path}", RAGGED)
    assert basis.rewards
    assert basis.matrix.ravel().tolist() == [-1, -2]
    with refused("rewards anyway"):
        read_costs("rewards:gallery:driving", jm.gallery.driving().world)


def test_indicators_have_a_one_in_every_row():
    states = read_costs("state-indicator", GRID)
    pairs = read_costs("pair-indicator", RAGGED)
    assert np.array_equal(states.matrix.toarray(), np.eye(16))
    assert np.array_equal(pairs.matrix.toarray(), np.eye(3))
    assert (states.names[3], pairs.names[2]) == ("state 3", "pair 2")


def test_macro_cells_are_those_of_the_grid():
    ours, theirs = read_costs("macro-cells:2", GRID), jm.gallery.grid(4, macro_cells=2).basis
    assert np.array_equal(ours.matrix.toarray(), theirs.matrix.toarray())
    assert ours.names == theirs.names
    assert read_costs("macro-cells:7", RAGGED).names == ("cell 0", "cell 6")


def test_coordinates_and_time():
    assert read_costs("coordinates", RAGGED).matrix.ravel().tolist() == [0, 1]
    lake = read_world("gym:FrozenLake-v1", options={"discount": "0.9"})
    time = read_costs("time", lake).matrix.ravel()
    assert np.flatnonzero(time == 0).tolist() == [16]
    assert set(time) == {0, 1}


def test_costs_of_the_gallery_belong_to_its_world():
    options = {"size": "4", "macro_cells": "2"}
    basis = read_costs("gallery:grid", GRID, options=options)
    assert np.array_equal(
        basis.matrix.toarray(), read_costs("macro-cells:2", GRID).matrix.toarray()
    )
    for other in ({"size": "5"}, {"size": "4", "slip": "0.1"}):
        with refused("belong to another world"):
            read_costs("gallery:grid", GRID, options=other)


def test_costs_of_an_environment_are_its_rewards():
    world = read_world("gym:Taxi-v4", options={"discount": "0.9"})
    basis = read_costs("gym:Taxi-v4", world, options={"discount": "0.9"})
    expected = jm.expected_rewards(gymnasium.make("Taxi-v4"))
    assert np.array_equal(-basis.matrix.ravel(), expected)
    assert basis.rewards
    with refused("has 68 pairs, the world 3006"):
        read_costs("gym:FrozenLake-v1", world)


MODULE = """
import numpy as np
import journeyman as jm

def basis(world):
    return jm.CostBasis(np.ones((world.num_states, 1)), ["one"])

def table(world):
    return np.arange(2.0 * world.num_states).reshape(-1, 2)

def named(world):
    return np.ones((world.num_states, 2)), ["a", "b"]

def broken(world):
    return 1 / 0

def wrong(world):
    return np.ones((7, 1))

figure = 7
"""


def test_a_function_of_the_user_is_called_with_the_world(tmp_path, monkeypatch):
    (tmp_path / "costs_of_mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    assert read_costs("costs_of_mine:basis", RAGGED).names == ("one",)
    assert read_costs("costs_of_mine:table", RAGGED).matrix.tolist() == [[0, 1], [2, 3]]
    assert read_costs("costs_of_mine:named", RAGGED).names == ("a", "b")
    assert read_costs("rewards:costs_of_mine:named", RAGGED).rewards
    for name, message in {
        "broken": "costs_of_mine:broken failed: ZeroDivisionError",
        "wrong": "7 rows",
        "figure": "no function 'figure'",
        "absent": "no function 'absent'",
    }.items():
        with refused(message):
            read_costs(f"costs_of_mine:{name}", RAGGED)
    with refused("no module 'not_there'"):
        read_costs("not_there:costs", RAGGED)


def test_only_functions_run_code():
    assert runs_code("module:function")
    assert runs_code("rewards:package.module:function")
    for source in ("costs.csv", "macro-cells:4", "gallery:grid", "gym:Taxi-v4", "state-indicator"):
        assert not runs_code(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("costs", "not a source of costs.*macro-cells:4"),
        ("a b:c", "not a source of costs"),
        ("../costs.py:run", "not a source of costs"),
        ("macro-cells:", "how many cells"),
        ("macro-cells:0", "how many cells"),
        ("macro-cells:²", "how many cells"),
        ("macro-cells:99999999999", "how many cells"),
        ("nowhere.csv", "does not exist"),
        ("nowhere.npz", "does not exist"),
    ],
)
def test_a_wrong_source_is_refused(source, message):
    with refused(message):
        read_costs(source, GRID)


def test_what_a_world_lacks_is_said():
    bare = jm.World([[1.0]], [1], 0.9)
    for source in ("coordinates", "macro-cells:2"):
        with refused("no coordinates"):
            read_costs(source, bare)
    with refused("every state is absorbing"):
        read_costs("time", bare)
    with refused("takes no options"):
        read_costs("time", GRID, options={"size": "4"})


@tried(80)
@given(content=st.binary(max_size=60) | st.text('0123456789,.-"\n abestinf', max_size=60))
def test_no_text_does_more_than_a_refusal(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    try:
        basis = read_costs(str(path), RAGGED)
    except jm.errors.JourneymanError:
        return
    assert np.isfinite(basis.matrix).all()


@tried(60)
@given(data=st.data())
def test_no_damage_does_more_than_a_refusal(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "fuzzed_costs.npz"
    save = data.draw(st.sampled_from([np.savez, np.savez_compressed]))
    save(path, costs=np.array([[1.0, 2.0], [3.0, 4.0]]), names=["energy", "delay"])
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(whole[: data.draw(st.sampled_from([None, -1, len(whole) // 2]))]))
    try:
        basis = read_costs(str(path), RAGGED)
    except jm.errors.JourneymanError:
        return
    assert np.isfinite(basis.matrix).all()
