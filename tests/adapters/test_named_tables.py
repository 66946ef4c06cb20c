"""Tables as people have them: names, timestamps, capitals and data frames, from the table to the
policy and back."""

import datetime as dt
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import journeyman as jm
from journeyman.policy.listing import Listing

LAWS = """State, Action ,Next State,Probability
pump-ok,run,pump-ok,0.9
pump-ok,run,pump-worn,0.1
pump-worn,run,pump-worn,0.7
pump-worn,run,pump-broken,0.3
pump-worn,replace,pump-ok,1
pump-broken,replace,pump-ok,1
"""
COSTS = """machine_id,State,Action,lost output,work
7,pump-worn,replace,1,0.5
3,pump-ok,run,0,0
1,pump-worn,run,0.2,0
2,pump-broken,replace,1,1
"""
STEPS = """Episode,Timestamp,State,Action,Next State
monday,2024-05-31T09:00,pump-worn,replace,pump-ok
tuesday,2024-06-01T08:00,pump-ok,run,pump-ok
monday,2024-05-31T08:30,pump-ok,run,pump-worn
"""
OPTIONS = {"discount": "0.9", "initial": "pump-ok"}
NAMES = ("pump-broken", "pump-ok", "pump-worn")


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.fixture
def world(tmp_path):
    return jm.read_world(written(tmp_path / "laws.csv", LAWS), options=OPTIONS)


def frame(text: str) -> pd.DataFrame:
    rows = [line.split(",") for line in text.splitlines()]
    table = pd.DataFrame(rows[1:], columns=rows[0])
    return table.map(_value)


