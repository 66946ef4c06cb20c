"""The loop of iterative methods ends for the right reason, after at least one step."""

import os
import signal

import pytest

from journeyman.solvers.running import Advance, Status, Watch, iterate


class Countdown:
    """Approaches its least objective, which it reaches after some calls."""

    def __init__(self, calls=10, objective=None):
        self.calls, self.made, self.objective = calls, 0, objective

    def __call__(self):
        self.made += 1
        left = float(self.calls - self.made) if self.objective is None else self.objective
        return Advance(left, lower_bound=-1.0, converged=self.made == self.calls)


def run(advance, most=100, observer=lambda event: None, time_limit=None):
    with Watch("counting", observer, time_limit) as watch:
        return iterate(advance, watch, most)


def test_it_stops_where_the_method_has_converged():
    events = []
    assert run(Countdown(4), observer=events.append) == (Status.CONVERGED, 4)
    assert [(e.iteration, e.objective, e.lower_bound) for e in events] == [
        (1, 3.0, -1.0), (2, 2.0, -1.0), (3, 1.0, -1.0), (4, 0.0, -1.0),
    ]  # fmt: skip


def test_it_stops_at_the_limit_of_iterations():
    assert run(Countdown(4), most=3) == (Status.STEP_LIMIT, 3)


@pytest.mark.parametrize("objective", [float("nan"), float("inf")])
def test_it_stops_at_a_figure_that_is_not_finite(objective):
    assert run(Countdown(4, objective)) == (Status.NOT_FINITE, 1)


def test_a_limit_that_is_over_leaves_one_step():
    advance = Countdown(4)
    assert run(advance, time_limit=1e-9) == (Status.TIME_LIMIT, 1)
    assert advance.made == 1


def test_convergence_in_the_last_moment_counts():
    assert run(Countdown(1), time_limit=1e-9) == (Status.CONVERGED, 1)


def test_ctrl_c_ends_the_loop_with_a_status():
    def press(event):
        if event.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    assert run(Countdown(9), observer=press) == (Status.INTERRUPTED, 2)
