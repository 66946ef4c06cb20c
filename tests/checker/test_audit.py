"""The audit passes on honest runs, whatever they hold, and only on them."""

import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from checker.forging import change_arrays, rehash
from class_examples import NAMES as EXAMPLES
from class_examples import example
from journeyman.certificate.betting import start_evidence, step_evidence
from journeyman.certificate.expert_estimates import expert_estimates, stopped_shaping
from journeyman.certificate.saving import save_run
from journeyman.checker.inputs import read_records, read_world
from journeyman.checker.premise_claims import Draws, starts_evidence, steps_evidence
from journeyman.costs import Polytope
from journeyman.errors import AuditFailed, InvalidFile
from journeyman.report.saved_run import read_run
from journeyman.solvers.reduced.reduced_program import ReducedProgram
from journeyman.testing.random_worlds import Shape, random_policy, random_world
from journeyman.testing.strategies import cost_classes, policies, problems, seeds, worlds

CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]
every_class = pytest.mark.parametrize("kind", CLASSES)


def audited(certificate, place):
    save_run(certificate, place, seeds={"solver": 0})
    return jm.audit(place).require()


def grid_demonstrations(count, size=4):
    world, basis, expert = jm.gallery.grid(size)
    return world, basis, jm.record(world, expert, trajectories=count, horizon=30, seed=3)


@every_class
@pytest.mark.parametrize("count", [1, 2, 15, 40, 520])
def test_learned_runs_pass(kind, count, tmp_path):
    """One demonstration has no variance; there are shaped estimates from 21 on."""
    world, basis, demos = grid_demonstrations(count)
    apprentice = jm.learn(world, basis, demos, cost_class=kind(), seed=5)
    apprentice.save(tmp_path / "run")
    outcome = jm.audit(tmp_path / "run").require()
    assert outcome.passed
    assert outcome.checked > 100
    names = [way.estimate for way in apprentice.certificate.combinations]
    assert ("control variate" in names) == (count > 20)


@every_class
def test_declared_expectations_and_budgets_pass(kind, tmp_path):
    world, basis, demos = grid_demonstrations(50)
    declared = jm.ExpertExpectation.from_demonstrations(demos, basis, world).values
    wear = np.linspace(0, 1, world.num_pairs)
    budgets = [
        jm.Budget(wear, 0.6 * world.effective_horizon, name="wear"),
        jm.Budget(np.ones((world.num_states, 4)), 30.0, name="time"),
        jm.Budget(np.linspace(-1, 1, world.num_states), 5.0, name="place"),
    ]
    problem = jm.Apprenticeship(
        world, basis, jm.ExpertExpectation(declared), kind(np.full(basis.num_costs, 0.5)), budgets
    )
    certificate = jm.certify(problem, jm.solve(problem, jm.LinearProgram()))
    assert audited(certificate, tmp_path).passed
    assert len(certificate.budgets) == 3


@every_class
def test_measures_of_features_pass(kind, tmp_path):
    """Kinds A, B, B' and C."""
    world, basis, demos = grid_demonstrations(60, size=5)
    solver = ReducedProgram(jm.features.partition(world, demos, num_cells=4))
    apprentice = jm.learn(world, basis, demos, cost_class=kind(), solver=solver)
    kinds = {way.kind for way in apprentice.certificate.combinations}
    assert kinds == {"A", "B", "B'", "C", "D"}
    apprentice.save(tmp_path)
    assert jm.audit(tmp_path).require().passed


