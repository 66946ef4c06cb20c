"""`journeyman policy`: what a policy does, on the screen, as JSON, and as a file to read back."""

import json

import numpy as np
import pytest

import journeyman as jm

LAWS = """state,action,next_state,probability
pump-ok,run,pump-ok,0.9
pump-ok,run,pump-worn,0.1
pump-worn,run,pump-worn,0.7
pump-worn,run,pump-broken,0.3
pump-worn,replace,pump-ok,1
pump-broken,replace,pump-ok,1
"""
DEMOS = (
    "episode,t,state,action,next_state\n1,0,pump-ok,run,pump-worn\n1,1,pump-worn,replace,pump-ok\n"
)


@pytest.fixture(scope="module")
def pump(call, tmp_path_factory):
    """The maintenance case of the README, and a run on it."""
    place = tmp_path_factory.mktemp("pump")
    (place / "laws.csv").write_text(LAWS)
    (place / "demos.csv").write_text(DEMOS)
    world, costs = place / "pump.npz", place / "costs.csv"
    costs.write_text("state,lost output\npump-ok,0\npump-worn,0.2\npump-broken,1\n")
    asked = ("--discount", "0.9", "--initial", "pump-ok")
    assert call("world", "import", place / "laws.csv", world, *asked).code == 0
    given = ("--world", world, "--costs", costs, "--demonstrations", place / "demos.csv")
    for run, *more in (("run",), ("steps", "--horizon", "2"), ("averages", "--average-cost")):
        assert call("learn", place / run, *given, *more).code == 0
    return place


def test_states_are_listed_by_name_the_most_visited_first(call, pump):
    shown = call("policy", "show", pump / "run")
    assert shown.code == 0
    head, first, *_ = shown.out.splitlines()
    assert head.split() == ["state", "action", "probability", "visits", "expert", "otherwise"]
    assert first.split()[:4] == ["pump-ok", "run", "100", "%"]
    assert "run 1/1" in first
    assert "share of the discounted time" in shown.out


def test_json_has_every_digit(call, pump):
    facts = json.loads(call("policy", "show", pump / "run", "--json").out)
    policy = jm.Policy.load(pump / "run/certified/policy.npz")
    worn = next(row for row in facts["policy"] if row["name"] == "pump-worn")
    law = {one["action"]: one["probability"] for one in worn["actions"]}
    assert sorted(law.values()) == sorted(policy.probabilities([2])[0][policy.per_pair[2:] > 0])
    assert sum(row["visits"] for row in facts["policy"]) == pytest.approx(1)
    assert facts["left_out"] == 0


@pytest.mark.parametrize("run", ["run", "steps", "averages"])
def test_what_the_expert_did_stands_beside_the_policy(call, pump, run):
    facts = json.loads(call("policy", "show", pump / run, "--json").out)
    seen = {}
    for row in facts["policy"]:
        for one in row["expert"]:
            key = row["name"], one["action"]
            seen[key] = seen.get(key, 0) + one["count"]
    assert seen == {("pump-ok", "run"): 1, ("pump-worn", "replace"): 1}
    assert facts["expert_decisions"] == 1
    if run != "steps":
        worn = next(row for row in facts["policy"] if row["name"] == "pump-worn")
        law = {one["action"]: one["probability"] for one in worn["actions"]}
        assert facts["agreement"] == law["replace"]
    shown = call("policy", "show", pump / run, "--state", "pump-worn")
    assert "expert" in shown.out.splitlines()[1]


def test_a_policy_file_has_no_expert_beside_it(call, pump, tmp_path):
    assert call("policy", "export", pump / "run", tmp_path / "policy.csv").code == 0
    shown = call("policy", "show", tmp_path / "policy.csv", "--world", pump / "pump.npz")
    assert "expert" not in shown.out.lower()


def test_a_limit_says_what_is_left_out_and_a_state_is_shown_alone(call, pump):
    shown = call("policy", "show", pump / "run", "--limit", "1")
    assert "2 states are not shown" in shown.out
    assert "pump-worn" not in shown.out
    assert "pump-worn" in call("policy", "show", pump / "run", "--state", "pump-worn").out
    wrong = call("policy", "show", pump / "run", "--state", "pump-won")
    assert wrong.code == 2
    assert "did you mean 'pump-worn'?" in wrong.words


def test_policies_that_depend_on_time_have_their_step(call, pump):
    shown = call("policy", "show", pump / "steps")
    assert shown.out.split()[:2] == ["t", "state"]
    facts = json.loads(call("policy", "show", pump / "steps", "--json").out)
    assert facts["steps"] == 2
    assert {row["t"] for row in facts["policy"]} == {0, 1}


def test_averages_have_states_of_their_own_world_only(call, pump):
    shown = call("policy", "show", pump / "averages")
    assert "in the long run" in shown.out
    assert "end" not in shown.out.split()


@pytest.mark.parametrize(
    ("run", "more"), [("run", ()), ("steps", ("--horizon", 2)), ("averages", ("--average-cost",))]
)
def test_an_exported_policy_is_certified_and_recorded_like_the_run(call, pump, run, more, tmp_path):
    table, costs, demos = tmp_path / "policy.csv", pump / "costs.csv", pump / "demos.csv"
    assert call("policy", "export", pump / run, table).code == 0
    given = ("--world", pump / "pump.npz", "--costs", costs, "--demonstrations", demos, *more)
    ours = json.loads(call("certify", table, *given, "--json").out)
    theirs = json.loads(call("certify", pump / run, *given, "--json").out)
    assert ours == theirs
    to_record = ("--trajectories", 5, *(("--horizon", 4) if run != "steps" else ()))
    recorded = tmp_path / "demos.npz"
    shown = call("record", pump / "pump.npz", recorded, "--expert", table, *to_record)
    assert shown.code == 0, shown.err
    assert len(jm.Demonstrations.load(recorded)) == 5


def test_what_is_wrong_is_named_in_the_language_of_options(call, pump, tmp_path):
    given = (
        "--world", pump / "pump.npz", "--costs", pump / "costs.csv",
        "--demonstrations", pump / "demos.csv",
    )  # fmt: skip
    table = tmp_path / "policy.csv"
    assert call("policy", "export", pump / "steps", table).code == 0
    shown = call("certify", table, *given)
    assert shown.code == 3
    assert "--horizon 2" in shown.words
    too_long = call("record", pump / "pump.npz", tmp_path / "d.npz", "--expert", table,
                    "--horizon", 9)  # fmt: skip
    assert "--horizon 2 at most" in too_long.words
    (tmp_path / "wrong.csv").write_text("state,action,probability\npump-worn,run,0.5\n")
    assert "wrong.csv, line 2" in call("certify", tmp_path / "wrong.csv", *given).words
    assert "--world" in call("policy", "show", table).words
    assert call("policy", "export", pump / "run", tmp_path / "policy.txt").code == 2
    assert call("policy", "show", tmp_path).code == 3


def test_a_policy_file_is_shown_in_a_world(call, files, tmp_path):
    world = jm.World.load(files / "world.npz")
    law = np.random.default_rng(0).dirichlet(np.ones(4), size=16)
    jm.Policy(law).save(tmp_path / "p.npz")
    shown = call("policy", "show", tmp_path / "p.npz", "--world", files / "world.npz", "--json")
    rows = json.loads(shown.out)["policy"]
    assert {row["state"] for row in rows} == set(range(world.num_states))
    assert all(row["probability"] == law[row["state"]].max() for row in rows)
