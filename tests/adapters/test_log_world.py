"""Logs of steps become estimated worlds whose counts are exactly those of the log."""

import csv
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import journeyman as jm
from fuzzing import tried
from journeyman.adapters.world_sources import read_world

OPTIONS = {"discount": "0.9", "initial": "0"}
HEADER = ("state", "action", "next_state")


def refused(match):
    return pytest.raises(jm.errors.InvalidInput, match=match)


def written(folder, rows, header=HEADER, kind="csv"):
    path = folder / f"steps.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([header, *rows])
    else:
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        parquet.write_table(pa.table(dict(zip(header, columns, strict=True))), path)
    return str(path)


def steps_of(world, rng, count):
    """Every pair once, and then pairs at random."""
    pairs = np.concatenate([np.arange(world.num_pairs), rng.integers(world.num_pairs, size=count)])
    rows = world.transition.toarray()
    following = [int(rng.choice(world.num_states, p=rows[pair])) for pair in pairs]
    columns = world.pairs.states[pairs], world.pairs.actions[pairs], following
    return [tuple(int(part) for part in row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize(("kind", "examples"), [("csv", 25), ("parquet", 8)])
def test_counts_are_exact(kind, examples, tmp_path_factory):
    @settings(max_examples=examples)
    @given(seed=st.integers(0, 10**6), folded=st.booleans())
    def counted(seed, folded):
        require_exact_counts(kind, seed, folded, tmp_path_factory)

    counted()


def require_exact_counts(kind, seed, folded, tmp_path_factory):
    world = jm.testing.random_world(seed, num_states=5, num_actions=3, discount=0.9)
    steps = steps_of(world, np.random.default_rng(seed), 60)
    tally = Counter(steps)
    rows, header = steps, HEADER
    if folded:
        rows, header = [(*step, count) for step, count in tally.items()], (*HEADER, "count")
    folder = tmp_path_factory.mktemp("log")
    options = OPTIONS | {"num_states": str(world.num_states)}
    back = read_world(written(folder, rows, header, kind), options=options)
    visits = Counter((state, action) for state, action, _ in steps)
    assert back.pairs == world.pairs
    assert back.transition_counts.tolist() == [visits[key] for key in sorted(visits)]
    table = back.transition.toarray()
    for (state, action, target), count in tally.items():
        pair = world.pairs.offsets[state] + action
        assert table[pair, target] == count / visits[state, action]
    assert np.count_nonzero(table) == len(tally)
    assert back.is_estimated


WALK = [(0, 2, 1), (1, 0, 0), (0, 2, 2), (2, 0, 2)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_starts_are_read_from_episodes(tmp_path, kind):
    rows = [
        (*step, *more) for step, more in zip(WALK, [(7, 0), (7, 1), (8, 0), (8, 1)], strict=True)
    ]
    path = written(tmp_path, rows[::-1], (*HEADER, "episode", "t"), kind)
    world = read_world(path, options={"discount": "0.9"})
    assert (world.initial.tolist(), world.initial_count) == ([1, 0, 0], 2)
    assert world.observed_actions.tolist() == [2, 0, 0]
    rows = [(*step, episode) for step, episode in zip(WALK, [7, 7, 8, 8], strict=True)]
    path = written(tmp_path, rows, (*HEADER, "episode"), kind)
    assert read_world(path, options={"discount": "0.9"}).initial_count == 2
    fixed = read_world(path, options=OPTIONS | {"initial": "uniform"})
    assert fixed.initial_count is None


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_end_belongs_to_the_step(tmp_path, kind):
    rows = [(0, 0, 1, 0), (0, 0, 1, 1), (1, 0, 0, 0), (1, 1, 1, 1)]
    path = written(tmp_path, rows, (*HEADER, "terminated"), kind)
    world = read_world(path, options=OPTIONS)
    assert world.sink == 2
    assert world.transition.toarray().tolist() == [[0, 0.5, 0.5], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert world.initial.tolist() == [1, 0, 0]
    assert world.absorbing.tolist() == [False, False, True]


def test_large_counts_need_no_memory(tmp_path):
    rows = [(0, 0, 0, 3 * 10**12), (0, 0, 1, 10**12), (1, 0, 1, 7), (1, 3, 0, 0)]
    world = read_world(written(tmp_path, rows, (*HEADER, "count")), options=OPTIONS)
    assert world.transition_counts.tolist() == [4 * 10**12, 7]
    assert world.transition.toarray().tolist() == [[0.75, 0.25], [0, 1]]


def test_states_can_be_declared(tmp_path):
    path = written(tmp_path, [(0, 0, 1), (0, 0, 2)])
    with refused(r"states 1, 2 were reached \(.*steps.csv, line 2 leads to 1\) and never left"):
        read_world(path, options=OPTIONS)
    world = read_world(path, options=OPTIONS | {"absorbing": "1,2"})
    assert world.absorbing.tolist() == [False, True, True]
    with refused("outside"):
        read_world(path, options=OPTIONS | {"num_states": "2", "absorbing": "1"})


def test_all_states_that_were_never_left_are_named_and_can_be_declared(tmp_path):
    rows = [(0, 1, target) for target in range(30)] + [(1, 1, 0)]
    path = written(tmp_path, rows)
    with refused(
        r"from 28 of 30 states: states 2, 3, .*, 21, \.\.\. .28 in all. were reached"
    ) as it:
        read_world(path, options=OPTIONS)
    assert "--option absorbing=unleft" in str(it.value)
    assert "absorbing=[" not in str(it.value)
    world = read_world(path, options=OPTIONS | {"absorbing": "unleft"})
    assert world.absorbing.tolist() == [False] * 2 + [True] * 28
    assert world.transition_error[world.pairs.states >= 2].tolist() == [0.0] * 28


def test_numbers_that_occur_nowhere_can_be_dropped_and_nothing_is_numbered_anew(tmp_path):
    path = written(tmp_path, [(0, 1, 7), (7, 2, 0), (7, 1, 7)])
    with refused("from 6 of 8 states: states 1, 2, 3, 4, 5, 6 occur nowhere") as it:
        read_world(path, options=OPTIONS)
    assert "--option drop_unseen=yes" in str(it.value)
    world = read_world(path, options=OPTIONS | {"drop_unseen": "yes"})
    assert world.num_states == 8
    assert world.transition[[0]].toarray().tolist() == [[0] * 7 + [1]]
    assert world.absorbing.tolist() == [False] + [True] * 6 + [False]
    expert = jm.Policy.uniform(world)
    visits = jm.occupancy(world, expert).measure
    assert visits[(world.pairs.states > 0) & (world.pairs.states < 7)].max() == 0
    uniform = read_world(path, options=OPTIONS | {"drop_unseen": "yes", "initial": "uniform"})
    assert uniform.initial.tolist() == [0.5] + [0] * 6 + [0.5]
    with refused("states 1, 2, 3, 4, 5, 6 occur as a first state only"):
        read_world(path, options=OPTIONS | {"initial": "uniform"})


def test_where_terminated_steps_led_can_be_dropped(tmp_path):
    path = written(tmp_path, [(0, 1, 1, 0), (1, 1, 3, 1), (1, 1, 0, 0)], (*HEADER, "terminated"))
    with refused("states 2, 3 occur nowhere, unless as the next state of a step marked terminated"):
        read_world(path, options=OPTIONS)
    world = read_world(path, options=OPTIONS | {"drop_unseen": "yes"})
    assert (world.sink, world.num_states) == (4, 5)


TIMED = "state,action,next_state,episode,t\n"
GAP = TIMED + "0,0,1,4,0\n1,0,0,4,1\n1,0,1,4,7\n"


def test_a_gap_in_t_is_refused_by_line_or_allowed_with_words(tmp_path):
    path = text(tmp_path, GAP)
    with refused(r"steps.csv, line 4 .episode 4, t = 7. follows line 3 .episode 4, t = 1.") as it:
        read_world(path, options={"discount": "0.9"})
    assert "--option gaps=allow" in str(it.value)
    with pytest.warns(UserWarning, match="has 1 gaps in t, the first before .*line 4"):
        world = read_world(path, options={"discount": "0.9", "gaps": "allow"})
    assert world.transition_counts.tolist() == [1, 2]
    assert world.transition.toarray().tolist() == [[0, 1], [0.5, 0.5]]
    with refused("gaps = 'ignore'"):
        read_world(path, options={"discount": "0.9", "gaps": "ignore"})


def test_an_episode_that_is_joined_late_tells_no_start(tmp_path):
    late = TIMED + "0,0,1,4,0\n1,0,0,4,1\n1,0,1,5,3\n1,0,1,5,4\n"
    path = text(tmp_path, late)
    with refused("line 4: episode 5 has no row with t = 0"):
        read_world(path, options={"discount": "0.9"})
    world = read_world(path, options={"discount": "0.9", "gaps": "allow"})
    assert (world.initial.tolist(), world.initial_count) == ([1, 0], 1)
    assert read_world(path, options=OPTIONS).initial_count is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "state,action,next_state,episode\n0,0,1,2\n\n0,0,1,2\n1,0,0,2\n",
            "line 4 .episode 2. is from state 0, but line 2 .episode 2. leads to state 1",
        ),
        (
            "state,action,next_state,episode,terminated\n0,0,1,2,1\n1,0,0,2,0\n",
            "line 3 .episode 2. goes on after line 2 .episode 2., which is marked terminated",
        ),
        (
            'state,action,next_state,episode,t\n0,0,0,"4",0\n\n\n0,0,0,4,0\n',
            "line 5 .*also as line 2",
        ),
    ],
)
def test_rows_that_do_not_follow_are_refused_by_line(tmp_path, content, message):
    with refused(message):
        read_world(text(tmp_path, content), options={"discount": "0.9"})


def test_rows_in_any_order_will_do_where_starts_are_known(tmp_path):
    content = "state,action,next_state,episode\n0,0,1,2\n0,0,1,2\n1,0,0,2\n"
    assert read_world(text(tmp_path, content), options=OPTIONS).transition_counts.sum() == 3


def test_rows_of_a_packed_table_are_named_by_number(tmp_path):
    rows = [(0, 0, 1, 0, 0), (1, 0, 0, 0, 3)]
    path = written(tmp_path, rows, (*HEADER, "episode", "t"), "parquet")
    with refused(r"steps.parquet: row 1 .episode 0, t = 3. follows row 0"):
        read_world(path, options={"discount": "0.9"})


def test_an_absorbing_state_that_is_left_is_refused_by_line(tmp_path):
    path = written(tmp_path, [(0, 0, 1), (1, 0, 0)])
    with refused("state 1 is given as absorbing, but .*steps.csv, line 3 leads from it to state 0"):
        read_world(path, options=OPTIONS | {"absorbing": "1"})
    with refused("line 3: state is 1, outside 0..0"):
        read_world(path, options=OPTIONS | {"num_states": "1"})


def test_a_log_of_a_real_environment_becomes_its_world(tmp_path):
    import gymnasium

    environment, rng = gymnasium.make("FrozenLake-v1", is_slippery=False), np.random.default_rng(0)
    rows, state, episode, t = [], int(environment.reset(seed=1)[0]), 0, 0
    for _ in range(6000):
        action = int(rng.integers(4))
        after, _, terminated, truncated, _ = environment.step(action)
        rows.append((state, action, int(after), episode, t, int(terminated)))
        state, t = int(after), t + 1
        if terminated or truncated:
            state, episode, t = int(environment.reset()[0]), episode + 1, 0
    path = written(tmp_path, rows, (*HEADER, "episode", "t", "terminated"))
    ends = "5,7,11,12,15"
    world = read_world(path, options={"discount": "0.9", "num_states": "16", "absorbing": ends})
    true = read_world("gym:FrozenLake-v1", options={"discount": "0.9", "is_slippery": "no"})
    running = ~np.isin(world.pairs.states, [5, 7, 11, 12, 15, 16])
    there = true.pairs.index(world.pairs.states, world.observed_actions)
    assert running.sum() == 44
    difference = (world.transition - true.transition[there])[running]
    assert not np.abs(difference).sum()
    assert world.sink == true.sink


def test_columns_may_stand_in_any_order_among_others(tmp_path):
    rows = [("x", 1, 0, 0.5, "0"), ("y", 1, "1.0", 0.5, "0")]
    path = written(tmp_path, rows, ("note", "next_state", "state", "reward", "action"))
    assert read_world(path, options=OPTIONS).transition_counts.tolist() == [1, 1]


def text(tmp_path, content):
    path = tmp_path / "steps.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


GOOD = "state,action,next_state\n0,0,0\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "lacks the column.s. state, action, next_state"),
        ("\n", "lacks the column"),
        ("state,action\n0,0\n", "lacks the column.s. next_state; it has state, action"),
        ("state,action,next,probability\n0,0,0,1\n", "first line: .*next_state,probability.$"),
        ("state,state,action,next_state\n", "two columns 'state'"),
        ("state,action,next_state\n", "holds no step"),
        (GOOD + "0,0\n", "line 3: next_state is missing"),
        (GOOD + "0,x,0\n", "line 3: action is 'x', a name; '0' in line 2 is a number"),
        (GOOD + "0,0.5,0\n", "line 3: action is '0.5'"),
        (GOOD + "0,nan,0\n", "'nan'"),
        (GOOD + "0,1_0,0\n", "'1_0'"),
        (GOOD + "0,,0\n", "line 3: action is empty"),
        (GOOD + f"0,{'9' * 5000},0\n", "line 3: action is 9999.*too large"),
        (GOOD + f"0,{'9' * 200000},0\n", "not readable text"),
        (GOOD + "0,0,-1\n", "line 3: next_state is -1"),
        (GOOD + "99999999999,0,0\n", "line 3: state is 99999999999, too large"),
        (GOOD + "0,0,2000000000\n", r"would take about 2e\+02 GB|would take about"),
        (GOOD + '0,"0,0\n', "not readable text"),
        (GOOD.encode() + b"\xff\xfe,0,0\n", "not readable text"),
        (GOOD.encode() + b"0,\x00,0\n", "line 3: action is .* a name|not readable"),
        ("state,action,next_state,count\n0,0,0,-1\n", "steps.csv, line 2 has count -1"),
        ("state,action,next_state,count\n0,0,0,0\n", "all counts sum to 0"),
        ("state,action,next_state,count\n0,0,0,99999999999999999\n", "between 1 and 9e"),
        ("state,action,next_state,count,episode\n0,0,0,1,1\n", "columns count and episode"),
        (
            "state,action,next_state,episode,t\n0,0,1,0,0\n0,0,1,0,1\n1,0,1,0,2\n",
            "line 3 .episode 0, t = 1. is from state 0, but line 2 .episode 0, t = 0. leads to",
        ),
        (
            "state,action,next_state,episode,t\n0,0,0,4,0\n0,0,0,4,0\n",
            "line 3 .episode 4, t = 0. occurs twice, also as line 2",
        ),
        (
            "state,action,next_state,episode,t\n0,0,0,4,1\n",
            "line 2: episode 4 has no row with t = 0",
        ),
        ("state,action,next_state,terminated\n0,0,0,maybe\n", "terminated is 'maybe'"),
    ],
)
def test_a_wrong_log_is_refused_by_line(tmp_path, content, message):
    options = {"discount": "0.9"} if "episode" in str(content) else OPTIONS
    with refused(message):
        read_world(text(tmp_path, content), options=options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": "0"}, "no discount"),
        ({"discount": "0.9"}, "does not say where episodes start"),
        (OPTIONS | {"initial": "5"}, "outside 0..0"),
        (OPTIONS | {"absorbing": "a"}, "'a' is not a whole number"),
        (OPTIONS | {"num_states": "many"}, "'many' is not a whole number"),
        (OPTIONS | {"num_states": "0"}, "num_states|outside"),
        (OPTIONS | {"num_states": "9000000000"}, "would take about"),
        (OPTIONS | {"layout": "sax"}, "no option 'layout'"),
        (OPTIONS | {"memory_gb": "1e-9"}, "would take about"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    with refused(message):
        read_world(text(tmp_path, GOOD), options=options)


def table(tmp_path, **columns):
    path = tmp_path / "steps.parquet"
    parquet.write_table(pa.table(columns), path)
    return str(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"state": [0], "action": [0]}, "lacks the column.s. next_state"),
        (
            {"state": [0], "action": [None], "next_state": [0]},
            "row 0: action is empty",
        ),
        (
            {"state": [0], "action": [0.5], "next_state": [0]},
            "row 0: action is 0.5, expected a whole number",
        ),
        ({"state": [0], "action": [float("nan")], "next_state": [0]}, "row 0: action is empty"),
        ({"state": [0], "action": [None], "next_state": ["0"]}, "row 0: action is empty"),
        (
            {"state": [0], "action": ["x"], "next_state": ["y"]},
            "row 0: next_state is 'y', a name; '0' in row 0 is a number",
        ),
        ({"state": [0], "action": [[0]], "next_state": [0]}, "holds list"),
        ({"state": [0], "action": [-1], "next_state": [0]}, "row 0 has action -1"),
        ({"state": [], "action": [], "next_state": []}, "holds no step"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path, columns, message):
    with refused(message):
        read_world(table(tmp_path, **columns), options=OPTIONS)


def test_a_table_of_whole_fractions_will_do(tmp_path):
    path = table(tmp_path, state=[0.0], action=[True], next_state=np.array([0], np.uint8))
    assert read_world(path, options=OPTIONS).observed_actions.tolist() == [1]


def test_a_table_of_very_many_rows_is_refused_by_its_footer(tmp_path):
    """Four million rows fit in less than a hundred kilobytes, packed as repetitions."""
    zeros = pa.array(np.zeros(4_000_000, np.int8))
    path = tmp_path / "bomb.parquet"
    parquet.write_table(pa.table(dict.fromkeys(HEADER, zeros)), path)
    assert path.stat().st_size < 100_000
    with refused("with 4000000 rows, would take about 0.67 GB"):
        read_world(str(path), options=OPTIONS)


def test_a_footer_that_contradicts_itself_is_refused_and_ends_nothing(tmp_path):
    """A column said to be without gaps, with statistics of gaps: asked about such a column,
    pyarrow 26 ends the process."""
    path = tmp_path / "steps.parquet"
    table(tmp_path, state=[0], action=[0], next_state=[0])
    optional, required = b"\x25\x02\x18\x05state", b"\x25\x00\x18\x05state"
    data = path.read_bytes()
    assert data.count(optional) == 1
    path.write_bytes(data.replace(optional, required))
    with refused("not a whole Parquet file|footer"):
        read_world(str(path), options=OPTIONS)


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (b"", "footer"),
        (b"PAR1", "footer"),
        (b"\xff\xff\xff\xffPAR1", "footer"),
        (b"\x00" * 12 + b"\x01\x00\x00\x00PAR1", "footer"),
        (b"PAR1" + b"\x19\xff\xff\xff\x7f" + b"\x05\x00\x00\x00PAR1", "footer"),
        (b"PAR1" + b"\x1c" * 99 + b"\x63\x00\x00\x00PAR1", "footer"),
        (b"PAR1" + b"\x16\xff" + b"\xff" * 20 + b"\x16\x00\x00\x00PAR1", "footer"),
    ],
)
def test_a_footer_that_is_none_is_refused(tmp_path, tail, message):
    path = tmp_path / "steps.parquet"
    path.write_bytes(tail)
    with refused(message):
        read_world(str(path), options=OPTIONS)


