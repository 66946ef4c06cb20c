"""Killed without warning at random times, `journeyman learn` goes on to the very same result.

JOURNEYMAN_KILLS says how often; the default is the hundred that is promised.
"""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import journeyman as jm
from journeyman.runs.description import RunDescription
from journeyman.runs.learning import step_of
from journeyman.runs.run_directory import RunDirectory

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("JOURNEYMAN_KILLS", "100"))
SETTINGS = {"accuracy": 0, "cells": 16, "steps": 200_000}


@pytest.fixture
def asked(tmp_path):
    """The options of a run of SGD-AL that takes a few seconds."""
    world, _, expert = jm.gallery.grid(8, macro_cells=2)
    world.save(tmp_path / "world.npz")
    jm.record(world, expert, trajectories=50, horizon=80, seed=0).save(tmp_path / "demos.csv")
    sources = ["--world", tmp_path / "world.npz", "--costs", "macro-cells:2", "--demonstrations",
               tmp_path / "demos.csv", "--solver", "sgd-al", "--seed", 7]  # fmt: skip
    given = [word for key, value in SETTINGS.items() for word in ("--set", f"solver.{key}={value}")]
    return [str(word) for word in [*sources, *given]]


def learn(run, *arguments, killed_after=None):
    """The exit code of a run in a process of its own, and what it said; None when it was killed."""
    words = run.with_suffix(".log")
    command = [sys.executable, "-m", "journeyman", "learn", str(run), "--quiet", *arguments]
    with words.open("w") as log:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
        try:
            child.wait(timeout=killed_after)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            return None, ""
    return child.returncode, words.read_text()


def assert_readable(run):
    """What is there is whole: description, result, evidence, and at least one state."""
    if (run / "run.toml").exists():
        RunDescription.of(RunDirectory(run).stored())
    if (run / "result.json").exists():
        json.loads((run / "result.json").read_text())
        assert jm.audit(run / "certified").passed
    for path in run.glob("checkpoints/*/*.npz"):
        assert step_of(path) is not None


def test_a_hundred_kills_change_no_bit(asked, tmp_path):
    assert learn(tmp_path / "first", *asked) == (0, "")  # compiles what is not compiled yet
    started = time.monotonic()
    assert learn(tmp_path / "whole", *asked) == (0, "")
    longest = 1.2 * (time.monotonic() - started)
    expected = (tmp_path / "whole" / "result.json").read_bytes()
    rng = np.random.default_rng(0)
    killed = finished = 0
    while killed < KILLS:
        run = tmp_path / f"run-{finished}"
        ended = learn(run, *asked, "--resume", killed_after=float(rng.uniform(0, longest)))
        if ended[0] is None:
            killed += 1
        else:
            assert ended == (0, "")
            assert (run / "result.json").read_bytes() == expected
            finished += 1
        if run.exists():
            assert_readable(run)
    last = tmp_path / f"run-{finished}"
    assert learn(last, *asked, "--resume") == (0, "")
    assert (last / "result.json").read_bytes() == expected
    policies = [
        jm.Policy.load(tmp_path / name / "certified" / "policy.npz")
        for name in ("whole", last.name)
    ]
    states = np.arange(policies[0].num_states)
    assert np.array_equal(*(policy.probabilities(states) for policy in policies))
