"""Every format: what is written comes back, and what is wrong is named by its place."""

import tempfile
from pathlib import Path

import gymnasium
import h5py
import minari
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm

NAMES = {
    "npz": "demos.npz", "csv": "demos.csv", "parquet": "demos.parquet", "minari": "demos-v0",
    "imitation": "demos",
}  # fmt: skip
LOG = """episode,t,state,action,next_state,terminated
a,0,5,2,6,
a,1,6,0,7,1
b,0,5,1,9,0
"""
CORRIDOR = jm.World(
    [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1]],
    [1, 0, 0],
    0.9,
    choice_offsets=[0, 2, 4, 5],
)


@st.composite
def demonstrations(draw):
    ids = st.integers(0, draw(st.sampled_from([1, 300, 2**40])))
    episodes = draw(
        st.lists(st.tuples(ids, st.lists(st.tuples(ids, ids), min_size=1, max_size=5)), min_size=1)
    )
    states = [[first, *(state for _, state in steps)] for first, steps in episodes]
    actions = [[action for action, _ in steps] for _, steps in episodes]
    count = len(episodes)
    flags = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return jm.Demonstrations.from_arrays(states, actions, flags)


def require_equal(one, other):
    for field in ("states", "actions", "offsets", "terminated"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
        assert getattr(one, field).dtype == getattr(other, field).dtype


def require_log(demos):
    assert demos.states.tolist() == [5, 6, 7, 5, 9]
    assert demos.actions.tolist() == [2, 0, 1]
    assert demos.offsets.tolist() == [0, 2, 3]
    assert demos.terminated.tolist() == [True, False]


def written(tmp_path, text):
    path = tmp_path / "demos.csv"
    path.write_text(text, encoding="utf-8")
    return path


def parquet(tmp_path, **columns):
    path = tmp_path / "demos.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def two_episodes():
    return jm.Demonstrations([0, 1, 2, 0, 0], [0, 0, 1], [0, 2, 3], [True, False])


@pytest.mark.filterwarnings("ignore:.*as if a time limit:UserWarning")
@pytest.mark.parametrize("form", NAMES)
def test_what_is_written_comes_back(form):
    @settings(max_examples=12 if form in ("minari", "parquet") else 40)  # processes read Parquet
    @given(demonstrations())
    def comes_back(demos):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / NAMES[form]
            jm.write_demonstrations(demos, path, format=form)
            require_equal(jm.read_demonstrations(path), demos)
            require_equal(jm.read_demonstrations(str(path), format=form), demos)

    comes_back()


def test_the_native_format_keeps_action_sets(tmp_path):
    demos = jm.Demonstrations([0, 1], [0], [0, 1], choice_offsets=[0, 2, 3])
    jm.write_demonstrations(demos, tmp_path / "demos.npz")
    assert jm.read_demonstrations(tmp_path / "demos.npz").pairs == demos.pairs


def test_minari_reads_what_is_exported(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    jm.write_demonstrations(two_episodes(), tmp_path / "rooms" / "walk-v3", format="minari")
    first, second = minari.load_dataset("rooms/walk-v3")
    assert first.observations.tolist() == [0, 1, 2]
    assert first.actions.tolist() == [0, 0]
    assert first.rewards.tolist() == [0, 0]
    assert (first.terminations.tolist(), first.truncations.tolist()) == ([0, 1], [0, 0])
    assert (second.terminations.tolist(), second.truncations.tolist()) == ([0], [1])
    assert {one.name for one in tmp_path.iterdir()} == {"rooms"}


def test_outside_its_root_an_export_is_named_after_the_last_part(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "elsewhere"))
    known = jm.Demonstrations([0, 1], [0], [0, 1], choice_offsets=[0, 2, 3, 9])
    jm.write_demonstrations(known, tmp_path / "here" / "walk-v0", format="minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "here"))
    made = minari.load_dataset("walk-v0")
    assert made.observation_space == gymnasium.spaces.Discrete(3)
    assert made.action_space == gymnasium.spaces.Discrete(6)


@pytest.mark.filterwarnings("ignore::UserWarning:minari")
@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
def test_minari_spaces_that_start_elsewhere_are_counted_from_0(tmp_path, monkeypatch, form):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    buffer = minari.data_collector.EpisodeBuffer(
        observations=np.array([5, 6, 7]), actions=np.array([-2, -1]), rewards=[0.0, 0.0],
        terminations=[False, True], truncations=[False, True],
    )  # fmt: skip
    minari.create_dataset_from_buffers(
        "walk-v0", [buffer], data_format=form,
        observation_space=gymnasium.spaces.Discrete(4, start=4),
        action_space=gymnasium.spaces.Discrete(2, start=-2),
    )  # fmt: skip
    demos = jm.read_demonstrations(tmp_path / "walk-v0")
    assert demos.states.tolist() == [1, 2, 3]
    assert demos.actions.tolist() == [0, 1]
    assert demos.terminated.tolist() == [True]


def test_minari_data_outside_its_space_is_named(tmp_path):
    jm.write_demonstrations(two_episodes(), tmp_path / "walk-v0", format="minari")
    with h5py.File(tmp_path / "walk-v0" / "data" / "main_data.hdf5", "a") as file:
        file["episode_1/actions"][0] = 9
    with pytest.raises(jm.errors.InvalidFile, match=r"episode_1: action 0 is 9, outside 0\.\.1"):
        jm.read_demonstrations(tmp_path / "walk-v0")


def test_existing_directories_are_left_alone(tmp_path):
    with pytest.raises(jm.errors.InvalidFile, match="exists already"):
        jm.write_demonstrations(two_episodes(), tmp_path, format="imitation")
    with pytest.raises(jm.errors.InvalidFile, match="Minari does not take 'walk'"):
        jm.write_demonstrations(two_episodes(), tmp_path / "walk", format="minari")
    assert list(tmp_path.iterdir()) == []


def test_a_log_of_steps_is_read(tmp_path):
    require_log(jm.read_demonstrations(written(tmp_path, LOG)))
    require_log(jm.Demonstrations.load(written(tmp_path, LOG)))
    bare = "\n".join(line.rpartition(",")[0] for line in LOG.splitlines())
    assert jm.read_demonstrations(written(tmp_path, bare)).truncated.all()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("state,action", "state,actoin", r"lacks the column\(s\) action \(action may be 'actoin'"),
        ("episode,t", "Epsiode,t", r"\(episode may be 'Epsiode'"),
        ("5,2,6", "start,2,6", "line 2: state is 'start', expected a whole number, for no names"),
        ("6,0,7", "6,stay,7", "line 3: action is 'stay', a name; '2' in line 2 is a number"),
        ("t,state", "state,state", "two columns state"),
        ("a,1,6", "a,1,5", "line 3: state is 5, but the step before led to 6"),
        ("a,1,6", "a,2,6", "line 3: t is 2, expected 1"),
        ("5,2,6,\n", "5,2,6,1\n", "line 3: episode a goes on after it terminated"),
        ("\nb,", "\nb,0,1,1,1,\na,", "line 5: episode a goes on after its last row"),
        ("6,0,7", "6,,7", "line 3: action is empty"),
        ("6,0,7", "6,0,", "line 3: next_state is empty"),
        ("6,0,7", "6,0,1_0", "line 3: next_state is '1_0'"),
        ("6,0,7", "6,0," + "9" * 40, "line 3: next_state is 9999"),
        ("7,1\n", "7,perhaps\n", "line 3: terminated is 'perhaps'"),
        (LOG.partition("\n")[2], "", "holds no episode"),
    ],
)
def test_the_first_wrong_line_of_a_log_is_named(tmp_path, old, new, message):
    assert old in LOG
    with pytest.raises(jm.errors.InvalidFile, match=message):
        jm.read_demonstrations(written(tmp_path, LOG.replace(old, new, 1)))


