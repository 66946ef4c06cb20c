"""Costs that are functions of features: gradients, trees, and what both methods promise."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

import journeyman as jm
from journeyman.errors import InvalidCosts, InvalidProblem, InvalidSolver
from journeyman.policy import soft_plan
from journeyman.solvers import FeatureConstruction, GaussianProcessCosts, NonlinearCost
from journeyman.solvers.classics import gaussian_process_costs
from journeyman.solvers.classics.feature_construction import (
    Record,
    best_split,
    consistent_costs,
    grown,
    single_leaf,
)
from journeyman.solvers.classics.gaussian_process_costs import Posterior
from journeyman.solvers.classics.maximum_likelihood import Decisions
from journeyman.solvers.nonlinear_cost import FeatureRows, KernelExpansion, RegressionTree
from journeyman.testing import random_problem

METHODS = [GaussianProcessCosts(max_iterations=40), FeatureConstruction(max_iterations=3)]
both = pytest.mark.parametrize("solver", METHODS, ids=lambda one: type(one).__name__)


def objects(size=8, seed=3, episodes=16, **settings):
    example = jm.gallery.objectworld(size, seed=seed, **settings)
    demos = jm.record(example.world, example.expert, trajectories=episodes, horizon=8, seed=seed)
    return example, jm.Apprenticeship(example.world, example.basis, demos)


def posterior(problem, inducing=20, seed=0):
    decisions = Decisions(problem.world, problem.basis, problem.demonstrations)
    table = FeatureRows.of(problem.world, problem.basis)
    rng = np.random.default_rng(seed)
    return Posterior.of(decisions, table, inducing, 0.005, rng), rng


def test_the_slope_of_the_likelihood_is_a_difference_quotient():
    problem = random_problem(4, trajectories=10)
    decisions = Decisions(problem.world, problem.basis, problem.demonstrations)
    rng = np.random.default_rng(0)
    cost, aside = rng.normal(size=(2, problem.world.num_pairs))
    slope = decisions.slope(decisions.soft(cost, None)) @ aside

    def value(step):
        return decisions.log_likelihood(decisions.soft(cost + step * aside, None))

    assert slope == pytest.approx((value(1e-5) - value(-1e-5)) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("kind", ["indicators", "distances", "per pair"])
def test_the_gradient_of_the_posterior_is_a_difference_quotient(kind):
    if kind == "per pair":
        problem = random_problem(1, trajectories=10, num_states=12)
    else:
        problem = objects(5, continuous=kind == "distances", episodes=6)[1]
    found, rng = posterior(problem)
    point = found.start(rng)
    point[: found.num_inducing] = rng.normal(size=found.num_inducing)
    gradient = found.at(point).gradient
    steps = 1e-5 * np.eye(point.size)
    quotients = [
        (found.at(point + one).objective - found.at(point - one).objective) / 2e-5 for one in steps
    ]
    assert gradient == pytest.approx(np.array(quotients), rel=1e-5, abs=1e-5 * abs(gradient).max())


def test_the_posterior_is_that_of_its_formula():
    """By dense inverses and determinants, soft plans by value iteration."""
    problem = random_problem(2, trajectories=8, num_states=7)
    found, rng = posterior(problem, inducing=6)
    point = found.start(rng)
    point[:6] = rng.normal(size=6)
    u, beta, relevances = point[:6], np.exp(point[6]), np.exp(point[7:])
    apart = lambda x, y: (relevances * (x - y) ** 2).sum()  # noqa: E731
    rows, chosen = found.rows, found.inducing
    fading = np.exp(-0.005 * relevances.sum())
    inner = [
        [
            beta * (1.0 if i == j else fading * np.exp(-apart(x, y) / 2))
            for j, y in enumerate(chosen)
        ]
        for i, x in enumerate(chosen)
    ]
    outer = [[beta * fading * np.exp(-apart(x, y) / 2) for y in chosen] for x in rows]
    inverse = np.linalg.inv(inner)
    cost = (np.array(outer) @ inverse @ u)[found.table.of_pairs]
    world, values = problem.world, np.zeros(problem.world.num_states)
    for _ in range(2000):
        backup = cost + world.discount * (world.transition @ values)
        values = -np.log(np.bincount(world.pairs.states, np.exp(-backup)))
    taken = problem.demonstrations.pairs_in(world)
    likelihood = (values[world.pairs.states] - backup)[taken].sum()
    prior = -u @ inverse @ u / 2 - np.linalg.slogdet(inner)[1] / 2
    prior -= np.trace(inverse @ inverse) / 2 + np.log1p(relevances).sum()
    assert found.at(point).objective == pytest.approx(-(likelihood + prior), rel=1e-9)
    cost_of_rows = found.function(point)(found.table.rows)
    assert cost_of_rows[found.table.of_pairs] == pytest.approx(cost, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_converged_means_that_the_gradient_is_within_the_tolerance(seed, monkeypatch):
    problem, found = objects(6, seed=seed)[1], []
    descend = gaussian_process_costs._Search._descend

    def followed(self, start):
        point, value, status = descend(self, start)
        gradient = self.posterior.at(point).gradient
        found.append((status, np.abs(gradient[: self.posterior.num_inducing]).max()))
        return point, value, status

    monkeypatch.setattr(gaussian_process_costs._Search, "_descend", followed)
    for tolerance in (1e-3, 1e-5):
        solver = GaussianProcessCosts(tolerance=tolerance)
        assert jm.solve(problem, solver).status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
        status, steepest = found[-1]
        assert status is jm.Status.CONVERGED
        assert steepest <= 2 * tolerance  # soft plans begin elsewhere


def test_relevant_features_are_found():
    example, problem = objects(10, seed=1, episodes=64)
    learned = jm.solve(problem, GaussianProcessCosts()).nonlinear
    most = np.argsort(-learned.function.relevances)[:6]
    names = {example.basis.names[k] for k in most}
    assert {"outer 1 closer than 3", "outer 2 closer than 2"} <= names


def lost(example, cost):
    world, own = example.world, example.cost
    paid = [
        jm.expected_cost(world, one, own)
        for one in (jm.plan(world, cost).policy, jm.plan(world, own).policy,
                    jm.Policy.uniform(world))
    ]  # fmt: skip
    return (paid[0] - paid[1]) / (paid[2] - paid[1])


@pytest.mark.parametrize("solver", [GaussianProcessCosts(), FeatureConstruction()],
                         ids=lambda one: type(one).__name__)  # fmt: skip
@pytest.mark.parametrize("worlds", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_they_beat_linear_costs_where_costs_are_not_linear(solver, worlds):
    losses = []
    for seed in range(worlds):
        example, problem = objects(10, seed=seed, episodes=64)
        answer = jm.solve(problem, solver)
        linear = jm.solve(problem, jm.solvers.MaximumEntropy()).recovered
        weighted = example.basis.on(example.world) @ linear
        losses.append([lost(example, one) for one in (answer.nonlinear.per_pair, weighted)])
    own, other = np.median(losses, axis=0)
    assert own < 0.03
    assert own < other / 2


@both
def test_the_answer_is_a_policy_for_its_cost(solver):
    example, problem = objects()
    answer = jm.solve(problem, solver)
    learned = answer.nonlinear
    assert isinstance(learned, NonlinearCost)
    assert answer.recovered is None
    assert learned.remark in answer.log
    if isinstance(solver, FeatureConstruction):
        best = jm.plan(example.world, learned.per_pair).policy
    else:
        best = soft_plan(example.world, learned.per_pair).policy
    assert answer.policy.per_pair == pytest.approx(best.per_pair, abs=1e-6)
    certificate = jm.certify(problem, answer)
    assert certificate.bound >= problem.gap(answer.policy)


@both
def test_the_function_is_the_cost_here_and_elsewhere(solver):
    example, problem = objects()
    learned = jm.solve(problem, solver).nonlinear
    again = learned.on(example.world, example.basis)
    assert again == pytest.approx(learned.per_pair, rel=1e-12, abs=1e-12)
    shuffled = np.random.default_rng(0).permutation(example.basis.num_costs)
    names = [example.basis.names[k] for k in shuffled]
    basis = jm.CostBasis(np.asarray(example.basis.matrix)[:, shuffled], names)
    assert learned.on(example.world, basis) == pytest.approx(learned.per_pair, abs=1e-12)
    state = np.asarray(example.basis.matrix)[[5]]
    assert learned.at(state)[0] == pytest.approx(learned.per_pair[5 * 5], abs=1e-12)
    with pytest.raises(InvalidCosts, match="same features"):
        learned.on(example.world, jm.CostBasis(np.ones((64, 1)), ["another"]))
    with pytest.raises(InvalidCosts, match="one column per feature"):
        learned.at([[1.0]])


@both
def test_in_a_world_with_a_horizon_it_is_the_cost_of_a_step(solver):
    example, problem = objects()
    learned = jm.solve(problem, solver).nonlinear
    there = example.world.with_horizon(6, 0.8)
    found = learned.on(there, example.basis)
    lifted = there.layers.lifted(learned.per_pair, there.pairs)
    assert found == pytest.approx(lifted, abs=1e-9)
    values, base = np.zeros(example.world.num_states), example.world
    for _ in range(6):  # backwards from the end
        values = base.pairs.smallest(learned.per_pair + 0.8 * base.transition @ values)
    least = jm.expected_cost(there, jm.plan(there, found).policy, found)
    assert least == pytest.approx(base.initial @ values)


@both
def test_rewards_and_sparse_features_are_costs_like_others(solver):
    example, problem = objects()
    plain = jm.solve(problem, solver)
    matrix = sparse.csr_array(np.asarray(example.basis.matrix))
    same = jm.Apprenticeship(
        example.world, jm.CostBasis(matrix, example.basis.names), problem.demonstrations
    )
    assert np.array_equal(jm.solve(same, solver).policy.per_pair, plain.policy.per_pair)


def test_what_is_outside_is_what_least_squares_leave():
    example, problem = objects(8, seed=0)
    assert set(example.cost) == {-1.0, 0.0, 1.0}
    table = FeatureRows.of(example.world, example.basis)
    names = example.basis.names
    near, nearer = (names.index(f"outer {k} closer than {4 - k}") for k in (1, 2))
    one = tree_of([near, -1, -1], [1, 0, 0], [2, 0, 0], [0.0, -1.0, 3.0])
    inside = NonlinearCost.of(problem, table, one)
    assert inside.outside == pytest.approx(0.0, abs=1e-6)
    assert "is a combination" in inside.remark
    assert NonlinearCost.of(problem, table, single_leaf()).outside == 0.0
    both_tests = tree_of(
        [near, -1, nearer, -1, -1], [1, 0, 3, 0, 0], [2, 0, 4, 0, 0], [0.0, 0.0, 0.0, 1.0, -1.0]
    )
    conjunction = NonlinearCost.of(problem, table, both_tests)
    cost = conjunction.per_pair
    assert np.array_equal(cost, example.cost[example.world.pairs.states])
    basis = np.repeat(np.asarray(example.basis.matrix), 5, axis=0)
    columns = np.column_stack([basis, np.ones(len(basis))])
    left = cost - columns @ np.linalg.lstsq(columns, cost, rcond=None)[0]
    assert conjunction.outside == pytest.approx(np.std(left) / np.std(cost), rel=1e-6)
    assert conjunction.outside > 0.1
    assert "no combination" in conjunction.remark


def tree_of(feature, left, right, value):
    thresholds = np.full(len(feature), 0.5)
    return RegressionTree(*(np.array(one) for one in (feature, thresholds, left, right, value)))


@pytest.mark.parametrize("seed", range(4))
def test_trees_are_those_of_scikit_learn(seed):
    tree_module = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(seed)
    rows = np.unique(rng.normal(size=(40, 3)).round(1), axis=0)
    costs, counts = rng.normal(size=len(rows)), rng.integers(1, 4, len(rows))
    table = FeatureRows(rows, np.repeat(np.arange(len(rows)), counts))
    for leaves, tree in enumerate(grown(table, costs, 9), start=1):
        assert tree.num_leaves == leaves
        if leaves == 1:
            assert tree(rows) == pytest.approx(np.average(costs, weights=counts))
            continue
        peer = tree_module.DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0)
        peer.fit(rows, costs, sample_weight=counts)
        assert tree(rows) == pytest.approx(peer.predict(rows), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_a_split_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 3, size=(12, 2)).astype(float)
    costs, weights = rng.normal(size=12), rng.uniform(0.5, 2, 12)

    def error(part):
        if not part.any():
            return np.inf
        middle = np.average(costs[part], weights=weights[part])
        return weights[part] @ (costs[part] - middle) ** 2

    all_rows = np.ones(12, dtype=bool)
    falls = [
        error(all_rows) - error(rows[:, k] <= limit) - error(rows[:, k] > limit)
        for k in range(2)
        for limit in (0.5, 1.5)
    ]
    found = best_split(rows, costs, weights)
    assert found.gain == pytest.approx(max(0.0, *falls))
    below = rows[:, found.feature] <= found.threshold
    assert error(all_rows) - error(below) - error(~below) == pytest.approx(found.gain)


def test_neighbouring_floats_are_parted():
    low = 1.0
    high = np.nextafter(low, 2)
    split = best_split(np.array([[low], [high]]), np.array([0.0, 1.0]), np.ones(2))
    assert low <= split.threshold < high


@pytest.mark.parametrize("seed", range(3))
def test_the_optimisation_step_is_the_minimum_of_its_program(seed):
    """Against the same objective written with the policy's values as an inverse matrix."""
    problem = random_problem(seed, trajectories=6, num_states=5)
    world = problem.world
    decisions = Decisions(world, problem.basis, problem.demonstrations)
    record, table = Record.of(decisions), FeatureRows.of(world, problem.basis)
    leaf = np.arange(len(table.rows)) % 2
    law = np.where(record.states[world.pairs.states], record.law, world.pairs.uniform)
    size, states = world.num_pairs, world.num_states
    mean = np.zeros((states, size))
    mean[world.pairs.states, np.arange(size)] = law
    laws = world.transition.toarray()
    values = np.linalg.solve(np.eye(states) - world.discount * mean @ laws, mean)
    spread = np.eye(states)[world.pairs.states]
    gains = np.eye(size) + world.discount * laws @ values - spread @ values
    gains = gains[record.rivals][:, :] @ np.eye(len(table.rows))[table.of_pairs]
    share = table.counts / size

    def objective(costs, penalty):
        middles = np.bincount(leaf, share * costs) / (np.bincount(leaf, share) * (1 + 1e-3))
        fit = share @ (costs - middles[leaf]) ** 2 + 1e-3 * share @ middles[leaf] ** 2
        return fit + penalty * record.weights @ np.maximum(0, 1 - gains @ costs)

    for penalty in (1.0, 300.0):
        found = consistent_costs(decisions, record, table, leaf, law, penalty)
        least = objective(found, penalty)
        rng = np.random.default_rng(seed)
        for length in (1e-4, 1e-2, 1.0):
            for _ in range(20):
                aside = found + length * rng.normal(size=found.size)
                assert objective(aside, penalty) >= least - 1e-6 * (1 + abs(least))
        other = minimize(objective, found, args=(penalty,), method="Nelder-Mead",
                         options={"maxfev": 2000}).fun  # fmt: skip
        assert other >= least - 1e-5 * (1 + abs(least))


