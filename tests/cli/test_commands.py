"""Every command does its work, for people and for machines."""

import json
import subprocess
import sys

import numpy as np
import pytest

import journeyman as jm


def test_own_logs_become_a_certified_policy_in_four_commands(call, files, tmp_path):
    world, run = tmp_path / "world.npz", tmp_path / "run"
    costs, demos = files / "costs.csv", files / "demos.csv"
    assert call("world", "import", files / "transitions.csv", world, "--discount", 0.9).code == 0
    learned = call("learn", run, "--world", world, "--costs", costs, "--demonstrations", demos)
    assert learned.code == 0
    assert "With probability 0.95 the policy costs at most" in learned.out
    audited = call("audit", run)
    assert (audited.code, "The audit passed" in audited.out) == (0, True)
    assert call("report", run).out.strip() == str(run / "report.html")
    assert "<html" in (run / "report.html").read_text()
    assert jm.World.load(world).is_estimated
    policy = jm.Policy.load(run / "certified" / "policy.npz")
    assert policy.num_states == jm.World.load(world).num_states


def test_a_run_says_how_it_was_made(finished, files):
    asked = (finished / "run.toml").read_text()
    assert f'world = "{files / "world.npz"}"' in asked
    assert "failure_probability = 0.05" in asked
    assert "[made_from]" in asked
    line = json.loads((finished / "metrics.jsonl").read_text().splitlines()[0])
    assert set(line) == {"task", "elapsed", "iteration", "objective", "lower_bound"}
    assert line["task"] == "LinearProgram"


def test_results_for_machines_are_one_json_object(call, finished, inputs):
    shown = call("learn", finished, "--resume", "--json", "--quiet")
    result = json.loads(shown.out)
    assert (shown.code, shown.err) == (0, "")
    assert result["status"] == "OPTIMAL"
    assert 0 < result["bound"] < result["trivial_bound"]
    audited = json.loads(call("audit", finished, "--json").out)
    assert (audited["passed"], audited["bound"]) == (True, result["bound"])


def test_a_finished_run_is_certified_to_a_level_or_not(call, finished):
    bound = json.loads((finished / "result.json").read_text())["bound"]
    assert call("audit", finished, "--gap", bound * 1.01).code == 0
    lacking = call("audit", finished, "--gap", bound * 0.99)
    assert lacking.code == 4
    assert "was asked for" in lacking.words


def test_code_of_a_run_is_called_only_when_it_is_trusted(call, tmp_path):
    queues = jm.certificate.Reference(
        "journeyman.gallery:queues", queues=4, buffers=[2, 1, 1, 2], discount=0.8
    )
    made = queues.made
    demos = jm.record(made.world, made.longer, trajectories=25, horizon=20, seed=0)
    problem = jm.Apprenticeship(made.world, made.costs, demos)
    drawn = jm.Rollouts(trajectories=60, horizon=20)
    jm.certify(problem, made.longer, evaluation=drawn).save(tmp_path / "run", code=[queues])
    shown = call("audit", tmp_path / "run", "--json")
    assert (shown.code, bool(json.loads(shown.out)["not_derived"])) == (0, True)
    level = ("--gap", 1e6)
    doubted = call("audit", tmp_path / "run", *level)
    assert (doubted.code, "--trust-code" in doubted.words) == (4, True)
    assert call("audit", tmp_path / "run", *level, "--trust-code").code == 0


def test_any_policy_can_be_certified(call, inputs, finished, files, tmp_path):
    world = jm.World.load(files / "world.npz")
    jm.Policy.uniform(world).save(tmp_path / "uniform.npz")
    shown = json.loads(
        call("certify", tmp_path / "uniform.npz", *inputs, "--json", "--save", tmp_path / "u").out
    )
    learned = json.loads(call("certify", finished, *inputs, "--json").out)
    assert shown["gap_on_data"] > learned["gap_on_data"]
    assert call("audit", tmp_path / "u").code == 0


