"""`journeyman new` writes an example that works at once, and says something."""

import json
import re
from pathlib import Path

import pytest

import journeyman as jm


@pytest.fixture
def example(call, tmp_path, monkeypatch):
    shown = call("new", tmp_path / "pump")
    assert shown.code == 0, shown.err
    monkeypatch.chdir(tmp_path / "pump")
    return shown


def test_what_it_says_to_do_next_ends_in_an_audited_run_with_two_claims(call, example):
    commands = re.findall(r"^  journeyman (.*)", example.out, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        shown = call(*command.split())
        assert shown.code == 0, shown.err
        assert "vacuous" not in shown.err
        assert "weak" not in shown.err
    found = json.loads(Path("run/result.json").read_text())
    assert found["valid"]
    assert found["share"] < 0.25
    assert found["regret"]["valid"]
    assert found["regret_share"] < 0.05
    assert Path("run/report.html").exists()


def test_the_comments_of_the_description_are_true(call, example):
    text = Path("learn.toml").read_text()
    assert call("learn", "run", "--config", "learn.toml").code == 0
    known = jm.Demonstrations.load("run/certified/demonstrations.npz")
    assert f"{len(known)} pumps for {known.lengths[0]} weeks each" in text
    assert set(known.lengths) == {known.lengths[0]}
    budget = re.sub(r"^# (\[\[|cost|at_most)", r"\1", text, flags=re.MULTILINE)
    Path("budget.toml").write_text(budget.replace("\nexpert_is", "\n# expert_is"))
    shown = call("learn", "limited", "--config", "budget.toml", "--json")
    assert (shown.code, json.loads(shown.out)["budgets"][0]["name"]) == (0, "parts")


def test_nothing_is_overwritten(call, example):
    Path("mine").mkdir()
    Path("mine/laws.csv").write_text("mine")
    shown = call("new", "mine")
    assert (shown.code, "mine is not empty" in shown.words) == (3, True)
    assert Path("mine/laws.csv").read_text() == "mine"
    assert (call("new", "laws.csv").code, call("new").code) == (3, 2)