def test_parquet_tables_of_either_layout_are_read(tmp_path):
    path = parquet(
        tmp_path, episode=["a", "a", "b"], t=[0, 1, 0], state=pa.array([5, 6, 5], pa.int8()),
        action=[2.0, 0.0, 1.0], next_state=[6, 7, 9], terminated=[None, True, False],
        note=["x", "y", "z"],
    )  # fmt: skip
    require_log(jm.read_demonstrations(path))
    path = parquet(
        tmp_path, episode=[0, 0, 0, 7, 7], t=[0, 1, 2, 0, 1], state=[5, 6, 7, 5, 9],
        action=[2.0, 0.0, float("nan"), 1.0, None], terminated=[0, 0, 1, None, 0],
    )  # fmt: skip
    require_log(jm.read_demonstrations(path))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("state", [0, 5, 0], "row 1: state is not where the row before led to"),
        ("t", [0, 2, 0], "row 1: t is 2, expected 1"),
        ("terminated", [True, True, False], "row 1: an episode goes on after it terminated"),
        ("episode", [1, 1, 1], "row 2: t is 0, expected 2"),
        ("episode", [0, 1, 0], "row 2: an episode goes on after its end"),
        ("action", [0, None, 1], "row 1: action is empty"),
        ("action", [0, -1, 1], "row 1: action is below 0"),
        ("next_state", [1, -2, 0], "row 1: next_state is below 0"),
        ("state", [0, 1.5, 0], "row 1: state is 1.5, expected a whole number"),
        ("state", [0, float("inf"), 0], "row 1: state is inf, expected a whole number"),
        ("state", [0.0, float("nan"), 0.0], "row 1: state is empty"),
        ("state", [0, None, 0], "row 1: state is empty"),
        ("state", ["0", "1", "x"], "row 2: state is 'x', a name; '0' in row 0 is a number"),
        ("state", pa.array([0, 2**63, 0], pa.uint64()), "state is 9223372036854775808"),
        ("terminated", [0, 2, 0], "row 1: terminated is 2"),
        ("terminated", ["no", "yes", "no"], "terminated holds string"),
        ("episode", ["a", None, "b"], "row 1: episode is empty"),
    ],
)
def test_the_first_wrong_row_of_a_parquet_file_is_named(tmp_path, name, values, message):
    sound = {
        "episode": [0, 0, 1], "t": [0, 1, 0], "state": [0, 1, 0], "action": [0, 0, 1],
        "next_state": [1, 2, 0], "terminated": [False, True, False],
    }  # fmt: skip
    jm.read_demonstrations(parquet(tmp_path, **sound))
    with pytest.raises(jm.errors.InvalidFile, match=message):
        jm.read_demonstrations(parquet(tmp_path, **sound | {name: values}))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ([0, None, None, 1, None], "row 1: the action is empty before the last row"),
        ([0, 0, None, 1, 1], "row 4: the last row of an episode has an action"),
    ],
)
def test_visited_states_need_an_empty_action_at_the_end(tmp_path, action, message):
    path = parquet(
        tmp_path, episode=[0, 0, 0, 1, 1], t=[0, 1, 2, 0, 1], state=[0, 1, 2, 0, 1], action=action
    )
    with pytest.raises(jm.errors.InvalidFile, match=message):
        jm.read_demonstrations(path)


