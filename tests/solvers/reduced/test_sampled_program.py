"""The sampled program: unbiased by enumeration, near the optimum, the same for the same seed."""

import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

import journeyman as jm
from journeyman.features.base import Features
from journeyman.problem.reduced import ExactPenalty, FeatureMass, Reduced, RowNorms, UniformRows
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.reduced import sampled_program as module
from journeyman.solvers.reduced.box_dual import SelectedRows, box_dual
from journeyman.solvers.reduced.reduced_program import Hard, ReducedProgram, solve_box
from journeyman.solvers.reduced.sampled_program import (
    SampledProgram,
    draw,
    fresh_rows,
    listed_rows,
    sampled_box,
    sampled_loss,
)
from journeyman.solvers.running import Watch
from journeyman.testing import random_problem
from journeyman.testing.strategies import problems, seeds

CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]
every_class = pytest.mark.parametrize("kind", CLASSES)


def features_of(problem, seed=0, *, is_sparse=False, based=False):
    rng = np.random.default_rng(seed)
    columns = rng.exponential(size=(problem.world.num_pairs, 3))
    if problem.world.num_states > 1:
        columns[0] = 0.0
    base = rng.normal(size=problem.world.num_pairs) if based else None
    return Features(sparse.csr_array(columns) if is_sparse else columns, base)


@st.composite
def surrogates(draw_from):
    problem = draw_from(problems())
    features = features_of(
        problem,
        draw_from(seeds),
        is_sparse=draw_from(st.booleans()),
        based=draw_from(st.booleans()),
    )
    sampling = draw_from(st.sampled_from([RowNorms(), FeatureMass(), UniformRows()]))
    return Surrogate(Reduced(problem, features), sampling=sampling)


@given(surrogates(), seeds)
def test_the_sampled_loss_is_unbiased_by_enumeration(surrogate, seed):
    """The mean over all draws of one pair and one state is the loss itself."""
    theta = np.random.default_rng(seed).normal(size=3)
    laws, mean = surrogate.laws, 0.0
    for pair in np.flatnonzero(laws.pair_sampling):
        for state in np.flatnonzero(laws.state_sampling):
            q1, q2 = laws.pair_sampling[pair], laws.state_sampling[state]
            at = np.array([pair]), np.array([state])
            rows = SelectedRows(
                listed_rows(surrogate, *at), np.array([1 / q1]), np.array([1 / q2]), *at
            )
            mean += q1 * q2 * loss_of(sampled_box(surrogate, rows), theta)
    expected = surrogate.value(theta)
    assert mean == pytest.approx(expected, rel=1e-8, abs=1e-8 * surrogate.penalties.flow)


def loss_of(box, theta):
    """The sampled loss of coefficients: least over the extra coordinates, where there are some."""
    if box.slope.size == theta.size:
        return box.loss(theta)
    chosen, each = box.chosen, np.eye(box.chosen.size)
    pulled = chosen.pulled(box.reduced.matching @ theta - box.reduced.matching_target)
    extras = linprog(
        np.concatenate([chosen.right, chosen.upper, -chosen.lower]),
        A_eq=np.hstack([chosen.equations.T, each, -each]), b_eq=pulled,
        bounds=[(None, None)] * chosen.right.size + [(0, None)] * (2 * chosen.size),
    )  # fmt: skip
    return box.loss(np.append(theta, extras.x[: chosen.right.size]))


@given(surrogates(), seeds)
def test_all_rows_at_weight_one_are_the_reduced_program(surrogate, seed):
    world, theta = surrogate.reduced.problem.world, np.random.default_rng(seed).normal(size=3)
    at = np.arange(world.num_pairs), np.arange(world.num_states)
    weights = np.ones(world.num_pairs), np.ones(world.num_states)
    rows = SelectedRows(listed_rows(surrogate, *at), *weights, *at)
    sampled = sampled_box(surrogate, rows)
    full = box_dual(surrogate.reduced, surrogate.penalties)
    assert loss_of(sampled, theta) == pytest.approx(loss_of(full, theta))
    assert loss_of(full, theta) == pytest.approx(surrogate.value(theta), rel=1e-9, abs=1e-9)


