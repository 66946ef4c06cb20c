"""The occupancy game: its sweeps against a plain twin, its bounds against the optimum, its answers
on the catalogue, its refusals."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from class_examples import NAMES as CLASSES
from class_examples import example
from corridors import Corridor, EveryPair, high_up
from journeyman.arrays import dense
from journeyman.problem.reduced import Reduced
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.classics.occupancy_game import (
    Game,
    Prior,
    advance,
    best_weights,
    hardest_near,
    nearest_weights,
    rules_of,
    tabular,
)
from journeyman.solvers.classics.occupancy_mirror_descent import _SteppedRun
from journeyman.solvers.running import Watch
from journeyman.testing import Shape, random_problem
from solved_problems import NAMES, optimum, solved_problem

SOLVER = jm.solvers.OccupancyMirrorDescent()
NEAR = 0.01
"""Of the trivial bound: how near to the optimum the catalogue has to be."""
SAMPLES, SWEEPS = 16_000_000, 100_000
"""Within which budget of drawn transitions, and of sweeps."""


def game_of(problem, prior=None, values=None):
    features = tabular(problem)
    limit = Surrogate(Reduced(problem, features)).penalties.flow
    return Game(problem, features, values, limit, prior)


def limits_of(problem):
    """An accuracy well below what is asked for, and the budget."""
    return {
        "accuracy": NEAR / 4 * problem.trivial_bound / problem.gap_scale,
        "max_iterations": min(SAMPLES // problem.world.num_pairs, SWEEPS),
    }


@pytest.mark.parametrize("kind", [jm.InfinityBall(), jm.Simplex()], ids=lambda one: one.name)
@pytest.mark.parametrize("name", NAMES)
def test_the_catalogue_is_solved_within_a_budget_of_samples(name, kind):
    problem = solved_problem(name, kind)
    answer = jm.solve(problem, replace(SOLVER, **limits_of(problem)))
    assert answer.work.environment_steps <= SAMPLES
    least = optimum(name, kind)
    assert answer.value - least <= NEAR * problem.trivial_bound
    assert answer.lower_bound <= least + 1e-7 * problem.gap_scale
    assert answer.reduced.loss >= answer.value - 1e-9 * problem.gap_scale


def twin(problem, limit, sweeps, seed):
    """The same game with plain loops, for `InfinityBall` and all pairs; the averages."""
    world, h = problem.world, problem.effective_horizon
    rng = np.random.default_rng(seed)
    Psi, laws = np.asarray(problem.cost_matrix), world.transition.toarray()
    d, n, S = world.num_pairs, problem.num_costs, world.num_states
    p, w, u = np.full(d, 1 / d), np.zeros(n), np.zeros(S)
    totals = [np.zeros(d), np.zeros(n), np.zeros(S)]
    before = [np.zeros(d), np.zeros(n), np.zeros(S)]
    spread = h * (problem.basis.highest - problem.basis.lowest)
    lost, A = 0.0, float(spread @ spread)
    squares = np.full(S, ((1 + world.discount) * h) ** 2)
    sums = [np.zeros(d), np.zeros(n), np.zeros(S)]
    for _ in range(sweeps):
        following = np.empty(d, dtype=int)
        for s in range(d):
            row = np.flatnonzero(laws[s])
            if row.size == 1:
                following[s] = row[0]
                continue
            shares = np.cumsum(laws[s][row])
            following[s] = row[np.searchsorted(shares / shares[-1], rng.random(), side="right")]
        here = world.pairs.states
        g = h * (Psi @ w + world.discount * u[following] - u[here])
        z = h * Psi.T @ p - problem.target
        r = world.initial - h * np.bincount(here, p, S)
        r = r + h * world.discount * np.bincount(following, p, S)
        for k, part in enumerate((p, w, u)):
            sums[k] = sums[k] + part
        change, tau = g - before[0], lost / np.log(d)
        mix = change.min() if tau == 0 else -tau * np.log(p @ np.exp(-change / tau))
        lost += p @ change - mix
        A += float((z - before[1]) @ (z - before[1]))
        squares += (r - before[2]) ** 2
        for k, part in enumerate((g, z, r)):
            totals[k] = totals[k] + part
        if lost > 0:
            p = np.exp(-(totals[0] + g - (totals[0] + g).min()) * np.log(d) / lost)
            p /= p.sum()
        w = np.clip((totals[1] + z) / np.sqrt(A / (n / 2)), -1, 1)
        u = np.clip(limit / np.sqrt(2 * squares) * (totals[2] + r), -limit, limit)
        before = [g, z, r]
    return [part / sweeps for part in sums]


@pytest.mark.parametrize("shape", [Shape.DENSE, Shape.RAGGED, Shape.PERIODIC])
def test_sweeps_are_those_of_a_plain_twin(shape):
    problem = random_problem(5, jm.InfinityBall(), shape=shape)
    game = game_of(problem)
    point = game.start()
    advance(game.board, game.rules, point, np.random.default_rng(7), 40)
    expected = twin(problem, game.limit, 40, 7)
    found = point.share_sum / 40, point.weight_sum / 40, point.value_sum / 40
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), shape=st.sampled_from(list(Shape)))
def test_the_value_of_the_game_is_between_its_bounds(seed, shape):
    problem = random_problem(seed, jm.InfinityBall(), shape=shape)
    least = jm.solve(problem, jm.LinearProgram()).value
    game = game_of(problem)
    point = game.start()
    advance(game.board, game.rules, point, np.random.default_rng(seed), 300)
    averages = (part / 300 for part in (point.share_sum, point.weight_sum, point.value_sum))
    judged = game.judged(*averages)
    slack = 1e-7 * problem.gap_scale
    assert judged.lower - slack <= least <= judged.upper + slack
    left = judged.upper - judged.lower
    assert left <= game.regret(point, 300) + game.noise(300)


@pytest.mark.parametrize("name", CLASSES)
def test_weights_of_the_players_lie_in_the_class(name):
    problem = random_problem(2, example(name, 3), trajectories=5)
    rules = rules_of(problem, 1.0, 0.0)
    rng, w = np.random.default_rng(0), np.zeros(problem.num_costs)
    for temperature in (1e-9, 1.0, 1e9):
        total = rng.normal(size=w.size) * 10
        best_weights(rules, total, temperature, w)
        np.testing.assert_allclose(problem.cost_class.admit(w), w, atol=1e-9)
        if temperature == 1e-9:
            assert w @ total == pytest.approx(problem.cost_class.gap(total), rel=1e-6)


@pytest.mark.parametrize("name", CLASSES)
def test_the_nearest_weights_are_those_of_cvxpy(name):
    problem = random_problem(2, example(name, 3), trajectories=5)
    cost_class, count = problem.cost_class, problem.num_costs
    far = np.random.default_rng(1).normal(size=count) * 3
    found = nearest_weights(cost_class, far)
    np.testing.assert_allclose(cost_class.admit(found), found, atol=1e-9)
    # w is nearest when <far - w, v - w> <= 0 for all v: the gap of far - w is attained at w
    assert cost_class.gap(far - found) - (far - found) @ found <= 1e-5


def prior_program(problem, prior, strength):
    """The least value and the best weights, by CVXPY, for boxes."""
    world, h = problem.world, problem.effective_horizon
    w, V = cp.Variable(problem.num_costs), cp.Variable(world.num_states)
    costs = dense(problem.cost_matrix) @ w - world.flow.matrix() @ V
    pull = strength * h / 2 * cp.sum_squares(w - prior)
    program = cp.Problem(
        cp.Maximize(world.initial @ V - w @ problem.target - pull),
        [costs >= 0, cp.abs(w) <= problem.cost_class.scaling(problem.num_costs)],
    )
    program.solve(solver=cp.CLARABEL)
    return w.value, program.value


@pytest.mark.parametrize("name", NAMES)
def test_with_a_prior_the_catalogue_is_solved_within_the_same_budget(name):
    """To the optimum of the program with the prior, as CVXPY has it."""
    problem = solved_problem(name, jm.InfinityBall())
    prior, strength = np.full(problem.num_costs, 0.3), 0.3
    solver = jm.solvers.PriorMirrorDescent(prior, strength, **limits_of(problem))
    answer = jm.solve(problem, solver)
    assert answer.work.environment_steps <= SAMPLES
    _, least = prior_program(problem, prior, strength)
    modulus, difference = (
        strength * problem.effective_horizon,
        problem.difference(answer.occupancy.measure),
    )
    reached, _ = hardest_near(problem.cost_class, prior, modulus, difference)
    slack = 1e-5 * problem.gap_scale
    assert -slack <= reached - least <= NEAR * problem.trivial_bound
    assert answer.optimisation.trace[-1].bound <= least + slack


@pytest.mark.parametrize("seed", range(4))
def test_weights_with_a_prior_are_those_of_cvxpy_and_the_log_says_how_far(seed):
    problem = random_problem(seed, jm.InfinityBall(), shape=Shape.DENSE)
    prior, strength = np.full(problem.num_costs, 0.3), 0.3
    solver = jm.solvers.PriorMirrorDescent(prior, strength, accuracy=0.004, max_iterations=60_000)
    answer = jm.solve(problem, solver)
    weights, value = prior_program(problem, prior, strength)
    allowed = float(answer.log.split("within ")[-1].split(" of the best")[0])
    assert np.linalg.norm(answer.recovered - weights) <= allowed * (1 + 1e-2) + 1e-4
    game = game_of(problem, Prior(prior, strength))
    point = game.start()
    advance(game.board, game.rules, point, np.random.default_rng(0), 500)
    averages = (part / 500 for part in (point.share_sum, point.weight_sum, point.value_sum))
    judged = game.judged(*averages)
    assert judged.lower - 1e-5 <= value <= judged.upper + 1e-5


def test_recovered_prices_are_nearer_to_the_truth_than_the_prior():
    """The proposition of the module; the prior is that of the paper."""
    prior = np.array([14.0, 4.0, 2.0])
    for prices in ([15.0, 3.0, 0.5], [15.0, 5.0, 8.0]):
        world, basis, expert = jm.gallery.shop(prices=prices)
        target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
        problem = jm.Apprenticeship(world, basis, target, jm.InfinityBall([20.0, 10.0, 10.0]))
        solver = jm.solvers.PriorMirrorDescent(prior, 1.0, accuracy=0.001, max_iterations=20_000)
        found = jm.solve(problem, solver).recovered
        exact, _ = prior_program(problem, prior, 1.0)
        far, moved = np.linalg.norm(prior - prices), np.linalg.norm(exact - prior)
        assert np.linalg.norm(exact - prices) <= np.sqrt(far**2 - moved**2) + 1e-3
        assert np.linalg.norm(found - prices) < 0.9 * far


def test_a_strong_prior_is_kept_and_a_weak_one_left():
    problem = random_problem(1, jm.InfinityBall(), shape=Shape.DENSE)
    prior = np.full(problem.num_costs, 0.5)
    near, far = (
        np.linalg.norm(
            jm.solve(problem, jm.solvers.PriorMirrorDescent(prior, one)).recovered - prior
        )
        for one in (100.0, 0.01)
    )
    assert near < 0.05 < far


def test_features_restrict_what_is_searched():
    problem = solved_problem("grid, demonstrations", jm.InfinityBall())
    features = jm.features.partition(problem.world, problem.demonstrations, num_cells=9)
    answer = jm.solve(problem, replace(SOLVER, features=features, max_iterations=20_000))
    program = jm.solve(problem, jm.ReducedProgram(features, penalty=jm.ExactPenalty()))
    last = answer.optimisation.trace[-1]
    assert (answer.reduced.coefficients >= 0).all()
    assert answer.reduced.coefficients.sum() == pytest.approx(1.0)
    assert answer.reduced.loss == pytest.approx(last.loss)
    assert program.reduced.loss_lower_bound <= last.loss + 1e-9  # mixtures lie in the ball
    first = next(point for point in answer.optimisation.trace if point.step > 1000)
    assert last.loss - last.bound <= 0.5 * (first.loss - first.bound)
    assert answer.value <= answer.reduced.loss + 1e-9


def test_value_features_see_a_part_of_the_flow():
    problem = solved_problem("garnet", jm.InfinityBall())
    blocks = np.kron(np.eye(4), np.ones((5, 1)))
    answer = jm.solve(problem, replace(SOLVER, value_features=blocks, max_iterations=20_000))
    whole = jm.solve(problem, replace(SOLVER, max_iterations=20_000))
    relaxed, full = answer.optimisation.trace[-1], whole.optimisation.trace[-1]
    assert relaxed.bound <= full.loss + 1e-9


def test_equal_seeds_give_equal_bits_and_others_do_not():
    problem = solved_problem("garnet", jm.InfinityBall())
    short = replace(SOLVER, max_iterations=500)
    one, same = (jm.solve(problem, short, seed=3) for _ in range(2))
    other = jm.solve(problem, short, seed=4)
    assert np.array_equal(one.reduced.coefficients, same.reduced.coefficients)
    assert not np.array_equal(one.reduced.coefficients, other.reduced.coefficients)


@pytest.mark.parametrize(
    "wrong",
    [
        {"accuracy": 0.0}, {"max_iterations": 0}, {"seed": -1}, {"batch": 0}, {"features": 3},
        {"value_features": [1.0, np.nan]},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_hyperparameters_are_refused(wrong):
    with pytest.raises(jm.errors.InvalidInput, match=next(iter(wrong))):
        replace(SOLVER, **wrong)


def test_what_cannot_be_sampled_or_fitted_is_refused():
    problem = solved_problem("garnet", jm.InfinityBall())
    pairs = problem.world.num_pairs
    negative = jm.features.Features(-np.ones((pairs, 1)))
    for features, word in (
        (negative, "negative"), (jm.features.Features(np.ones((pairs, 1)), np.ones(pairs)), "base"),
    ):  # fmt: skip
        with pytest.raises(jm.errors.InvalidSolver, match=word):
            jm.solve(problem, replace(SOLVER, features=features))
    with pytest.raises(jm.errors.InvalidSolver, match="one row for every state"):
        jm.solve(problem, replace(SOLVER, value_features=np.ones((3, 1))))
    with pytest.raises(jm.errors.InvalidSolver, match="prior"):
        jm.solve(problem, jm.solvers.PriorMirrorDescent(np.zeros(99)))
    with pytest.raises(jm.errors.InvalidProblem, match="budgets"):
        jm.solve(random_problem(0, num_budgets=1), SOLVER)


def corridor():
    world = Corridor()
    costs = jm.CostFunctions(high_up, ["high up"], lowest=0, highest=1)
    return jm.Apprenticeship(world, costs, jm.ExpertExpectation([3.0]))


def stepped_solver(problem, **settings):
    features = EveryPair(problem.world)
    return replace(SOLVER, features=features, batch=64, max_iterations=1500, **settings)


def test_in_a_stepped_world_the_loss_falls_towards_the_optimum():
    problem = corridor()
    answer = jm.solve(problem, stepped_solver(problem), seed=1)
    assert answer.status is jm.Status.STEP_LIMIT
    assert answer.work.environment_steps == 1500 * 64
    assert answer.reduced.coefficients.sum() == pytest.approx(1.0)
    few = jm.solve(problem, replace(stepped_solver(problem), max_iterations=20), seed=1)
    assert answer.reduced.loss < 0.15 * problem.gap_scale < few.reduced.loss
    law = answer.policy.probabilities(np.arange(7))
    np.testing.assert_allclose(law.sum(axis=1), 1.0)


def test_in_a_stepped_world_the_bound_in_the_log_holds():
    """For a world whose laws are known: what the averages leave open is below regret and noise."""
    known = solved_problem("grid, demonstrations", jm.InfinityBall())
    world, matrix = known.world, dense(known.cost_matrix)
    costs = jm.CostFunctions(
        lambda states, actions: matrix[world.pairs.index(states, actions)], known.basis.names,
        lowest=0, highest=1, largest=1.0,
    )  # fmt: skip
    asked = jm.Apprenticeship(world, costs, jm.ExpertExpectation(known.target))
    shares = np.kron(np.eye(world.num_states), np.full(world.num_actions, 1 / world.num_actions))
    with Watch("test", lambda event: None, None) as watch:
        run = _SteppedRun(replace(SOLVER, features=EveryPair(world), batch=16), asked, None, watch)
        game = Game(known, tabular(known), sparse.csr_array(shares), run.rules.limit, None)
        regrets = []
        for sweeps in (20, 380):
            run.take(sweeps)
            judged = game.judged(*run.averages)
            assert judged.lower <= judged.upper
            assert judged.upper - judged.lower <= run.regret + run.noise
            regrets.append(run.regret)
    assert 0 <= regrets[1] < regrets[0] / 2  # players that learn regret less and less
    assert f"realised regret {regrets[1] / asked.gap_scale:.3g}" in run.words


def test_a_function_of_states_can_take_the_place_of_the_columns_shares():
    problem = corridor()
    solver = replace(stepped_solver(problem), value_features=lambda states: np.eye(7)[states])
    one, same = (jm.solve(problem, solver, seed=2) for _ in range(2))
    assert one.reduced.loss == same.reduced.loss < 0.15 * problem.gap_scale
    wrong = replace(solver, value_features=lambda states: np.zeros(3))
    with pytest.raises(jm.errors.InvalidSolver, match="one row for each"):
        jm.solve(problem, wrong)
