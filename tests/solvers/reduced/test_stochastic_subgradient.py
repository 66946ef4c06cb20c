"""SGD-AL: the steps of the paper, honest figures, and the same answer however it is run."""

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import journeyman as jm
from journeyman.features import Features, occupancies, partition
from journeyman.problem.reduced import ExactPenalty, Reduced, SinglePenalty, UniformRows
from journeyman.problem.surrogate import Surrogate
from journeyman.runs.learning import step_of
from journeyman.solvers.reduced import dual_repair, kernels, plain_descent, rows
from journeyman.solvers.reduced import stochastic_subgradient as module
from journeyman.solvers.reduced.descent import SubgradientSteps
from journeyman.solvers.reduced.dual_repair import DualRepair
from journeyman.solvers.reduced.plain_descent import Motion
from journeyman.solvers.reduced.rows import Alias
from journeyman.solvers.reduced.solution import hopeless
from journeyman.solvers.reduced.step_rules import (
    REGRET,
    WEIGHT,
    Constant,
    CoordinateAdaptive,
    DualAveraging,
    InverseRoot,
    NormAdaptive,
)
from journeyman.solvers.reduced.stochastic_subgradient import StochasticSubgradient
from journeyman.solvers.running import Watch
from journeyman.testing import Shape, random_problem

GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "golden.json").read_text())
RULES = [Constant(), InverseRoot(), NormAdaptive(), CoordinateAdaptive(), DualAveraging()]
CLASSES = [jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()]


LOOPS = [plain_descent.advance, kernels.advance]


def named(value):
    return type(value).__name__


@pytest.fixture(autouse=True)
def few_plain_steps(monkeypatch):
    """Runs cross from one loop to the other."""
    monkeypatch.setattr(plain_descent, "PLAIN_STEPS", 1500)


def silent(_event):
    pass


@pytest.fixture(scope="module")
def grid_problem():
    world, basis, expert = jm.gallery.grid(8, macro_cells=2)
    demos = jm.record(world, expert, trajectories=100, horizon=100, seed=0)
    return jm.Apprenticeship(world, basis, demos)


@pytest.fixture(scope="module")
def grid_features(grid_problem):
    return partition(grid_problem.world, grid_problem.demonstrations, num_cells=16)


def same(one, other):
    return (
        np.array_equal(one.reduced.coefficients, other.reduced.coefficients)
        and one.reduced.loss == other.reduced.loss
        and one.reduced.loss_lower_bound == other.reduced.loss_lower_bound
        and one.optimisation.realised_regret == other.optimisation.realised_regret
    )


@pytest.mark.parametrize("advance", LOOPS)
def test_the_golden_trace(advance):
    data, golden = GOLDEN["data"], GOLDEN["sgd_trace"]
    world = jm.World(data["P"], data["nu0"], data["gamma"])
    problem = jm.Apprenticeship(
        world, jm.CostBasis(data["Psi"]), jm.ExpertExpectation(data["e_hat"])
    )
    solver = StochasticSubgradient(
        Features(data["Phi"]), SinglePenalty(golden["lam"]), UniformRows(),
        Constant(rate=golden["eta"]), batch=1, average_power=0.0, radius=golden["rho"], steps=5,
    )  # fmt: skip
    surrogate = Surrogate(Reduced(problem, solver.features), solver.penalty, solver.sampling)
    run = module._Run(solver, surrogate, Watch("test", silent))
    source, iterate, exact = run.state.source, run.state.iterate, run.descent.steps.exact
    positions = [np.array(golden[key]) for key in ("samples_s", "samples_y")]
    advance(0, *positions, source.pairs, source.flow, exact, run.motion, iterate)
    assert iterate.theta == pytest.approx(golden["theta_6"], abs=1e-12)
    average = iterate.weighted_theta / iterate.totals[WEIGHT]
    assert average == pytest.approx(golden["theta_hat"], abs=1e-12)
    regret = iterate.totals[REGRET] + np.linalg.norm(iterate.weighted_gradient)
    assert regret == pytest.approx(golden["realised_regret"], abs=1e-10)