def test_a_world_confirms_what_is_possible_in_it(tmp_path):
    for form, name in NAMES.items():
        jm.write_demonstrations(two_episodes(), tmp_path / name, format=form)
        require_equal(jm.read_demonstrations(tmp_path / name, world=CORRIDOR), two_episodes())


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("npz", "episode 1, step 2"), ("csv", "line 7"), ("parquet", "row 4"),
        ("minari", "episode_1, row 2"), ("imitation", "trajectory 1, step 2"),
    ],
)  # fmt: skip
def test_the_first_impossible_step_is_named_by_its_place(tmp_path, form, place):
    demos = jm.Demonstrations(  # episode 1 goes 0, 1, 0, 2: its step 2 is impossible
        [0, 1, 2, 0, 1, 0, 2, 0, 1], [0, 0, 0, 1, 0, 0], [0, 2, 5, 6], [True, False, False]
    )
    path = tmp_path / NAMES[form]
    jm.write_demonstrations(demos, path, format=form)
    with pytest.raises(jm.errors.InvalidDemonstrations) as refused:
        jm.read_demonstrations(path, world=CORRIDOR)
    assert f"{path}, {place}: " in str(refused.value)
    assert "the step from state 0 by action 0 to state 2 has probability 0" in str(refused.value)


def test_the_line_is_right_behind_empty_lines_and_for_the_end_of_an_episode(tmp_path):
    text = "episode,t,state,action\n\n0,0,0,1\n\n0,1,0,0\n0,2,9,\n"
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match=r"line 6: episode 0, step 2: state 9 is too large"
    ):
        jm.read_demonstrations(written(tmp_path, text), world=CORRIDOR)
    log = "episode,t,state,action,next_state\n\n0,0,0,1,0\n\n0,1,0,0,9\n"
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match=r"line 5: episode 0, step 2: state 9 is too large"
    ):
        jm.read_demonstrations(written(tmp_path, log), world=CORRIDOR)


