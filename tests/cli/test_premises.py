"""Premises about the expert on the command line."""

import json

import pytest

from journeyman.runs.description import InvalidSettings, RunDescription, premises_in


def test_premises_go_by_their_names():
    assert premises_in("") == []
    words = "rational:0.01, nearly-optimal:2,stationary,deterministic"
    assert [repr(one) for one in premises_in(words)] == [
        "Rational(regret_per_step=0.01)", "NearlyOptimal(regret=2.0)", "Stationary()",
        "Deterministic()",
    ]  # fmt: skip
    assert repr(premises_in("soft-rational:0.1")[0]).startswith("SoftRational(temperature=0.1")
    assert RunDescription(expert_is=words).table()["expert_is"] == words


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("rationl:0.1", "Did you mean 'rational'"),
        ("rational", "Write rational:number"),
        ("rational:much", "Write rational:number"),
        ("rational:-1", "Give a finite number from 0"),
        ("deterministic:1", "Write deterministic"),
    ],
)
def test_what_cannot_be_a_premise_is_refused_by_its_option(words, remedy):
    with pytest.raises(InvalidSettings) as fault:
        premises_in(words)
    assert "--expert-is" in str(fault.value)
    assert remedy in str(fault.value)


def arguments(files, run, *more):
    return [
        "learn", str(run), "--world", str(files / "world.npz"), "--costs",
        str(files / "costs.csv"), "--demonstrations", str(files / "demos.csv"), "--json", *more,
    ]  # fmt: skip


def test_a_run_with_a_premise_certifies_a_regret(files, tmp_path, call):
    run = tmp_path / "run"
    shown = call(*arguments(files, run, "--expert-is", "rational:0.2", "--regret", "100"))
    assert shown.code == 0, shown.err
    regret = json.loads(shown.out)["regret"]
    assert regret["valid"]
    assert regret["bound"] < regret["trivial_bound"]
    assert call("audit", run).code == 0


def test_a_regret_that_is_not_reached_ends_with_its_own_code(files, tmp_path, call):
    given = arguments(files, tmp_path / "one", "--expert-is", "rational:0.2", "--regret", "1e-9")
    shown = call(*given)
    assert shown.code == 4
    assert "under the expert's own cost" in shown.words
    shown = call(*arguments(files, tmp_path / "two", "--regret", "1"))
    assert shown.code == 4
    assert "--expert-is" in shown.words
