"""Traces of solvers as lines, and their picture."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.report.rendering import render
from journeyman.report.report_data import ReportData
from journeyman.report.run_sections import Trace, convergence, trace_of


@pytest.fixture(scope="module")
def problem():
    world, basis, expert = jm.gallery.grid(6, macro_cells=3)
    demos = jm.record(world, expert, trajectories=40, horizon=60, seed=0)
    return jm.Apprenticeship(world, basis, demos)


def data_of(problem, answer):
    return ReportData.of(jm.certify(problem, answer), answer)


def test_column_generation_leaves_both_bounds(problem):
    answer = jm.solve(problem, jm.ColumnGeneration())
    found = trace_of(data_of(problem, answer))
    assert list(found.lines) == ["best policy at hand", "no policy is below"]
    for line, column in zip(found.lines.values(), (2, 1), strict=True):
        assert line.tolist() == answer.bounds_trace[:, column].tolist()


def test_descents_leave_their_loss(problem):
    features = jm.features.partition(problem.world, problem.demonstrations, num_cells=9)
    answer = jm.solve(problem, jm.StochasticSubgradient(features, steps=6000), seed=1)
    found = trace_of(data_of(problem, answer))
    assert found.lines["loss"].tolist() == [point.loss for point in answer.optimisation.trace]
    assert (np.diff(found.moments) >= 0).all()


def test_a_linear_program_has_an_outcome_and_no_lines(problem):
    answer = jm.solve(problem, jm.LinearProgram())
    data = data_of(problem, answer)
    assert trace_of(data) is None
    html = render(convergence(data, ""))
    assert answer.engine in html
    assert "<svg" not in html


def test_a_certificate_alone_has_nothing_to_report(problem):
    assert (
        convergence(ReportData.of(jm.certify(problem, jm.Policy.uniform(problem.world))), "")
        is None
    )


def test_few_moments_are_kept_first_and_last_among_them():
    clock = np.arange(1000.0)
    trace = Trace.of(clock, "seconds", {"loss": 1 / (1 + clock)}, "")
    thin = trace.thinned(9)
    assert thin.moments.size == 9
    assert thin.moments[[0, -1]].tolist() == [0.0, 999.0]
    assert trace.thinned(2000) is trace


def test_what_is_not_finite_is_left_out():
    trace = Trace.of(np.arange(3.0), "seconds", {"loss": np.array([np.inf, 2.0, 1.0])}, "")
    assert trace.moments.tolist() == [1.0, 2.0]