@pytest.mark.parametrize("cost_class", CLASSES, ids=named)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("budgets", [0, 2])
@pytest.mark.parametrize("advance", LOOPS)
def test_a_step_follows_the_sampled_subgradient(cost_class, sparse, budgets, advance):
    problem = random_problem(3, cost_class, shape=Shape.SPARSE, num_budgets=budgets)
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(problem.world.num_pairs, 4)) * (rng.random((1, 4)) + 0.5)
    columns[rng.random(columns.shape) < 0.4] = 0.0
    features = Features(csr_array(columns) if sparse else columns)
    rate, batch, count = 1e-3, 3, 40
    solver = StochasticSubgradient(
        features, ExactPenalty(slack=1.0), step_rule=Constant(rate), batch=batch, average_power=1.0
    )
    surrogate = Surrogate(Reduced(problem, features), solver.penalty)
    run = module._Run(solver, surrogate, Watch("test", silent))
    source, iterate, exact = run.state.source, run.state.iterate, run.descent.steps.exact
    pairs, states = source.positions(np.random.default_rng(1), count * batch)
    advance(0, pairs, states, source.pairs, source.flow, exact, run.motion, iterate)
    theta, average = np.zeros(4), np.zeros(4)
    for t in range(count):
        average += (t + 1) * theta
        drawn = range(t * batch, (t + 1) * batch)
        slope = np.mean(
            [surrogate.sampled_subgradient(theta, pairs[k], states[k]) for k in drawn], axis=0
        )
        theta = theta - rate * slope
        theta *= min(1.0, run.radius / np.linalg.norm(theta))
    assert iterate.theta == pytest.approx(theta, rel=1e-9, abs=1e-12)
    assert iterate.weighted_theta == pytest.approx(average, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("cost_class", [*CLASSES, jm.L1Ball()], ids=named)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("rule", RULES, ids=named)
def test_both_loops_take_the_same_steps(cost_class, sparse, rule, monkeypatch):
    """With everything that they count; pieces of rows that are copied together end anywhere."""
    problem = random_problem(4, cost_class, num_budgets=1)
    rng = np.random.default_rng(1)
    columns = rng.random((problem.world.num_pairs, 5)) * (rng.random((1, 5)) + 0.5)
    columns[rng.random(columns.shape) < 0.3] = 0.0
    features = Features(csr_array(columns) if sparse else columns)
    solver = StochasticSubgradient(
        features, ExactPenalty(slack=1.0), step_rule=rule, batch=4, nonnegative=sparse, steps=90
    )
    surrogate = Surrogate(Reduced(problem, features), solver.penalty)
    monkeypatch.setattr(plain_descent, "PLAIN_NUMBERS", 7 * 4 * 5)
    found = []
    for steps in (0, 30, 90):
        monkeypatch.setattr(plain_descent, "PLAIN_STEPS", steps)
        run = module._Run(solver, surrogate, Watch("test", silent))
        run.descent.steps.take(run.state, 90)
        found.append(run.state)
    for other in found[1:]:
        assert other.step == 90
        arrays, others = found[0].packed[0], other.packed[0]
        for name, part in arrays.items():
            if not name.startswith("matched"):
                assert others[name] == pytest.approx(part, rel=1e-7, abs=1e-9), name


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_every_rule_lowers_the_loss_and_its_figures_hold(grid_problem, grid_features, rule):
    solver = StochasticSubgradient(grid_features, step_rule=rule, steps=4000, accuracy=0.0)
    answer = jm.solve(grid_problem, solver)
    surrogate = answer.reduced.surrogate
    assert answer.status is jm.Status.STEP_LIMIT
    assert answer.reduced.loss < surrogate.value(np.zeros(grid_features.num_features))
    assert answer.reduced.loss == surrogate.value(answer.reduced.coefficients)
    assert answer.value <= answer.reduced.loss + 1e-9 * grid_problem.gap_scale
    assert answer.reduced.loss_lower_bound <= answer.reduced.loss
    assert np.linalg.norm(answer.reduced.coefficients) <= 1 + 1e-12


@pytest.mark.parametrize("cost_class", CLASSES, ids=named)
def test_it_converges_and_proves_it(grid_problem, grid_features, cost_class):
    problem = jm.Apprenticeship(
        grid_problem.world, grid_problem.basis, grid_problem.demonstrations, cost_class
    )
    answer = jm.solve(problem, StochasticSubgradient(grid_features))
    assert answer.status is jm.Status.CONVERGED
    wanted = max(0.05 * answer.reduced.loss, 0.0025 * problem.gap_scale)
    assert answer.reduced.optimisation_error <= wanted
    uniform = problem.gap(jm.Policy.uniform(problem.world))
    assert answer.value < 0.5 * uniform


def test_the_trace_tells_the_story(grid_problem, grid_features):
    answer = jm.solve(grid_problem, StochasticSubgradient(grid_features, steps=9000, accuracy=0.0))
    trace = answer.optimisation.trace
    assert [point.step for point in trace] == [2000, 2500, 3125, 3906, 4882, 6102, 7627, 9000]
    penalties = answer.reduced.surrogate.penalties
    for point in trace:
        parts = point.matching + penalties.pairs * point.negativity + penalties.flow * point.flow
        assert point.loss == pytest.approx(parts)
        assert point.bound <= point.loss
    assert "vacuous" in str(answer.optimisation)
    assert answer.optimisation.is_vacuous


@pytest.mark.parametrize("block", [1, 7, 100, 10**6])
def test_the_block_size_does_not_change_the_answer(monkeypatch, grid_problem, grid_features, block):
    solver = StochasticSubgradient(grid_features, steps=600, seed=3)
    whole = jm.solve(grid_problem, solver)
    monkeypatch.setattr(rows, "BLOCK", block)
    assert same(jm.solve(grid_problem, solver), whole)


def test_the_seed_decides(grid_problem, grid_features):
    solver = StochasticSubgradient(grid_features, steps=300)
    first, again, other = (jm.solve(grid_problem, solver, seed=seed) for seed in (1, 1, 2))
    assert same(first, again)
    assert not same(first, other)


@pytest.mark.parametrize("rule", RULES[1:], ids=named)
def test_a_run_in_pieces_is_the_run_in_one(tmp_path, grid_problem, grid_features, rule):
    solver = StochasticSubgradient(grid_features, step_rule=rule, steps=5000, accuracy=0.0)
    whole = jm.solve(grid_problem, solver)
    pieces = replace(solver, checkpoint=tmp_path / "state.npz")
    for steps in (700, 2600, 2601, 5000):
        answer = jm.solve(grid_problem, replace(pieces, steps=steps))
    assert same(answer, whole)


@pytest.mark.parametrize("rule", [Constant(), InverseRoot()], ids=named)
@pytest.mark.parametrize("power", [0.0, 2.0])
def test_the_incremental_form_takes_the_same_steps(
    monkeypatch, tmp_path, grid_problem, grid_features, rule, power
):
    dense = Features(grid_features.matrix.toarray())
    solver = StochasticSubgradient(
        dense, step_rule=rule, batch=1, average_power=power, steps=12_000, accuracy=0.0
    )
    incremental = jm.solve(grid_problem, solver)
    resumable = replace(solver, checkpoint=tmp_path / "state.npz")
    if isinstance(rule, InverseRoot):
        jm.solve(grid_problem, replace(resumable, steps=5001))
        assert same(jm.solve(grid_problem, resumable), incremental)
    monkeypatch.setattr(SubgradientSteps, "_is_incremental", lambda self, source: False)
    plain = jm.solve(grid_problem, solver)
    for name in ("coefficients", "loss", "loss_lower_bound"):
        expected = getattr(plain.reduced, name)
        assert getattr(incremental.reduced, name) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert incremental.optimisation.realised_regret == pytest.approx(
        plain.optimisation.realised_regret, rel=1e-9
    )


def test_a_run_that_had_converged_is_not_continued(tmp_path, grid_problem, grid_features):
    solver = StochasticSubgradient(
        grid_features, steps=200_000, accuracy=2.0, checkpoint=tmp_path / "state.npz"
    )
    first, again = (jm.solve(grid_problem, solver) for _ in range(2))
    assert first.status is again.status is jm.Status.CONVERGED
    assert same(first, again)


def test_a_checkpoint_of_another_run_is_refused(tmp_path, grid_problem, grid_features):
    solver = StochasticSubgradient(grid_features, steps=300, checkpoint=tmp_path / "state.npz")
    jm.solve(grid_problem, solver)
    with pytest.raises(jm.errors.InvalidFile, match="another run"):
        jm.solve(grid_problem, replace(solver, batch=16))
    with pytest.raises(jm.errors.InvalidFile, match="another run"):
        jm.solve(grid_problem, solver, seed=1)


@pytest.mark.parametrize("cells", [4, 64])
def test_how_a_run_is_cut_changes_no_bit(tmp_path, cells):
    """Also where weights of the average are rounded, in the loop by NumPy and the compiled one."""
    world, basis, expert = jm.gallery.grid(8)
    demos = jm.record(world, expert, trajectories=50, horizon=60, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    features = jm.features.partition(world, demos, num_cells=cells)
    assert (features.num_features <= plain_descent.PLAIN_FEATURES) == (cells == 4)
    solver = StochasticSubgradient(features, steps=1500, accuracy=0.0, average_power=0.5)
    resumable = replace(solver, checkpoint=tmp_path / "state.npz")
    jm.solve(problem, replace(resumable, steps=701))
    whole, resumed = jm.solve(problem, solver), jm.solve(problem, resumable)
    assert same(resumed, whole)
    for name in ("flow_signs", "negative_pairs"):
        assert np.array_equal(*(getattr(one.reduced.witness, name) for one in (whole, resumed)))


def test_interrupted_it_keeps_its_state(tmp_path, grid_problem, grid_features):
    solver = StochasticSubgradient(grid_features, steps=20_000, accuracy=0.0)
    resumable = replace(solver, checkpoint=tmp_path / "state.npz")

    def interrupt(event):
        if event.iteration > 5000:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = jm.solve(grid_problem, resumable, observer=interrupt)
    assert stopped.status is jm.Status.INTERRUPTED
    assert 5000 < stopped.optimisation.steps < 20_000
    assert stopped.reduced.loss_lower_bound <= stopped.reduced.loss
    assert same(jm.solve(grid_problem, resumable), jm.solve(grid_problem, solver))


def test_a_time_limit_ends_with_a_policy(grid_problem, grid_features):
    answer = jm.solve(grid_problem, StochasticSubgradient(grid_features, time_limit=1e-3))
    assert answer.status is jm.Status.TIME_LIMIT
    assert answer.value >= answer.lower_bound


def test_steps_that_explode_are_noticed(grid_problem, grid_features):
    solver = StochasticSubgradient(
        grid_features, step_rule=Constant(rate=1e308), radius=1e200, steps=3000
    )
    with np.errstate(over="ignore", invalid="ignore"):
        answer = jm.solve(grid_problem, solver)
    assert answer.status is jm.Status.NOT_FINITE


def test_nonnegative_coefficients_have_no_negativity(grid_problem, grid_features):
    solver = StochasticSubgradient(grid_features, nonnegative=True, steps=4000, accuracy=0.0)
    answer = jm.solve(grid_problem, solver)
    assert (answer.reduced.coefficients >= 0).all()
    assert answer.optimisation.trace[-1].negativity == 0.0


def test_a_forward_problem_finds_a_cheap_policy():
    world, basis, _ = jm.gallery.garnet(20, 3, 3, num_costs=1, seed=2)
    cost = basis.matrix[:, 0]
    best = jm.plan(world, cost)
    policies = [best.policy, jm.Policy.uniform(world)]
    problem = jm.Forward(world, cost)
    answer = jm.solve(problem, StochasticSubgradient(occupancies(world, policies)))
    least = float(world.initial @ best.values)
    assert answer.value <= least + 0.02 * problem.gap_scale


def test_alias_tables_hold_the_law_exactly():
    law = np.array([0.0, 0.5, 0.1, 0.15, 0.25, 0.0])
    alias = Alias.of(law)
    held = np.zeros(law.size)
    for cell in range(law.size):
        held[cell] += alias.keep[cell] / law.size
        held[alias.other[cell]] += (1 - alias.keep[cell]) / law.size
    assert held == pytest.approx(law, abs=1e-15)
    grid = (np.arange(6000) + 0.5) / 6000
    assert np.bincount(alias.draw(grid), minlength=6) / 6000 == pytest.approx(law, abs=1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"features": np.ones((4, 2))}, "features = array"),
        ({"batch": 0}, "batch = 0"),
        ({"steps": 1.5}, "steps = 1.5"),
        ({"radius": -1.0}, "radius = -1"),
        ({"average_power": -1.0}, "average_power"),
        ({"accuracy": -0.1}, "accuracy"),
        ({"seed": -1}, "seed = -1"),
        ({"replicas": 0}, "replicas = 0"),
        ({"checkpoint_every": 0.0}, "checkpoint_every = 0"),
    ],
)
def test_wrong_settings_are_refused(grid_features, wrong, message):
    with pytest.raises(jm.errors.InvalidSolver, match=message):
        StochasticSubgradient(**{"features": grid_features} | wrong)