@both
def test_what_it_cannot_do_is_refused(solver):
    example, problem = objects()
    with pytest.raises(InvalidProblem, match="horizon"):
        jm.solve(
            jm.Apprenticeship(
                example.world.with_horizon(8, 1.0), example.basis, problem.demonstrations
            ),
            solver,
        )
    target = jm.occupancy(example.world, example.expert).expectations(example.basis)
    declared = jm.Apprenticeship(example.world, example.basis, jm.ExpertExpectation(target))
    with pytest.raises(InvalidProblem, match="needs demonstrations"):
        jm.solve(declared, solver)


@pytest.mark.parametrize("penalties", [(), (0.0,), (1.0, -1.0), [1.0], 3.0])
def test_penalties_are_positive_numbers(penalties):
    with pytest.raises(InvalidSolver):
        FeatureConstruction(penalties=penalties)


@both
def test_functions_survive_a_file(solver):
    learned = jm.solve(objects()[1], solver).nonlinear
    again = NonlinearCost.of_arrays(learned.names, learned.arrays())
    assert type(again.function) is type(learned.function)
    rows = np.random.default_rng(0).uniform(size=(9, len(learned.names)))
    assert np.array_equal(again.at(rows), learned.at(rows))
    assert again.outside == learned.outside


def test_damaged_functions_are_refused():
    tree = NonlinearCost(("a",), single_leaf(), np.zeros(3), 0.0).arrays()
    endless = tree | {"feature": np.array([0]), "left": np.array([0]), "right": np.array([0])}
    ones = np.ones(1)
    kernel = NonlinearCost(
        ("a",), KernelExpansion(np.ones((1, 1)), ones, ones, ones), np.zeros(3), 0.0
    ).arrays()
    broken = [
        endless, tree | {"feature": np.array([1]), "left": np.array([1]), "right": np.array([1])},
        tree | {"value": np.zeros(2)}, kernel | {"scale": np.ones(2)},
        kernel | {"centres": np.ones((2, 1))}, {"per_pair": ones},
    ]  # fmt: skip
    for arrays in broken:
        with pytest.raises(InvalidCosts, match="save it again"):
            NonlinearCost.of_arrays(("a",), arrays)
