"""Worlds by name: environments, seals, the gallery, and what is said when a name is wrong."""

import inspect
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.adapters.cost_sources import read_costs
from journeyman.adapters.source_options import typed
from journeyman.adapters.world_sources import GALLERY_NAMES, read_world

DISCOUNT = {"discount": "0.9"}


def same(one, other):
    assert (one.transition != other.transition).nnz == 0
    assert np.array_equal(one.initial, other.initial)
    assert one.pairs == other.pairs
    assert one.discount == other.discount
    assert one.sink == other.sink
    return True


@pytest.mark.parametrize(
    ("name", "options", "arguments"),
    [
        ("FrozenLake-v1", {}, {}),
        ("FrozenLake-v1", {"map_name": "8x8", "is_slippery": "false"}, {"map_name": "8x8"}),
        ("FrozenLake-v1", {"is_slippery": "no"}, {"is_slippery": False}),
        ("FrozenLake-v1", {"success_rate": "0.5"}, {"success_rate": 0.5}),
        ("FrozenLake-v1", {"desc": '["SFG", "HFH"]'}, {"desc": ["SFG", "HFH"]}),
        ("CliffWalking-v1", {}, {}),
        ("CliffWalking-v1", {"is_slippery": "true"}, {"is_slippery": True}),
        ("CliffWalkingSlippery-v1", {}, {}),
        ("Taxi-v4", {}, {}),
        ("Taxi-v4", {"is_rainy": "yes"}, {"is_rainy": True}),
    ],
)
def test_an_environment_by_name_is_the_environment_itself(name, options, arguments):
    if options.get("map_name"):
        arguments = {"map_name": "8x8", "is_slippery": False}
    made = jm.World.from_gymnasium(gymnasium.make(name, **arguments), 0.9)
    assert same(read_world(f"gym:{name}", options=DISCOUNT | options), made)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("gym:FrozenLake-v1", {}, r"no discount\. Give one, for example discount=0\.95"),
        ("gym:FrozenLake-v1", {"discount": "1.5"}, "not strictly between 0 and 1"),
        ("gym:FrozenLake-v1", {"discount": "1"}, "a policy can avoid the ends"),
        ("gym:FrozenLake-v1", {"discount": "most"}, "'most' is not a number"),
        ("gym:Taxi-v3", DISCOUNT, "Please use `Taxi-v4` instead"),
        ("gym:CliffWalking-v0", DISCOUNT, "Please use `CliffWalking-v1` instead"),
        ("gym:Blackjack-v1", DISCOUNT, "no transition table P"),
        ("gym:Taxi-v4", DISCOUNT | {"fickle_passenger": "true"}, "fickle_passenger=True"),
        ("gym:Taxi-v4", DISCOUNT | {"rainy": "1"}, "no option 'rainy'.*is_rainy"),
        ("gym:FrozenLake-v1", DISCOUNT | {"map_name": "9x9"}, "with map_name=9x9: KeyError: '9x9'"),
        ("gym:FrozenLake-v1", DISCOUNT | {"is_slippery": "maybe"}, "not a truth value"),
        ("gym:FrozenLake-v1", DISCOUNT | {"success_rate": "much"}, "'much' is not a number"),
        ("gym:Nowhere-v1", DISCOUNT, "Nowhere"),
        ("gym:a:b:c", DISCOUNT, "cannot make 'a:b:c'"),
        ("gym:no_such_module:Id-v0", DISCOUNT, "no_such_module"),
        ("seals:Sort-v0", DISCOUNT, "no transition matrix"),
        ("seals:Nowhere-v0", DISCOUNT, "Nowhere"),
        ("seals:RiskyPath-v0", {}, "no discount"),
        ("gallery:grid", {"size": "big"}, "'big' is not a whole number"),
        ("gallery:grid", {"colour": "red"}, "no option 'colour'.*size, macro_cells"),
        ("gallery:grid", {"walls": "7"}, "does not take"),
        ("gallery:garden", {}, "has no 'garden'.*gallery:grid"),
        ("gallery:driving", DISCOUNT, "no option 'discount'"),
        ("gallery:grid", {"sise": "4"}, "no option 'sise' .did you mean 'size'"),
        ("laws.xlsx", DISCOUNT, "Export the sheet as CSV"),
        ("gallery:grid", {"size": "100000"}, r"would take about .* GB.*memory_gb="),
        ("gallery:garnet", {"num_states": "100000000"}, "memory_gb="),
        ("gallery:queues", {}, r"would take about .* GB.*memory_gb="),
        ("gallery:objectworld", {"size": "700"}, "memory_gb="),
        ("gallery:parking", {"aisles": "100"}, "memory_gb="),
        ("gallery:shop", {"capacity": "2000"}, "memory_gb="),
        ("gallery:highway", {"length": "2000000"}, "memory_gb="),
        ("gallery:grid", {"memory_gb": "lots"}, "memory_gb = lots"),
        ("gallery:grid", {"memory_gb": "nan"}, "memory_gb = nan"),
        ("world.json", {}, r"not a source of worlds.*\.npz, \.umb, \.csv, \.parquet"),
        ("", {}, "not a source"),
    ],
)
def test_a_wrong_source_is_refused_with_a_remedy(source, options, message):
    with pytest.raises(jm.errors.InvalidInput, match=message):
        read_world(source, options=options)


