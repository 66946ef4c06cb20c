"""The trace of bounds is kept to the last bit, and a changed one is found."""

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from checker.forging import change_arrays, drop, facts_of, failed, rehash, write_facts
from journeyman.apprentice import Apprentice
from journeyman.testing.strategies import problems

CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]
TRACE = "trace.npz"


def learned(solver, cost_class=None, budgets=()):
    world, basis, expert = jm.gallery.grid(5, macro_cells=2)
    demos = jm.record(world, expert, trajectories=30, horizon=40, seed=3)
    return jm.learn(world, basis, demos, cost_class=cost_class, constraints=budgets, solver=solver)


@pytest.fixture(scope="module")
def apprentice():
    return learned(jm.ColumnGeneration())


@pytest.fixture(scope="module")
def saved(apprentice, tmp_path_factory):
    place = tmp_path_factory.mktemp("honest") / "run"
    apprentice.save(place)
    assert jm.audit(place).require().passed
    return place


@pytest.fixture
def run(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


def test_the_trace_comes_back_to_the_last_bit(apprentice, saved):
    with np.load(saved / TRACE) as stored:
        assert stored["bounds"].dtype == np.float64
        assert np.array_equal(stored["bounds"], apprentice.answer.bounds_trace)
    assert len(apprentice.answer.bounds_trace) > 3
    assert TRACE in facts_of(saved)["inputs"]


@pytest.mark.parametrize("cost_class", CLASSES)
@pytest.mark.parametrize(
    "solver",
    [
        jm.ColumnGeneration(tolerance=1.0),
        jm.ColumnGeneration(max_calls=1),
        jm.ColumnGeneration(time_limit=1e-9),
    ],
    ids=["rough", "one call", "no call"],
)
def test_unfinished_solves_are_saved_with_what_they_have(solver, cost_class, tmp_path):
    apprentice = learned(solver, cost_class())
    apprentice.save(tmp_path)
    with np.load(tmp_path / TRACE) as stored:
        assert stored["bounds"].shape == apprentice.answer.bounds_trace.shape
    assert jm.audit(tmp_path).require().passed


def test_infinite_bounds_pass(tmp_path):
    """While a budget is broken nothing is known from above."""
    world = jm.World([[1, 0], [0, 1], [0, 1]], [1.0, 0.0], 0.5, choice_offsets=[0, 2, 3])
    budget = jm.Budget([1.0, 0.999, 0.999], at_most=1.9985)
    basis, expert = jm.CostBasis([[0.0], [1.0], [1.0]]), jm.ExpertExpectation([0.0])
    apprentice = jm.learn(
        world, basis, expert, constraints=budget, solver=jm.ColumnGeneration(), keep_budgets=False
    )
    assert np.isinf(apprentice.answer.bounds_trace[:, 2]).any()
    apprentice.save(tmp_path)
    assert jm.audit(tmp_path).require().passed


@settings(max_examples=15)
@given(problems(), st.sampled_from([None, 1e-2]))
def test_random_problems_pass(tmp_path_factory, problem, tolerance):
    answer = jm.solve(problem, jm.ColumnGeneration(tolerance))
    place = tmp_path_factory.mktemp("run")
    Apprentice(problem, answer, jm.certify(problem, answer)).save(place)
    assert (place / TRACE).exists()
    assert jm.audit(place).require().passed


def test_a_solver_without_a_trace_leaves_none_not_even_an_older_one(run):
    learned(jm.LinearProgram()).save(run)
    assert not (run / TRACE).exists()
    assert jm.audit(run).require().passed


# Careless changes


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_a_flipped_bit(run, share):
    data = bytearray((run / TRACE).read_bytes())
    data[int(share * len(data))] ^= 1
    (run / TRACE).write_bytes(bytes(data))
    failed(run, f"{TRACE} is not the file that was certified")


def test_a_trace_that_is_gone(run):
    (run / TRACE).unlink()
    failed(run, f"{TRACE} is missing")


def test_a_trace_from_elsewhere(run):
    facts = facts_of(run)
    drop("inputs", TRACE)(facts)
    write_facts(run, facts)
    failed(run, f"{TRACE} was not certified")


# Careful changes


def backwards(arrays):
    arrays["bounds"][:, 0] = arrays["bounds"][::-1, 0]


def given_up(arrays):
    arrays["bounds"][-1, 1] = -1.0


def above_the_gap(arrays):
    arrays["bounds"][-1, 1] += 0.1


def below_the_bound(arrays):
    arrays["bounds"][-1, 2] -= 0.1


def not_a_number(arrays):
    arrays["bounds"][0, 2] = np.nan


def endless(arrays):
    arrays["bounds"][-1, 0] = np.inf


def narrow(arrays):
    arrays["bounds"] = arrays["bounds"][:, :2]


def flat(arrays):
    arrays["bounds"] = arrays["bounds"].ravel()


def renamed(arrays):
    arrays["numbers"] = arrays.pop("bounds")


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (backwards, "falls from one call to the next"),
        (given_up, "falls from one call to the next"),
        (above_the_gap, "the trace says that no gap is below"),
        (below_the_bound, "the trace has a policy with the gap"),
        (not_a_number, "not a number"),
        (endless, "not a number"),
        (narrow, "bounds has shape"),
        (flat, "bounds has shape"),
        (renamed, "it lacks 'bounds'"),
    ],
)
def test_a_careful_change(run, change, finding):
    change_arrays(run / TRACE, lambda header, arrays: change(arrays))
    rehash(run)
    outcome = failed(run, finding)
    assert "SHA-256" not in str(outcome)
    assert len(outcome.findings) == 1