@given(surrogates(), seeds, st.integers(1, 50))
def test_repeated_rows_are_merged(surrogate, seed, count):
    rows = draw(surrogate, count, np.random.default_rng(seed))
    for indices, weights, law in (
        (rows.pairs, rows.pair_weights, surrogate.laws.pair_sampling),
        (rows.states, rows.state_weights, surrogate.laws.state_sampling),
    ):
        assert np.unique(indices).size == indices.size
        assert (weights * law[indices]).sum() == pytest.approx(1.0)
        np.testing.assert_allclose(weights * law[indices] * count % 1 % (1 - 1e-9), 0, atol=1e-9)


@every_class
def test_many_rows_approach_the_optimum(kind):
    problem = random_problem(2, kind(), num_budgets=1)
    features = features_of(problem)
    exact = jm.solve(problem, ReducedProgram(features)).reduced
    losses = []
    for num_rows in (100, 10_000, 1_000_000):
        solver = SampledProgram(features, seed=0, num_rows=num_rows)
        answer = jm.solve(problem, solver)
        assert answer.status is jm.Status.CONVERGED
        losses.append(answer.reduced.loss - exact.loss)
    assert min(losses) >= -1e-8 * exact.unit
    assert losses[-1] <= 1e-2 * exact.unit
    assert losses[-1] <= losses[0] + 1e-8 * exact.unit


@every_class
def test_fresh_rows_tell_the_true_loss(kind):
    problem = random_problem(1, kind())
    features = features_of(problem)
    found = jm.solve(problem, SampledProgram(features, seed=3, num_rows=50)).reduced
    assert found.loss == found.surrogate.value(found.coefficients)
    assert abs(found.sampled_loss - found.loss) <= 4 * found.sampled_error
    assert found.sampled_error <= 0.05 * found.unit + found.loss


def test_the_standard_error_is_that_of_repeated_estimates():
    problem = random_problem(1)
    surrogate = Surrogate(Reduced(problem, features_of(problem)), ExactPenalty())
    theta = np.array([0.3, -0.2, 0.4])
    rng = np.random.default_rng(0)
    estimates = np.array(
        [surrogate.estimate(theta, fresh_rows(surrogate, 200, rng)) for _ in range(400)]
    )
    error = estimates[:, 0].std()
    assert abs(estimates[:, 0].mean() - surrogate.value(theta)) <= 4 * error / 20
    assert estimates[:, 1].mean() == pytest.approx(error, rel=0.15)


def test_the_same_seed_gives_the_same_answer():
    problem = random_problem(0)
    features = features_of(problem)
    first, again, other = (
        jm.solve(problem, SampledProgram(features, seed=seed, num_rows=20)).reduced
        for seed in (5, 5, 6)
    )
    assert np.array_equal(first.coefficients, again.coefficients)
    assert first.sampled_loss == again.sampled_loss
    assert not np.array_equal(first.coefficients, other.coefficients)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_rows": 0}, "num_rows"),
        ({"fresh_rows": 1}, "fresh_rows"),
        ({"penalty": Hard()}, "SinglePenalty"),
        ({"sampling": "uniform"}, "RowNorms"),
        ({"tolerance": 2.0}, "tolerance"),
    ],
)
def test_what_cannot_be_used_is_refused(arguments, message):
    with pytest.raises(jm.errors.InvalidSolver, match=message):
        SampledProgram(Features([[1.0]]), seed=0, **arguments)


def grid_problem(seed):
    world, basis, expert = jm.gallery.grid(8, macro_cells=2, seed=seed)
    demos = jm.record(world, expert, trajectories=30, horizon=60, seed=seed)
    problem = jm.Apprenticeship(world, basis, demos)
    return problem, jm.features.partition(world, demos, num_cells=8)


