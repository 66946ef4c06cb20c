"""Background jobs: shells have them ignore SIGINT, so that Ctrl-C is for the foreground only."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import journeyman as jm
from journeyman.runs.interruption import Interrupted, noticing, stopping_gently

HERE = Path(__file__).parent


@pytest.fixture
def in_the_background():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, before)


def sending(number):
    sent = []

    def observer(event):
        if not sent:
            sent.append(number)
            os.kill(os.getpid(), number)

    return observer


def problem():
    world, basis, expert = jm.gallery.grid(4)
    demos = jm.record(world, expert, trajectories=20, horizon=30, seed=0)
    return jm.Apprenticeship(world, basis, demos)


def test_a_solve_ignores_sigint_where_it_was_ignored_before(in_the_background):
    answer = jm.solve(problem(), observer=sending(signal.SIGINT))
    assert answer.status is jm.Status.OPTIMAL


def test_sigterm_still_ends_a_solve_with_a_status(in_the_background):
    ended = []

    def solved():
        with stopping_gently(), noticing() as request:
            ended.append(jm.solve(problem(), observer=sending(signal.SIGTERM)).status)
            request.stop_if_made()

    with pytest.raises(Interrupted) as stop:
        solved()
    assert stop.value.signal_number == signal.SIGTERM
    assert ended == [jm.Status.INTERRUPTED]


def test_outside_a_solver_only_sigterm_ends_the_work(in_the_background):
    reached = []

    def hit_by(number):
        with stopping_gently(), noticing():
            os.kill(os.getpid(), number)
            reached.append(number)

    hit_by(signal.SIGINT)
    with pytest.raises(Interrupted) as stop:
        hit_by(signal.SIGTERM)
    assert stop.value.signal_number == signal.SIGTERM
    assert reached == [signal.SIGINT]


def test_tests_of_ctrl_c_do_not_depend_on_the_shell_that_started_them():
    chosen = (HERE / "solvers" / "test_iteration.py", HERE / "studies" / "test_resumption.py")
    shown = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "ctrl_c", *chosen],
        cwd=HERE.parent, capture_output=True, text=True, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert shown.returncode == 0, shown.stdout
    assert "3 passed" in shown.stdout
