"""Primal-dual steps on rows: the optimum of the reduced program, bounds that hold, equal bits."""

import os
import signal
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

import journeyman as jm
from class_examples import NAMES, example
from corridors import made
from journeyman.costs.registry import COST_CLASSES
from journeyman.features import Features, partition
from journeyman.problem.reduced import Reduced
from journeyman.problem.surrogate import ReducedWitness, Surrogate, reduced_lower_bound
from journeyman.runs.learning import step_of
from journeyman.solvers import StochasticPrimalDual
from journeyman.solvers.reduced import plain_saddle, saddle_kernels
from journeyman.solvers.reduced import stochastic_primal_dual as module
from journeyman.solvers.running import Watch
from journeyman.testing import Shape, random_problem
from journeyman.testing.random_worlds import random_cost_class
from solved_problems import SMALL, solved_problem

PENALTY = jm.ExactPenalty(slack=1.0)


def silent(_event):
    pass


def some_features(problem, count=5, seed=0, *, sparse=False):
    rng = np.random.default_rng(seed)
    columns = rng.random((problem.world.num_pairs, count)) + 0.01
    columns[rng.random(columns.shape) < 0.4] = 0.0
    columns[0] += 0.01
    return Features(csr_array(columns) if sparse else columns).normalised(problem.world)


def compared(problem, features, accuracy=None):
    """The least loss, and an answer with the default ball, which must not bind."""
    least = jm.solve(problem, jm.ReducedProgram(features, PENALTY)).reduced
    solver = StochasticPrimalDual(features, PENALTY, accuracy=accuracy)
    return least, jm.solve(problem, solver)


@pytest.fixture(params=[0, plain_saddle.PLAIN_NUMBERS], ids=["compiled", "plain"])
def either_loop(request, monkeypatch):
    """A small program by both kinds of loops."""
    monkeypatch.setattr(plain_saddle, "PLAIN_NUMBERS", request.param)


@pytest.fixture(scope="module")
def grid_problem():
    world, basis, expert = jm.gallery.grid(8, macro_cells=2)
    demos = jm.record(world, expert, trajectories=100, horizon=100, seed=0)
    return jm.Apprenticeship(world, basis, demos)


@pytest.fixture(scope="module")
def grid_features(grid_problem):
    return partition(grid_problem.world, grid_problem.demonstrations, num_cells=16)


def same(one, other):
    traces = [
        [(point.step, point.loss, point.bound) for point in answer.optimisation.trace]
        for answer in (one, other)
    ]
    return (
        one.reduced.coefficients.tobytes() == other.reduced.coefficients.tobytes()
        and one.reduced.loss == other.reduced.loss
        and one.reduced.loss_lower_bound == other.reduced.loss_lower_bound
        and traces[0] == traces[1]
    )


@pytest.mark.parametrize("name", SMALL)
def test_the_least_loss_is_approached_on_the_catalogue(name):
    problem = solved_problem(name, jm.InfinityBall())
    least, answer = compared(problem, some_features(problem), 1e-3 * problem.gap_scale)
    slack = 1e-7 * problem.gap_scale
    assert answer.status is jm.Status.CONVERGED
    assert answer.reduced.loss_lower_bound <= least.loss + slack
    assert least.loss_lower_bound - slack <= answer.reduced.loss
    assert answer.reduced.loss - least.loss <= 1e-3 * problem.gap_scale + slack


