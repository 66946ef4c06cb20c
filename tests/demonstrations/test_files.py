import numpy as np
import pytest

import journeyman as jm
from journeyman.testing import Shape, random_world

PLAIN = """episode,t,state,action,terminated
0,0,5,2,
0,1,6,0,
0,2,7,,1
1,0,5,1,
1,1,9,,0
"""


def loaded(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "demos.csv"
    path.write_bytes(text.encode(encoding))
    return jm.Demonstrations.load(path)


def require_plain(demos):
    assert demos.states.tolist() == [5, 6, 7, 5, 9]
    assert demos.actions.tolist() == [2, 0, 1]
    assert demos.offsets.tolist() == [0, 2, 3]
    assert demos.terminated.tolist() == [True, False]


def columns(text, order):
    """`text` with its columns in another order; a new name gets the entry "x"."""
    header, *rows = (line.split(",") for line in text.splitlines())
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    lines = [order] + [[row.get(name, "x") for name in order] for row in cells]
    return "\n".join(",".join(line) for line in lines) + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_plain_text_is_read_with_and_without_a_byte_order_mark(tmp_path, encoding, line_end):
    require_plain(loaded(tmp_path, PLAIN.replace("\n", line_end), encoding))


@pytest.mark.parametrize(
    "order",
    [
        ["terminated", "action", "state", "t", "episode"],
        ["note", "state", "episode", "terminated", "reward", "t", "action"],
    ],
)
def test_columns_stand_in_any_order_and_others_are_ignored(tmp_path, order):
    require_plain(loaded(tmp_path, columns(PLAIN, order)))


@pytest.mark.parametrize(
    ("yes", "no"), [("1", "0"), ("true", "false"), ("TRUE", "False"), ("Yes", "NO"), (" 1 ", "")]
)
def test_flags_are_read_in_any_case(tmp_path, yes, no):
    text = PLAIN.replace("7,,1", f"7,,{yes}").replace("9,,0", f"9,,{no}")
    require_plain(loaded(tmp_path, text))


def test_without_a_column_terminated_every_episode_is_truncated(tmp_path):
    text = columns(PLAIN, ["episode", "t", "state", "action"])
    assert loaded(tmp_path, text).truncated.all()


def test_episodes_may_have_any_name(tmp_path):
    require_plain(loaded(tmp_path, PLAIN.replace("\n0,", "\nmonday,").replace("\n1,", "\n7,")))


@pytest.mark.parametrize("name", ["demos.csv", "demos.CSV", "demos.npz"])
@pytest.mark.parametrize("shape", [Shape.ABSORBING, Shape.RAGGED])
def test_what_is_saved_comes_back(tmp_path, name, shape):
    world = random_world(0, shape)
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=12, horizon=6, seed=1)
    demos.save(tmp_path / name)
    again = jm.Demonstrations.load(tmp_path / name)
    for field in ("states", "actions", "offsets", "terminated"):
        np.testing.assert_array_equal(getattr(again, field), getattr(demos, field))
        assert getattr(again, field).dtype == getattr(demos, field).dtype


def test_the_native_format_keeps_the_action_sets(tmp_path):
    world = random_world(0)
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=2, horizon=6, seed=1)
    demos.save(tmp_path / "demos.npz")
    assert jm.Demonstrations.load(tmp_path / "demos.npz").pairs == world.pairs


@pytest.mark.parametrize("largest", [255, 256, 2**40])
def test_large_ids_survive_the_native_format(tmp_path, largest):
    jm.Demonstrations([0, largest], [3], [0, 1]).save(tmp_path / "demos.npz")
    assert jm.Demonstrations.load(tmp_path / "demos.npz").states.tolist() == [0, largest]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("state", "place", r"lacks the column\(s\) state"),
        ("0,1,6", "0,2,6", "line 3: t is 2, expected 1"),
        ("0,1,6", "0,1,6.5", "line 3: state is '6.5'"),
        ("0,1,6", "0,1,-6", "line 3: state is -6"),
        ("0,1,6", "0,1,", "line 3: state is empty"),
        ("5,2,", "5,left,", "line 2: action is 'left'"),
        ("7,,1", "7,,maybe", "line 4: terminated is 'maybe'"),
        ("0,2,7,,1\n", "", "line 4: episode 0 has no last row"),
        ("1,1,9,,0\n", "", "episode 1 has no last row"),
        ("1,0,5,1,\n1,1,", "1,0,", "line 5: episode 1 has no action"),
        ("\n1,", "\n0,", "line 5: episode 0 goes on after its last row"),
        (PLAIN.partition("\n")[2], "", "holds no episode"),
        (PLAIN, "", "lacks the column"),
    ],
)
def test_the_first_wrong_line_is_named(tmp_path, old, new, message):
    with pytest.raises(jm.errors.InvalidFile, match=message):
        loaded(tmp_path, PLAIN.replace(old, new))


def test_what_is_no_text_is_refused(tmp_path):
    with pytest.raises(jm.errors.InvalidFile, match="not readable text"):
        loaded(tmp_path, PLAIN.replace("5", "é"), encoding="latin-1")


@pytest.mark.parametrize("name", ["none.csv", "none.npz"])
def test_a_missing_file_is_refused(tmp_path, name):
    with pytest.raises(jm.errors.InvalidFile, match="does not exist"):
        jm.Demonstrations.load(tmp_path / name)
