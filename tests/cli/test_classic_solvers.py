"""Every name of a method leads to it, in a run and in a study."""

import json
from dataclasses import is_dataclass

import pytest

import journeyman as jm
import study_methods
from journeyman.runs.description import (
    ASKING,
    CLASSICS,
    METHODS,
    SOLVERS,
    InvalidSettings,
    SolverDescription,
)
from journeyman.runs.solver_choice import chosen_solver, compared_solver


@pytest.mark.parametrize("name", [*METHODS, *ASKING])
def test_a_name_is_the_method_of_that_name(name):
    problem, expert = study_methods.drawn(0), study_methods.grid()[2]
    found = compared_solver(name, cells=4, expert=expert)
    solver = found if hasattr(found, "run") else found(problem)
    assert is_dataclass(solver)
    if name in CLASSICS:
        assert isinstance(solver, getattr(jm.solvers, CLASSICS[name]))
        assert type(chosen_solver(SolverDescription(name), problem, 3).solver) is type(solver)


def test_options_reach_the_method_that_has_them():
    problem = study_methods.drawn(0)
    asked = SolverDescription("projection", accuracy=0.25, time_limit=3.0)
    assert chosen_solver(asked, problem, 0).solver == jm.solvers.Projection(
        accuracy=0.25, time_limit=3.0
    )
    drawing = chosen_solver(SolverDescription("imitation-reinforce"), problem, 7).solver
    assert drawing.seed == 7
    with pytest.raises(InvalidSettings, match="projection has no tolerance"):
        chosen_solver(SolverDescription("projection", tolerance=0.1), problem, 0)


def test_a_run_can_ask_for_a_classic_method(call, inputs, tmp_path):
    assert set(CLASSICS) < set(SOLVERS)
    run = tmp_path / "run"
    shown = call("learn", run, *inputs, "--solver", "projection", "--json")
    assert shown.code == 0, shown.err
    assert json.loads(shown.out)["status"] in ("CONVERGED", "OPTIMAL")
    assert call("audit", run).code == 0
    budget = ("--budget", "cell 0-0 <= 5")
    refused = call("learn", tmp_path / "other", *inputs, "--solver", "projection", *budget)
    assert (refused.code, "cannot keep budgets" in refused.words) == (3, True)
    corrected = call("learn", tmp_path / "other", *inputs, "--solver", "projection")
    assert corrected.code == 0, corrected.err  # what was refused has left nothing


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_from_files_and_its_run_is_audited(call, inputs, tmp_path, name):
    run = tmp_path / "run"
    shown = call("learn", run, *inputs, "--solver", name, "--json")
    assert shown.code == 0, shown.err
    found = json.loads(shown.out)
    assert found["status"] in ("CONVERGED", "OPTIMAL", "STEP_LIMIT")
    assert found["bound"] < found["trivial_bound"]
    assert call("audit", run).code == 0


def test_a_run_that_goes_on_is_kept_when_it_is_refused(call, inputs, tmp_path):
    run = tmp_path / "run"
    assert call("learn", run, *inputs, "--solver", "projection").code == 0
    before = (run / "result.json").read_bytes()
    refused = call("learn", run, *inputs, "--solver", "max-margin", "--resume")
    assert refused.code == 3
    assert (run / "result.json").read_bytes() == before