def test_terminated_and_truncated_records_pass(tmp_path):
    """One absorbing state has a known tail, the other costs differently under its two actions."""
    rows = [[0, 0.4, 0.3, 0.3], [0.5, 0, 0.3, 0.2], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    rows.insert(1, [0.2, 0.2, 0.3, 0.3])
    offsets = [0, 2, 3, 4, 6]
    world = jm.World(rows, [0.7, 0.3, 0, 0], 0.9, choice_offsets=offsets)
    basis = jm.CostBasis([[1, 0], [0.5, 0.2], [0, 1], [0.3, 0.3], [0.1, 0.9], [0.9, 0.9]])
    for count in (30, 600):
        demos = jm.record(world, random_policy(world, 1), trajectories=count, horizon=4, seed=2)
        ended = world.absorbing[demos.last_states]
        marked = jm.Demonstrations(demos.states, demos.actions, demos.offsets, ended)
        assert 0 < ended.sum() < count
        apprentice = jm.learn(world, basis, marked)
        apprentice.save(tmp_path)
        assert jm.audit(tmp_path).require().passed


@pytest.mark.parametrize("shape", Shape)
@every_class
def test_bases_of_every_form_pass(kind, shape, tmp_path):
    """Sparse, per state, rewards, a constant cost; estimates of every kind; single start states."""
    world = random_world(7, shape, num_states=6, discount=0.95)
    rng = np.random.default_rng(0)
    for number, rows in enumerate((world.num_pairs, world.num_states)):
        table = rng.uniform(-1, 1, (rows, 3))
        table[:, 1] = 0.7
        if number:
            table = sparse.csr_array(table * (rng.random(table.shape) < 0.6))
        make = jm.CostBasis.from_rewards if number else jm.CostBasis
        demos = jm.record(world, random_policy(world, 3), trajectories=520, horizon=8, seed=4)
        basis = make(table)
        chosen = kind(rng.uniform(0.2, 2, 3))
        plain = (
            jm.demonstrations.MonteCarlo()
            if number
            else jm.demonstrations.MonteCarlo(completed=True, smoothing=0.3)
        )
        for method in (
            plain,
            jm.demonstrations.ControlVariate(3, 0.4) if number else jm.demonstrations.Blend(4, 0.2),
        ):
            expert = jm.ExpertExpectation.from_demonstrations(demos, basis, world, method=method)
            problem = jm.Apprenticeship(world, basis, expert, chosen)
            assert audited(jm.certify(problem, jm.clone(demos, world)), tmp_path).passed


@every_class
@pytest.mark.parametrize("seed", [0, 1])
def test_targets_that_were_moved_into_reach_pass(kind, seed, tmp_path):
    """Three lucky records of a world where little can be chosen."""
    rng = np.random.default_rng(seed)
    common, own = rng.dirichlet(np.full(5, 0.3), size=5), rng.dirichlet(np.ones(5), size=10)
    world = jm.World(0.95 * common.repeat(2, axis=0) + 0.05 * own, np.eye(5)[0], 0.9)
    basis = jm.CostBasis(np.eye(5))
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=3, horizon=20, seed=seed)
    for method in (jm.demonstrations.Blend(), jm.demonstrations.MonteCarlo(completed=True)):
        expert = jm.ExpertExpectation.from_demonstrations(demos, basis, world, method=method)
        free = method.totals(demos, basis.on(world), world).mean(axis=0)
        assert np.abs(free - expert.values).max() > 1e-3
        problem = jm.Apprenticeship(world, basis, expert, kind())
        audited(jm.certify(problem, jm.clone(demos, world)), tmp_path)


@every_class
def test_a_target_of_stopped_shaped_totals_passes(kind, tmp_path):
    world, basis, demos = grid_demonstrations(150, size=5)
    plain = jm.Apprenticeship(world, basis, demos, kind())
    expert = stopped_shaping(plain, expert_estimates(plain, 0.05))
    problem = jm.Apprenticeship(world, basis, expert, kind())
    assert audited(jm.certify(problem, jm.solve(problem)), tmp_path).passed
    read = read_run(tmp_path).certificate.problem
    assert (read.target == problem.target).all()


