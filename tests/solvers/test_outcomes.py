"""Every way a solve can end, and what holds of the answer then."""

import os
import re
import signal

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.features.base import Features
from journeyman.problem.reduced import SinglePenalty
from journeyman.solvers.reduced.reduced_program import Hard, ReducedProgram
from journeyman.testing import Shape, random_problem

CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]
WAYS = [
    (jm.EuclideanBall, None),
    *((kind, engine) for kind in (jm.InfinityBall, jm.Simplex) for engine in jm.solvers.Engine),
]

every_class = pytest.mark.parametrize("kind", CLASSES)
every_engine = pytest.mark.parametrize("engine", list(jm.solvers.Engine))
every_way_to_solve = pytest.mark.parametrize(("kind", "engine"), WAYS)


class CtrlC:
    """An observer that lets some events pass and then presses Ctrl-C as often as asked."""

    def __init__(self, times, patience=0):
        self.left = times
        self.patience = patience

    def __call__(self, event):
        if self.patience:
            self.patience -= 1
            return
        while self.left:
            self.left -= 1
            os.kill(os.getpid(), signal.SIGINT)


def optimal():
    return jm.solve(random_problem(0))


def infeasible():
    drawn = random_problem(0)
    budget = jm.Budget(np.ones(drawn.world.num_pairs), 0.0)
    return jm.solve(
        jm.Apprenticeship(drawn.world, drawn.basis, drawn.expectation, constraints=[budget])
    )


def inaccurate():
    return jm.solve(random_problem(0, jm.EuclideanBall()), jm.LinearProgram(tolerance=1e-18))


def out_of_time(kind=jm.InfinityBall):
    return jm.solve(large_problem(kind), jm.LinearProgram(time_limit=1e-3))


def interrupted(kind=jm.InfinityBall, engine=None):
    return jm.solve(large_problem(kind), jm.LinearProgram(engine=engine), observer=CtrlC(times=1))


def unbounded():
    drawn = random_problem(0)
    problem = jm.Forward(drawn.world, np.ones(drawn.world.num_pairs))
    features = Features(np.ones((drawn.world.num_pairs, 1)))
    return jm.solve(problem, ReducedProgram(features, SinglePenalty(1e-3)))


def out_of_memory():
    return jm.solve(large_problem(jm.InfinityBall), jm.ColumnGeneration(memory_limit=1.0))


OUTCOMES = {
    jm.Status.OPTIMAL: optimal,
    jm.Status.INFEASIBLE: infeasible,
    jm.Status.INACCURATE: inaccurate,
    jm.Status.UNBOUNDED: unbounded,
    jm.Status.TIME_LIMIT: out_of_time,
    jm.Status.MEMORY_LIMIT: out_of_memory,
    jm.Status.INTERRUPTED: interrupted,
}


OF_DESCENT = {jm.Status.CONVERGED, jm.Status.STEP_LIMIT, jm.Status.NOT_FINITE}


def test_every_status_but_failure_can_be_brought_about():
    assert set(jm.Status) - set(OUTCOMES) - OF_DESCENT == {jm.Status.FAILED}


@pytest.mark.parametrize("status", OUTCOMES, ids=lambda status: status.name)
def test_outcome_has_its_status_and_says_so(status):
    answer = OUTCOMES[status]()
    assert answer.status is status
    assert repr(answer).startswith(f"Answer({status.name}: ")


@pytest.mark.parametrize("status", list(jm.Status), ids=lambda status: status.name)
def test_every_status_has_a_message_and_a_remedy(status):
    assert len(status.message) > 10
    assert len(status.remedy) > 10 or status is jm.Status.OPTIMAL


def test_what_is_impossible_with_or_without_budgets_says_so():
    world = random_problem(0).world
    problem = jm.Forward(world, np.zeros(world.num_pairs))
    features = Features(np.ones((world.num_pairs, 1)))
    hard, budgets = jm.solve(problem, ReducedProgram(features, Hard())), infeasible()
    assert hard.status is budgets.status is jm.Status.INFEASIBLE
    assert hard.relaxation is None
    assert budgets.relaxation is not None
    assert "the constraints exclude each other" in repr(hard)
    with pytest.raises(jm.errors.NoSolution, match="ExactPenalty"):
        _ = hard.policy


@every_class
def test_time_limit_leaves_a_policy_and_ordered_bounds(kind):
    answer = out_of_time(kind)
    assert answer.status is jm.Status.TIME_LIMIT
    assert_sound(answer)


@every_way_to_solve
def test_ctrl_c_leaves_a_policy_and_ordered_bounds(kind, engine, capfd):
    before = signal.getsignal(signal.SIGINT)
    answer = interrupted(kind, engine)
    assert answer.status is jm.Status.INTERRUPTED
    assert_sound(answer)
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("solver", "patience"), [(jm.LinearProgram(), 9), (jm.solvers.BandedProgram(), 3)]
)
def test_late_ctrl_c_keeps_what_was_gained(solver, patience):
    problem = large_problem(jm.EuclideanBall)
    answer = jm.solve(problem, solver, observer=CtrlC(times=1, patience=patience))
    assert answer.status is jm.Status.INTERRUPTED
    assert_sound(answer)
    assert answer.value < 0.5 * problem.gap(jm.Policy.uniform(problem.world))


