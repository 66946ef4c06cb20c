"""`journeyman mixture`: records and an environment in, a grown mixture and a certificate out."""

import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

import journeyman as jm
from journeyman.cli.main import app

pytest.importorskip("gymnasium")
MODULE = "costs_of_a_pole"
TEXT = """
import numpy as np
import journeyman as jm


def steps(observations, actions, following, rewards, terminated):
    off, lean = np.abs(following[:, 0]) / 2.4, np.abs(following[:, 2]) / 0.21
    return np.minimum(np.column_stack([off, lean]), 1)


def costs():
    return jm.costs.StepCosts(steps, ["off", "lean"], lowest=0, highest=1, after_end=1)


STATED = costs()
A_NUMBER = 3


def upright():
    return jm.policy.ObservationPolicy(lambda seen: (seen[:, 2] > 0).astype(int))


def rewarding():
    paid = lambda o, a, after, r, end: r[:, np.newaxis]
    return jm.costs.StepCosts(paid, ["paid"], lowest=0, highest=1)


def a_list():
    return [1, 2]


def failing():
    raise RuntimeError("no luck")
"""
SMALL = (
    "--environment", "CartPole-v1", "--discount", 0.9, "--rollouts", 8, "--certified-rollouts", 20,
    "--rounds", 3, "--plan-steps", 400, "--horizon", 30,
)  # fmt: skip


