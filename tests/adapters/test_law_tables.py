"""Known laws in a table become the world they are the laws of; what cannot be one is refused."""

from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import journeyman as jm
from fuzzing import tried
from journeyman.adapters.world_sources import read_world

HEADER = "state,action,next_state,probability"
OPTIONS = {"discount": "0.9", "initial": "0"}


def refused(match):
    return pytest.raises(jm.errors.InvalidInput, match=match)


def rows_of(world):
    entries = world.transition.tocoo()
    states, actions = world.pairs.states[entries.row], world.pairs.actions[entries.row]
    return [
        tuple(row)
        for row in zip(
            states.tolist(), actions.tolist(), entries.col.tolist(), entries.data.tolist(),
            strict=True,
        )
    ]  # fmt: skip


def csv(path, rows, header=HEADER):
    lines = [header, *(row if isinstance(row, str) else ",".join(map(repr, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def table(path, rows, header=HEADER):
    columns = (np.array(column) for column in zip(*rows, strict=True))
    parquet.write_table(pa.table(dict(zip(header.split(","), columns, strict=True))), path)
    return str(path)


@pytest.mark.parametrize(("kind", "seeds"), [("csv", 20), ("parquet", 6)])
def test_a_written_world_comes_back_whatever_the_order_of_its_rows(kind, seeds, tmp_path_factory):
    for seed in range(seeds):
        require_the_same_world(kind, seed, tmp_path_factory)


def require_the_same_world(kind, seed, tmp_path_factory):
    world = jm.testing.random_world(seed, num_states=6, num_actions=3, discount=0.9)
    rows = rows_of(world)
    np.random.default_rng(seed).shuffle(rows)
    path = tmp_path_factory.mktemp("laws") / f"laws.{kind}"
    back = read_world((csv if kind == "csv" else table)(path, rows), options=OPTIONS)
    assert back.pairs == world.pairs
    assert not back.is_estimated
    np.testing.assert_allclose(back.transition.toarray(), world.transition.toarray(), atol=1e-15)
    assert back.initial.tolist() == [1, 0, 0, 0, 0, 0]


def test_the_first_state_has_its_law_from_an_option_a_file_or_a_column(tmp_path):
    rows = [(0, 0, 1, 1.0), (1, 0, 0, 0.5), (1, 0, 1, 0.5)]
    path = csv(tmp_path / "laws.csv", rows)
    starts = csv(tmp_path / "starts.csv", [(1, 0.25), (0, 0.75)], "state,probability")
    beside = csv(tmp_path / "beside.csv", ["0,0,1,1,.75", "1,0,0,.5,.25", "1,0,1,.5,"],
                 f"{HEADER},initial")  # fmt: skip
    more = {"discount": "0.9"}
    assert read_world(path, options={**more, "initial": "uniform"}).initial.tolist() == [0.5, 0.5]
    assert read_world(path, options={**more, "initial": starts}).initial.tolist() == [0.75, 0.25]
    assert read_world(beside, options=more).initial.tolist() == [0.75, 0.25]
    assert read_world(beside, options={**more, "initial": "0"}).initial.tolist() == [1, 0]
    with refused("does not say where episodes start"):
        read_world(path, options=more)
    rows = ["0,0,1,1,.75", "1,0,0,.5,.25", "1,0,1,.5,.5"]
    with refused("line 3: initial is 0.25, and another row of state 1 has 0.5"):
        read_world(csv(tmp_path / "other.csv", rows, f"{HEADER},initial"), options=more)
    outside = csv(tmp_path / "outside.csv", [(2, 1.0)], "state,probability")
    with refused("line 2: state 2 is outside 0..1"):
        read_world(path, options={**more, "initial": outside})


def test_actions_keep_their_numbers_and_ends_need_no_rows(tmp_path):
    path = csv(tmp_path / "laws.csv", [(0, 2, 0, 1.0), (0, 5, 1, 1.0), (0, 5, 0, 0.0)])
    for absorbing in ("1", "unleft"):
        world = read_world(path, options={**OPTIONS, "absorbing": absorbing})
        assert world.pairs.actions.tolist() == [2, 5, 0]
        assert world.absorbing.tolist() == [False, True]
    with refused("line 3: it leads to state 1, which has no row.*add the row 1,0,1,1 or give .*"):
        read_world(path, options=OPTIONS)
    with refused("line 2: state 0 is declared absorbing, and has a law of its own"):
        read_world(path, options={**OPTIONS, "absorbing": "0,1"})
    with refused("absorbing = -1"):
        read_world(path, options={**OPTIONS, "absorbing": "-1"})


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        (["0,0,0,.5"], "line 2: the probabilities of state 0, action 0 add up to 0.5.*all their"),
        (["0,0,0,.5", "0,0,0,.5"], "line 3: the same step as in line 2.*its whole probability"),
        (["0,0,0,1.5"], "line 2: probability is 1.5.*from 0 to 1"),
        (["0,0,0,nan"], "line 2: probability is nan"),
        (["0,0,0,"], "line 2: probability is nan"),
        (["0,0,0"], "line 2: probability is nan"),
        (["0,0,0,1", "x,0,0,1"], "line 3: state is 'x', a name; '0' in line 2 is a number"),
        (["0.5,0,0,1"], "line 2: state is '0.5', expected a whole number.*from 0"),
        (["0,-1,0,1"], "line 2: action is -1"),
        (["1,0,1,1"], "state 0 has no row.*without gaps"),
        (["0,0,99999999999,1"], "line 2: next_state is 99999999999, too large"),
        (["0,0,0,1", "0,0,2147483647,0"], "GB"),
        ([], "holds no row"),
    ],
)
def test_what_cannot_be_a_law_is_refused_with_its_line(rows, match, tmp_path):
    with refused(match):
        read_world(csv(tmp_path / "laws.csv", rows), options=OPTIONS)


def test_columns_that_lack_or_stand_twice_are_named(tmp_path):
    header = "state,next_state,probability"
    with refused("lacks the column.s. action; it has state, next_state, probability"):
        read_world(csv(tmp_path / "laws.csv", ["0,0,1"], header), options=OPTIONS)
    with refused("two columns 'state'"):
        read_world(csv(tmp_path / "laws.csv", ["0,0,0,0,1"], f"state,{HEADER}"), options=OPTIONS)
    with refused("row 0: probability is nan"):
        path = tmp_path / "laws.parquet"
        columns = {"state": [0], "action": [0], "next_state": [0], "probability": [None]}
        parquet.write_table(
            pa.table({**columns, "probability": pa.array([None], pa.float64())}), path
        )
        read_world(str(path), options=OPTIONS)


@tried(60)
@given(text=st.text(st.sampled_from('0123456789.,-eEnaif\n "x'), max_size=80))
def test_damaged_tables_are_read_or_refused(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("laws") / "laws.csv"
    path.write_text(f"{HEADER}\n{text}")
    with suppress(jm.errors.InvalidInput):
        read_world(str(path), options=OPTIONS)