@every_class
def test_what_is_only_rounding_does_not_disturb(kind, tmp_path):
    """A deterministic world and expert: the shaped totals differ by rounding alone."""
    rows = np.eye(5)[[1, 0, 2, 1, 3, 2, 4, 3, 0, 4]]
    world = jm.World(rows, np.eye(5)[0], 0.9)
    expert = jm.Policy(np.tile([1.0, 0.0], (5, 1)))
    basis = jm.CostBasis(np.random.default_rng(1).uniform(0, 1, (10, 2)))
    demos = jm.record(world, expert, trajectories=600, horizon=80, seed=0)
    apprentice = jm.learn(world, basis, demos, cost_class=kind())
    apprentice.save(tmp_path)
    assert jm.audit(tmp_path).require().passed


def test_ties_between_radii_and_between_centrings_pass(tmp_path):
    """With one cost two radii are equal, with these two the centred costs are as large."""
    world, _, demos = grid_demonstrations(30)
    for table in ([[0.3, 0.0], [0.0, 0.3]] * 8, [[0.1], [0.7]] * 8):
        apprentice = jm.learn(world, jm.CostBasis(table), demos)
        apprentice.save(tmp_path)
        assert jm.audit(tmp_path).require().passed


def test_a_forward_problem_passes(tmp_path):
    world = random_world(2, num_states=5)
    cost = np.linspace(0, 1, world.num_pairs)
    problem = jm.Forward(world, cost, jm.Budget(1 - cost, 0.8 * world.effective_horizon))
    assert audited(jm.certify(problem, jm.solve(problem)), tmp_path).passed


def test_a_larger_world_passes(tmp_path):
    """Beyond dense systems the auditor iterates."""
    world, basis, expert = jm.gallery.garnet(1500, seed=1)
    demos = jm.record(world, expert, trajectories=60, horizon=60, seed=2)
    problem = jm.Apprenticeship(world, basis, demos)
    assert audited(jm.certify(problem, jm.clone(demos, world)), tmp_path).passed


def test_a_run_whose_premise_failed_passes_and_says_so(tmp_path):
    """The certificate is true: it says that nothing is certified."""
    world = jm.World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9)
    demos = jm.Demonstrations([0, 0] * 30, [0] * 30, range(31))
    problem = jm.Apprenticeship(world, jm.CostBasis([[0], [1]]), demos)
    certificate = jm.certify(problem, jm.Policy([[1.0], [1.0]]))
    assert not certificate.valid
    assert audited(certificate, tmp_path).passed
    beside = jm.Demonstrations([1, 0], [0], [0, 1])
    certificate = jm.certify(
        jm.Apprenticeship(world, jm.CostBasis([[0], [1]]), beside), jm.Policy([[1.0], [1.0]])
    )
    assert not certificate.valid
    assert audited(certificate, tmp_path).passed


@settings(max_examples=30)
@given(problems(), st.data())
def test_random_problems_pass(tmp_path_factory, problem, data):
    """Every shape, class, scale and discount, with budgets, and with a measure or without."""
    policy, rng = data.draw(policies(problem.world)), np.random.default_rng(data.draw(seeds))
    measure = None
    if data.draw(st.booleans()):
        measure = rng.normal(size=problem.world.num_pairs) * 10.0 ** rng.integers(-3, 3)
        policy = jm.policy.extract(problem.world, measure)
    certificate = jm.certify(problem, policy, 0.1, measure=measure)
    assert (certificate.measure is None) == (measure is None)
    assert audited(certificate, tmp_path_factory.mktemp("run")).passed


@settings(max_examples=25)
@given(worlds(), st.data())
def test_random_demonstrations_pass(tmp_path_factory, world, data):
    rng, num_costs = np.random.default_rng(data.draw(seeds)), data.draw(st.integers(1, 3))
    expert, count = data.draw(policies(world)), data.draw(st.sampled_from([1, 4, 25, 510]))
    demos = jm.record(world, expert, trajectories=count, horizon=6, seed=data.draw(seeds))
    basis = jm.CostBasis(rng.normal(size=(world.num_pairs, num_costs)))
    problem = jm.Apprenticeship(world, basis, demos, data.draw(cost_classes(num_costs)))
    certificate = jm.certify(problem, jm.clone(demos, world))
    assert audited(certificate, tmp_path_factory.mktemp("run")).passed


