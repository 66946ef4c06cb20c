"""Signals, kills, full disks and second processes: real processes, real exit codes."""

import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import journeyman as jm

FULL = Path("/dev/full")
STEPS = 100_000
SGD = ("--solver", "sgd-al", "--set", "solver.cells=4", "--set", "solver.accuracy=0",
       "--set", f"solver.steps={STEPS}")  # fmt: skip


def started(*arguments, **more):
    command = [sys.executable, "-m", "journeyman", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


def last_step(run):
    """Of the newest state that is kept; 0 when there is none."""
    kept = sorted((run / "checkpoints").glob("*/step-*.npz"))
    return int(kept[-1].stem.removeprefix("step-")) if kept else 0


def wait_for_a_state(child, run, number=0):
    """Wait until a run has kept a state after step `number`."""
    while last_step(run) <= number:
        assert child.poll() is None, child.communicate()[1]
        time.sleep(0.005)


def interrupted(number, run, *arguments):
    """Send a signal as soon as there is a new state to go on from; exit code and words."""
    before = last_step(run)
    child = started("learn", run, *arguments)
    wait_for_a_state(child, run, before)
    child.send_signal(number)
    _, words = child.communicate(timeout=300)
    return child.returncode, words


@pytest.fixture(scope="module")
def whole(call, inputs, tmp_path_factory):
    """What the run gives when nothing disturbs it."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert call("learn", run, *inputs, *SGD).code == 0
    return run


def test_interrupted_terminated_and_killed_it_still_gives_the_same_bits(
    call, inputs, whole, tmp_path
):
    run = tmp_path / "run"
    code, words = interrupted(signal.SIGINT, run, *inputs, *SGD)
    assert (code, "--resume" in words) == (130, True)
    assert not (run / "result.json").exists()
    code, words = interrupted(signal.SIGTERM, run, "--resume")
    assert (code, "--resume" in words) == (143, True)
    assert "going on from step" in words
    code, _ = interrupted(signal.SIGKILL, run, "--resume")
    assert (code, 0 < last_step(run) < STEPS) == (-signal.SIGKILL, True)
    resumed = call("learn", run, "--resume")
    assert (resumed.code, "going on from step" in resumed.words) == (0, True)
    assert_same(run, whole)
    assert len(list((run / "checkpoints" / "solve-1").glob("step-*.npz"))) == 3
    assert call("audit", run).code == 0


def test_states_are_kept_as_often_as_is_asked_for(call, inputs, whole, tmp_path):
    run = tmp_path / "run"
    assert call("learn", run, *inputs, *SGD, "--checkpoint-every", 1e-6).code == 0
    assert_same(run, whole)
    steps, usual = (
        [int(path.stem.removeprefix("step-")) for path in sorted(place.glob("*/*/step-*.npz"))]
        for place in (run, whole)
    )
    assert len(steps) == len(usual) == 3
    assert max(np.diff(steps)) < min(np.diff(usual))


def test_a_solver_without_states_is_not_asked_for_them(call, inputs, tmp_path):
    refused = call("learn", tmp_path / "run", *inputs, "--checkpoint-every", 5)
    assert refused.code == 3
    assert "linear-program keeps no states" in refused.words
    assert "sgd-al" in refused.words


def assert_same(run, other):
    assert (run / "result.json").read_bytes() == (other / "result.json").read_bytes()
    policies = [jm.Policy.load(place / "certified" / "policy.npz") for place in (run, other)]
    states = np.arange(policies[0].num_states)
    assert np.array_equal(*(policy.probabilities(states) for policy in policies))


def test_a_run_that_was_killed_after_it_had_converged_does_not_go_further(call, inputs, tmp_path):
    loose = ("--solver", "sgd-al", "--set", "solver.cells=4", "--set", "solver.accuracy=2")
    run, other = tmp_path / "run", tmp_path / "other"
    for place in (run, other):
        assert call("learn", place, *inputs, *loose).code == 0
    (run / "result.json").unlink()
    assert json.loads((other / "result.json").read_text())["status"] == "CONVERGED"
    assert call("learn", run, "--resume").code == 0
    assert_same(run, other)


def test_a_damaged_state_is_passed_over_for_the_one_before(call, whole, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    (run / "result.json").unlink()
    states = sorted((run / "checkpoints" / "solve-1").glob("*.npz"))
    assert states[0].name == "latest.npz"
    for path in (states[0], states[-1]):
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content[: len(content) // 2])
    before = states[-2].stem.removeprefix("step-").lstrip("0")
    resumed = call("learn", run, "--resume")
    assert (resumed.code, f"from step {before}\n" in resumed.err) == (0, True)
    assert_same(run, whole)


def test_a_time_limit_ends_with_the_best_at_hand_and_can_be_raised(call, inputs, whole, tmp_path):
    run = tmp_path / "run"
    limited = call("learn", run, *inputs, *SGD, "--time-limit", 0.02, "--json")
    assert limited.code == 5
    assert json.loads(limited.out)["status"] == "TIME_LIMIT"
    assert call("audit", run).code == 0
    assert call("learn", run, "--resume", "--time-limit", 1000).code == 0
    assert_same(run, whole)


def test_more_steps_can_be_asked_for_afterwards(call, inputs, whole, tmp_path):
    run = tmp_path / "run"
    assert call("learn", run, *inputs, *SGD, "--set", "solver.steps=7000").code == 0
    assert json.loads((run / "result.json").read_text())["status"] == "STEP_LIMIT"
    longer = call("learn", run, "--resume", "--set", f"solver.steps={STEPS}")
    assert (longer.code, "going on from step 7000" in longer.words) == (0, True)
    assert_same(run, whole)


def test_every_solve_of_a_run_with_budgets_has_states_of_its_own(call, inputs, whole, tmp_path):
    run, other = tmp_path / "run", tmp_path / "other"
    spent = json.loads((whole / "result.json").read_text())["expectations"][0]
    budget = ("--budget", f"cell 0-0 <= {0.7 * spent}", "--set", "solver.steps=5000")
    for place in (run, other):
        shown = call("learn", place, *inputs, *SGD, *budget)
        assert (shown.code, "not shown to be kept" in shown.words) == (4, True)
    assert len(list((run / "checkpoints").iterdir())) > 1
    (run / "result.json").unlink()
    assert call("learn", run, "--resume").code == 4
    assert_same(run, other)
    assert call("learn", run, "--resume", "--set", "solver.steps=6000").code == 4


def test_one_process_at_a_time(inputs, call, tmp_path):
    run = tmp_path / "run"
    child = started("learn", run, *inputs, *SGD)
    wait_for_a_state(child, run)
    child.send_signal(signal.SIGSTOP)  # so that it does not end before the second one begins
    try:
        second = call("learn", run, "--resume")
    finally:
        child.kill()
        child.communicate()
    assert second.code == 5
    assert f"in use by process {child.pid}" in second.words
    assert call("learn", run, "--overwrite", *inputs).code == 0


def limited_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def test_a_full_disk_is_named_and_what_is_there_stays_whole(inputs, call, tmp_path):
    run = tmp_path / "run"
    child = started("learn", run, *inputs, *SGD, preexec_fn=limited_files)
    _, words = child.communicate(timeout=120)
    assert child.returncode == 5, words
    assert "no space left" in " ".join(words.split())
    assert "Traceback" not in words
    assert call("learn", run, "--resume").code == 0


def test_a_result_that_cannot_be_printed_is_an_error(files):
    command = [sys.executable, "-m", "journeyman", "world", "show", str(files / "world.npz")]
    with FULL.open("w") as full:
        shown = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert shown.returncode == 5
    assert "no space left" in " ".join(shown.stderr.split())
    assert "Traceback" not in shown.stderr


def test_a_time_limit_is_for_all_that_is_done(call, inputs, tmp_path):
    """What there was no time for is named in the saved certificate, which is audited."""
    shown = call("learn", tmp_path / "run", *inputs, "--time-limit", 1e-6, "--json")
    result = json.loads(shown.out)
    assert shown.code == 5, shown
    assert result["status"] == "TIME_LIMIT"
    assert "no time" in result["target"]
    assert "For lack of time" in result["summary"]
    assert call("audit", tmp_path / "run").code == 0


def test_a_memory_limit_is_one_of_the_solver(call, inputs, tmp_path):
    small = ("--solver", "column-generation", "--memory-gb", 1e-9)
    limited = call("learn", tmp_path / "small", *inputs, *small, "--json")
    assert json.loads(limited.out)["status"] == "MEMORY_LIMIT"
    refused = call("learn", tmp_path / "run", *inputs, "--solver", "linear-program",
                   "--memory-gb", 1)  # fmt: skip
    assert refused.code == 2
    assert "--memory-gb" in refused.words
    wrong = call("learn", tmp_path / "run", *inputs, "--memory-gb", 0)
    assert wrong.code == 2
    assert "above 0" in wrong.words