def test_the_state_is_written_between_evaluations_when_that_is_asked_for(
    tmp_path, grid_problem, grid_features
):
    """Evaluations are 5 to 10 thousand steps apart by then; states are written at every stride."""
    path = tmp_path / "state.npz"
    solver = StochasticSubgradient(grid_features, steps=40_000, accuracy=0.0, checkpoint=path)
    written: dict[float | None, set[int]] = {None: set(), 1e-9: set()}
    for every, states in written.items():
        path.unlink(missing_ok=True)

        def look(_, states=states):
            if path.exists():
                states.add(path.stat().st_mtime_ns)

        pieces = jm.solve(grid_problem, replace(solver, checkpoint_every=every), observer=look)
    assert len(written[1e-9]) > len(written[None]) + 5
    assert same(pieces, jm.solve(grid_problem, replace(solver, checkpoint=None)))


def test_a_state_written_between_evaluations_leads_to_the_same_bits(
    tmp_path, grid_problem, grid_features
):
    path, kept = tmp_path / "state.npz", tmp_path / "kept.npz"
    solver = StochasticSubgradient(
        grid_features, steps=30_000, accuracy=0.0, checkpoint=path, checkpoint_every=1e-9
    )

    def keep(event):
        step = step_of(path) if event.iteration > 20_000 and not kept.exists() else None
        if step is not None and module.Schedule().after(step - 1) != step:
            kept.write_bytes(path.read_bytes())

    whole = jm.solve(grid_problem, solver, observer=keep)
    step = step_of(kept)
    assert step is not None
    assert step not in [point.step for point in whole.optimisation.trace]
    assert same(jm.solve(grid_problem, replace(solver, checkpoint=kept)), whole)


