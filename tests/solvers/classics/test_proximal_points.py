"""Proximal points: the dual and its gradient, exact steps, bounds, the catalogue, records alone,
worlds of callables."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import journeyman as jm
from class_examples import NAMES as CLASSES
from class_examples import example
from corridors import Columns, Corridor, EveryPair, high_costs
from journeyman.arrays import dense
from journeyman.solvers.classics.proximal_point_imitation import (
    LogisticBellman,
    Seen,
    _ExplicitSteps,
    _SteppedSteps,
)
from journeyman.solvers.running import Watch
from journeyman.testing import Shape, random_problem
from solved_problems import DEMONSTRATED, NAMES, optimum, solved_problem

SOLVER = jm.solvers.ProximalPointImitation()
OFFLINE = jm.solvers.OfflineProximalImitation()
NEAR = 0.01
"""Of the trivial bound: how near to the optimum the catalogue has to be."""


def dual_of(problem, eta=1.0, alpha=0.4, features=None):
    world = problem.world
    seen = Seen(world.pairs, world.transition, world.initial, problem.cost_matrix, features)
    return LogisticBellman(problem, seen, eta, alpha)


def uniform(problem):
    policy = jm.Policy.uniform(problem.world)
    visits = jm.occupancy(problem.world, policy)
    return visits.measure / problem.effective_horizon, policy.per_pair


@pytest.mark.parametrize("name", CLASSES)
def test_the_gradient_is_that_of_finite_differences(name):
    problem = random_problem(4, example(name, 3), shape=Shape.DENSE, trajectories=5)
    dual, (shares, law) = dual_of(problem), uniform(problem)
    rng = np.random.default_rng(0)
    point = rng.uniform(0.1, 0.4, dual.start().size)
    _, gradient = dual.value(point, shares, law)
    for _ in range(3):
        direction = rng.normal(size=point.size)
        ends = [dual.value(point + step * direction, shares, law)[0] for step in (1e-6, -1e-6)]
        assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4, abs=1e-5)


def primal(problem, shares, law, eta, alpha):
    """The step by CVXPY: the least value, and the measure."""
    world, h = problem.world, problem.effective_horizon
    mu = cp.Variable(world.num_pairs, nonneg=True)
    owner = np.eye(world.num_states)[world.pairs.states]
    visits = owner @ (owner.T @ mu)
    gap = cp.norm1(np.asarray(problem.cost_matrix).T @ mu - problem.target)
    distance = cp.sum(cp.kl_div(mu, h * shares)) / eta
    conditional = cp.sum(cp.rel_entr(mu, cp.multiply(law, visits))) / alpha
    program = cp.Problem(
        cp.Minimize(gap + distance + conditional),
        [world.flow.matrix().T @ mu == world.initial],
    )
    program.solve(solver=cp.CLARABEL)
    return program.value, mu.value


@pytest.mark.parametrize("seed", range(2))
def test_a_step_is_that_of_cvxpy(seed):
    problem = random_problem(seed, jm.InfinityBall(), shape=Shape.DENSE)
    dual, (shares, law) = dual_of(problem), uniform(problem)
    with Watch("test", lambda event: None, None) as watch:
        found = dual.maximum(shares, law, dual.start(), 2000, watch)
    value, measure = primal(problem, shares, law, dual.eta, dual.alpha)
    assert found.value == pytest.approx(value, abs=1e-5 * problem.gap_scale)
    policy = jm.Policy(found.law, problem.world.pairs.offsets)
    mine = jm.occupancy(problem.world, policy).measure
    np.testing.assert_allclose(mine, measure, atol=2e-3 * problem.effective_horizon)


@pytest.mark.parametrize("kind", [jm.InfinityBall(), jm.Simplex()], ids=lambda one: one.name)
@pytest.mark.parametrize("name", NAMES)
def test_the_catalogue_is_solved_within_two_hundred_steps(name, kind):
    problem = solved_problem(name, kind)
    accuracy = NEAR * problem.trivial_bound / problem.gap_scale
    answer = jm.solve(problem, replace(SOLVER, accuracy=accuracy, max_iterations=200))
    least = optimum(name, kind)
    assert answer.value - least <= NEAR * problem.trivial_bound
    assert answer.lower_bound <= least + 1e-7 * problem.gap_scale


@pytest.mark.parametrize("inner", [2, 15, 500], ids=lambda count: f"{count} inner iterations")
@pytest.mark.parametrize("kind", [jm.InfinityBall(), jm.Simplex()], ids=lambda one: one.name)
@pytest.mark.parametrize("seed", range(3))
def test_the_best_policy_is_as_near_as_its_steps_say(seed, kind, inner):
    """Whatever L-BFGS has left open: the errors that were measured are part of the bound."""
    problem = random_problem(seed, kind, shape=Shape.DENSE)
    least = jm.solve(problem, jm.LinearProgram()).value
    with Watch("test", lambda event: None, None) as watch:
        steps = _ExplicitSteps(replace(SOLVER, inner_iterations=inner), problem, watch)
        for _ in range(6):
            steps.advance()
            left, slack = steps.least_gap - least, 1e-7 * problem.gap_scale
            assert left <= steps.regret + slack
            if inner == 500:
                assert steps.regret <= steps.promise + 0.01 * problem.gap_scale
    assert steps.total >= 6  # inexact steps do not make the next ones smaller than was asked


def test_steps_never_lose_what_was_found():
    problem, events = solved_problem("garnet", jm.Simplex()), []
    jm.solve(problem, replace(SOLVER, max_iterations=6), observer=events.append)
    gaps = [event.objective for event in events]
    assert gaps == sorted(gaps, reverse=True)
    bounds = [event.lower_bound for event in events if event.lower_bound is not None]
    assert bounds == sorted(bounds)
    assert max(bounds) <= optimum("garnet", jm.Simplex()) + 1e-9


def test_features_of_q_functions_restrict_a_step():
    problem = solved_problem("grid, demonstrations", jm.InfinityBall())
    features = jm.features.partition(problem.world, problem.demonstrations, num_cells=9)
    short = replace(SOLVER, max_iterations=3)
    answer = jm.solve(problem, replace(short, features=features))
    assert answer.value >= optimum("grid, demonstrations", jm.InfinityBall()) - 1e-9
    with pytest.raises(jm.errors.InvalidInput, match="pairs"):
        jm.solve(problem, replace(short, features=jm.features.Features(np.ones((3, 1)))))


@pytest.mark.parametrize("name", DEMONSTRATED)
def test_offline_the_recorded_actions_are_taken(name):
    """No better than its data, and no worse than acting at random."""
    problem = solved_problem(name, jm.InfinityBall())
    answer = jm.solve(problem, OFFLINE)
    at_random = problem.gap(jm.Policy.uniform(problem.world))
    assert answer.value <= at_random
    assert answer.work.environment_steps == answer.work.forward_solves == 0


def test_offline_needs_records():
    problem = solved_problem("garnet", jm.InfinityBall())
    with pytest.raises(jm.errors.InvalidProblem, match="demonstrations"):
        jm.solve(problem, OFFLINE)


def stepped_grid():
    """An explicit world that is asked by callables, and where the truth is known."""
    world, basis, expert = jm.gallery.grid(5, macro_cells=2)
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    matrix = dense(basis.on(world))
    costs = jm.CostFunctions(
        lambda states, actions: matrix[world.pairs.index(states, actions)], basis.names,
        lowest=0, highest=1, largest=1.0,
    )  # fmt: skip
    return (jm.Apprenticeship(world, one, target) for one in (costs, basis))


def in_the_corridor():
    return jm.Apprenticeship(Corridor(), high_costs(), jm.ExpertExpectation([3.0]))


def stepped(problem, **settings):
    """The solver with a coefficient for every pair."""
    given = {"samples": 2000, "max_iterations": 5} | settings
    return replace(SOLVER, features=EveryPair(problem.world), **given)


def table_of(problem, policy):
    """A policy of a stepped world as a table of the explicit one."""
    law = policy.probabilities(np.arange(problem.world.num_states))
    return jm.Policy(law.ravel(), problem.world.pairs.offsets)


@pytest.mark.parametrize("seed", range(2))
def test_steps_of_drawn_pairs_come_near_the_exact_optimum(seed):
    problem, known = stepped_grid()
    answer = jm.solve(problem, stepped(problem), seed=seed)
    true = known.gap(table_of(problem, answer.policy))
    assert true <= 3 * NEAR * problem.gap_scale  # the least gap is 0, at random .24 of the scale
    assert known.gap(jm.Policy.uniform(problem.world)) > 0.1 * problem.gap_scale
    assert answer.value == pytest.approx(true, abs=0.05 * problem.gap_scale)
    assert answer.lower_bound == 0.0
    assert answer.work.environment_steps > 5 * 2000


def test_drawn_pairs_have_the_shares_of_the_occupancy():
    problem, _ = stepped_grid()
    with Watch("test", lambda event: None, None) as watch:
        steps = _SteppedSteps(stepped(problem, samples=100_000), problem, watch)
        steps.advance()  # to a policy that is not even
        states, actions = steps.walked(steps.best)
    pairs = problem.world.pairs
    found = np.bincount(pairs.index(states, actions), minlength=len(pairs)) / states.size
    visits = jm.occupancy(problem.world, table_of(problem, steps.best))
    assert np.abs(found - visits.measure / problem.effective_horizon).sum() < 0.05


def test_what_was_drawn_is_the_dual_of_its_own_laws():
    """A step that has met every pair knows the laws, whichever numbers it has given to states."""
    problem, known = stepped_grid()
    with Watch("test", lambda event: None, None) as watch:
        steps = _SteppedSteps(stepped(problem, samples=30_000), problem, watch)
    drawn = LogisticBellman(problem, steps.seen, 1.0, 0.4)
    own = LogisticBellman(
        problem, steps.seen._replace(laws=problem.world.transition, costs=known.cost_matrix),
        1.0, 0.4,
    )  # fmt: skip
    point = np.random.default_rng(0).uniform(-0.5, 0.5, drawn.start().size)
    one, other = (dual.value(point, steps.shares, steps.law) for dual in (drawn, own))
    assert one[0] == pytest.approx(other[0], rel=1e-12)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-9, atol=1e-12)


def test_in_a_world_of_callables_the_policy_is_certified_saved_and_audited(tmp_path):
    world = jm.certificate.Reference("corridors:Corridor")
    features = jm.certificate.Reference("corridors:Columns", world=world)
    costs = jm.certificate.Reference("corridors:high_costs")
    expert = jm.certificate.Reference("corridors:Tables", shared=False)
    demos = jm.record(world.made, expert.made, trajectories=100, horizon=60, seed=0)
    problem = jm.Apprenticeship(world.made, costs.made, demos)
    solver = replace(SOLVER, features=features.made, max_iterations=4)
    answer, same = (jm.solve(problem, solver, seed=3) for _ in range(2))
    assert np.array_equal(answer.policy.coefficients, same.policy.coefficients)
    assert answer.status is jm.Status.STEP_LIMIT
    certificate = jm.certify(problem, answer, evaluation=jm.Rollouts(500, 60))
    assert certificate.valid
    certificate.save(tmp_path, code=[costs, features])
    audit = jm.audit(tmp_path, trust_code=True)
    assert audit.passed, audit
    assert audit.complete, audit
    loaded = jm.certificate.load_policy(tmp_path, trust_code=True)
    states = np.arange(7)
    assert np.array_equal(loaded.probabilities(states), answer.policy.probabilities(states))


def test_a_world_of_callables_needs_features_of_callables():
    problem = in_the_corridor()
    answer = jm.solve(problem, stepped(problem, max_iterations=8), seed=1)
    at_random = jm.solve(problem, stepped(problem, max_iterations=1, inner_iterations=1), seed=1)
    assert answer.value < 0.05 * problem.gap_scale < at_random.value
    with pytest.raises(jm.errors.InvalidProblem, match="EXPLICIT"):
        jm.solve(problem, SOLVER)
    with pytest.raises(jm.errors.InvalidSolver, match="features"):
        replace(OFFLINE, features=Columns(problem.world))


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": 0},
        {"seed": -1},
        {"step": 0.0},
        {"inner_iterations": 0},
        {"accuracy": 0.0},
        {"features": 1},
    ],
    ids=str,
)
def test_wrong_hyperparameters_are_refused(wrong):
    with pytest.raises(jm.errors.InvalidSolver, match=next(iter(wrong))):
        replace(SOLVER, **wrong)


def test_budgets_are_refused_by_name():
    with pytest.raises(jm.errors.InvalidProblem, match="ProximalPointImitation"):
        jm.solve(random_problem(0, num_budgets=1), SOLVER)
