"""Descriptions of runs: TOML out and in again, settings over settings."""

import tomllib
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import tried
from journeyman.errors import InvalidInput
from journeyman.runs.description import (
    BudgetDescription,
    InvalidSettings,
    RunDescription,
    SolverDescription,
    overlaid,
    overridden,
    parsed_budget,
    read_toml,
    toml_value,
)

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
plain = st.one_of(words, st.booleans(), st.integers(-(2**62), 2**62), numbers)
values = st.one_of(plain, st.lists(plain, max_size=3))
tables = st.dictionaries(words, values, max_size=4)


@given(
    st.dictionaries(
        words, st.one_of(values, tables, st.lists(tables, min_size=1, max_size=3)), max_size=5
    )
)
def test_what_is_written_is_what_is_read(table):
    assert tomllib.loads(tomli_w.dumps(table)) == table


@given(plain)
def test_a_value_on_the_command_line_is_a_value_of_toml(value):
    text = tomli_w.dumps({"value": value}).removeprefix("value = ").strip()
    assert toml_value(text) == value


def test_what_is_no_value_is_text():
    for text in ("sgd-al", "a b", "", "x\ny = 2", "[1", "/data/world.npz"):
        assert toml_value(text) == text


descriptions = st.builds(
    RunDescription,
    world=words,
    costs=words,
    demonstrations=words,
    cost_class=st.sampled_from(["simplex", "infinity-ball", "euclidean-ball"]),
    rewards=st.one_of(st.none(), st.booleans()),
    failure_probability=st.floats(0.001, 0.999),
    gap=st.one_of(st.none(), numbers),
    seed=st.integers(0, 2**32),
    world_options=st.dictionaries(words, words, max_size=2),
    solver=st.builds(
        SolverDescription,
        name=st.sampled_from(["auto", "sgd-al"]),
        time_limit=st.one_of(st.none(), numbers),
        steps=st.integers(1, 10**9),
    ),
    budgets=st.lists(
        st.builds(
            BudgetDescription,
            cost=words,
            at_most=numbers,
            name=st.one_of(st.none(), words),
        ),
        max_size=2,
    ).map(tuple),
)


@given(descriptions)
def test_a_description_survives_its_file(description):
    assert RunDescription.of(tomllib.loads(tomli_w.dumps(description.table()))) == description


def test_a_whole_number_is_a_number_and_truth_is_none():
    assert RunDescription.of({"gap": 3}).gap == 3.0
    with pytest.raises(InvalidSettings, match="seed = True"):
        RunDescription.of({"seed": True})
    with pytest.raises(InvalidSettings, match="time_limit = 'long'"):
        RunDescription.of({"solver": {"time_limit": "long"}})


@pytest.mark.parametrize(
    "table",
    [
        {"budgets": {"cost": "x"}},
        {"budgets": ["x"]},
        {"budgets": [{"cost": "x"}]},
        {"budgets": [{"at_most": 1.0}]},
        {"world_options": "discount"},
        {"solver": "sgd-al"},
        {"solver": {"nmae": "sgd-al"}},
        {"seed": -1},
    ],
)
def test_what_is_not_understood_is_refused(table):
    with pytest.raises(InvalidSettings):
        RunDescription.of(table)


def test_overrides_lie_over_tables_and_options_over_overrides():
    table = overridden({"seed": 1, "solver": {"name": "auto"}}, ["seed=2", "solver.cells=9"])
    table = overlaid(table, {"seed": None, "gap": 0.5, "solver": {"name": "sgd-al"}})
    asked = RunDescription.of(table)
    assert (asked.seed, asked.gap) == (2, 0.5)
    assert (asked.solver.name, asked.solver.cells) == ("sgd-al", 9)


@pytest.mark.parametrize("setting", ["seed", "=3", "a.b.c=1", "seed.x=1"])
def test_an_override_that_is_none_is_refused(setting):
    with pytest.raises(InvalidSettings):
        overridden({"seed": 1}, [setting])


@pytest.mark.parametrize("text", ["wear", "<= 3", "wear <= much", "wear < 3"])
def test_a_budget_is_a_cost_and_a_limit(text):
    with pytest.raises(InvalidSettings):
        parsed_budget(text)


def test_files_are_named_by_where_they_are(tmp_path):
    (tmp_path / "world.npz").touch()
    asked = RunDescription(world="world.npz", costs="macro-cells:2", demonstrations="none.csv")
    placed = asked.with_paths_from(tmp_path)
    assert Path(placed.world) == (tmp_path / "world.npz").resolve()
    assert (placed.costs, placed.demonstrations) == ("macro-cells:2", "none.csv")


SOUND = """world = "world.npz"
costs = "macro-cells:4"
rewards = true
gap = 0.5
seed = 3
[world_options]
discount = 0.95
[solver]
name = "sgd-al"
steps = 1000
[[budgets]]
cost = "wear"
at_most = 8.0
"""
PIECES = st.sampled_from(
    ["[", "]]", '"', "=", "\n", "9" * 5000, "1e999", "nan", "2026-13-45", "true", "[solver]\n", "é",
     "gap=" + "9" * 400 + "\n", "x." * 3000, "[" * 3000, "\x00", "\r", "-", "{}"]
)  # fmt: skip


@pytest.mark.parametrize("text", ["x." * 3000 + "x = 1", "x = " + "[" * 200 + "]" * 200])
def test_what_is_too_deep_to_be_shown_is_refused(text, tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text(f"[world_options]\n{text}\n")
    with pytest.raises(InvalidInput, match=r"20 deep|not TOML"):
        RunDescription.of(read_toml(path))
    assert toml_value("{" + "x." * 3000 + "x = 1}") == "{" + "x." * 3000 + "x = 1}"


@tried(150)
@given(data=st.data())
def test_no_text_does_more_than_a_refusal(data, tmp_path_factory):
    """Pieces of a sound description are replaced: it is read, or refused in our words."""
    path = tmp_path_factory.getbasetemp() / "fuzzed.toml"
    text = SOUND
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, len(text)))
        piece = data.draw(st.one_of(PIECES, st.text(max_size=3)))
        text = text[:first] + piece + text[first + data.draw(st.integers(0, 12)) :]
    path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    try:
        described = RunDescription.of(read_toml(path))
    except InvalidInput:
        return
    assert RunDescription.of(tomllib.loads(tomli_w.dumps(described.table()))) == described