@pytest.fixture(scope="module")
def wild_features(grid_problem):
    """Columns of random signs: none of their combinations is much of a measure."""
    world = grid_problem.world
    columns = np.random.default_rng(0).normal(size=(world.num_pairs, 5))
    return jm.features.Features(columns).normalised(world)


def test_hopeless_features_are_called_hopeless(grid_problem, wild_features, grid_features):
    """Their least loss is that of no features at all."""
    solver = StochasticSubgradient(wild_features, steps=4000)
    answer = jm.solve(grid_problem, solver)
    assert answer.reduced.loss >= 0.999 * grid_problem.trivial_bound
    for words in (answer.advice, repr(answer)):
        assert "features are hopeless" in words
        assert f"{grid_problem.trivial_bound:.4g}" in words
        assert "jm.features.partition(world, demonstrations" in words
        assert "jm.ReducedProgram(features)" in words
    least = jm.solve(grid_problem, jm.ReducedProgram(wild_features))
    assert "no coefficients have a loss below" in least.advice
    assert jm.solve(grid_problem, replace(solver, features=grid_features)).advice == ""


@pytest.mark.parametrize(
    ("loss", "least", "words"),
    [
        (39.0, 0.0, ""),
        (39.99, 39.0, "between 39 and 39.99"),
        (50.0, -3.0, "between 0 and 50"),
        (50.0, 45.0, "no coefficients have a loss below 45"),
    ],
)
def test_what_is_said_about_a_loss(loss, least, words):
    found = hopeless(loss, least, 40.0)
    assert (words in found) if words else found == ""
    assert hopeless(0.0, 0.0, 0.0) == ""


