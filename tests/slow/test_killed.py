"""Killed without warning, a run of SGD-AL goes on from its last checkpoint to the same answer."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import journeyman as jm

pytestmark = pytest.mark.slow
KILLS = 20
STEPS = 120_000

SCRIPT = """
import sys
import journeyman as jm
sys.path.insert(0, {folder!r})
from test_killed import problem_and_solver
problem, solver = problem_and_solver({checkpoint!r})
jm.solve(problem, solver)
"""


def problem_and_solver(checkpoint):
    world, basis, expert = jm.gallery.grid(8, macro_cells=2)
    demos = jm.record(world, expert, trajectories=50, horizon=80, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    features = jm.features.partition(world, demos, num_cells=16)
    return problem, jm.StochasticSubgradient(
        features, steps=STEPS, accuracy=0.0, seed=7, checkpoint=checkpoint
    )


def test_twenty_kills_change_no_bit(tmp_path):
    checkpoint = tmp_path / "state.npz"
    script = SCRIPT.format(folder=str(Path(__file__).parent), checkpoint=str(checkpoint))
    problem, solver = problem_and_solver(checkpoint)
    whole = jm.solve(problem, replace(solver, checkpoint=None))
    rng = np.random.default_rng(0)
    killed = 0
    while killed < KILLS:
        child = subprocess.Popen([sys.executable, "-c", script])
        try:
            child.wait(timeout=float(rng.uniform(1.5, 4.5)))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            killed += 1
        else:
            assert child.returncode == 0
            checkpoint.unlink()
        time.sleep(0.01)
    resumed = jm.solve(problem, solver)
    assert np.array_equal(resumed.reduced.coefficients, whole.reduced.coefficients)
    assert resumed.reduced.loss_lower_bound == whole.reduced.loss_lower_bound
