"""Premises about the expert on the command line."""

import json

import numpy as np
import pytest

import journeyman as jm
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
        ("rational=0.01", "Write rational:0.01"),
        ("rational(0.01)", "Write rational:0.01"),
        ("NearlyOptimal(regret=2)", "Write nearly-optimal:2"),
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


@pytest.mark.parametrize("words", ["", " , "])
def test_an_option_without_a_premise_is_refused(files, tmp_path, call, words):
    shown = call(*arguments(files, tmp_path / "run", "--expert-is", words))
    assert shown.code == 2
    assert "names no premise" in shown.words


@pytest.fixture(scope="module")
def aimless(tmp_path_factory):
    """Demonstrations of somebody who acts at random, and of an expert from states of its choice."""
    world, _, expert = jm.gallery.grid(4, macro_cells=2)
    place = tmp_path_factory.mktemp("aimless")
    random = jm.record(world, jm.Policy.uniform(world), trajectories=30, horizon=60, seed=1)
    random.save(place / "random.csv")
    there = jm.World(world.transition, np.eye(16)[5], world.discount)
    jm.record(there, expert, trajectories=80, horizon=60, seed=0).save(place / "chosen.csv")
    return place


def commands(files, run, demos, *more):
    inputs = ("--world", files / "world.npz", "--costs", files / "costs.csv",
              "--demonstrations", demos)  # fmt: skip
    yield "learn", run, *inputs, *more
    yield "audit", run
    yield "certify", run, *inputs, *more


def test_a_refuted_declaration_has_its_own_exit_code(files, aimless, tmp_path, call):
    """It does whatever was asked for beside it, and the gap stands."""
    words = ("--expert-is", "rational:0")
    for command in commands(files, tmp_path / "run", aimless / "random.csv", *words):
        shown = call(*command)
        assert shown.code == 6, shown.err
        assert "The records contradict what --expert-is declares" in shown.words
        assert "recorded steps suffice to show it" in shown.words
    audited = call("audit", tmp_path / "run", "--gap", "1e9")
    assert audited.code == 6
    assert "Gap to the expert, under every cost: with probability 0.95 at most" in audited.out
    assert "Regret to the optimum, under the expert's own cost: not certified" in audited.out


def test_two_actions_in_one_state_refute_a_deterministic_expert(files, aimless, tmp_path, call):
    words = ("--expert-is", "deterministic")
    for command in commands(files, tmp_path / "run", aimless / "random.csv", *words):
        assert call(*command).code == 6


def test_a_claim_that_was_not_asked_for_does_not_decide(files, aimless, tmp_path, call):
    """Starts of one's own choice refute the gap to the expert and leave the regret as it is."""
    run, words = tmp_path / "run", ("--expert-is", "rational:0.2")
    for command in commands(files, run, aimless / "chosen.csv", *words):
        shown = call(*command)
        assert shown.code == 0, shown.err
        assert "no gap is certified, because a premise of it failed (start states" in shown.words
    audited = call("audit", run, "--regret", "1e9")
    assert audited.code == 0
    assert "Gap to the expert: not certified, a premise failed (start states" in audited.out
    assert "under the expert's own cost: at most" in audited.out
    assert call("audit", run, "--gap", "1e9").code == 4
    assert call("audit", run, "--gap", "1e9", "--regret", "1e9").code == 4
    assert call("audit", run, "--regret", "1e-9").code == 4
    claims = json.loads(call("audit", run, "--json").out)["claims"]
    assert [claims["gap"]["valid"], claims["regret"]["valid"]] == [False, True]


def test_a_run_is_resumed_with_another_regret_asked_for(files, tmp_path, call):
    given = arguments(files, tmp_path / "run", "--expert-is", "rational:0.2")
    assert call(*given, "--regret", "1e-9").code == 4
    assert call(*given, "--regret", "1e9", "--resume").code == 0


def test_the_regret_stands_in_a_paragraph_of_its_own(files, tmp_path, call):
    given = arguments(files, tmp_path / "run", "--expert-is", "rational:0.2")
    shown = call(*[one for one in given if one != "--json"])
    assert "\nUnder the expert's own cost, whichever of the class that is" in shown.out


def test_an_expert_within_a_budget_is_compared_with_the_best_that_keep_it(files, tmp_path, call):
    run = tmp_path / "run"
    given = ("--expert-is", "rational:0.2", "--budget", "cell 0-0 <= 100")
    shown = call(*arguments(files, run, *given))
    assert shown.code == 0, shown.err
    result = json.loads(shown.out)
    assert result["regret"]["valid"]
    assert result["budgets"][0]["is_kept"]
    assert any("these budgets" in one["name"] for one in result["regret"]["premises"])
    assert call("audit", run).code == 0