def test_proofs_are_spaced_by_what_they_cost():
    """Each is made at an evaluation, `between` steps after the last, however the run is cut."""
    evaluations = [module.Schedule().after(0)]
    while evaluations[-1] < 3_000_000:
        evaluations.append(module.Schedule().after(evaluations[-1]))
    for between in (0, 1, 3000, 50_000, 10**6):
        proven = [step for step in evaluations if module.last_proof(step, between) == step]
        assert all(b - a >= between for a, b in zip([0, *proven], proven, strict=False))
        assert len(proven) >= len(evaluations) if between <= 1 else len(proven) > 0
    assert module.last_proof(0, 0) == 0
    assert module.last_proof(evaluations[3] + 1, 0) == evaluations[3]


def test_many_features_are_proven_at_fewer_steps(grid_problem):
    world = grid_problem.world
    motion = Motion(32, 0, 1.0, 1.0, False, 2.0)
    between = []
    for count in (8, 64, 512):
        columns = np.random.default_rng(0).random((world.num_pairs, count))
        reduced = Reduced(grid_problem, jm.features.Features(columns).normalised(world))
        surrogate = Surrogate(reduced, jm.ExactPenalty(), jm.solvers.RowNorms())
        seconds = module.seconds_of_step(surrogate, motion)
        between.append(module.steps_between_proofs(DualRepair(surrogate, 1.0), seconds))
    assert between[0] < 2000 < between[2]
    assert between[0] < between[1] < between[2]