def test_what_is_too_large_is_refused_with_the_estimate(tmp_path):
    demos = jm.Demonstrations(np.zeros(2002), np.zeros(2000), [0, 1000, 2000])
    for form, name in NAMES.items():
        jm.write_demonstrations(demos, tmp_path / name, format=form)
        with pytest.raises(
            jm.errors.InvalidFile, match=r"would take about 0 MB .* memory_limit=\d+"
        ):
            jm.read_demonstrations(tmp_path / name, memory_limit=40_000)
        require_equal(jm.read_demonstrations(tmp_path / name, memory_limit=1_000_000), demos)


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("demos.xlsx", {}, "suffix '.xlsx'.*npz, csv, parquet, minari or imitation"),
        ("demos.csv", {"format": "excel"}, "the format 'excel' is not known.*npz, csv"),
        ("none.weird", {}, "does not exist"),
        ("none.npz", {}, "does not exist"),
        ("none.csv", {}, "does not exist"),
        ("none.parquet", {}, "does not exist"),
        ("none.hdf5", {}, "does not exist"),
        ("", {}, "neither a data set of Minari"),
    ],
)
def test_unknown_formats_and_missing_files_are_refused(tmp_path, name, more, message):
    (tmp_path / "demos.xlsx").touch()
    with pytest.raises(jm.errors.InvalidInput, match=message):
        jm.read_demonstrations(tmp_path / name, **more)


def test_writing_needs_a_format(tmp_path):
    for name in ("demos", "demos.hdf5"):
        with pytest.raises(jm.errors.InvalidFile, match="no suffix of a known format"):
            jm.write_demonstrations(two_episodes(), tmp_path / name)


@pytest.mark.parametrize("name", ["demos.parquet", "demos.hdf5", "."])
def test_the_native_reader_sends_foreign_files_to_the_right_door(tmp_path, name):
    with pytest.raises(jm.errors.InvalidFile, match=r"jm\.read_demonstrations"):
        jm.Demonstrations.load(tmp_path / name)


@pytest.mark.parametrize(
    ("times", "row", "what", "remedy"),
    [
        ([0, 1, 2, 3, 7], 4, "t is 7, expected 4: steps 4 to 6 are missing", "Add what is missing"),
        ([0, 1, 3], 2, "t is 3, expected 2: step 2 is missing", "end the episode before it"),
        ([0, 1, 1], 2, "t is 1, expected 2: it is there twice", "Leave out the copy"),
        ([0, 1, 2, 1], 3, "t is 1, expected 3: rows are out of order", "Sort the rows"),
        ([0, 1, 0, 1], 2, "t is 0, expected 2: a new episode", "Give every episode its own"),
        ([1, 2], 0, "t is 1, expected 0", "Count t from 0"),
    ],
)
@pytest.mark.parametrize("layout", ["log", "visits"])
def test_times_that_do_not_count_up_are_named_by_their_row(
    tmp_path, times, row, what, remedy, layout
):
    count = len(times)
    columns = {
        "episode": [4] * count, "t": times, "state": [0] * count, "action": [0] * count,
    } | ({"next_state": [0] * count} if layout == "log" else {})  # fmt: skip
    if layout == "visits":
        columns["action"] = [0] * (count - 1) + [None]
    lines = [
        ",".join("" if x is None else str(x) for x in one)
        for one in zip(*columns.values(), strict=True)
    ]
    text = written(tmp_path, "\n".join([",".join(columns), *lines]) + "\n")
    table = parquet(tmp_path, **columns)
    for path, place in ((text, f"line {row + 2}"), (table, f"row {row}")):
        with pytest.raises(jm.errors.InvalidFile) as caught:
            jm.read_demonstrations(path)
        assert caught.value.what.startswith(f"{path}, {place}: {what}")
        assert remedy in caught.value.remedy


