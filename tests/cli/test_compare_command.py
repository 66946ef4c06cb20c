"""`journeyman compare`: a table for people, JSON for machines, a directory that goes on."""

import json
import signal
import subprocess
import sys
import time

import pytest

import journeyman as jm

EXAMPLE = ("compare", "--example", "grid:4", "-o", "macro_cells=2", "--trajectories", 30,
           "--horizon", 40, "--solvers")  # fmt: skip
TWO = "linear-program,behaviour-cloning"
MANY = 2000
"""Seeds, far more than are done before a signal arrives, however busy the machine is."""


def test_an_example_has_a_true_expert_and_demonstrations_for_every_seed(call, tmp_path):
    page, table = tmp_path / "page.html", tmp_path / "trials.csv"
    shown = call(*EXAMPLE, TWO, "--seeds", 2, "--json", "--report", page, "--csv", table)
    assert shown.code == 0, shown.err
    trials = json.loads(shown.out)["trials"]
    assert [(one["solver"], one["seed"]) for one in trials] == [
        ("linear-program", 0), ("linear-program", 1),
        ("behaviour-cloning", 0), ("behaviour-cloning", 1),
    ]  # fmt: skip
    assert all(0 <= one["true_gap"] < one["certified_bound"] for one in trials)
    assert trials[0]["true_gap"] != trials[1]["true_gap"]
    assert "<html" in page.read_text()
    assert len(table.read_text().splitlines()) == 5


def test_files_are_compared_on_as_a_run_would_have_them(call, inputs, files, tmp_path):
    shown = call("compare", *inputs, "--solvers", TWO, "--json", "--seeds", 3)
    trials = json.loads(shown.out)["trials"]
    assert [one["seed"] for one in trials] == [None, None], "neither of them draws"
    assert [one["true_gap"] for one in trials] == [None, None]
    world = jm.World.load(files / "world.npz")
    demos = jm.Demonstrations.load(files / "demos.csv")
    jm.clone(demos, world).save(tmp_path / "expert.npz")
    known = call(
        "compare", *inputs, "--solvers", TWO, "--json", "--expert", tmp_path / "expert.npz"
    )
    gaps = [one["true_gap"] for one in json.loads(known.out)["trials"]]
    assert gaps[0] > gaps[1] >= 0, "the expert given is the cloned one, up to smoothing"


def test_dagger_asks_the_expert_of_an_example_only(call, inputs):
    shown = call(*EXAMPLE, "dagger", "--json", "--time-limit", 20)
    assert json.loads(shown.out)["trials"][0]["expert_queries"] > 0
    refused = call("compare", *inputs, "--solvers", "dagger")
    assert (refused.code, "--expert" in refused.words) == (2, True)


def test_places_that_cannot_be_written_are_refused_before_the_work(call, tmp_path):
    for option in ("--report", "--csv"):
        for place in (tmp_path, tmp_path / "none" / "file"):
            out = tmp_path / "study"
            shown = call(*EXAMPLE, TWO, option, place, "--out", out)
            assert (shown.code, "directory" in shown.words) == (3, True), shown.err
            assert not out.exists()


def test_a_method_that_refuses_is_a_row_and_all_of_them_are_exit_4(call):
    published = ("compare", "--example", "driving", "--cost-class", "simplex", "--solvers")
    shown = call(*published, "behaviour-cloning")
    assert (shown.code, "needs demonstrations" in shown.out) == (4, True)
    assert "No method has an answer" in shown.words


def test_a_study_goes_on_with_resume_only(call, tmp_path):
    out = tmp_path / "study"
    assert call(*EXAMPLE, "linear-program", "--out", out).code == 0
    assert {one.name for one in out.iterdir()} == {
        "study.json", "trials", "report.html", "trials.csv", ".lock"
    }  # fmt: skip
    refused = call(*EXAMPLE, TWO, "--out", out)
    assert (refused.code, "Give --resume" in refused.words) == (3, True)
    (before,) = (path.read_bytes() for path in (out / "trials").iterdir())
    went_on = call(*EXAMPLE, TWO, "--out", out, "--resume")
    assert went_on.code == 0, went_on.err
    assert before in [path.read_bytes() for path in (out / "trials").iterdir()]
    assert len(list((out / "trials").iterdir())) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--solvers", "magic", "--example", "grid:4"), 2, "there is no method 'magic'"),
        (("--solvers", ",", "--example", "grid:4"), 2, "no method given"),
        (("--solvers", "dagger", "--example", "driving"), 2, "leave dagger out"),
        (("--example", "grid:4", "--time-limit", "nan"), 2, "seconds above 0"),
        (("--example", "grid:4", "--time-limit", 0), 2, "seconds above 0"),
        (("--example", "grid:4", "--failure-probability", 1), 2, "between 0 and 1"),
        (("--world", "world.npz", "--trajectories", 5), 2, "for --example"),
        (("--world", "world.npz", "--horizon", 5), 2, "for --example"),
        (("--example", "maze"), 2, "there is no example 'maze'"),
        (("--example", "driving:3"), 2, "there is no example"),
        (("--example", "grid:many"), 3, "not a whole number"),
        (("--example", "grid:4", "--cost-class", "cube"), 2, "infinity-ball"),
        (("--example", "grid:4", "--world", "world.npz"), 2, "contradicts --world"),
        (("--resume",), 2, "needs --out"),
        ((), 2, "no world given"),
    ],
)  # fmt: skip
def test_mistakes_are_shown(call, arguments, code, words):
    shown = call("compare", *arguments)
    assert (shown.code, words in shown.words) == (code, True), shown.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_what_is_done(call, tmp_path, number):
    out = tmp_path / "study"
    slow = (*EXAMPLE, "linear-program", "--seeds", MANY, "--out", out)
    command = [sys.executable, "-m", "journeyman", *map(str, slow)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(list(out.glob("trials/*.json"))) < 2:
        assert child.poll() is None, child.communicate()[1]
        time.sleep(0.005)
    child.send_signal(number)
    _, words = child.communicate(timeout=300)
    assert child.returncode == 128 + number, words
    assert "--resume" in words
    assert "Traceback" not in words
    kept = {path: path.read_bytes() for path in out.glob("trials/*.json")}
    assert 2 <= len(kept) < MANY
    went_on = call(*EXAMPLE, "linear-program", "--seeds", 2, "--out", out, "--resume")
    assert went_on.code == 0
    assert {path: path.read_bytes() for path in out.glob("trials/*.json")} == kept