@every_class
def test_the_sampled_loss_of_coefficients_is_that_of_their_program(kind):
    problem = random_problem(3, kind(), num_budgets=1)
    surrogate = Surrogate(Reduced(problem, features_of(problem, based=True)), ExactPenalty())
    rows = draw(surrogate, 40, np.random.default_rng(0))
    theta = np.array([0.3, -0.2, 0.4])
    expected = loss_of(sampled_box(surrogate, rows), theta)
    assert sampled_loss(surrogate, rows, theta) == pytest.approx(expected, rel=1e-9)


def test_the_excess_is_on_average_at_least_the_error_of_the_stage_before():
    problem, features = grid_problem(0)
    least = jm.solve(problem, ReducedProgram(features)).reduced.loss
    excesses, errors = [], []
    for seed in range(12):
        before = jm.solve(problem, SampledProgram(features, seed=seed, num_rows=100)).reduced
        surrogate = before.surrogate
        rows = draw(surrogate, 400, np.random.default_rng(1000 + seed))
        box = sampled_box(surrogate, rows)
        point = solve_box(box, Watch("test", lambda _: None), None, 1, 1e-8)
        lowest = sampled_loss(surrogate, rows, box.coefficients(point.x))
        excesses.append(sampled_loss(surrogate, rows, before.coefficients) - lowest)
        errors.append(before.loss - least)
    assert min(excesses) >= -1e-6 * problem.gap_scale
    spread = np.std(np.subtract(excesses, errors), ddof=1) / np.sqrt(12)
    assert np.mean(excesses) >= np.mean(errors) - 2 * spread


@pytest.mark.parametrize("seed", range(3))
def test_rows_grow_until_those_drawn_anew_agree(seed):
    problem, features = grid_problem(seed)
    answer = jm.solve(problem, SampledProgram(features, seed=seed))
    found = answer.reduced
    wanted = max(0.05 * found.loss, 0.0025 * problem.gap_scale)
    assert answer.status is jm.Status.CONVERGED
    assert answer.work.iterations >= 2
    assert -1e-6 * problem.gap_scale <= found.sampled_excess <= 1.1 * wanted
    least = jm.solve(problem, ReducedProgram(features)).reduced.loss
    assert least - 1e-6 <= found.loss <= least + wanted
    again = jm.solve(problem, SampledProgram(features, seed=seed)).reduced
    assert np.array_equal(found.coefficients, again.coefficients)
    loose = jm.solve(problem, SampledProgram(features, seed=seed, accuracy=problem.gap_scale))
    assert loose.work.iterations == 2


def test_rows_do_not_grow_without_end(monkeypatch):
    monkeypatch.setattr(module, "MOST_ROWS", 40_000)
    problem, features = grid_problem(0)
    answer = jm.solve(problem, SampledProgram(features, seed=0, accuracy=0.0))
    assert answer.status is jm.Status.STEP_LIMIT
    assert answer.work.iterations == 3
    one = jm.solve(problem, SampledProgram(features, seed=0, num_rows=500))
    assert one.work.iterations == 1
    assert one.reduced.sampled_excess is None


def test_a_stage_that_is_cut_short_does_not_replace_a_better_one_before():
    problem, features = grid_problem(0)
    events = []

    def stop_in_second_stage(event):
        events.append(event)
        if [one.iteration for one in events].count(0) == 2:
            signal.raise_signal(signal.SIGINT)

    solver = SampledProgram(features, seed=0, accuracy=0.0)
    answer = jm.solve(problem, solver, observer=stop_in_second_stage)
    assert answer.status is jm.Status.INTERRUPTED
    first = jm.solve(problem, replace(solver, num_rows=2000))
    assert np.array_equal(answer.reduced.coefficients, first.reduced.coefficients)
