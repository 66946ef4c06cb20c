"""Rewards and labels of UMB files as costs: what states, choices and branches have, added up."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from adapters.test_umb_world import DOUBLE, OPTIONS, PUBLISHED, damaged, packed, refused, written
from fuzzing import tried
from journeyman.adapters.cost_sources import read_costs
from journeyman.adapters.world_sources import read_world

BOOL = {"type": "bool"}
LABEL = {"g": {"applies-to": ["states"], "type": BOOL}}


def annotated(rewards, members, labels=LABEL):
    index = json.loads(PUBLISHED["index.json"])
    index["annotations"] = {"aps": labels, "rewards": rewards}
    return PUBLISHED | {"index.json": json.dumps(index).encode()} | members


def numbers(*values):
    return np.array(values, "<f8").tobytes()


def costs_of(tmp_path, members, source="{}"):
    path = written(tmp_path, members)
    return read_costs(source.format(path), read_world(path, options=OPTIONS))


ENERGY = annotated(
    {
        "r0": {"alias": "energy", "applies-to": ["states", "choices"], "type": DOUBLE},
        "r1": {"applies-to": ["branches"], "type": {"type": "rational", "size": 128}},
        "r2": {"applies-to": ["choices"], "type": DOUBLE},
    },
    {
        "annotations/rewards/r0/states/values.bin": numbers(1, 0, 0, -0.5),
        "annotations/rewards/r0/choices/values.bin": numbers(0, 10, 20, 30, 40),
        "annotations/rewards/r1/branches/values.bin": np.array(
            [1, 2, 3, 2, 1, 1, 2, 1, 0, 1, -1, 1, 5, 1, 1, 4], "<i8"
        ).tobytes(),
    },
)


def test_labels_alone_are_read(tmp_path):
    basis = costs_of(tmp_path, PUBLISHED)
    assert basis.names == ("g",)
    assert basis.matrix.ravel().tolist() == [0, 0, 0, 0, 1]


def test_rewards_of_states_choices_and_branches_are_added_up(tmp_path):
    basis = costs_of(tmp_path, ENERGY)
    assert basis.names == ("energy", "r1", "r2", "g")
    table = np.asarray(basis.matrix)
    assert table[:, 0].tolist() == [1, 11, 20, 30, 39.5]
    expected = [0.5 / 2 + 1.5 / 2, 0.2 + 0.8 * 2, -0.1, 5, 0.25]
    assert table[:, 1] == pytest.approx(expected, abs=1e-15)
    assert table[:, 2].tolist() == [0] * 5, "an annotation without values is 0"
    assert table[:, 3].tolist() == [0, 0, 0, 0, 1]


def test_rewards_are_turned_by_name_only(tmp_path):
    plain, turned = costs_of(tmp_path, ENERGY), costs_of(tmp_path, ENERGY, "rewards:{}")
    assert not plain.rewards
    assert turned.rewards
    assert np.array_equal(turned.matrix, -np.asarray(plain.matrix))


def test_packed_files_are_known_by_their_names(tmp_path):
    path = tmp_path / "model.umb.gz"
    path.write_bytes(gzip.compress(packed(ENERGY)))
    world = read_world(str(path), options=OPTIONS)
    assert read_costs(str(path), world).num_costs == 4


def test_costs_of_another_world_are_refused(tmp_path):
    with refused("belong to another world, with 4 states and 5 choices"):
        read_costs(written(tmp_path, ENERGY), jm.gallery.grid(2, macro_cells=1).world)


FIRST = "annotations/rewards/r/choices/values.bin"


def one_reward(data=None, **facts):
    told = {"applies-to": ["choices"], "type": DOUBLE} | facts
    return annotated({"r": told}, {FIRST: data} if data is not None else {})


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (annotated({}, {}, {}), "has 0 rewards and labels"),
        (annotated({f"r{k}": LABEL["g"] for k in range(1000)}, {}), "has 1001 rewards"),
        (annotated([], {}), "make no sense"),
        (annotated({"r": 3}, {}), "make no sense"),
        (annotated({"r": {"type": DOUBLE}}, {}), "applies-to"),
        (one_reward(**{"applies-to": 3}), "make no sense"),
        (one_reward(**{"applies-to": ["players"]}), "r applies to players"),
        (one_reward(**{"applies-to": ["states", "states"]}), "r applies to states, states"),
        (one_reward(type={"type": "string"}), "values of r of type 'string'"),
        (one_reward(type={"type": "double", "size": 32}), "size 32"),
        (one_reward(type=None), "of type None"),
        (one_reward(numbers(1, 2, 3)), f"{FIRST} has 24 bytes, expected 40"),
        (one_reward(numbers(1, 2, 3, 4, np.nan)), "not finite"),
        (one_reward(numbers(1, 2, 3, 4, 1e300)), "size 1e\\+300"),
        (one_reward(bytes(80), type={"type": "rational"}), r"values.bin\[0\] divides by 0"),
        (one_reward(alias="g"), "two costs are named 'g'"),
        (
            one_reward() | {"annotations/rewards/r/choices/distribution-mapping.bin": b"12345678"},
            "values of r are drawn at random",
        ),
    ],
)
def test_what_is_no_cost_is_refused(tmp_path, members, message):
    with refused(message):
        costs_of(tmp_path, members)


WORLD = jm.World(
    [[0, 0.5, 0.5, 0], [0, 0, 0.2, 0.8], [0.9, 0.1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    [1, 0, 0, 0], 0.9, choice_offsets=[0, 2, 3, 4, 5],
)  # fmt: skip


@tried(80)
@given(data=st.data())
def test_no_damage_does_more_than_a_refusal(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "fuzzed_costs.umb"
    path.write_bytes(packed(damaged(data, ENERGY)))
    try:
        basis = read_costs(str(path), WORLD)
    except jm.errors.JourneymanError:
        return
    assert np.isfinite(basis.matrix).all()