def _value(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def forms(text: str, tmp_path: Path) -> dict[str, object]:
    """One table in every form that is read."""
    table = frame(text)
    path = tmp_path / "table.parquet"
    parquet.write_table(pa.Table.from_pandas(table), path)
    return {
        "csv": written(tmp_path / "table.csv", text), "parquet": str(path), "pandas": table,
        "polars": pl.from_pandas(table), "pyarrow": pa.Table.from_pandas(table),
        "categories": table.astype(dict.fromkeys(table.select_dtypes("str"), "category")),
    }  # fmt: skip


def test_a_world_of_names_is_the_same_from_every_form_of_table(world, tmp_path):
    assert world.state_names == NAMES
    assert world.action_names == ("replace", "run")
    assert world.initial.tolist() == [0, 1, 0]
    expected = [[0, 1, 0], [0, 0.9, 0.1], [0, 1, 0], [0.3, 0, 0.7]]
    assert world.transition.toarray().tolist() == expected
    for name, form in forms(LAWS, tmp_path).items():
        read = jm.read_world(form, options=OPTIONS)
        assert (read.state_names, read.action_names) == (NAMES, ("replace", "run")), name
        assert read.transition.toarray().tolist() == expected, name
    world.save(tmp_path / "world.npz")
    assert jm.World.load(tmp_path / "world.npz").state_names == NAMES


def test_costs_by_name_stand_in_any_order_and_ids_are_no_costs(world, tmp_path):
    for name, form in forms(COSTS, tmp_path).items():
        basis = jm.read_costs(form, world)
        assert basis.names == ("lost output", "work"), name
        assert basis.on(world).tolist() == [[1, 1], [0, 0], [1, 0.5], [0.2, 0]], name
    basis = jm.CostBasis(frame(COSTS).set_index(["State", "Action"]), world=world)
    assert basis.on(world).tolist() == [[1, 1], [0, 0], [1, 0.5], [0.2, 0]]
    by_state = pd.DataFrame({"delay": [3.0, 1, 2]}, index=pd.Index(NAMES, name="state"))
    assert jm.CostBasis(by_state, world=world).on(world).ravel().tolist() == [3, 1, 2, 2]
    assert jm.CostBasis(by_state.reset_index(drop=True)).names == ("delay",)


def test_steps_are_sorted_by_their_moments_and_named_by_the_world(world, tmp_path):
    for name, form in forms(STEPS, tmp_path).items():
        demos = jm.read_demonstrations(form, world=world)
        assert demos.states.tolist() == [1, 2, 1, 1, 1], name
        assert demos.actions.tolist() == [1, 0, 1], name
    moments = frame(STEPS)
    moments["Timestamp"] = pd.to_datetime(moments["Timestamp"])
    for one in (moments, pl.from_pandas(moments)):
        assert jm.read_demonstrations(one, world=world).actions.tolist() == [1, 0, 1]
    path = tmp_path / "moments.parquet"
    parquet.write_table(pa.Table.from_pandas(moments), path)
    assert jm.read_demonstrations(path, world=world).actions.tolist() == [1, 0, 1]
    log = jm.read_world(moments, options={"discount": "0.9"})
    assert log.state_names == ("pump-ok", "pump-worn")
    assert log.transition_counts.tolist() == [2, 1]


def test_whole_numbers_of_any_size_keep_their_order_in_a_parquet_file(world, tmp_path):
    """As floats these two moments would be equal."""
    first = 1_717_142_400_000_000_001
    table = pa.table({
        "episode": [first, first], "time": [first + 1, first], "state": ["pump-worn", "pump-ok"],
        "action": ["replace", "run"], "next_state": ["pump-ok", "pump-worn"],
        "terminated": [False, False],
    })  # fmt: skip
    parquet.write_table(table, tmp_path / "steps.parquet")
    demos = jm.read_demonstrations(tmp_path / "steps.parquet", world=world)
    assert demos.states.tolist() == [1, 2, 1]


def test_what_was_found_goes_back_into_frames(world, tmp_path):
    basis = jm.CostBasis(frame(COSTS), world=world)
    demos = jm.read_demonstrations(frame(STEPS), world=world)
    steps = demos.to_frame(world)
    assert steps.loc[1].tolist() == [0, 1, "pump-worn", "replace", "pump-ok", False]
    again = jm.read_demonstrations(steps, world=world)
    assert again.states.tolist() == demos.states.tolist()
    assert pl.DataFrame(demos.to_rows()).columns == list(steps.columns)
    apprentice = jm.learn(world, basis, demos)
    answer, policy = apprentice.answer, apprentice.policy
    listed = policy.to_frame(world)
    assert list(listed.columns) == ["state", "action", "probability", "visits"]
    assert set(listed["state"]) == set(NAMES)
    assert jm.Policy.load(listed, world).per_pair.tolist() == policy.per_pair.tolist()
    assert policy.to_frame().shape == (len(listed), 3)
    costs = answer.to_frame().set_index("cost")
    assert list(costs.index) == ["lost output", "work"]
    wanted = basis.on(world).T @ answer.occupancy.measure
    np.testing.assert_allclose(costs["policy"], wanted)
    np.testing.assert_allclose(costs["expert"], apprentice.problem.target)
    terms = apprentice.certificate.to_frame()
    best = terms[terms["estimate"] == terms["estimate"][0]]
    assert best["value"].sum() == pytest.approx(apprentice.certificate.best.bound)
    trace = jm.solve(apprentice.problem, jm.ColumnGeneration()).trace
    assert list(trace.to_frame().columns) == ["seconds", "lower_bound", "upper_bound"]
    assert trace.to_rows()[-1]["upper_bound"] >= trace.to_rows()[-1]["lower_bound"]
    found = jm.compare({"pump": apprentice.problem}, [jm.LinearProgram()], seeds=[0])
    assert found.to_frame()["solver"].tolist() == [found.trials[0].solver]


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    policy = jm.Policy([[0.25, 0.75]])
    assert policy.to_rows()[1] == {"state": 0, "action": 1, "probability": 0.75}
    with pytest.raises(jm.errors.MissingExtra, match=r"journeyman\[frames\]"):
        policy.to_frame()


def steps(**changed: object) -> pd.DataFrame:
    sound = {
        "episode": ["a", "a"], "t": [0, 1], "state": ["pump-ok", "pump-worn"],
        "action": ["run", "replace"], "next_state": ["pump-worn", "pump-ok"],
    }  # fmt: skip
    return pd.DataFrame(sound | changed)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (steps(state=["pump-ok", "pump-wron"]), "row 1: state is 'pump-wron', .*mean 'pump-worn'"),
        (steps(action=["run", None]), "row 1: action is empty"),
        (steps(action=["run", float("nan")]), "row 1: action is empty"),
        (steps(action=["run", 0]), "row 1: action is '0', a number; 'run' in row 0 is a name"),
        (steps(state=["pump-ok", "pump-ok"]), "row 1: state is .*the step before led to"),
        (steps(state=[["a"], ["b"]]), "row 0: state holds a list"),
        (steps(t=["31.05.2024", "1.06.2024"]), "row 0: t is '31.05.2024', expected a whole number"),
        (steps(t=[dt.date(2024, 5, 31)] * 2), "row 1: t is that of row 0 too, in episode a"),
        (steps(t=[dt.date(2024, 5, 31), 7]), "row 1: t is '7', a number; .* in row 0 is a timesta"),
        (steps(t=[0, 2]), "row 1: t is 2, expected 1: step 1 is missing"),
        (steps().rename(columns={"action": "Action "})[["episode"]], "lacks the column"),
        (pl.from_pandas(steps()).lazy(), "not computed yet.*collect"),
        (steps()["state"], "columns of a Series are not readable|path is a Series"),
    ],
)
def test_mistakes_in_a_frame_are_named_by_their_rows(world, wrong, words):
    with pytest.raises(jm.errors.InvalidInput, match=words):
        jm.read_demonstrations(wrong, world=world)