def record(path, seed, environment="CartPole-v1", **options):
    from checker.pole import balance, haste

    simulator = jm.GymnasiumSimulator(environment, haste(), 0.9, **options)
    numbers = simulator.action_numbers

    def act(seen, rng):
        return balance(seen, rng) if seen.shape[1:] == (4,) else rng.choice(numbers, len(seen))

    simulator.record(act, trajectories=12, horizon=30, seed=seed).save(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("pole")
    (place / f"{MODULE}.py").write_text(TEXT)
    record(place / "demos.csv", 0)
    record(place / "more.csv", 3)
    record(place / "car.csv", 2, "MountainCarContinuous-v0", actions=[[-1.0], [0.5], [1.0]])
    return place


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """A directory with the user's files, where the command is started."""
    for path in folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    return tmp_path


def options(costs=f"{MODULE}:costs", demonstrations="demos.csv", *more):
    return (*SMALL, "--costs", costs, "--demonstrations", demonstrations, *more)


def test_from_files_to_an_audited_run(call, here, monkeypatch):
    before = list(sys.path)
    shown = call("mixture", "run", *options())
    assert shown.code == 0, shown.err
    assert "under every cost" in " ".join(shown.out.split())
    assert "clone of the demonstrations" in shown.out
    assert "journeyman audit run --trust-code" in shown.words
    assert sys.path == before
    assert {one.name for one in (here / "run").iterdir()} == {".lock", "certified", "result.json"}
    untrusted = call("audit", "run", "--json")
    audited = json.loads(untrusted.out)
    assert (audited["passed"], audited["complete"]) == (True, False)
    assert "--trust-code calls it" in " ".join(untrusted.err.split())
    trusted = call("audit", "run", "--trust-code", "--json", "--gap", 100)
    assert trusted.code == 0, trusted.err
    assert json.loads(trusted.out)["complete"]
    assert call("audit", "run", "--gap", 100).code == 4
    assert call("report", "run").code == 0
    page = (here / "run" / "report.html").read_text()
    assert "clone of the demonstrations" in page
    refused = call("policy", "show", "run")
    assert refused.code == 3
    assert "jm.certificate.load_policy" in refused.words
    (here / f"{MODULE}.py").write_text(TEXT + "\n")
    changed = call("audit", "run", "--trust-code")
    assert changed.code == 4
    assert f"the source of {MODULE} has changed" in changed.out
    monkeypatch.chdir(here / "run")
    sys.modules.pop(MODULE)
    lost = call("audit", here / "run", "--trust-code")
    assert f"the module {MODULE} is not found here" in lost.out


def test_the_same_seed_gives_the_same_run(call, here):
    found = []
    for name in ("one", "other"):
        assert call("mixture", name, *options(), "-q").code == 0
        place = here / name / "certified"
        found.append([(place / file).read_bytes() for file in ("certificate.json", "policy.npz")])
    assert found[0] == found[1]
    assert call("mixture", "third", *options(), "-q", "--seed", 1).code == 0
    assert (here / "third" / "certified" / "policy.npz").read_bytes() != found[0][1]


def test_held_out_records_are_what_is_certified_with(call, here):
    shown = call("mixture", "run", *options(), "--held-out", "more.csv", "--json", "--noise", 0)
    assert shown.code == 0, shown.err
    result = json.loads(shown.out)
    weights = [one["weight"] for one in result["candidates"]]
    assert sum(weights) == pytest.approx(1)
    assert result["rounds"][0]["candidates"] == 3
    saved = jm.Demonstrations.load(here / "run" / "certified" / "demonstrations.npz")
    assert np.array_equal(saved.states, jm.read_demonstrations("more.csv").states)
    (here / "copy.csv").write_bytes((here / "demos.csv").read_bytes())
    refused = call("mixture", "other", *options(), "--held-out", "copy.csv")
    assert (refused.code, "holds the records that are learned from" in refused.words) == (3, True)
    low = call("mixture", "other", *options(), "--gap", 1e-3)
    assert low.code == 4
    assert call("audit", "other", "--trust-code").code == 0


@pytest.mark.parametrize(
    "costs",
    [
        (f"{MODULE}:STATED",),
        (f"{MODULE}:steps", "--names", "off, lean", "--cost-range", 0, 1, "--after-end", 1),
        ("observations:2.4,3,0.21,3.5", "--after-end", 1),
        ("time", "--after-end", 1),
    ],
)
def test_every_way_to_name_costs(call, here, costs):
    source, *declared = costs
    shown = call("mixture", "run", *options(source), *declared, "--planner", "none")
    assert shown.code == 0, shown.err
    assert call("audit", "run", "--trust-code").code == 0
    assert "|state_3|" in shown.out + json.dumps(names(here)) or not source.startswith("obs")


def names(place):
    from journeyman.storage import load_arrays

    path = place / "run" / "certified" / "problem.npz"
    return load_arrays(path, "problem of callables", 1)[0]["names"]


def test_listed_actions_and_options_of_the_environment(call, here):
    shown = call(
        "mixture", "run", *options("observations", "car.csv"), "--environment",
        "MountainCarContinuous-v0", "--actions", "-1 0.5 1", "-o", "max_episode_steps=20",
        "-o", "goal_velocity=1",
    )  # fmt: skip
    assert shown.code == 0, shown.err
    trusted = call("audit", "run", "--trust-code")
    assert trusted.code == 0, trusted.out


def test_continuous_actions_in_records_are_refused_with_the_way_out(call, here):
    rows = (here / "car.csv").read_text().replace(",2,\n", ",0.37,\n")
    (here / "forces.csv").write_text(rows)
    shown = call(
        "mixture", "run", *options("time", "forces.csv"), "--environment",
        "MountainCarContinuous-v0", "--actions", "-1 0.5 1",
    )  # fmt: skip
    assert shown.code == 3
    assert "'0.37', expected a whole number. With --actions records hold the numbers" in shown.words


def test_numbered_states(call, here):
    record_lake(here / "lake.csv")
    shown = call(
        "mixture", "run", *options("time", "lake.csv"), "--environment", "FrozenLake-v1",
        "-o", "map_name=4x4",
    )  # fmt: skip
    assert shown.code == 0, shown.err
    assert call("audit", "run", "--trust-code").code == 0


def record_lake(path):
    from checker.pole import haste

    lake = jm.GymnasiumSimulator("FrozenLake-v1", haste(), 0.9)
    rule = jm.policy.ObservationPolicy(lambda seen: (seen + 1) % 4, 0)
    lake.record(rule, trajectories=12, horizon=30, seed=0).save(path)


def test_further_candidates(call, here):
    assert call("mixture", "first", *options(), "-q").code == 0
    cloned = ("--demonstrations", "demos.csv", "--discount", 0.9, "--cost-range", 0, 1)
    assert call("clone", "cloned", *cloned).code == 0
    shown = call(
        "mixture", "run", *options(), "--candidate", "cloned", "--candidate", "first",
        "--candidate", f"{MODULE}:upright", "--json", "--noise", 0,
    )  # fmt: skip
    assert shown.code == 0, shown.err
    listed = [one["candidate"] for one in json.loads(shown.out)["candidates"]]
    assert listed[3:6] == ["cloned", "first", f"{MODULE}:upright"]
    trusted = call("audit", "run", "--trust-code")
    assert trusted.code == 0, trusted.out


def test_an_earlier_run_is_replaced_only_when_that_is_said(call, here):
    assert call("mixture", "run", *options(), "-q").code == 0
    before = (here / "run" / "certified" / "certificate.json").read_bytes()
    refused = call("mixture", "run", *options(demonstrations="more.csv"), "-q")
    assert (refused.code, "Say --overwrite" in refused.words) == (3, True)
    assert (here / "run" / "certified" / "certificate.json").read_bytes() == before
    assert call("mixture", "run", *options(demonstrations="more.csv"), "--overwrite").code == 0


def test_what_the_time_limit_leaves_is_saved(call, here):
    shown = call("mixture", "run", *options(), "--time-limit", 1e-9)
    assert shown.code == 5
    assert "time limit ended the search" in shown.words
    assert json.loads((here / "run" / "result.json").read_bytes())["status"] == "TIME_LIMIT"
    assert call("audit", "run", "--trust-code").code == 0


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_what_an_interruption_leaves_is_saved(call, here, monkeypatch, sent):
    plan = jm.solvers.LeastSquaresPlanner.__call__

    def interrupted(*arguments):
        os.kill(os.getpid(), sent)
        return plan(*arguments)

    monkeypatch.setattr(jm.solvers.LeastSquaresPlanner, "__call__", interrupted)
    shown = call("mixture", "run", *options(), "--noise", 0, "--json")
    assert shown.code == 128 + sent
    assert "Interrupted. The best mixture at hand is in run." in shown.words
    result = json.loads(shown.out)
    assert (result["status"], len(result["rounds"])) == ("INTERRUPTED", 2)
    assert call("audit", "run", "--trust-code").code == 0


def test_nothing_is_left_where_there_is_no_mixture_yet(call, here, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(jm, "certify", interrupted)
    shown = call("mixture", "run", *options())
    assert (shown.code, "Interrupted. Nothing was saved." in shown.words) == (130, True)
    assert not (here / "run").exists()


WRONG = [
    (("--costs", f"{MODULE}:nothing"), 3, "has no function 'nothing'"),
    (("--costs", f"{MODULE}:failing"), 3, "failed: RuntimeError: no luck"),
    (("--costs", f"{MODULE}:A_NUMBER"), 3, "is of type int"),
    (("--costs", f"{MODULE}:a_list"), 3, "returned a list"),
    (("--costs", f"{MODULE}:steps"), 3, "give --names and --cost-range"),
    (("--costs", f"{MODULE}:steps", "--names", "a,b"), 3, "Give --cost-range LOW HIGH"),
    (
        ("--costs", f"{MODULE}:steps", "--names", "a", "--cost-range", "0", "1"),
        3,
        "returns shape",
    ),
    (
        ("--costs", f"{MODULE}:steps", "--names", "a,b", "--cost-range", "0", "0.001"),
        3,
        "declared between",
    ),
    (("--costs", f"{MODULE}:rewarding"), 3, "records hold no rewards"),
    (("--costs", f"{MODULE}:STATED", "--after-end", "1"), 3, "--after-end is given"),
    (("--costs", "no_such_module_here:f"), 3, "there is no module 'no_such_module_here'"),
    (("--costs", "speed"), 3, "is not a source of costs of steps"),
    (("--costs", "time", "--names", "a"), 3, "--names is given"),
    (("--costs", "observations"), 3, "number 1 of an observation of CartPole-v1 has no finite end"),
    (("--costs", "observations:1,0,1,1"), 3, "does not give numbers above 0"),
    (("--costs", "observations:1,1"), 3, "4 numbers, and 2 scales"),
    (("--environment", "Nowhere-v0"), 3, "gymnasium cannot make 'Nowhere-v0'"),
    (("--environment", "Pendulum-v1"), 3, "List some with --actions"),
    (("--environment", "MountainCar-v0"), 3, "those of the environment have the shape (2,)"),
    (("--actions", "0,1 1,1"), 3, "listed actions have 2 numbers"),
    (("--actions", "left"), 2, "is no list of actions"),
    (("--option", "bogus=1"), 3, "has no option 'bogus'"),
    (("--option", "max_episode_steps=no"), 3, "max_episode_steps"),
    (("--discount", "1.5"), 3, "--discount 1.5"),
    (("--planner", "tree"), 2, "least-squares or none"),
    (("--candidate", "nobody"), 3, "is no candidate"),
    (("--candidate", f"{MODULE}:failing"), 3, "no luck"),
    (("--candidate", f"{MODULE}:a_list"), 3, "a list cannot choose actions"),
    (("--cost-class", "cube"), 2, "--cost-class"),
    (("--failure-probability", "2"), 2, "between 0 and 1"),
    (("--time-limit", "0"), 2, "seconds above 0"),
    (("--demonstrations", "nowhere.csv"), 3, "nowhere.csv"),
    (("--demonstrations", "car.csv"), 3, "action 2, and the environment has 0 to 1"),
]


@pytest.mark.parametrize(("given", "code", "words"), WRONG, ids=lambda one: str(one)[:40])
def test_mistakes(call, here, given, code, words):
    shown = call("mixture", "run", *options(), *given)
    assert shown.code == code, shown.err
    assert words in shown.words
    assert "jm.certify" not in shown.words
    assert "Traceback" not in shown.err
    assert not (here / "run").exists()


def test_the_commands_of_the_page_run(call, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "continuous-worlds.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    module = re.search(r"```text\n# pole_costs.py\n(.*?)```", page, re.DOTALL)[1]
    (tmp_path / "pole_costs.py").write_text(module)
    record("demos.csv", 0)
    commands = re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1].strip().splitlines()
    assert len(commands) == 3
    for line in commands:
        program, *arguments = shlex.split(line)
        shown = call(*arguments)
        assert (program, shown.code) == ("journeyman", 0), shown.err
    table = page.partition("| option | |")[2].partition("After Ctrl-C")[0]
    known = {name for one in get_command(app).commands["mixture"].params for name in one.opts}
    named = set(re.findall(r"`(--[a-z-]+)", table))
    assert len(named) > 8
    assert named <= known


def test_learn_names_this_command(call, here):
    shown = call(
        "learn", "run", "--world", "gym:CartPole-v1", "-o", "discount=0.9", "--costs", "time",
        "--demonstrations", "demos.csv",
    )  # fmt: skip
    assert shown.code == 3
    assert "journeyman mixture" in shown.words
