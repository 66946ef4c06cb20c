"""Maximum causal entropy: derivatives, matching, an independent convex solve, proofs."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import journeyman as jm
from journeyman.solvers.classics.maximum_entropy import EntropyDual, conjugate_gradients
from journeyman.testing import Shape, random_problem, random_world
from solved_problems import NAMES, optimum, solved_problem

REACHABLE = (
    "two cells", "grid, its own expert", "garnet",
    "garnet, demonstrations", "driving", "dense", "sparse", "periodic", "absorbing",
)  # fmt: skip
OUT_OF_REACH = tuple(name for name in NAMES if name not in REACHABLE)
SMALL = ("two cells", "grid, its own expert", "garnet", "dense", "sparse", "absorbing")
every_class = pytest.mark.parametrize("kind", [jm.InfinityBall, jm.EuclideanBall, jm.Simplex])


def mismatch(problem, policy):
    """The largest difference of an expectation, relative to the horizon."""
    reached = jm.occupancy(problem.world, policy).expectations(problem.basis)
    return np.abs(reached - problem.target).max() / problem.world.effective_horizon


def causal_entropy(problem, policy):
    measure = jm.occupancy(problem.world, policy).measure
    law = policy.per_pair
    return -float(measure @ np.log(np.where(law > 0, law, 1.0)))


def convex_solve(problem, ridge=None):
    """The same program over occupancy measures, by CVXPY and exponential cones."""
    world = problem.world
    joined = sparse.csr_array(
        (np.ones(world.num_pairs), world.pairs.states, np.arange(world.num_pairs + 1)),
        shape=(world.num_pairs, world.num_states),
    )
    mu = world.effective_horizon * cp.Variable(world.num_pairs, nonneg=True)
    entropy = -cp.sum(cp.rel_entr(mu, (joined @ joined.T) @ mu))
    flow = world.flow.matrix().T.tocsr() @ mu == world.initial
    difference = problem.cost_matrix.T @ mu - problem.target
    if ridge is None:
        program = cp.Problem(cp.Maximize(entropy), [flow, difference == 0])
    else:
        dual = EntropyDual(problem)
        z = dual.rate * cp.multiply(dual.factor, difference)
        objective = dual.rate * entropy - cp.sum_squares(z) / (2 * ridge)
        program = cp.Problem(cp.Maximize(objective), [flow])
    exact = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    program.solve(solver="CLARABEL", **exact)
    return jm.policy.extract(world, np.maximum(mu.value, 0.0)), float(entropy.value)


def assert_same_where_visited(problem, policy, other):
    visits = problem.world.pairs.spread(jm.occupancy(problem.world, policy).of_states)
    visited = visits > 1e-6 * problem.world.effective_horizon
    np.testing.assert_allclose(policy.per_pair[visited], other.per_pair[visited], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["grid, its own expert", "ragged", "unreachable", "garnet"])
@pytest.mark.parametrize("size", [0.5, 5.0])
def test_derivatives_are_those_of_finite_differences(name, size):
    problem = solved_problem(name, jm.EuclideanBall())
    dual = EntropyDual(problem)
    rng = np.random.default_rng(0)
    point = dual.at(size * rng.normal(size=problem.basis.num_costs))
    for direction in rng.normal(size=(3, point.u.size)):
        step = 1e-4
        ahead, behind = (dual.at(point.u + s * step * direction, near=point) for s in (1, -1))
        slope = (ahead.value - behind.value) / (2 * step)
        assert slope == pytest.approx(-point.mismatch @ direction, rel=1e-5, abs=1e-6)
        turn = (behind.mismatch - ahead.mismatch) / (2 * step)
        product = point.curvature(direction)
        np.testing.assert_allclose(product, turn, rtol=1e-5, atol=1e-6 * np.abs(turn).max())


@pytest.mark.parametrize("name", REACHABLE)
def test_expectations_are_matched_where_that_is_possible(name):
    problem = solved_problem(name, jm.InfinityBall())
    answer = jm.solve(problem, jm.solvers.MaximumEntropy())
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert mismatch(problem, answer.policy) <= 1e-6 * problem.basis.norms.max() * 2
    assert answer.log.startswith("matched")
    assert optimum(name, jm.InfinityBall()) == pytest.approx(0, abs=1e-7 * problem.gap_scale)


@pytest.mark.parametrize("name", OUT_OF_REACH)
def test_where_no_policy_matches_this_is_proven_and_the_policy_is_close(name):
    problem = solved_problem(name, jm.EuclideanBall())
    answer = jm.solve(problem, jm.solvers.MaximumEntropy())
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert answer.log.startswith("out of reach")
    least = optimum(name, jm.EuclideanBall())
    assert 0 < least <= answer.value + 1e-7 * problem.gap_scale
    assert answer.value <= 1.26 * least
    proven = float(answer.log.rsplit(" ", 1)[1]) * EntropyDual(problem).size
    assert answer.value / 1.3 <= proven <= least * 1.01


@pytest.mark.parametrize("scale", [(0.1, 1.0, 1.0), (5.0, 1.0, 0.2)])
def test_closeness_is_in_the_scale_of_the_cost_class(scale):
    problem = random_problem(3, jm.EuclideanBall(scale))
    answer = jm.solve(problem, jm.solvers.MaximumEntropy())
    least = jm.solve(problem, jm.LinearProgram()).value
    assert answer.log.startswith("out of reach")
    assert least > 1e-3 * problem.gap_scale
    assert answer.value <= 1.26 * least


@pytest.mark.parametrize("name", SMALL)
def test_the_policy_is_that_of_an_independent_convex_solve(name):
    problem = solved_problem(name, jm.InfinityBall())
    answer = jm.solve(problem, jm.solvers.MaximumEntropy(tolerance=1e-9))
    assert answer.status is jm.Status.OPTIMAL
    policy, entropy = convex_solve(problem)
    assert_same_where_visited(problem, answer.policy, policy)
    assert causal_entropy(problem, answer.policy) == pytest.approx(entropy, rel=1e-6)


@pytest.mark.parametrize("shape", [Shape.RAGGED, Shape.UNREACHABLE, Shape.PERIODIC])
@pytest.mark.parametrize("scale", [None, (0.5, 1.0, 4.0)], ids=["plain", "scaled"])
def test_a_ridge_of_ones_own_is_the_convex_program_with_that_ridge(shape, scale):
    problem = random_problem(5, jm.InfinityBall(scale), shape=shape)
    answer = jm.solve(problem, jm.solvers.MaximumEntropy(ridge=0.003, tolerance=1e-9))
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    policy, _ = convex_solve(problem, ridge=0.003)
    assert_same_where_visited(problem, answer.policy, policy)


@pytest.mark.parametrize("ridge", [0.1, 1e-5])
def test_the_mismatch_is_the_ridge_times_the_weights(ridge):
    problem = random_problem(2, jm.EuclideanBall((1.0, 2.0, 3.0)), shape=Shape.DENSE)
    answer = jm.solve(problem, jm.solvers.MaximumEntropy(ridge=ridge, tolerance=1e-9))
    dual = EntropyDual(problem)
    z = dual.rate * dual.factor * problem.difference(answer.occupancy.measure)
    np.testing.assert_allclose(z, ridge * answer.recovered / dual.factor, rtol=0, atol=2e-9)


def test_the_recovered_cost_is_that_of_a_soft_optimal_expert():
    world = random_world(4, Shape.DENSE, num_states=8, discount=0.95)
    rng = np.random.default_rng(1)
    basis = jm.CostBasis(rng.uniform(-1, 1, (world.num_pairs, 3)))
    true = np.array([1.0, -2.0, 0.5])
    expert = jm.policy.soft_plan(world, basis.on(world) @ true).policy
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    problem = jm.Apprenticeship(world, basis, target)
    answer = jm.solve(problem, jm.solvers.MaximumEntropy(tolerance=1e-10))
    np.testing.assert_allclose(answer.cost_weights, true, rtol=1e-5)
    np.testing.assert_allclose(answer.policy.per_pair, expert.per_pair, atol=1e-7)


@every_class
def test_no_policy_that_matches_is_more_random(kind):
    problem = solved_problem("grid, its own expert", kind())
    answer = jm.solve(problem, jm.solvers.MaximumEntropy())
    _, _, expert = jm.gallery.grid(6, macro_cells=3)
    exact = jm.solve(problem, jm.LinearProgram()).policy
    for other in (expert, exact) if kind is jm.InfinityBall else (expert,):
        assert causal_entropy(problem, other) < causal_entropy(problem, answer.policy)


def test_the_answer_does_not_depend_on_the_unit_of_costs():
    problem = random_problem(9, shape=Shape.DENSE)
    basis = jm.CostBasis(1e6 * problem.basis.matrix)
    target = jm.ExpertExpectation(1e6 * problem.target)
    large = jm.Apprenticeship(problem.world, basis, target)
    answer, other = (jm.solve(p, jm.solvers.MaximumEntropy()) for p in (problem, large))
    np.testing.assert_allclose(answer.policy.per_pair, other.policy.per_pair, atol=1e-9)
    np.testing.assert_allclose(answer.recovered, 1e6 * other.recovered, rtol=1e-6)


def test_a_constant_cost_more_changes_nothing():
    problem = random_problem(3, shape=Shape.DENSE)
    matrix = np.column_stack([problem.basis.matrix, np.ones(problem.world.num_pairs)])
    target = np.append(problem.target, problem.world.effective_horizon)
    more = jm.Apprenticeship(problem.world, jm.CostBasis(matrix), jm.ExpertExpectation(target))
    few, many = (jm.solve(p, jm.solvers.MaximumEntropy(tolerance=1e-9)) for p in (problem, more))
    np.testing.assert_allclose(few.policy.per_pair, many.policy.per_pair, atol=1e-6)


def test_costs_that_are_all_zero_leave_the_uniform_policy():
    world = random_world(0, Shape.DENSE)
    basis = jm.CostBasis(np.zeros((world.num_pairs, 2)))
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([0.0, 0.0]))
    answer = jm.solve(problem, jm.solvers.MaximumEntropy())
    assert answer.status is jm.Status.OPTIMAL
    np.testing.assert_allclose(answer.policy.per_pair, world.pairs.uniform)


def test_a_deterministic_expert_lies_on_the_edge_and_is_approached():
    world, basis, expert = jm.gallery.grid(8, macro_cells=2, randomness=0.0)
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    problem = jm.Apprenticeship(world, basis, target)
    answer = jm.solve(problem, jm.solvers.MaximumEntropy())
    assert mismatch(problem, answer.policy) <= 1e-5
    assert "out of reach" not in answer.log


def test_work_is_counted():
    problem = solved_problem("garnet", jm.InfinityBall())
    answer = jm.solve(problem, jm.solvers.MaximumEntropy())
    assert 0 < answer.work.iterations < answer.work.forward_solves
    assert (answer.work.environment_steps, answer.work.expert_queries) == (0, 0)


def test_a_short_run_says_so():
    problem = solved_problem("grid, its own expert", jm.InfinityBall())
    answer = jm.solve(problem, jm.solvers.MaximumEntropy(max_iterations=3))
    assert answer.status is jm.Status.STEP_LIMIT
    assert answer.work.iterations == 3
    assert answer.log.startswith("not matched")


def test_a_run_that_is_stopped_later_is_no_worse():
    problem = solved_problem("absorbing", jm.EuclideanBall())
    solvers = [jm.solvers.MaximumEntropy(max_iterations=most) for most in range(1, 16)]
    values = [jm.solve(problem, solver).value for solver in solvers]
    assert values == sorted(values, reverse=True)


def test_conjugate_gradients_solve_to_the_accuracy_asked():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(12, 12))
    matrix, right = root @ root.T + np.eye(12), rng.normal(size=12)
    for accuracy in (0.1, 1e-8):
        x = conjugate_gradients(lambda v: matrix @ v, right, accuracy)
        assert np.linalg.norm(matrix @ x - right) <= 1.01 * accuracy * np.linalg.norm(right)


@pytest.mark.parametrize(
    "wrong", [{"tolerance": 0.0}, {"tolerance": 2.0}, {"ridge": 0.0}, {"max_iterations": 0}]
)
def test_hyperparameters_are_checked(wrong):
    with pytest.raises(jm.errors.InvalidSolver, match=next(iter(wrong))):
        jm.solvers.MaximumEntropy(**wrong)


def test_budgets_and_known_costs_are_refused():
    with pytest.raises(jm.errors.InvalidProblem, match="budgets"):
        jm.solve(random_problem(0, num_budgets=1), jm.solvers.MaximumEntropy())
    world = random_world(0)
    forward = jm.Forward(world, np.ones(world.num_pairs))
    with pytest.raises(jm.errors.InvalidProblem, match="MaximumEntropy"):
        jm.solve(forward, jm.solvers.MaximumEntropy())


def trips(side, discount, seed=0, count=55, start=None, cut=None):
    """A deterministic grid with one way out, in a corner, and trips to it, complete or `cut`."""
    rng, end = np.random.default_rng(seed), side * side
    places = np.arange(end)
    down, right = np.divmod(places, side)
    steps = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    moved = [
        np.clip(down + i, 0, side - 1) * side + np.clip(right + j, 0, side - 1) for i, j in steps
    ]
    follows = np.append(np.column_stack(moved), np.full((1, 4), end), axis=0)
    follows[end - 1] = end
    law = np.zeros((4 * (end + 1), end + 1))
    law[np.arange(4 * (end + 1)), follows.ravel()] = 1.0
    initial = np.append(np.full(end, 1 / end), 0.0) if start is None else np.eye(end + 1)[start]
    world = jm.World(law, initial, discount)
    walking = (world.pairs.states != end).astype(float)
    basis = jm.CostBasis(np.column_stack([walking, walking * (world.pairs.states % side < 3)]))
    states, actions = [], []
    for _ in range(count):
        here, path, taken = int(rng.integers(end)) if start is None else start, [], []
        while here != end and len(taken) != cut:
            wanted = 0 if here < end - side else 1
            action = wanted if rng.random() < 0.8 else int(rng.integers(4))
            path.append(here)
            taken.append(action)
            here = int(follows[here, action])
        states.append([*path, here])
        actions.append(taken)
    ended = [path[-1] == end for path in states]
    demos = jm.Demonstrations.from_arrays(states, actions, ended, terminal_state=end)
    plain = jm.ExpertExpectation.from_demonstrations(
        demos, basis, world, method=jm.demonstrations.MonteCarlo()
    )
    return jm.Apprenticeship(world, basis, plain if cut is None else demos), states, actions


@pytest.mark.parametrize("discount", [0.99, 0.999, 0.9999, 0.99999])
def test_matched_means_a_small_part_of_a_trip(discount):
    """Whatever the discount: 1/(1 - discount) is up to 5,000 trips here."""
    problem, *_ = trips(12, discount)
    tolerance = 1e-4
    answer = jm.solve(problem, jm.solvers.MaximumEntropy(tolerance=tolerance))
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert answer.log.startswith("matched")
    reached = jm.occupancy(problem.world, answer.policy).expectations(problem.basis)
    trip = np.linalg.norm(problem.target)
    assert 5 < trip < 50
    assert np.linalg.norm(reached - problem.target) <= tolerance * trip
    assert EntropyDual(problem).size <= trip * (1 + 1e-9)


def test_the_recovered_cost_hardly_depends_on_a_discount_near_one():
    """Trips are over long before the discount matters."""
    found = [
        jm.solve(trips(8, discount)[0], jm.solvers.MaximumEntropy()).recovered
        for discount in (0.9999, 0.99999)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=0.02, atol=0.01)


def test_the_unit_is_at_most_what_policies_can_differ_by():
    """Everybody pays 1 for two steps; only a tenth of a step can be chosen."""
    world = jm.World(
        [[0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], [1, 0, 0], 0.999, choice_offsets=[0, 2, 3, 4]
    )
    basis = jm.CostBasis([1.0, 1.1, 1.0, 0.0])
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation([2.03]))
    assert EntropyDual(problem).size == pytest.approx(0.1, rel=1e-3)
    answer = jm.solve(problem, jm.solvers.MaximumEntropy())
    assert answer.log.startswith("matched")
    assert jm.occupancy(world, answer.policy).expectations(basis) == pytest.approx([2.03], abs=2e-7)


@pytest.mark.parametrize("target", [[0.0, 0.0], [3.0, -1.0]])
def test_targets_of_no_size_and_targets_outside(target):
    """A unit always exists; nothing is promised but a status that is true."""
    world = random_world(1, Shape.ABSORBING, num_states=5, discount=0.99)
    costs = np.random.default_rng(0).uniform(-1, 1, (world.num_pairs, 2))
    costs[world.pairs.offsets[-2] :] = 0.0
    problem = jm.Apprenticeship(world, jm.CostBasis(costs), jm.ExpertExpectation(target))
    answer = jm.solve(problem, jm.solvers.MaximumEntropy())
    off = jm.EuclideanBall().gap(problem.difference(jm.occupancy(world, answer.policy).measure))
    if answer.log.startswith("matched"):
        assert off <= 1.01e-6 * EntropyDual(problem).size
    else:
        assert answer.log.startswith("out of reach")
        least = jm.solve(
            jm.Apprenticeship(world, problem.basis, problem.expectation, jm.EuclideanBall()),
            jm.LinearProgram(),
        ).value
        assert 0 < least <= off <= 1.26 * least


def surprise(problem, states, actions, weights, base):
    """-sum base^t log pi(a_t | x_t) of the soft-optimal policy."""
    world = problem.world
    law = jm.policy.soft_plan(world, problem.cost_of(np.asarray(weights))).policy.per_pair
    return -sum(
        base**t * np.log(law[world.pairs.offsets[x] + a])
        for path, taken in zip(states, actions, strict=True)
        for t, (x, a) in enumerate(zip(path, taken, strict=False))
    )


def test_complete_records_are_most_likely_when_decisions_are_discounted():
    """A start in one state and no luck on the way: the dual is the discounted log-likelihood."""
    problem, states, actions = trips(6, 0.9, start=0)
    w = jm.solve(problem, jm.solvers.MaximumEntropy()).recovered
    least = surprise(problem, states, actions, w, 0.9)
    for change in 0.05 * np.vstack([np.eye(2), -np.eye(2), [[1, -1]], [[-1, 1]]]):
        assert surprise(problem, states, actions, w + change, 0.9) > least


def test_records_that_are_cut_off_have_a_likelier_cost():
    """So the recovered cost is not called the most plausible one."""
    problem, states, actions = trips(6, 0.9, start=0, cut=4)
    w = jm.solve(problem, jm.solvers.MaximumEntropy()).recovered
    likeliest = minimize(
        lambda v: surprise(problem, states, actions, v, 1.0), w, method="Nelder-Mead",
        options={"maxfev": 120},
    )  # fmt: skip
    assert surprise(problem, states, actions, w, 1.0) > likeliest.fun + 0.5