def test_readers_of_files_name_those_of_tables():
    with pytest.raises(jm.errors.InvalidFile, match=r"the data frame .*jm\.read_demonstrations"):
        jm.Demonstrations.load(steps())
    with pytest.raises(jm.errors.InvalidFile, match=r"the data frame .*jm\.read_world"):
        jm.World.load(steps())
    with pytest.raises(jm.errors.InvalidCosts, match=r"'costs\.csv'.*jm\.read_costs"):
        jm.CostBasis("costs.csv")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "pump-broken,replace",
            "Pump-broken,replace",
            "differs from 'pump-broken' .*line 5. in ca",
        ),
        ("pump-worn,run,pump-worn", "3,run,pump-worn", "line 4: state is '3', a number; 'pump-ok'"),
        ("pump-broken,replace,pump-ok,1\n", "", "line 5: it leads to state 'pump-broken', which h"),
        (
            "0.7",
            "0.6",
            "line 4: the probabilities of state 'pump-worn', action 'run' add up to 0.9",
        ),
        ("0.7", "0,7", "line 4: the probabilities|line 4: probability"),
        (",0.9", ",90%", "line 2: probability is '90%', expected a number"),
        (",Probability", ",Chance", "a column 'Chance', and a log counts.*Call the column prob"),
    ],
)
def test_mistakes_in_a_table_of_named_laws_are_named_by_their_lines(tmp_path, old, new, words):
    assert old in LAWS
    with pytest.raises(jm.errors.InvalidInput, match=words):
        jm.read_world(written(tmp_path / "laws.csv", LAWS.replace(old, new)), options=OPTIONS)


def test_options_and_messages_speak_of_names(world, tmp_path):
    path = written(tmp_path / "laws.csv", LAWS)
    with pytest.raises(jm.errors.InvalidInput, match=r"option initial is 'pump-k', .*'pump-ok'"):
        jm.read_world(path, options=OPTIONS | {"initial": "pump-k"})
    impossible = steps(
        state=["pump-ok", "pump-ok"], action=["run", "run"], next_state=["pump-ok", "pump-broken"]
    )
    with pytest.raises(jm.errors.InvalidDemonstrations, match=r"row 1: .*from state 1 \('pump-ok'"):
        jm.read_demonstrations(impossible, world=world)
    bare = "".join(LAWS.splitlines(keepends=True)[:-1])
    options = OPTIONS | {"absorbing": "pump-broken"}
    ending = jm.read_world(written(tmp_path / "ends.csv", bare), options=options)
    broken = steps(state=["pump-ok", "pump-worn"], action=["run", "run"],
                   next_state=["pump-worn", "pump-worn"], terminated=[0, 1])  # fmt: skip
    ended = jm.read_demonstrations(broken, world=ending, terminal_state="pump-broken")
    assert ended.last_states.tolist() == [0]
    with pytest.raises(jm.errors.InvalidInput, match=r"'pump-brokn', .* mean 'pump-broken'"):
        jm.read_demonstrations(broken, world=ending, terminal_state="pump-brokn")


def test_a_named_state_where_episodes_end_is_an_end_itself():
    log = pd.DataFrame({
        "Visit": ["x"] * 4, "episode": ["a", "a", "b", "b"], "time": [1.5, 2, 1, 7],
        "state": ["ward", "ward", "ward", "ward, urgent"], "action": ["wait", "treat"] * 2,
        "next_state": ["ward", "home", "ward, urgent", "ICU"], "terminated": [False, True] * 2,
    })  # fmt: skip
    world = jm.read_world(log, options={"discount": "0.9"})
    assert world.sink is None
    assert np.array(world.state_names)[world.absorbing].tolist() == ["ICU", "home"]
    demos = jm.read_demonstrations(log, world=world)
    assert (demos.lengths.tolist(), demos.terminated.tolist()) == ([2, 2], [True, True])
    listed = Listing.of(world, jm.Policy.uniform(world)).most_visited()
    assert {choice.name for choice in listed} == {"ward", "ward, urgent"}
    options = {"discount": "0.9", "initial": "ward, urgent", "absorbing": '"home", ICU'}
    assert jm.read_world(log, options=options).initial.tolist() == [0, 0, 0, 1]