@pytest.mark.parametrize("name", ["CliffWorld7x4-v0", "RiskyPath-v0", "Branching-v0"])
def test_a_world_of_seals_has_its_matrix(name):
    world = read_world(f"seals:{name}", options=DISCOUNT)
    model = gymnasium.make(f"seals:seals/{name}").unwrapped
    assert np.array_equal(
        world.transition.toarray(), model.transition_matrix.reshape(-1, model.state_dim)
    )
    assert np.array_equal(world.initial, model.initial_state_dist)
    assert same(read_world(f"seals:seals/{name}", options=DISCOUNT), world)


def test_a_world_of_seals_in_single_precision_is_divided_by_its_sums():
    """As numpy's `choice` does, by which the environment draws."""
    options = DISCOUNT | {"generator_seed": "7"}
    world = read_world("seals:Random-v0", options=options)
    model = gymnasium.make("seals:seals/Random-v0", generator_seed=7).unwrapped
    given = model.transition_matrix.astype(float)
    assert model.transition_matrix.dtype == np.float32
    rows = (given / given.sum(axis=-1, keepdims=True)).reshape(-1, model.state_dim)
    assert np.allclose(world.transition.toarray(), rows, rtol=0, atol=1e-16)
    assert world.normalisation_error == np.abs(given.sum(axis=-1) - 1).max() > 1e-8


def test_arguments_reach_a_world_of_seals():
    wide = read_world("seals:CliffWorld7x4-v0", options=DISCOUNT | {"width": "9"})
    assert wide.num_states == 36


@pytest.mark.parametrize(
    ("package", "source", "extra"),
    [
        ("gymnasium", "gym:FrozenLake-v1", "gymnasium"),
        ("seals", "seals:RiskyPath-v0", "seals"),
        ("pyarrow", "steps.parquet", "parquet"),
    ],
)
def test_a_missing_package_is_named_with_its_remedy(package, source, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(jm.errors.MissingExtra, match=rf"pip install 'journeyman\[{extra}\]'"):
        read_world(source, options=DISCOUNT)


def test_reading_a_file_loads_no_optional_package(tmp_path):
    jm.gallery.grid(2, macro_cells=1).world.save(tmp_path / "world.npz")
    script = (
        "import sys; from journeyman.adapters.world_sources import read_world;"
        f"read_world({str(tmp_path / 'world.npz')!r});"
        "print({'gymnasium', 'seals', 'pyarrow', 'icu_sepsis'} & set(sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("highway", {"length": "8", "seed": "3"}),
        ("inventory", {"capacity": "4", "weeks": "3"}),
        ("objectworld", {"size": "5", "colours": "3", "seed": "3"}),
        ("parking", {"width": "36", "aisles": "1", "starts": "4", "style": "backward"}),
        ("shop", {"capacity": "6", "prices": "[10, 2, 1]"}),
        ("windy-grid", {"size": "4", "wind": "0.3"}),
    ],
)
def test_worlds_of_the_literature_have_their_costs(name, options):
    source = f"gallery:{name}"
    world = read_world(source, options=options)
    basis = read_costs(source, world, options=options)
    assert basis.on(world).shape == (world.num_pairs, basis.num_costs)


def test_every_world_of_the_gallery_has_a_name():
    functions = {name for name, _ in inspect.getmembers(jm.gallery, inspect.isfunction)}
    assert functions - {"windy_costs"} == set(GALLERY_NAMES)


def test_the_gallery_by_name_is_the_gallery():
    options = {"size": "5", "macro_cells": "2", "slip": "0.1", "walls": "[[0, 1]]"}
    world = jm.gallery.grid(5, macro_cells=2, slip=0.1, walls=[(0, 1)]).world
    assert same(read_world("gallery:grid", options=options), world)
    assert same(read_world("gallery:driving"), jm.gallery.driving().world)
    queues = read_world("gallery:queues", options={"buffers": "[2, 1, 1, 2]"})
    assert same(queues, jm.gallery.queues(buffers=(2, 1, 1, 2)).explicit()[0])


def test_the_clinicians_world_has_a_name_of_its_own():
    expected = jm.gallery.icu_sepsis(discount=0.9).world
    assert same(read_world("icu-sepsis", options=DISCOUNT), expected)


def test_more_memory_can_be_allowed():
    assert read_world("gallery:grid", options={"size": "4", "memory_gb": "0.001"}).num_states == 16
    with pytest.raises(jm.errors.InvalidFile, match=r"0\.001 GB are allowed"):
        read_world("gallery:grid", options={"size": "64", "memory_gb": "0.001"})


@given(st.integers() | st.floats(allow_nan=False) | st.booleans())
def test_a_value_survives_being_typed(value):
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    assert typed("argument", text, value) == value
    assert typed("argument", text, None) == pytest.approx(value)


@given(st.text(max_size=8), st.sampled_from([True, 1, 0.5, "x", None, ()]))
def test_a_text_has_the_type_of_the_default_or_is_refused(text, default):
    try:
        value = typed("argument", text, default)
    except jm.errors.InvalidWorld:
        return
    assert default is None or default == () or type(value) is type(default)
