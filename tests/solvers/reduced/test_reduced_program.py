"""The reduced program: golden figures, CVXPY's optimum, strong duality, and every outcome."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.features.base import Features
from journeyman.problem.reduced import ExactPenalty, Reduced, SinglePenalty
from journeyman.problem.surrogate import Surrogate, reduced_lower_bound
from journeyman.solvers.reduced import reduced_program as module
from journeyman.solvers.reduced.box_dual import box_dual, steepest_fall
from journeyman.solvers.reduced.reduced_program import Hard, ReducedProgram, slope_at_infinity
from journeyman.solvers.running import Watch
from journeyman.testing import Shape, random_problem
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.strategies import problems, seeds
from naive.surrogate_program import least_hard_gap, least_loss

GOLDEN = json.loads((Path(__file__).parents[2] / "data" / "golden.json").read_text())
CLASSES = [jm.InfinityBall, jm.EuclideanBall, jm.Simplex]
ENGINES = [None, *jm.solvers.Engine]
every_class = pytest.mark.parametrize("kind", CLASSES)
every_engine = pytest.mark.parametrize("engine", ENGINES)


def golden_problem():
    data = GOLDEN["data"]
    world = jm.World(data["P"], data["nu0"], data["gamma"], choice_offsets=[0, 2, 4, 6])
    basis = jm.CostBasis(data["Psi"])
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(data["e_hat"]))


def random_features(problem, seed, num_features=3, *, is_sparse=False, based=False):
    """Measures of random size and sign over the pairs, of column mass 1/(1 - discount)."""
    rng = np.random.default_rng(seed)
    world = problem.world
    columns = rng.exponential(size=(world.num_pairs, num_features))
    columns -= rng.random(columns.shape) * (rng.random() < 0.3)
    if is_sparse:
        kept = rng.random(columns.shape) < 0.5
        kept[0, 0] = True
        columns = sparse.csr_array(columns * kept)
    features = Features(columns).normalised(world)
    visits = jm.occupancy(world, random_policy(world, rng)).measure
    return features.with_base(visits + rng.normal(size=visits.size) * 0.01) if based else features


@st.composite
def reduced_problems(draw):
    problem = draw(problems())
    num_features = draw(st.integers(1, 6))
    is_sparse, based = draw(st.booleans()), draw(st.booleans())
    seed = draw(seeds)
    return problem, random_features(problem, seed, num_features, is_sparse=is_sparse, based=based)


def occupancies(world, count, seed=0):
    """Features whose columns are the occupancies of random policies."""
    policies = [random_policy(world, seed + k) for k in range(count)]
    return Features(np.column_stack([jm.occupancy(world, p).measure for p in policies]))


@every_engine
@pytest.mark.parametrize(
    ("penalty", "figure"),
    [(SinglePenalty(2.0), "min_L_single_lambda"), (ExactPenalty(), "min_L_exact_penalty")],
)
def test_golden_optimum(engine, penalty, figure):
    features = Features(GOLDEN["data"]["Phi"])
    answer = jm.solve(golden_problem(), ReducedProgram(features, penalty, engine))
    assert answer.status is jm.Status.CONVERGED
    assert answer.reduced.loss == pytest.approx(GOLDEN["lp"][figure], abs=1e-8)
    assert answer.reduced.loss_lower_bound == pytest.approx(GOLDEN["lp"][figure], abs=1e-8)


@every_class
@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_the_optimum_of_cvxpy(kind, is_sparse, based, seed):
    budgets = seed % 3
    problem = random_problem(seed, kind(), shape=list(Shape)[seed], num_budgets=budgets)
    features = random_features(problem, seed, is_sparse=is_sparse, based=based)
    answer = jm.solve(problem, ReducedProgram(features))
    expected = least_loss(problem, features, answer.reduced.surrogate.penalties)
    assert answer.status is jm.Status.CONVERGED
    assert answer.reduced.loss == pytest.approx(expected, abs=2e-6 * max(1, abs(expected)))


@pytest.mark.parametrize("seed", range(4))
def test_known_costs_agree_with_cvxpy(seed):
    drawn = random_problem(seed, num_budgets=seed % 2)
    problem = jm.Forward(drawn.world, drawn.basis.matrix[:, 0], drawn.constraints)
    features = random_features(problem, seed)
    answer = jm.solve(problem, ReducedProgram(features))
    expected = least_loss(problem, features, answer.reduced.surrogate.penalties)
    assert answer.status is jm.Status.CONVERGED
    assert answer.reduced.loss == pytest.approx(expected, abs=2e-6 * max(1, abs(expected)))


@given(reduced_problems())
def test_loss_and_bound_are_recomputed_and_meet(drawn):
    problem, features = drawn
    answer = jm.solve(problem, ReducedProgram(features))
    found = answer.reduced
    surrogate = Surrogate(Reduced(problem, features), ExactPenalty())
    assert found.loss == surrogate.value(found.coefficients)
    assert found.loss_lower_bound == reduced_lower_bound(surrogate, found.witness, found.radius)
    heavy = features.masses[features.masses > 1e-3 * features.masses.max()]
    mixtures = problem.effective_horizon / heavy.min()
    assert found.radius == max(mixtures, 2 * np.linalg.norm(found.coefficients))
    assert (answer.status is jm.Status.CONVERGED) == (found.relative_gap <= 1e-8)
    assert answer.status is jm.Status.CONVERGED or problem.world.discount > 0.999


@given(reduced_problems())
def test_the_policy_is_that_of_the_coefficients_and_its_gap_at_most_the_loss(drawn):
    problem, features = drawn
    answer = jm.solve(problem, ReducedProgram(features))
    policy = jm.policy.extract(problem.world, features.measure(answer.reduced.coefficients))
    allowance = 1e-9 * max(problem.gap_scale, abs(answer.reduced.loss))
    assert np.array_equal(answer.policy.per_pair, policy.per_pair)
    assert answer.lower_bound <= answer.value + allowance
    assert answer.value <= answer.reduced.loss + allowance


@given(reduced_problems(), seeds)
def test_no_coefficients_go_below_the_bound(drawn, seed):
    problem, features = drawn
    found = jm.solve(problem, ReducedProgram(features)).reduced
    rng = np.random.default_rng(seed)
    for size in (1e-6, 1e-2, 1.0):
        other = found.coefficients + size * rng.normal(size=found.coefficients.size)
        other *= min(1, found.radius / np.linalg.norm(other))
        assert found.surrogate.value(other) >= found.loss_lower_bound - 1e-12 * found.unit


@every_engine
@pytest.mark.parametrize("kind", [jm.InfinityBall, jm.Simplex])
def test_engines_agree(engine, kind):
    problem = random_problem(3, kind(), num_states=12, num_costs=5, num_budgets=1)
    features = random_features(problem, 3, 6)
    ours = jm.solve(problem, ReducedProgram(features)).reduced
    answer = jm.solve(problem, ReducedProgram(features, engine=engine))
    assert ("interior point" in answer.engine) == (engine is None)
    assert answer.reduced.loss == pytest.approx(ours.loss, abs=3e-8 * ours.unit)


@every_class
def test_dependent_features_do_no_harm(kind):
    problem = random_problem(1, kind())
    features = random_features(problem, 1)
    twice = Features(np.hstack([features.matrix, features.matrix[:, :2], 0 * features.matrix]))
    once, again = (jm.solve(problem, ReducedProgram(F)) for F in (features, twice))
    assert again.status is jm.Status.CONVERGED
    assert again.reduced.loss == pytest.approx(once.reduced.loss, abs=2e-8 * once.reduced.unit)


def test_costs_that_are_zero_leave_nothing_to_lose():
    drawn = random_problem(0)
    basis = jm.CostBasis(np.zeros((drawn.world.num_pairs, 2)))
    problem = jm.Apprenticeship(drawn.world, basis, jm.ExpertExpectation([0.0, 0.0]))
    answer = jm.solve(problem, ReducedProgram(random_features(problem, 0)))
    assert answer.status is jm.Status.CONVERGED
    assert answer.reduced.loss == answer.reduced.loss_lower_bound == 0.0


def one_sided_problem(kind, seed):
    """`Simplex`, or a known cost above 0: without penalties both losses fall without end."""
    drawn = random_problem(seed, jm.Simplex(), num_budgets=seed % 2)
    if kind is jm.Simplex:
        return drawn
    return jm.Forward(drawn.world, 1.1 + drawn.basis.matrix[:, 0], drawn.constraints)


@pytest.mark.parametrize("kind", [jm.Simplex, jm.Forward])
@pytest.mark.parametrize("seed", range(4))
def test_a_loss_without_minimum_is_called_unbounded(kind, seed):
    problem = one_sided_problem(kind, seed)
    features = occupancies(problem.world, 3, seed)
    answer = jm.solve(problem, ReducedProgram(features, SinglePenalty(1e-3)))
    surrogate = answer.reduced.surrogate
    box = box_dual(surrogate.reduced, surrogate.penalties)
    direction = box.coefficients(steepest_fall(box, 1, Watch("test", lambda event: None)))
    far = [surrogate.value(size * direction) for size in (1e3, 1e6, 1e9)]
    assert answer.status is jm.Status.UNBOUNDED
    assert far == sorted(far, reverse=True)
    assert far[-1] < -1e3
    assert slope_at_infinity(surrogate, direction) >= (far[2] - far[1]) / (1e9 - 1e6)
    assert answer.reduced.loss_lower_bound <= answer.reduced.loss


@every_class
@pytest.mark.parametrize("seed", range(4))
def test_no_direction_falls_at_exact_penalties(kind, seed):
    """Not even when the status is open because nobody can be as accurate as was asked."""
    problem = random_problem(seed, kind(), num_budgets=seed % 2)
    features = random_features(problem, seed)
    answer = jm.solve(problem, ReducedProgram(features, tolerance=1e-300))
    assert answer.status is not jm.Status.UNBOUNDED
    rng = np.random.default_rng(seed)
    for direction in rng.normal(size=(20, features.num_features)):
        assert slope_at_infinity(answer.reduced.surrogate, direction) >= 0


@given(reduced_problems(), seeds)
def test_the_slope_at_infinity_is_that_of_a_long_difference(drawn, seed):
    problem, features = drawn
    surrogate = Surrogate(Reduced(problem, features), SinglePenalty(0.5))
    direction = np.random.default_rng(seed).normal(size=features.num_features)
    slope = slope_at_infinity(surrogate, direction)
    rise = surrogate.value(2e7 * direction) - surrogate.value(1e7 * direction)
    assert rise / 1e7 <= slope + 1e-8 * abs(slope) + 1e-3


@pytest.mark.parametrize("discount", [0.5, 0.99, 0.999, 0.9999])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_the_euclidean_ball_is_as_accurate_as_the_others(discount, scaled, seed):
    scale = np.random.default_rng(seed).uniform(0.1, 3.0, 4) if scaled else None
    ball = jm.EuclideanBall(scale)
    problem = random_problem(seed, ball, num_states=20, num_costs=4, discount=discount)
    features = random_features(problem, seed, 8, is_sparse=seed % 2 == 0)
    answer = jm.solve(problem, ReducedProgram(features))
    assert answer.status is jm.Status.CONVERGED
    assert answer.engine == "interior point"


def test_one_cost_in_a_euclidean_ball_is_one_in_an_infinity_ball():
    for seed in range(10):
        balls = jm.EuclideanBall([0.7]), jm.InfinityBall([0.7])
        losses = [
            jm.solve(problem, ReducedProgram(random_features(problem, seed))).reduced.loss
            for problem in (random_problem(seed, ball, num_costs=1) for ball in balls)
        ]
        assert losses[0] == pytest.approx(losses[1], rel=1e-7, abs=1e-7)


def test_an_engine_that_was_asked_for_leaves_the_euclidean_ball_to_clarabel():
    problem = random_problem(0, jm.EuclideanBall())
    features = random_features(problem, 0)
    answer = jm.solve(problem, ReducedProgram(features, engine=jm.solvers.Engine.SIMPLEX))
    ours = jm.solve(problem, ReducedProgram(features))
    assert answer.engine.startswith("Clarabel")
    assert answer.reduced.loss == pytest.approx(ours.reduced.loss, abs=2e-8 * ours.reduced.unit)


@every_class
@pytest.mark.parametrize("budgets", [0, 1])
@pytest.mark.parametrize("seed", range(3))
def test_hard_constraints_over_occupancies_give_the_best_mixture(kind, budgets, seed):
    problem = random_problem(seed, kind(), num_budgets=budgets, num_states=8)
    features = occupancies(problem.world, 5, seed)
    expected = least_hard_gap(problem, features)
    answer = jm.solve(problem, ReducedProgram(features, Hard()))
    if expected is None:
        assert answer.status is jm.Status.INFEASIBLE
    else:
        assert answer.status is jm.Status.CONVERGED
        assert answer.value == pytest.approx(expected, abs=1e-6 * problem.gap_scale)
        assert answer.reduced.loss == pytest.approx(answer.value, abs=1e-7 * problem.gap_scale)


@every_class
@every_engine
def test_hard_constraints_that_no_combination_keeps(kind, engine):
    problem = random_problem(0, kind(), num_states=8)
    answer = jm.solve(problem, ReducedProgram(random_features(problem, 0), Hard(), engine))
    assert answer.status is jm.Status.INFEASIBLE
    assert answer.solution is answer.relaxation is answer.reduced is None
    with pytest.raises(jm.errors.NoSolution):
        _ = answer.policy


def large_problem(kind):
    world, basis, expert = jm.gallery.grid(40)
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    problem = jm.Apprenticeship(world, basis, target, kind())
    rng = np.random.default_rng(0)
    return problem, Features(rng.exponential(size=(world.num_pairs, 30))).normalised(world)


def assert_bounds_hold(answer):
    found = answer.reduced
    assert found.loss_lower_bound <= found.loss < np.inf
    assert found.loss <= found.surrogate.value(np.zeros(found.coefficients.size))
    assert answer.lower_bound <= answer.value


@every_class
@every_engine
def test_out_of_time(kind, engine):
    problem, features = large_problem(kind)
    answer = jm.solve(problem, ReducedProgram(features, engine=engine, time_limit=1e-3))
    assert answer.status is jm.Status.TIME_LIMIT
    assert_bounds_hold(answer)


@every_class
@every_engine
def test_interrupted(kind, engine):
    def press(event):
        os.kill(os.getpid(), signal.SIGINT)

    problem, features = large_problem(kind)
    answer = jm.solve(problem, ReducedProgram(features, engine=engine), observer=press)
    assert answer.status is jm.Status.INTERRUPTED
    assert_bounds_hold(answer)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"penalty": 2.0}, "ExactPenalty"),
        ({"engine": "simplex"}, "jm.solvers.Engine"),
        ({"threads": 0}, "whole number from 1"),
        ({"time_limit": 0}, "seconds above 0"),
        ({"tolerance": 0}, "1e-8"),
    ],
)
def test_what_cannot_be_used_is_refused(arguments, message):
    with pytest.raises(jm.errors.InvalidSolver, match=message):
        ReducedProgram(Features([[1.0]]), **arguments)


def test_features_of_another_world_are_refused():
    with pytest.raises(jm.errors.InvalidCosts, match="rows"):
        jm.solve(random_problem(0), ReducedProgram(Features([[1.0]])))


def test_a_bare_matrix_is_refused():
    with pytest.raises(jm.errors.InvalidSolver, match="Features"):
        ReducedProgram(np.eye(3))


def test_a_column_without_mass_costs_no_accuracy():
    problem = random_problem(0)
    ones = np.ones(problem.world.num_pairs)
    for light in (0.0, 1e-320, 1e-200, 1e-8):
        features = Features(np.column_stack([ones, light * ones]))
        answer = jm.solve(problem, ReducedProgram(features))
        assert answer.status is jm.Status.CONVERGED
    nothing = jm.solve(problem, ReducedProgram(Features(np.zeros((ones.size, 2)))))
    assert nothing.status is jm.Status.CONVERGED


def test_dense_factors_are_for_few_features_and_for_such_that_overlap(monkeypatch):
    rng = np.random.default_rng(0)
    local = sparse.diags_array([1.0, 1.0], offsets=[0, 1], shape=(50, 40), format="csr")
    mixed = sparse.random_array((50, 40), density=0.3, rng=rng, format="csr")
    exact = [(abs(rows).T @ abs(rows)).nnz / 40**2 for rows in (local, mixed)]
    assert [module.filling(rows) for rows in (local, mixed)] == exact
    assert module.filling(mixed.toarray()) == 1.0
    monkeypatch.setattr(module, "FILLING_ROWS", 7)
    assert 0 < module.filling(mixed) <= exact[1]

    problem = random_problem(0, num_states=30)
    features = random_features(problem, 0)
    engines = []
    for many, most in ((100, 100), (1, 100), (1, 1)):
        monkeypatch.setattr(module, "MANY_FEATURES", many)
        monkeypatch.setattr(module, "MOST_FEATURES", most)
        answer = jm.solve(problem, ReducedProgram(features))
        assert answer.status is jm.Status.CONVERGED
        engines.append(answer.engine.split()[0])
    assert engines == ["interior", "interior", "HiGHS"]
