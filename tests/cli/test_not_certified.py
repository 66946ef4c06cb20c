"""What is not certified ends with 4, and is saved all the same; what shows little is marked so."""

import json
import subprocess
import sys

import pytest

import journeyman as jm
from journeyman.adapters.cost_sources import read_costs
from journeyman.errors import InvalidFile
from journeyman.storage import naming, write_atomically


@pytest.fixture
def refuted(files, tmp_path):
    """Demonstrations that the world cannot have made."""
    world, _, expert = jm.gallery.grid(4, macro_cells=2, slip=0.7)
    path = tmp_path / "refuting.csv"
    jm.record(world, expert, trajectories=80, horizon=60, seed=0).save(path)
    return ("--world", files / "world.npz", "--costs", files / "costs.csv",
            "--demonstrations", path)  # fmt: skip


def test_a_refuted_premise_is_not_certified_by_any_command(call, refuted, tmp_path):
    run = tmp_path / "run"
    for command in (("learn", run, *refuted), ("audit", run), ("certify", run, *refuted),
                    ("learn", run, "--resume")):  # fmt: skip
        shown = call(*command)
        assert shown.code == 4, shown.out
        words = shown.words
        assert "Nothing is certified: a premise failed (steps follow the transition law)" in words
    assert not json.loads((run / "result.json").read_text())["valid"]
    assert call("report", run).code == 0


def test_a_budget_that_is_not_shown_to_be_kept_ends_with_its_exit_code(
    call, finished, inputs, tmp_path
):
    budget = ("--budget", "cell 0-0 <= 0.01")
    certified = call("certify", finished, *inputs, *budget, "--save", tmp_path / "evidence")
    audited = call("audit", tmp_path / "evidence")
    for shown in (certified, audited):
        assert (shown.code, "'cell 0-0' is not shown to be kept" in shown.words) == (4, True)


def test_a_vacuous_bound_says_so(call, inputs, files, tmp_path):
    lines = (files / "demos.csv").read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join([*lines[:2], "0,1,14,,0"]))  # one step
    run, few = tmp_path / "run", (*inputs[:4], "--demonstrations", tmp_path / "few.csv")
    for command in (("learn", run, *few), ("audit", run), ("certify", run, *few)):
        shown = call(*command)
        assert (shown.code, "the bound on the gap to the expert is vacuous" in shown.words) == (
            0,
            True,
        )
    assert "which is vacuous" in call("audit", run).out
    assert "vacuous" not in call("audit", run, "--gap", 1e6).err


def test_a_level_that_is_not_reached_comes_with_the_advice_of_the_run(call, finished):
    advice = json.loads((finished / "result.json").read_text())["advice"]
    printed = call("audit", finished, "--gap", 0).words
    assert " ".join(advice.split()) in printed


def test_the_page_of_a_run_reports_how_it_was_found(call, finished, tmp_path):
    call("report", finished, "--output", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    result = json.loads((finished / "result.json").read_text())
    section = page.partition('id="convergence"')[2].partition("</section>")[0]
    for words in ("How it was found", result["engine"], result["reason"], "OPTIMAL", "solving"):
        assert words in section
    call("report", finished / "certified", "--output", tmp_path / "evidence.html")
    assert "How it was found" not in (tmp_path / "evidence.html").read_text()


def test_a_run_reports_why_its_solver_was_chosen(call, finished, inputs, tmp_path):
    result = json.loads((finished / "result.json").read_text())
    world = jm.World.load(inputs[1])
    expert = jm.ExpertExpectation([1.0] * 4)
    problem = jm.Apprenticeship(world, read_costs(inputs[3], world), expert)
    assert result["reason"] == jm.solve(problem).reason == "a small world of 64 pairs"
    shown = call("learn", tmp_path / "auto", *inputs, "--time-limit", 60)
    assert "Solver chosen for a small world of 64 pairs." in shown.out
    named = call("learn", tmp_path / "named", *inputs, "--solver", "linear-program", "--json")
    assert json.loads(named.out)["reason"] == ""


def test_a_full_disk_names_the_file_that_was_written(tmp_path):
    """A limit on the size of files, in another process, stands for the disk."""
    probe = (
        "import resource, sys\nfrom journeyman.cli.main import app\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\napp(sys.argv[1:])"
    )
    target = tmp_path / "world.npz"
    shown = subprocess.run(
        [sys.executable, "-c", probe, "world", "import", "gallery:grid", target],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert shown.returncode == 5, shown.stderr
    assert f"no space left to write ({target})" in " ".join(shown.stderr.split())
    assert not list(tmp_path.iterdir())


def test_faults_of_the_system_name_the_target(tmp_path):
    target = tmp_path / "world.npz"
    for known, expected in (
        (None, target),
        (tmp_path / ".world.npz.x1", target),
        ("other", "other"),
    ):
        with pytest.raises(OSError, match="Read-only") as caught, naming(target):
            raise OSError(30, "Read-only file system", known and str(known))
        assert caught.value.filename == str(expected)
    with pytest.raises(InvalidFile, match="not a directory"):
        write_atomically(tmp_path / "no" / "world.npz", lambda stream: None)