def test_a_toml_file_describes_a_run_relative_to_itself(call, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = 'world = "world.npz"\ncosts = "costs.csv"\ndemonstrations = "demos.csv"\n'
    (files / "run.toml").write_text(text + "[solver]\nname = 'linear-program'\n")
    shown = call("learn", "run", "--config", files / "run.toml", "--set", "cost_class=simplex",
                 "--set", "solver.tolerance=1e-6", "--seed", 5)  # fmt: skip
    assert shown.code == 0
    asked = (tmp_path / "run" / "run.toml").read_text()
    for line in ('cost_class = "simplex"', "tolerance = 1e-06", 'name = "linear-program"',
                 "seed = 5"):  # fmt: skip
        assert line in asked
    again = call("learn", "again", "--config", tmp_path / "run" / "run.toml")
    assert again.code == 0
    results = [(tmp_path / name / "result.json").read_text() for name in ("run", "again")]
    assert results[0] == results[1]


def test_a_budget_is_kept_on_one_of_the_costs_and_on_a_file(call, inputs, files, tmp_path):
    free = json.loads((call("learn", tmp_path / "free", *inputs, "--json")).out)
    limit = 1.1 * free["expectations"][0]
    by_name = call("learn", tmp_path / "a", *inputs, "--budget", f"cell 0-0 <= {limit}", "--json")
    table = (files / "costs.csv").read_text().splitlines()
    column = "\n".join(line.split(",")[0] for line in table)
    (tmp_path / "wear.csv").write_text(column + "\n")
    by_file = call("learn", tmp_path / "b", *inputs, "--json",
                   "--budget", f"{tmp_path / 'wear.csv'} <= {limit}")  # fmt: skip
    budgets = [json.loads(shown.out)["budgets"][0] for shown in (by_name, by_file)]
    assert [budget["name"] for budget in budgets] == ["cell 0-0", "wear"]
    assert all(budget["is_kept"] for budget in budgets)
    assert budgets[0]["spent"] == budgets[1]["spent"] <= limit


def test_rewards_are_costs_with_the_other_sign(call, inputs, files, tmp_path):
    plain = call("learn", tmp_path / "a", *inputs, "--cost-class", "simplex", "--json")
    rewards = call(
        "learn", tmp_path / "b", *inputs, "--cost-class", "simplex", "--json", "--rewards"
    )
    first, second = (json.loads(shown.out)["expectations"] for shown in (plain, rewards))
    assert first[0] > 0 > second[0]


def test_worlds_are_shown_and_checked(call, files, tmp_path):
    shown = json.loads(call("world", "show", files / "world.npz", "--json").out)
    assert (shown["states"], shown["pairs"], shown["estimated"]) == (16, 64, False)
    checked = call("world", "check", files / "world.npz")
    assert (checked.code, checked.out.splitlines()[0]) == (0, "The world is sound.")


def test_a_world_is_compared_with_an_environment(call, tmp_path):
    pytest.importorskip("gymnasium")
    lake = ("gym:FrozenLake-v1", tmp_path / "lake.npz", "--discount", 0.9)
    assert call("world", "import", *lake).code == 0
    env = ("--env", "FrozenLake-v1", "--steps", 2000)
    assert call("world", "check", tmp_path / "lake.npz", *env).code == 0
    other = call("world", "check", tmp_path / "lake.npz", *env, "--env-arg", "is_slippery=false")
    assert (other.code, "WRONG" in other.out) == (3, True)


def test_recordings_of_any_policy_are_reproducible(call, finished, files, tmp_path):
    arguments = ("--trajectories", 5, "--horizon", 7, "--seed", 3)
    for expert in ("uniform", finished, finished / "certified" / "policy.npz"):
        shown = call(
            "record", files / "world.npz", tmp_path / "d.csv", "--expert", expert, *arguments
        )
        assert shown.code == 0
    first = (tmp_path / "d.csv").read_text()
    call("record", files / "world.npz", tmp_path / "e.csv", "--expert", finished, *arguments)
    assert (tmp_path / "e.csv").read_text() == first
    own = call("record", "gallery:grid", tmp_path / "own.npz", "-o", "size=4", *arguments)
    assert own.code == 0
    assert len(jm.Demonstrations.load(tmp_path / "own.npz")) == 5


def test_requirements_grow_with_the_accuracy(call, inputs):
    counts = [
        json.loads(call("requirements", *inputs[:4], "--accuracy", accuracy, "--json").out)
        for accuracy in (2.0, 1.0)
    ]
    assert counts[1]["num_trajectories"] > 3 * counts[0]["num_trajectories"]
    assert "as printed" in call("requirements", *inputs[:4], "--accuracy", 2.0).out


def test_the_doctor_finds_engines_and_tries_everything_out(call):
    found = json.loads(call("doctor", "--json").out)
    assert (found["sound"], found["self_test"]["outcome"]) == (True, "passed")
    assert found["engines"]["clarabel"] == "works"
    assert found["packages"]["numpy"] == np.__version__
    assert "all is well" in call("doctor").out


def test_help_loads_no_heavy_package():
    probe = (
        "import sys\nfrom journeyman.cli.main import app\n"
        "app(['learn', '--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'scipy', 'numba', 'rich', 'highspy'} & set(sys.modules)\n"
        "sys.stderr.write(str(heavy))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    assert (shown.stderr, "--resume" in shown.stdout) == ("set()", True)


def test_the_demo_is_for_machines_too(call, tmp_path):
    small = ("demo", "--size", 4, "--trajectories", 30, "--horizon", 40)
    shown = call(*small, "--report", tmp_path / "r.html", "--json")
    result = json.loads(shown.out)
    assert shown.code == 0
    assert (result["case"], result["status"], result["size"]) == ("grid", "OPTIMAL", 4)
    assert result["bound"] <= result["trivial_bound"]
    assert result["report"] == str(tmp_path / "r.html")
    assert "<html" in (tmp_path / "r.html").read_text()
    assert f"{result['bound']:.4g} more than the expert" in " ".join(call(*small).out.split())


@pytest.mark.parametrize("setting", ["--size", "--horizon"])
def test_options_of_the_grid_are_not_ignored_elsewhere(call, setting):
    refused = call("demo", "--case", "icu-sepsis", setting, 8)
    assert refused.code == 2
    assert f"Invalid value for {setting}" in refused.words.replace("'", "")
    assert "--case grid" in refused.words


def test_an_import_from_single_precision_says_so(call, tmp_path):
    laws = np.float32([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.6, 0.3, 0.1]])
    for name, array in (("single", laws), ("double", np.eye(3))):
        np.savez(tmp_path / f"{name}.npz", P=array, initial=[1.0, 0, 0], discount=0.9)
    single, double = (
        call("world", "import", tmp_path / f"{name}.npz", tmp_path / f"{name}-world.npz",
             "-o", "layout=rows")
        for name in ("single", "double")
    )  # fmt: skip
    assert (single.code, double.code) == (0, 0)
    assert "Note: the laws were kept in single precision" in single.out
    assert "Note" not in double.out