def test_a_limit_holds_while_the_dual_point_is_repaired(grid_problem, grid_features, monkeypatch):
    """A repair that takes for ever ends with the limit, and what was proven before is kept."""
    solver = StochasticSubgradient(grid_features, accuracy=0.0, time_limit=1.0)
    step = dual_repair._affine_step

    def slowly(*arguments):
        time.sleep(0.2)
        found, _ = step(*arguments)
        return found, 0.1

    jm.solve(grid_problem, replace(solver, steps=1, time_limit=None))
    monkeypatch.setattr(dual_repair, "_affine_step", slowly)
    started = time.perf_counter()
    answer = jm.solve(grid_problem, solver)
    assert answer.status is jm.Status.TIME_LIMIT
    assert time.perf_counter() - started < 3.0


def test_a_stopped_run_keeps_the_best_proof(grid_problem, grid_features):
    whole = jm.solve(grid_problem, StochasticSubgradient(grid_features, steps=10_000, accuracy=0.0))
    seen = []

    def stop(event):
        seen.append(event.lower_bound or 0.0)
        if event.iteration >= 10_000:
            signal.raise_signal(signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        stopped = jm.solve(
            grid_problem, StochasticSubgradient(grid_features, accuracy=0.0), observer=stop
        )
    finally:
        signal.signal(signal.SIGINT, handler)
    assert stopped.status is jm.Status.INTERRUPTED
    assert stopped.reduced.loss_lower_bound >= max(seen)
    assert stopped.reduced.loss_lower_bound >= 0.9 * whole.reduced.loss_lower_bound


def test_a_proof_that_a_limit_cuts_short_is_made_again(
    tmp_path, grid_problem, grid_features, monkeypatch
):
    """The trace of a run in pieces is that of one in one piece, wherever its time was over."""
    path = tmp_path / "state.npz"
    solver = StochasticSubgradient(grid_features, steps=12_000, accuracy=0.0)
    whole = jm.solve(grid_problem, solver)
    step, calls = dual_repair._affine_step, []

    def slow(*arguments):
        calls.append(None)
        time.sleep(1.0 if len(calls) == 1 else 0.0)
        return step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(dual_repair, "_affine_step", slow)
        piece = jm.solve(grid_problem, replace(solver, checkpoint=path, time_limit=0.9))
    assert piece.status is jm.Status.TIME_LIMIT
    assert 0 < piece.work.iterations < 12_000
    resumed = jm.solve(grid_problem, replace(solver, checkpoint=path))
    assert same(resumed, whole)
    assert [point.bound for point in resumed.optimisation.trace] == [
        point.bound for point in whole.optimisation.trace
    ]