@tried(40)
@given(data=st.data())
def test_no_damage_does_more_than_a_refusal(data, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    kind = data.draw(st.sampled_from(["csv", "parquet"]))
    rows = [(*step, k, 0) for k, step in enumerate(WALK)]
    path = written(folder, rows, (*HEADER, "episode", "t"), kind)
    whole = bytearray((folder / f"steps.{kind}").read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (folder / f"steps.{kind}").write_bytes(bytes(whole))
    try:
        world = read_world(path, options={"discount": "0.9"})
    except jm.errors.JourneymanError:
        return
    assert np.allclose(world.transition.sum(axis=1), 1)


@tried(80)
@given(content=st.text(alphabet='0123456789,.-"\n\r\t abcstate_nx', max_size=80))
def test_no_text_does_more_than_a_refusal(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    path.write_text("state,action,next_state\n0,0,0\n" + content, newline="")
    try:
        read_world(str(path), options=OPTIONS)
    except jm.errors.JourneymanError:
        return


LIMITED = (*HEADER, "episode", "terminated")
LIMITED_ROWS = [
    (0, 0, 1, 0, 0), (1, 0, 0, 0, 0), (0, 0, 1, 0, 1),
    (0, 0, 0, 1, 0), (0, 0, 1, 1, 0), (1, 0, 1, 1, 1),
    (0, 0, 1, 2, 0), (1, 0, 1, 2, 1),
    (1, 0, 0, 3, 0), (0, 0, 0, 3, 0), (0, 0, 0, 3, 0),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("timed", [False, True])
def test_ends_that_look_like_a_time_limit_are_a_warning_until_it_is_given(tmp_path, kind, timed):
    rows, header = LIMITED_ROWS, LIMITED
    if timed:
        times = [0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 2]
        rows, header = [(*row, t) for row, t in zip(rows, times, strict=True)][::-1], (*header, "t")
    path, options = written(tmp_path, rows, header, kind), {"discount": "0.9"}
    with pytest.warns(UserWarning, match=r"2 of 3 .* have 3 steps.* the option truncated_at=3"):
        read_world(path, options=options)
    world = read_world(path, options=options | {"truncated_at": "3"})
    counts = world.transition_counts * world.transition.toarray()[:, :].T
    assert counts.T[:2].tolist() == [[2, 3, 0], [2, 0, 1]], (
        "third steps are left out, ends before stay"
    )
    assert (world.initial_count, world.initial.tolist()) == (4, [0.75, 0.25, 0])


def test_a_time_limit_of_a_log_is_checked(tmp_path):
    path, options = written(tmp_path, LIMITED_ROWS, LIMITED), {"discount": "0.9"}
    with refused(r"line 4 .episode 0. is step 3 of its episode, more than truncated_at = 2"):
        read_world(path, options=options | {"truncated_at": "2"})
    with refused("truncated_at = 0"):
        read_world(path, options=options | {"truncated_at": "0"})
    mixed = [LIMITED_ROWS[k] for k in (1, 0, 2)]
    with refused("leads to state"):
        read_world(written(tmp_path, mixed, LIMITED), options=OPTIONS | {"truncated_at": "3"})
    with refused("no step before number 1"):
        read_world(
            written(tmp_path, [(0, 0, 0, 0, 1)], LIMITED), options=OPTIONS | {"truncated_at": "1"}
        )
    bare = written(tmp_path, [(0, 0, 0, 1)], (*HEADER, "terminated"))
    with refused("no column episode"):
        read_world(bare, options=OPTIONS | {"truncated_at": "3"})


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_episodes_may_have_names(tmp_path, kind):
    header = (*HEADER, "episode", "t")
    rows = [(0, 0, 1, "b-2", 0), (1, 0, 0, "b-2", 1), (1, 0, 0, "a", 0), (0, 0, 0, "a", 1)]
    world = read_world(written(tmp_path, rows, header, kind), options={"discount": "0.9"})
    assert (world.initial_count, world.initial.tolist()) == (2, [0.5, 0.5])
    assert world.transition.toarray().tolist() == [[0.5, 0.5], [1, 0]]
    with refused(r"\(episode b-2, t = 1\) is from state 0, but .*\(episode b-2, t = 0\)"):
        read_world(
            written(tmp_path, [rows[0], (0, 0, 0, "b-2", 1)], header, kind),
            options={"discount": "0.9"},
        )


def test_an_episode_needs_a_name(tmp_path):
    path = written(tmp_path, [(0, 0, 0, "a"), (0, 0, 0, "")], (*HEADER, "episode"))
    with refused("line 3: episode is empty.*name of its episode"):
        read_world(path, options={"discount": "0.9"})


def test_a_table_of_laws_is_not_taken_for_a_log(tmp_path):
    rows = [(0, 0, 0, 0.9), (0, 0, 1, 0.1)]
    with refused("a column 'prob', and a log counts.*Call the column probability"):
        read_world(written(tmp_path, rows, (*HEADER, "prob")), options=OPTIONS)
    rows = [(*row, 1) for row in rows]
    with refused("the columns probability and count: .*Leave out probability if these are obs"):
        read_world(written(tmp_path, rows, (*HEADER, "probability", "count")), options=OPTIONS)


# Laws that pairs share

WEAR = {"increments": "0,1,2", "resets": "1:0", "num_states": "6"}
WORN = [(0, 0, 1), (1, 0, 3), (3, 0, 3), (3, 1, 1), (5, 0, 5)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_increments_are_estimated_together(tmp_path, kind):
    world = read_world(written(tmp_path, WORN, kind=kind), options=OPTIONS | WEAR)
    shared = jm.world.SharedLaws.increments(6, [0, 1, 2], num_actions=2, resets={1: 0})
    columns = [np.array(column) for column in zip(*WORN, strict=True)]
    wanted = jm.World.from_transitions(*columns, 0.9, initial=np.eye(6)[0], shared=shared)
    assert abs(world.transition - wanted.transition).max() == 0
    assert world.transition_counts.tolist() == [4] * 12
    assert np.array_equal(world.shared.tallies, wanted.shared.tallies)


def test_counts_of_a_log_are_those_of_its_groups(tmp_path):
    rows = [(*step, k + 1) for k, step in enumerate(WORN)]
    world = read_world(written(tmp_path, rows, (*HEADER, "count")), options=OPTIONS | WEAR)
    assert world.shared.group_tallies.tolist() == [[3, 5, 2]]


def test_other_groups_come_from_a_file(tmp_path):
    shared = jm.world.SharedLaws.increments(6, [0, 1, 2], num_actions=2, per_action=True)
    np.savez(tmp_path / "laws.npz", groups=shared.groups, targets=shared.targets)
    steps = [(0, 0, 1), (1, 1, 3)]
    options = OPTIONS | {"shared": str(tmp_path / "laws.npz")}
    world = read_world(written(tmp_path, steps), options=options)
    assert world.shared.group_tallies.tolist() == [[0, 1, 0], [0, 0, 1]]
    np.savez(tmp_path / "laws.npz", groups=shared.groups)
    with refused("lacks the array targets"):
        read_world(written(tmp_path, steps), options=options)


def test_the_line_of_a_step_that_no_outcome_explains_is_named(tmp_path):
    path = written(tmp_path, [*WORN, (2, 0, 0)])
    with refused("line 7 leads from state 2 by action 0 to state 0, where no outcome leads"):
        read_world(path, options=OPTIONS | WEAR)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_states": None}, "not num_states"),
        ({"increments": None}, "resets without increments"),
        ({"shared": "laws.npz"}, "the options shared and increments"),
        ({"resets": "1"}, "resets = '' is not a whole number"),
        ({"increments": "0,x"}, "increments = 'x' is not a whole number"),
    ],
)
def test_options_of_shared_laws_that_do_not_fit_are_refused(tmp_path, change, words):
    options = {key: text for key, text in (OPTIONS | WEAR | change).items() if text is not None}
    with refused(words):
        read_world(written(tmp_path, WORN), options=options)


def test_terminated_steps_do_not_fit_increments(tmp_path):
    path = written(tmp_path, [(0, 0, 1, 0), (1, 0, 2, 1)], (*HEADER, "terminated"))
    with refused("its terminated steps lead to an added state"):
        read_world(path, options=OPTIONS | WEAR)