@pytest.mark.usefixtures("either_loop")
@pytest.mark.parametrize("kind", COST_CLASSES.values(), ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("budgets", [0, 2])
def test_bounds_hold_in_every_class_with_and_without_budgets(kind, budgets):
    for seed, shape in enumerate(Shape):
        cost_class = random_cost_class(kind, seed)
        problem = random_problem(seed, cost_class, shape=shape, num_budgets=budgets)
        features = some_features(problem, seed=seed, sparse=seed % 2 == 0)
        least, answer = compared(problem, features)
        slack, found = 1e-7 * problem.gap_scale, answer.reduced
        assert answer.status is jm.Status.CONVERGED
        assert found.loss_lower_bound <= least.loss + slack
        assert least.loss_lower_bound - slack <= found.loss
        assert found.loss == found.surrogate.value(found.coefficients)
        wanted = max(0.05 * found.loss, 0.0025 * problem.gap_scale)
        assert found.optimisation_error <= wanted


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budgets", [0, 1])
def test_no_dual_point_proves_more_than_there_is(name, budgets):
    """Whatever is done to y, the bound is at most the least loss, and at most any loss."""
    rng = np.random.default_rng(3)
    problem = random_problem(2, example(name, 3), num_costs=3, num_budgets=budgets)
    features = some_features(problem)
    surrogate = Surrogate(Reduced(problem, features), PENALTY)
    radius = surrogate.reduced.mixture_radius
    saddle = module.Saddle(surrogate, radius, 1, 0)
    least = jm.solve(problem, StochasticPrimalDual(features, PENALTY, accuracy=1e-4)).reduced.loss
    at, program = saddle.start(), saddle.program
    for trial in range(60):
        y = rng.uniform(program.low, program.high)
        y = np.where(rng.random(y.size) < 0.3, rng.choice([program.low, program.high]), y)
        small = rng.normal(size=at.small.size) * 10.0 ** rng.integers(-2, 3)
        small[:budgets] = np.clip(small[:budgets], 0, 1)
        saddle.loops.into_class(program.kind, small[budgets:])
        theta = rng.normal(size=features.num_features)
        theta *= radius * rng.random() / np.linalg.norm(theta)
        found = saddle.judged(theta, y, small)
        slack = 1e-9 * problem.gap_scale * (1 + trial)
        assert found.bound <= least + slack
        assert found.bound <= found.middle + slack <= found.loss + 2 * slack
        assert found.loss == pytest.approx(surrogate.value(theta), rel=1e-9)
        recomputed = reduced_lower_bound(surrogate, saddle.witness(y, small), radius)
        assert found.bound == pytest.approx(recomputed, rel=1e-9, abs=slack)
    wild = ReducedWitness(
        rng.normal(size=3) * 50, rng.normal(size=problem.world.num_states) * 9,
        rng.normal(size=problem.world.num_pairs) * 9, np.full(budgets, 7.0),
    )  # fmt: skip
    assert reduced_lower_bound(surrogate, wild, radius) <= least + 1e-9 * problem.gap_scale


@pytest.mark.parametrize("sparse", [True, False])
def test_every_block_fulfils_the_condition_on_the_steps(grid_problem, grid_features, sparse):
    matrix = grid_features.matrix if sparse else grid_features.matrix.toarray()
    surrogate = Surrogate(Reduced(grid_problem, Features(matrix)))
    saddle = module.Saddle(surrogate, 1.0, 0, 0)
    program, root = saddle.program, saddle.root[saddle.order]
    reduced = surrogate.reduced
    rows = np.vstack([np.asarray(part.todense()) if sparse else part
                      for part in (reduced.pair_rows, reduced.flow_rows)])  # fmt: skip
    rows = root[:, None] * rows[saddle.order]
    blocks = [
        (rows[start:stop], program.dual_steps[start:stop])
        for start, stop in pairwise(program.starts)
    ]
    blocks.append((program.small, program.small_steps))
    assert len(blocks) == program.num_blocks > 2
    assert sum(len(block) for block, _ in blocks[:-1]) == rows.shape[0]
    norms = [
        np.linalg.norm(np.sqrt(S)[:, None] * block * np.sqrt(program.primal_steps), 2) ** 2
        for block, S in blocks
    ]
    assert max(norms) <= 0.99**2 / len(blocks) * (1 + 1e-12)
    assert max(norms) >= 0.5 / len(blocks)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sparse", [True, False])
def test_both_loops_take_the_same_steps(name, sparse, monkeypatch):
    """The compiled ones, and NumPy's of small programs: up to rounding, in small balls as well."""
    problem = random_problem(2, example(name, 3), num_costs=3, num_budgets=1)
    surrogate = Surrogate(Reduced(problem, some_features(problem, sparse=sparse)), PENALTY)
    radius = 0.3 * surrogate.reduced.mixture_radius
    plain = module.Saddle(surrogate, radius, 1, 0)
    monkeypatch.setattr(plain_saddle, "PLAIN_NUMBERS", 0)
    compiled = module.Saddle(surrogate, radius, 1, 0)
    assert (plain.loops, compiled.loops) == (plain_saddle, saddle_kernels)
    for one, other in zip(plain.program[1:], compiled.program[1:], strict=True):
        assert one == pytest.approx(other, rel=1e-13)
    order = np.random.default_rng(0).integers(plain.program.num_blocks, size=200)
    ends = []
    for saddle in (plain, compiled):
        at = saddle.start()
        saddle.loops.advance(order, saddle.program, saddle.first_omega, at)
        ends.append((at, saddle.judged(at.theta, at.y, at.small)))
    assert np.linalg.norm(ends[0][0].theta) > 0.1 * radius
    for one, other in zip(*(at for at, _ in ends), strict=True):
        assert one == pytest.approx(other, rel=1e-7, abs=1e-9)
    assert ends[0][1].loss == pytest.approx(ends[1][1].loss, rel=1e-7)
    assert ends[0][1].bound == pytest.approx(ends[1][1].bound, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("loops", [plain_saddle, saddle_kernels])
def test_nearest_points_are_nearest(loops):
    rng = np.random.default_rng(0)
    for _ in range(50):
        start, steps = rng.normal(size=6) * 3, rng.random(6) + 0.01
        near = start.copy()
        loops.into_ball(near, steps, 1.0)
        assert np.linalg.norm(near) <= 1 + 1e-12
        others = rng.normal(size=(400, 6))
        others *= rng.random((400, 1)) / np.linalg.norm(others, axis=1, keepdims=True)
        far = np.minimum.reduce((((others - start) ** 2) / steps).sum(axis=1))
        assert (((near - start) ** 2) / steps).sum() <= far + 1e-9
        share = start.copy()
        loops.into_simplex(share)
        assert share.min() >= 0
        assert share.sum() == pytest.approx(1)
        mixed = rng.dirichlet(np.ones(6), size=400)
        assert ((share - start) ** 2).sum() <= ((mixed - start) ** 2).sum(axis=1).min() + 1e-9
    inside = np.array([0.1, -0.2])
    loops.into_ball(inside, np.ones(2), 1.0)
    assert inside.tolist() == [0.1, -0.2]


@pytest.mark.usefixtures("either_loop")
def test_a_run_in_pieces_is_the_run_in_one(tmp_path, monkeypatch, grid_problem, grid_features):
    solver = StochasticPrimalDual(grid_features, epochs=90, accuracy=0.0, seed=4)
    whole = jm.solve(grid_problem, solver)
    assert whole.status is jm.Status.STEP_LIMIT
    pieces = replace(solver, checkpoint=tmp_path / "state.npz")
    monkeypatch.setattr(module, "CHUNK", 3e4)
    for epochs in (3, 11, 12, 60, 90):
        answer = jm.solve(grid_problem, replace(pieces, epochs=epochs))
    assert same(answer, whole)
    assert not same(jm.solve(grid_problem, solver, seed=5), whole)


def test_interrupted_within_an_epoch_it_goes_on_with_the_same_bits(
    tmp_path, monkeypatch, grid_problem, grid_features
):
    solver = StochasticPrimalDual(grid_features, epochs=60, accuracy=0.0)
    whole = jm.solve(grid_problem, solver)
    monkeypatch.setattr(module, "CHUNK", 1.0)
    path = tmp_path / "state.npz"
    resumable = replace(solver, checkpoint=path)
    surrogate = Surrogate(Reduced(grid_problem, grid_features))
    assert 101 % module.Saddle(surrogate, 1.0, 0, 0).program.num_blocks > 0

    def interrupt(event):
        if event.iteration == 101:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = jm.solve(grid_problem, resumable, observer=interrupt)
    assert stopped.status is jm.Status.INTERRUPTED
    assert stopped.work.iterations == step_of(path) == 101
    assert stopped.reduced.loss_lower_bound <= stopped.reduced.loss
    assert same(jm.solve(grid_problem, resumable), whole)


def test_interrupted_where_a_look_is_due_it_takes_the_look_first(
    tmp_path, grid_problem, grid_features
):
    solver = StochasticPrimalDual(grid_features, epochs=60, accuracy=0.0)
    whole = jm.solve(grid_problem, solver)
    surrogate = Surrogate(Reduced(grid_problem, grid_features))
    due = module.FIRST_LOOK * module.Saddle(surrogate, 1.0, 0, 0).program.num_blocks
    resumable = replace(solver, checkpoint=tmp_path / "state.npz")

    def interrupt(event):
        if event.iteration == due:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = jm.solve(grid_problem, resumable, observer=interrupt)
    assert stopped.status is jm.Status.INTERRUPTED
    assert stopped.work.iterations == due
    assert same(jm.solve(grid_problem, resumable), whole)


def test_a_converged_run_is_not_continued_and_another_one_is_refused(
    tmp_path, grid_problem, grid_features
):
    solver = StochasticPrimalDual(grid_features, checkpoint=tmp_path / "state.npz")
    first, again = (jm.solve(grid_problem, solver) for _ in range(2))
    assert first.status is again.status is jm.Status.CONVERGED
    assert same(first, again)
    assert first.work.iterations == again.work.iterations
    for other in (replace(solver, seed=1), replace(solver, radius=3.0)):
        with pytest.raises(jm.errors.InvalidFile, match="another run"):
            jm.solve(grid_problem, other)


def test_a_time_limit_ends_with_bounds_that_hold(grid_problem, grid_features):
    solver = StochasticPrimalDual(grid_features, accuracy=0.0, epochs=10**9, time_limit=0.3)
    answer = jm.solve(grid_problem, solver, observer=silent)
    assert answer.status is jm.Status.TIME_LIMIT
    least = jm.solve(grid_problem, jm.ReducedProgram(grid_features)).reduced.loss
    assert answer.reduced.loss_lower_bound <= least + 1e-9 <= answer.reduced.loss + 2e-9
    assert answer.value <= answer.reduced.loss + 1e-9 * grid_problem.gap_scale
    assert np.linalg.norm(answer.reduced.coefficients) <= answer.reduced.radius * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["rotated", "differences"])
def test_the_ball_grows_with_coefficients_that_leave_the_mixtures(kind, grid_problem, tmp_path):
    """Signed columns: the same measures, by coefficients that are longer."""
    cells = partition(grid_problem.world, grid_problem.demonstrations, num_cells=4)
    mixing = np.eye(cells.num_features) - np.eye(cells.num_features, k=1)
    if kind == "rotated":
        mixing = np.linalg.qr(np.random.default_rng(1).normal(size=mixing.shape))[0]
    features = Features(cells.matrix.toarray() @ mixing).normalised(grid_problem.world)
    exact = jm.solve(grid_problem, jm.ReducedProgram(features)).reduced
    assert np.linalg.norm(exact.coefficients) > 1.2 * features.mixture_radius(grid_problem.world)
    solver = StochasticPrimalDual(features, checkpoint=tmp_path / "state.npz")
    answer = jm.solve(grid_problem, solver)
    found = answer.reduced
    assert answer.status is jm.Status.CONVERGED
    assert found.loss_lower_bound <= exact.loss + 1e-9 <= found.loss + 2e-9
    assert found.radius >= 2 * np.linalg.norm(found.coefficients)
    bound = reduced_lower_bound(found.surrogate, found.witness, found.radius)
    assert found.loss_lower_bound == pytest.approx(bound, rel=1e-12)
    held = jm.solve(grid_problem, replace(solver, radius=1.0, checkpoint=None)).reduced
    assert held.radius == 1.0  # a ball that is given stays as it is
    assert held.loss > 1.1 * exact.loss
    again = jm.solve(grid_problem, solver)
    assert same(answer, again)


def test_a_loss_without_end_is_reported_as_such():
    problem = random_problem(4, jm.Simplex(), num_costs=3)
    features, penalty = some_features(problem), jm.solvers.SinglePenalty(1e-3)
    program = jm.solve(problem, jm.ReducedProgram(features, penalty))
    answer = jm.solve(problem, StochasticPrimalDual(features, penalty))
    assert program.status is answer.status is jm.Status.UNBOUNDED
    held = jm.solve(problem, StochasticPrimalDual(features, penalty, radius=2.0))
    assert held.status is jm.Status.CONVERGED


def test_progress_has_both_bounds_and_the_trace_is_monotone(grid_problem, grid_features):
    events = []
    answer = jm.solve(grid_problem, StochasticPrimalDual(grid_features), observer=events.append)
    assert answer.status is jm.Status.CONVERGED
    for event in events:
        assert event.lower_bound <= event.objective
    trace = answer.optimisation.trace
    assert [point.step for point in trace] == sorted({point.step for point in trace})
    assert all(b.loss <= a.loss for a, b in pairwise(trace))
    assert all(b.bound >= a.bound for a, b in pairwise(trace))
    penalties, last = answer.reduced.surrogate.penalties, trace[-1]
    parts = last.matching + penalties.pairs * last.negativity + penalties.flow * last.flow
    assert last.loss == pytest.approx(parts)
    assert "the error is at most" in str(answer.optimisation)
    assert answer.optimisation.regret_bound == pytest.approx(answer.reduced.optimisation_error)


def test_worlds_of_callables_are_solved_on_drawn_rows():
    kit = made()
    costs = jm.CostFunctions(
        lambda x, a: np.column_stack([x / 6, 1.0 * a, x > 3]), ["height", "effort", "top"],
        lowest=0, highest=1,
    )  # fmt: skip
    problem = jm.Apprenticeship(kit["world"], costs, jm.ExpertExpectation([4.0, 9.0, 3.0]))
    solver = StochasticPrimalDual(kit["features"], num_rows=2000, fresh_rows=2000)
    one, again = (jm.solve(problem, solver, seed=2) for _ in range(2))
    assert one.status is jm.Status.CONVERGED
    assert np.array_equal(one.reduced.coefficients, again.reduced.coefficients)
    program = jm.solve(
        problem, jm.solvers.SampledProgram(kit["features"], seed=2, num_rows=2000, fresh_rows=2000)
    )
    assert one.reduced.is_estimate
    assert one.reduced.sampled_loss == pytest.approx(
        program.reduced.sampled_loss, abs=0.02 * problem.gap_scale
    )


def test_steps_that_explode_are_noticed(grid_problem, grid_features):
    solver = StochasticPrimalDual(grid_features, epochs=20, accuracy=0.0)
    surrogate = Surrogate(Reduced(grid_problem, grid_features))
    run = module._Run(solver, surrogate, Watch("test", silent))
    run.omega = 1e308
    with np.errstate(all="ignore"):
        status = run.go_on()
    assert status in (jm.Status.NOT_FINITE, jm.Status.STEP_LIMIT)
    answer = run.answer(status)
    assert np.isfinite(answer.reduced.coefficients).all()
    assert answer.reduced.loss_lower_bound <= answer.reduced.loss


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"features": np.ones((4, 2))}, "features = array"),
        ({"penalty": 3.0}, "penalty = 3"),
        ({"epochs": 0}, "epochs = 0"),
        ({"radius": -1.0}, "radius = -1"),
        ({"accuracy": float("nan")}, "accuracy"),
        ({"seed": -1}, "seed = -1"),
        ({"num_rows": 0}, "num_rows = 0"),
        ({"fresh_rows": 1}, "fresh_rows = 1"),
        ({"checkpoint_every": 0.0}, "checkpoint_every = 0"),
    ],
)
def test_wrong_settings_are_refused(grid_features, wrong, message):
    with pytest.raises(jm.errors.InvalidSolver, match=message):
        StochasticPrimalDual(**{"features": grid_features} | wrong)
