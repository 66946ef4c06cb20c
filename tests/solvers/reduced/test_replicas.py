"""Replicas of SGD-AL: one answer whoever runs them, and an average that loses nothing."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import journeyman as jm
import task_work as work
from journeyman.execution import seeds_of
from journeyman.problem import drawn
from journeyman.problem.drawn import reduced_of
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.reduced import descent, rows
from journeyman.solvers.reduced import stochastic_subgradient as module
from journeyman.solvers.reduced.descent import SubgradientState
from journeyman.solvers.reduced.rows import source_of
from journeyman.solvers.reduced.step_rules import WEIGHT
from journeyman.solvers.reduced.stochastic_subgradient import _Run
from journeyman.solvers.running import Watch
from journeyman.testing import Shape, random_problem

WORLD, BASIS, EXPERT = jm.gallery.grid(6, macro_cells=2)
DEMOS = jm.record(WORLD, EXPERT, trajectories=50, horizon=60, seed=0)
PROBLEM = jm.Apprenticeship(WORLD, BASIS, DEMOS)
FEATURES = jm.features.partition(WORLD, DEMOS, num_cells=9)
SOLVER = jm.StochasticSubgradient(FEATURES, steps=2600, accuracy=0.0, seed=5, replicas=3)
INCREMENTAL = replace(
    SOLVER,
    features=jm.features.Features(FEATURES.matrix.toarray()),
    step_rule=jm.solvers.InverseRoot(),
    batch=1,
)

NETWORK = jm.gallery.queues(4, buffers=(3, 2, 2, 3), discount=0.9)
WALKS = jm.record(NETWORK.world, NETWORK.longer, trajectories=30, horizon=40, seed=0)
LARGE = jm.Apprenticeship(NETWORK.world, NETWORK.costs, WALKS)
COLUMNS = jm.features.factored(NETWORK.world, NETWORK.radix, WALKS, [NETWORK.longer], 2)
LARGE_SOLVER = jm.StochasticSubgradient(COLUMNS, steps=600, seed=5, replicas=3)


@pytest.fixture(autouse=True)
def _fewer_rows(monkeypatch):
    """Behind the estimates of a large world, which are not made by the workers."""
    monkeypatch.setattr(drawn, "MATCHING_BLOCK", 1 << 10)
    monkeypatch.setattr(module, "FRESH_ROWS", 1 << 11)


@pytest.fixture
def small_blocks(monkeypatch):
    """For runs in this process; workers have their own blocks."""
    monkeypatch.setattr(rows, "BLOCK_ROWS", 1 << 12)


@pytest.fixture(scope="module")
def pools():
    with jm.Processes(1) as one, jm.Processes(2) as two:
        yield one, two


def silent(_event):
    pass


def bits(answer):
    """All numbers of an answer but its times."""
    found, run = answer.reduced, answer.optimisation
    numbers = [
        found.coefficients, found.loss, found.loss_lower_bound, run.realised_regret, run.noise,
        [(point.step, point.loss, point.bound, point.error) for point in run.trace],
    ]  # fmt: skip
    if found.is_estimate:
        return [np.asarray(number).tobytes() for number in (*numbers, found.sampled_error)]
    return [np.asarray(number).tobytes() for number in (*numbers, answer.value)]


@pytest.mark.parametrize(
    ("problem", "solver"),
    [(PROBLEM, SOLVER), (PROBLEM, INCREMENTAL), (LARGE, LARGE_SOLVER)],
    ids=["explicit", "incremental", "large"],
)
def test_executors_do_not_change_a_bit(pools, problem, solver):
    expected = bits(jm.solve(problem, solver))
    for executor in (jm.Serial(), *pools):
        assert bits(jm.solve(problem, replace(solver, executor=executor))) == expected


@pytest.mark.parametrize(("problem", "solver"), [(PROBLEM, SOLVER), (LARGE, LARGE_SOLVER)])
def test_a_replica_lost_with_its_worker_is_run_again(pools, tmp_path, problem, solver):
    executor = work.Losing(pools[1], tmp_path / "killed")
    found = jm.solve(problem, replace(solver, executor=executor))
    assert (tmp_path / "killed").exists()
    assert bits(found) == bits(jm.solve(problem, solver))


@pytest.mark.parametrize(("problem", "solver"), [(PROBLEM, SOLVER), (LARGE, LARGE_SOLVER)])
def test_seed_and_number_decide(small_blocks, problem, solver):
    solver = replace(solver, steps=100)
    again, other, more, alone = (
        bits(jm.solve(problem, replace(solver, **change)))
        for change in ({}, {"seed": 6}, {"replicas": 4}, {"replicas": 1})
    )
    assert bits(jm.solve(problem, solver)) == again
    assert len({again[0], other[0], more[0], alone[0]}) == 4


@pytest.mark.parametrize("solver", [SOLVER, INCREMENTAL], ids=["plain", "incremental"])
@pytest.mark.parametrize("length", [1, 700, 5000])
def test_the_length_of_rounds_and_blocks_does_not_change_the_answer(monkeypatch, solver, length):
    solver = replace(solver, steps=2600 if length > 1 else 40)
    expected = bits(jm.solve(PROBLEM, solver))
    monkeypatch.setattr(descent, "ROUND", length)
    monkeypatch.setattr(rows, "BLOCK", 3 * length)
    assert bits(jm.solve(PROBLEM, solver)) == expected


def average_of(arrays):
    return arrays["weighted_theta"] / arrays["totals"][WEIGHT]


def run_of(solver, problem=PROBLEM):
    reduced = reduced_of(problem, solver.features, solver.seed)
    surrogate = Surrogate(reduced, solver.penalty, solver.sampling)
    return _Run(solver, surrogate, Watch("test", silent))


@pytest.mark.parametrize("solver", [SOLVER, INCREMENTAL], ids=["plain", "incremental"])
def test_each_replica_is_the_descent_of_its_own_seed(solver):
    run = run_of(solver)
    run.descent.take(500)
    for (arrays, facts), seed in zip(run.descent.replicas, seeds_of(5, 3), strict=True):
        alone = run_of(replace(solver, replicas=1))
        alone.state.source.rng = np.random.Generator(np.random.PCG64(seed))
        alone.descent.take(500)
        for name, expected in alone.state.iterate._asdict().items():
            assert arrays[name].tobytes() == expected.tobytes()
        assert arrays["pairs"].tobytes() == alone.state.source.pairs.counts.tobytes()
        assert facts["step"] == alone.state.step == run.state.step == 500


def test_sums_of_the_replicas_make_the_answer():
    run = run_of(SOLVER)
    run.descent.take(300)
    parts = [arrays for arrays, _ in run.descent.replicas]
    averages = [average_of(part) for part in parts]
    assert run.state.average == pytest.approx(np.mean(averages, axis=0), rel=1e-12, abs=1e-15)
    seen = np.sum([part["flow"] for part in parts], axis=0)
    assert run.state.source.flow.counts == pytest.approx(seen)
    costs = [part["weighted_costs"] / part["totals"][WEIGHT] for part in parts]
    assert run.state.witness.cost_weights == pytest.approx(np.mean(costs, axis=0))


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 99),
    cost_class=st.sampled_from([jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()]),
    count=st.integers(2, 5),
    steps=st.integers(1, 300),
    budgets=st.sampled_from([0, 2]),
)
def test_the_average_loses_no_more_than_the_replicas_on_average(
    seed, cost_class, count, steps, budgets
):
    problem = random_problem(seed, cost_class, shape=Shape.SPARSE, num_budgets=budgets)
    columns = np.random.default_rng(seed).random((problem.world.num_pairs, 3))
    solver = jm.StochasticSubgradient(
        jm.features.Features(columns), jm.ExactPenalty(slack=1.0), seed=seed, replicas=count
    )
    run = run_of(solver, problem)
    run.descent.take(steps)
    value = run.surrogate.value
    losses = [value(average_of(arrays)) for arrays, _ in run.descent.replicas]
    assert value(run.state.average) <= np.mean(losses) * (1 + 1e-9)
    assert len(set(losses)) == count or steps == 1


def test_the_average_of_replicas_is_better_than_one_of_them():
    """In the mean; that it is no worse than those it is made of is the property above."""
    alone = [jm.solve(PROBLEM, replace(SOLVER, replicas=1, seed=seed)).reduced for seed in range(8)]
    many = jm.solve(PROBLEM, replace(SOLVER, replicas=8))
    assert many.reduced.loss < np.mean([one.loss for one in alone])
    assert many.engine == "SGD-AL, 8 replicas"
    assert many.value <= many.reduced.loss
    assert many.reduced.loss_lower_bound <= jm.solve(
        PROBLEM, jm.ReducedProgram(FEATURES)
    ).reduced.loss * (1 + 1e-9)


def test_replicas_stop_when_their_error_is_proven():
    answer = jm.solve(PROBLEM, replace(SOLVER, steps=2_000_000, accuracy=None, replicas=2))
    assert answer.status is jm.Status.CONVERGED
    wanted = max(0.05 * answer.reduced.loss, 0.0025 * PROBLEM.gap_scale)
    assert answer.reduced.optimisation_error <= wanted


def test_the_bound_in_probability_is_that_of_all_steps_together():
    alone, together = (
        jm.solve(PROBLEM, replace(SOLVER, replicas=count)).optimisation for count in (1, 4)
    )
    assert together.noise == pytest.approx(alone.noise / 2)
    assert together.steps == alone.steps == 2600
    assert together.realised_regret > 0


@pytest.mark.parametrize(("problem", "solver"), [(PROBLEM, SOLVER), (LARGE, LARGE_SOLVER)])
def test_limits_end_with_a_status_and_a_policy(small_blocks, problem, solver):
    def press(event):
        os.kill(os.getpid(), signal.SIGINT)

    endless = replace(solver, steps=10**9)
    late = jm.solve(problem, endless, time_limit=1e-3)
    stopped = jm.solve(problem, endless, observer=press)
    assert late.status is jm.Status.TIME_LIMIT
    assert stopped.status is jm.Status.INTERRUPTED
    assert np.isfinite(late.reduced.loss)
    assert np.isfinite(stopped.reduced.loss)


def test_steps_that_explode_are_noticed():
    wild = replace(SOLVER, step_rule=jm.solvers.Constant(rate=1e308), radius=1e200, steps=2100)
    with np.errstate(over="ignore", invalid="ignore"):
        assert jm.solve(PROBLEM, wild).status is jm.Status.NOT_FINITE


def test_large_replicas_take_all_their_steps_from_rows_of_their_own(small_blocks):
    for batch, steps in ((1, 100), (32, 129), (5000, 2)):
        answer = jm.solve(LARGE, replace(LARGE_SOLVER, batch=batch, steps=steps))
        assert answer.optimisation.steps == steps
        assert answer.engine == "SGD-AL, 3 replicas"
    run = run_of(LARGE_SOLVER, LARGE)
    run.descent.take(128)
    parts = [arrays for arrays, _ in run.descent.replicas]
    assert len({part["theta"].tobytes() for part in parts}) == 3
    averages = [average_of(part) for part in parts]
    assert run.state.average == pytest.approx(np.mean(averages, axis=0), rel=1e-12, abs=1e-15)
    joint, _ = run.surrogate.estimate(run.state.average, run._fresh)
    losses = [run.surrogate.estimate(average, run._fresh)[0] for average in averages]
    assert joint < np.mean(losses)


def test_a_replica_is_left_as_it_is_by_the_steps_of_its_copy():
    """Otherwise a lost task could not be run again on another worker, nor in this process."""
    run = run_of(SOLVER)
    run.descent.take(10)
    before, _ = run.descent.replicas[0]
    kept = {name: part.copy() for name, part in before.items()}
    shared = run.surrogate, run.motion, 5, 20
    first, second = (descent._advanced((0, run.descent.replicas[0]), shared) for _ in range(2))
    assert all(np.array_equal(before[name], part) for name, part in kept.items())
    assert first[0]["theta"].tobytes() == second[0]["theta"].tobytes()
    state = SubgradientState.fresh(run.surrogate, source_of(run.surrogate, 32, 5, 0, None))
    state.unpack(*first)
    assert state.step == 30