@settings(max_examples=30)
@given(worlds(), st.data())
def test_bet_after_bet_gives_the_wealth_of_the_counts(tmp_path_factory, world, data):
    expert = data.draw(policies(world))
    demos = jm.record(world, expert, trajectories=9, horizon=12, seed=data.draw(seeds))
    place = tmp_path_factory.mktemp("inputs")
    world.save(place / "world.npz")
    demos.save(place / "demonstrations.npz")
    again = read_world((place / "world.npz").read_bytes())
    records = read_records((place / "demonstrations.npz").read_bytes(), again)
    steps = Draws.of(again.rows, records.pair, records.next_state)
    for own, other in (
        (steps_evidence(steps), step_evidence(world, demos)[1]),
        (starts_evidence(again, records), start_evidence(world, demos)[1]),
    ):
        assert own == pytest.approx(other, rel=1e-9, abs=1e-9)


def test_an_outcome_speaks(tmp_path):
    world, basis, demos = grid_demonstrations(30)
    jm.learn(world, basis, demos).save(tmp_path)
    passed = jm.audit(str(tmp_path))
    assert "passed" in str(passed)
    assert passed.require() is passed
    (tmp_path / "notes.txt").write_text("mine")
    failed = jm.audit(tmp_path)
    assert not failed.passed
    assert "- notes.txt does not belong to a run" in str(failed)
    with pytest.raises(AuditFailed, match=r"notes\.txt"):
        failed.require()


def test_a_directory_that_is_not_there_is_an_error(tmp_path):
    for place in (tmp_path / "nowhere", tmp_path / "file"):
        if place.name == "file":
            place.touch()
        with pytest.raises(InvalidFile, match="not a directory"):
            jm.audit(place)


def test_an_empty_directory_is_a_finding(tmp_path):
    assert "no run was finished" in str(jm.audit(tmp_path))


def test_a_policy_from_nowhere_is_saved_and_audited(tmp_path):
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=60, horizon=60, seed=0)
    certificate = jm.certify(jm.Apprenticeship(world, basis, demos), jm.Policy.uniform(world))
    certificate.save(tmp_path / "run")
    jm.audit(tmp_path / "run").require()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("declared", [False, True])
def test_every_cost_class_passes_and_another_one_does_not(name, declared, tmp_path):
    world, basis, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=60, horizon=30, seed=3)
    expert = jm.ExpertExpectation(np.linspace(1, 2, basis.num_costs)) if declared else demos
    chosen = example(name, basis.num_costs)
    jm.learn(world, basis, expert, cost_class=chosen).save(tmp_path)
    jm.audit(tmp_path).require()

    def changed(header, arrays):
        for key, value in header["cost_class"].items():
            if key in ("scale", "prior", "radius", "limits"):
                header["cost_class"][key] = (0.99 * np.array(value)).tolist()
        if set(header["cost_class"]) == {"name"}:
            header["cost_class"]["scale"] = [0.99] * basis.num_costs

    change_arrays(tmp_path / "problem.npz", changed)
    rehash(tmp_path)
    assert not jm.audit(tmp_path).passed


def test_vertices_that_are_not_all_of_a_polytope_are_found(tmp_path):
    world, basis, demos = grid_demonstrations(60)
    count = basis.num_costs
    rows = np.vstack([-np.eye(count), np.ones(count), -np.ones(count)])
    chosen = Polytope(rows, [0.0] * count + [1.0, -1.0])
    jm.learn(world, basis, demos, cost_class=chosen).save(tmp_path)
    jm.audit(tmp_path).require()
    for change, word in ((lambda v: v[1:], "not all of it"), (lambda v: 1.1 * v, "outside")):
        run = shutil.copytree(tmp_path, tmp_path.parent / f"changed {word}")
        change_arrays(
            run / "problem.npz",
            lambda _, arrays, change=change: arrays.update(vertices=change(arrays["vertices"])),
        )
        rehash(run)
        assert word in str(jm.audit(run))