@every_way_to_solve
def test_second_ctrl_c_raises(kind, engine, capfd):
    before = signal.getsignal(signal.SIGINT)
    solver = jm.LinearProgram(engine=engine)
    with pytest.raises(KeyboardInterrupt):
        jm.solve(large_problem(kind), solver, observer=CtrlC(times=2))
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr() == ("", "")


@every_class
def test_failing_observer_costs_one_warning_and_nothing_else(kind):
    def fail(event):
        raise RuntimeError("the display is broken")

    problem = jm.Apprenticeship(*small_grid(), kind())
    with pytest.warns(UserWarning, match="the display is broken") as warned:
        answer = jm.solve(problem, observer=fail)
    assert len(warned) == 1
    assert answer.status is jm.Status.OPTIMAL


@every_engine
def test_engine_asked_for_is_the_engine_that_ran(engine):
    answer = jm.solve(random_problem(1), jm.LinearProgram(engine=engine))
    named = (
        r"Clarabel [\d.]+"
        if engine is jm.solvers.Engine.CLARABEL
        else rf"HiGHS [\d.]+ {engine.value}"
    )
    assert re.fullmatch(named, answer.engine)
    assert answer.status is jm.Status.OPTIMAL


def test_euclidean_ball_runs_on_clarabel():
    answer = jm.solve(random_problem(1, jm.EuclideanBall()))
    assert re.match(r"Clarabel [\d.]+", answer.engine)


@every_way_to_solve
def test_number_of_threads_can_change_from_solve_to_solve(kind, engine):
    problem = random_problem(2, kind())
    values = [
        jm.solve(problem, jm.LinearProgram(engine=engine, threads=threads)).value
        for threads in (1, 2, 1)
    ]
    assert values == pytest.approx([values[0]] * 3, abs=1e-7 * problem.gap_scale)


@pytest.mark.parametrize("kind", [jm.InfinityBall, jm.EuclideanBall])
@pytest.mark.parametrize("shape", list(Shape), ids=lambda shape: shape.name)
def test_nothing_separates_from_an_expert_that_can_be_matched(kind, shape):
    drawn = random_problem(3, shape=shape)
    policy = jm.Policy.uniform(drawn.world)
    expert = jm.ExpertExpectation(jm.occupancy(drawn.world, policy).expectations(drawn.basis))
    problem = jm.Apprenticeship(drawn.world, drawn.basis, expert, kind())
    answer = jm.solve(problem)
    assert answer.value <= 1e-7 * problem.gap_scale
    assert answer.lower_bound == 0.0
    assert not answer.cost_weights.any()


@every_class
def test_one_state_with_one_cost(kind):
    world = jm.World([[1.0], [1.0]], [1.0], 0.75)
    basis, expert = jm.CostBasis([0.5, 1.0]), jm.ExpertExpectation([1.5])
    answer = jm.solve(jm.Apprenticeship(world, basis, expert, kind()))
    assert answer.value == pytest.approx(0.5, abs=1e-7)
    assert answer.lower_bound == pytest.approx(0.5, abs=1e-7)
    assert answer.policy.probabilities([0])[0] == pytest.approx([1.0, 0.0], abs=1e-6)


@every_class
def test_costs_beyond_one_multiply_the_value(kind):
    problem = random_problem(4, kind(), num_costs=6)
    larger = jm.Apprenticeship(
        problem.world,
        jm.CostBasis(1000 * problem.basis.matrix),
        jm.ExpertExpectation(1000 * problem.target),
        problem.cost_class,
    )
    answer = jm.solve(larger)
    allowance = 1e-7 * larger.gap_scale
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(1000 * jm.solve(problem).value, abs=allowance, rel=0)


@every_class
def test_sparse_and_dense_bases_agree(kind):
    problem = random_problem(5, kind(), num_costs=6)
    matrix = np.where(problem.basis.matrix > 0, problem.basis.matrix, 0.0)
    assert_same_value(problem, matrix, sparse.csr_array(matrix))


@every_class
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_basis_per_state_is_repeated_over_the_actions(kind, stored):
    problem = random_problem(6, kind(), num_costs=6)
    per_state = problem.basis.matrix[: problem.world.num_states]
    per_pair = per_state[problem.world.pairs.states]
    assert_same_value(problem, stored(per_state), per_pair)


def assert_same_value(problem, *matrices):
    expert = problem.expectation
    first, second = (
        jm.solve(
            jm.Apprenticeship(problem.world, jm.CostBasis(matrix), expert, problem.cost_class)
        ).value
        for matrix in matrices
    )
    assert first == pytest.approx(second, abs=1e-7 * problem.gap_scale, rel=0)


def assert_sound(answer):
    """The bounds are in order, belong to policy and witness, and the policy is no bad choice."""
    problem = answer.problem
    assert answer.value <= problem.gap(jm.Policy.uniform(problem.world))
    assert answer.lower_bound <= answer.value
    assert answer.value == pytest.approx(problem.gap(answer.policy))
    assert answer.lower_bound == pytest.approx(jm.problem.lower_bound(problem, answer.witness))


def large_problem(kind):
    world, basis, expert = jm.gallery.grid(40, macro_cells=8)
    seen = jm.occupancy(world, expert).expectations(basis)
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(seen), kind())


def small_grid():
    world, basis, expert = jm.gallery.grid(12)
    return world, basis, jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