def test_rows_of_episodes_that_alternate_are_to_be_sorted(tmp_path):
    text = "episode,t,state,action,next_state\na,0,0,0,1\nb,0,0,0,1\na,1,1,0,2\n"
    with pytest.raises(jm.errors.InvalidFile, match=r"line 4: episode a goes on .* Sort the rows"):
        jm.read_demonstrations(written(tmp_path, text))
    table = parquet(
        tmp_path, episode=["a", "b", "a"], t=[0, 0, 1], state=[0, 0, 1], action=[0, 0, 0],
        next_state=[1, 1, 2],
    )  # fmt: skip
    with pytest.raises(jm.errors.InvalidFile, match=r"row 2: an episode goes on .* Sort the rows"):
        jm.read_demonstrations(table)


STEPS = {
    "episode": [0, 0], "t": [0, 1], "state": [0, 0], "action": [0, 0], "next_state": [0, 0],
}  # fmt: skip


def test_a_table_without_rows_holds_no_episode(tmp_path):
    path = parquet(tmp_path, **{name: pa.array([], pa.int64()) for name in STEPS})
    with pytest.raises(jm.errors.InvalidFile, match="holds no episode"):
        jm.read_demonstrations(path)


def test_rows_are_counted_over_all_batches(tmp_path):
    count = 70_000
    wrong = [0.0] * count
    wrong[66_000] = 0.25
    numbers = {"episode": [0] * count, "t": range(count), "action": [0] * count}
    path = parquet(tmp_path, **{k: list(v) for k, v in numbers.items()}, state=wrong)
    with pytest.raises(jm.errors.InvalidFile, match=r"row 66000: state is 0\.25"):
        jm.read_demonstrations(path)


def test_names_in_capitals_are_recognised_in_any_table(tmp_path):
    steps = STEPS | {"next_state": [0, 7]}
    path = parquet(tmp_path, **{name.upper(): column for name, column in steps.items()})
    assert jm.read_demonstrations(path).next_states.tolist() == [0, 7]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda path: jm.read_demonstrations(None), "path is a NoneType"),
        (lambda path: jm.read_demonstrations(path, world="world.npz"), "world is a str"),
        (lambda path: jm.read_demonstrations(path, memory_limit="1GB"), "memory_limit = '1GB'"),
        (lambda path: jm.write_demonstrations([[0]], path), "a list cannot be written"),
        (lambda path: jm.write_demonstrations(two_episodes(), path.parent, format="csv"),
         "is a directory"),
        (lambda path: jm.Demonstrations.from_arrays(3, 4), "states is a int"),
        (lambda path: jm.Demonstrations.concatenate([two_episodes(), None]), "not all Demons"),
        (lambda path: jm.Demonstrations.concatenate(two_episodes()), "not all Demonstrations"),
        (lambda path: two_episodes().subset([7]), "no such choice among 2 episodes"),
        (lambda path: two_episodes().subset([0.5]), "no such choice among 2 episodes"),
        (lambda path: two_episodes().subset(np.zeros(2, bool)), "no episode is chosen"),
        (lambda path: jm.record(CORRIDOR, jm.Policy.uniform(CORRIDOR), trajectories=1, horizon=1,
                                seed=-1), "seed = -1"),
    ],
)  # fmt: skip
def test_what_is_no_demonstrations_at_all_is_refused_in_words(tmp_path, wrong, words):
    path = written(tmp_path, LOG)
    with pytest.raises(jm.errors.InvalidInput) as caught:
        wrong(path)
    assert words in caught.value.what
    assert caught.value.remedy


def test_worlds_and_costs_are_read_from_paths_too(tmp_path):
    CORRIDOR.save(tmp_path / "world.npz")
    world = jm.read_world(tmp_path / "world.npz")
    assert world.num_states == 3
    (tmp_path / "costs.csv").write_text("a\n1\n0\n0\n")
    assert jm.read_costs(tmp_path / "costs.csv", world).names == ("a",)
