"""Maximum margin planning against its quadratic program in CVXPY, and its guarantee."""

import cvxpy as cp
import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers.classics.answering import expert_policy
from journeyman.solvers.classics.maximum_margin_planning import (
    MarginObjective,
    best_mixture,
    loss_of,
)
from journeyman.testing import Shape, random_problem
from solved_problems import DEMONSTRATED, solved_problem

CLASSES = [jm.InfinityBall(), jm.Simplex(), jm.EuclideanBall()]


def naive_loss(problem):
    """1 - frequency of the action in the state; 1 where the state was never seen."""
    pairs, demos = problem.world.pairs, problem.demonstrations
    counts = np.zeros(len(pairs))
    for state, action in zip(demos.step_states, demos.actions, strict=True):
        counts[pairs.offsets[state] + action] += 1
    totals = np.add.reduceat(counts, pairs.offsets[:-1])[pairs.states]
    return 1 - np.divide(counts, totals, out=np.zeros(len(pairs)), where=totals > 0)


def quadratic_program(problem, loss, regulariser, nonnegative=False):
    """The objective's least value and its weights, with the values of the inner plan as variables.

    The largest of <loss - c_w, mu> over occupancies is the least <initial, V> with
    B V - discount P V >= loss - c_w.
    """
    world, scale = problem.world, problem.cost_class.scaling(problem.basis.num_costs)
    Psi = problem.cost_matrix
    dense = Psi.toarray() if hasattr(Psi, "toarray") else Psi
    N = np.abs(dense * scale).max()
    w, V = cp.Variable(scale.size), cp.Variable(world.num_states)
    flow = world.flow.matrix().toarray()
    horizon = 1 / (1 - world.discount)
    objective = (
        horizon * regulariser / 2 * cp.sum_squares(cp.multiply(N / scale, w))
        + w @ problem.target + world.initial @ V
    )  # fmt: skip
    signs = [w >= 0] if nonnegative else []
    program = cp.Problem(cp.Minimize(objective), [flow @ V >= loss - dense @ w, *signs])
    settings = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    return program.solve(solver=cp.CLARABEL, **settings), w.value


def watched(problem, solver):
    """The answer, and the objective and lower bound of every iteration."""
    trace = []
    answer = jm.solve(problem, solver, observer=trace.append)
    return answer, np.array([[event.objective, event.lower_bound] for event in trace])


@pytest.mark.parametrize("name", DEMONSTRATED)
@pytest.mark.parametrize("cost_class", CLASSES, ids=lambda kind: type(kind).__name__)
def test_the_objective_and_the_weights_are_those_of_the_quadratic_program(name, cost_class):
    problem = solved_problem(name, cost_class)
    answer, trace = watched(problem, jm.solvers.MaximumMarginPlanning(0.05, accuracy=1e-7))
    least, weights = quadratic_program(problem, naive_loss(problem), 0.05)
    allowed = 1e-7 * problem.effective_horizon
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert least - 1e-6 <= trace[-1, 0] <= least + allowed + 1e-6
    assert trace[-1, 1] <= least + 1e-6
    assert trace[-1, 0] - trace[-1, 1] <= allowed
    assert answer.recovered == pytest.approx(weights, abs=1e-2 * np.abs(weights).max())


@pytest.mark.parametrize("shape", list(Shape), ids=lambda shape: shape.name)
def test_worlds_of_every_shape_and_scale(shape):
    scale = [0.5, 1.0, 3.0]
    problem = random_problem(2, jm.InfinityBall(scale), shape=shape, trajectories=15)
    answer, trace = watched(problem, jm.solvers.MaximumMarginPlanning(0.1, accuracy=1e-8))
    least, weights = quadratic_program(problem, naive_loss(problem), 0.1)
    assert trace[-1, 0] == pytest.approx(least, abs=1e-6)
    assert answer.recovered == pytest.approx(weights, abs=2e-3 * max(1, np.abs(weights).max()))


@pytest.mark.parametrize("corrective", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_weights_can_be_kept_from_negative_values(seed, corrective):
    """Those of a garnet's costs of both signs, where the unrestricted ones are partly negative."""
    problem = random_problem(seed, jm.InfinityBall(), shape=Shape.SPARSE, trajectories=15)
    loss = naive_loss(problem)
    accuracy = 1e-7 if corrective else 3e-3
    solver = jm.solvers.MaximumMarginPlanning(
        0.1, nonnegative=True, corrective=corrective, accuracy=accuracy
    )
    answer, trace = watched(problem, solver)
    least, weights = quadratic_program(problem, loss, 0.1, nonnegative=True)
    allowed = accuracy * problem.effective_horizon
    assert answer.status is jm.Status.CONVERGED
    assert least - 1e-6 <= trace[-1, 0] <= least + allowed + 1e-6
    assert least - allowed - 1e-6 <= trace[-1, 1] <= least + 1e-6
    assert (answer.recovered >= 0).all()
    if corrective:
        assert answer.recovered == pytest.approx(weights, abs=1e-2 * max(1, weights.max()))


@pytest.mark.parametrize("corrective", [False, True])
@pytest.mark.parametrize("name", DEMONSTRATED)
def test_bounds_close_as_fast_as_the_guarantee_says(name, corrective):
    problem = solved_problem(name, jm.InfinityBall())
    regulariser, count = 0.5, 60
    solver = jm.solvers.MaximumMarginPlanning(
        regulariser, corrective=corrective, accuracy=1e-9, max_iterations=count
    )
    _, trace = watched(problem, solver)
    rows = problem.basis.matrix
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    D = 2 * np.linalg.norm(dense, axis=1).max() / np.abs(dense).max()
    plans = np.arange(1, len(trace) + 1)
    guaranteed = 27 / 4 * D**2 / (regulariser * (plans + 1)) * problem.effective_horizon
    assert (trace[:, 0] - trace[:, 1] <= guaranteed)[2:].all()
    assert (np.diff(trace[:, 0]) <= 0).all()
    assert (np.diff(trace[:, 1]) >= 0).all()
    least, _ = quadratic_program(problem, naive_loss(problem), regulariser)
    assert (trace[:, 0] >= least - 1e-6).all()
    assert (trace[:, 1] <= least + 1e-6).all()


def test_the_papers_step_ends_where_the_best_mixture_ends():
    problem = solved_problem("garnet, demonstrations", jm.InfinityBall())
    slow, steps = watched(
        problem, jm.solvers.MaximumMarginPlanning(0.1, corrective=False, accuracy=3e-3)
    )
    fast, mixtures = watched(problem, jm.solvers.MaximumMarginPlanning(0.1, accuracy=3e-3))
    assert slow.status is jm.Status.CONVERGED
    assert steps[-1, 0] == pytest.approx(mixtures[-1, 0], abs=3e-3 * problem.effective_horizon)
    assert slow.work.iterations > fast.work.iterations
    assert slow.work.forward_solves == slow.work.iterations + 1


@pytest.mark.parametrize("seed", range(3))
def test_every_plan_bounds_the_objective_everywhere(seed):
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, shape=Shape.RAGGED, trajectories=10)
    loss = loss_of(expert_policy(problem, None, "test"))
    assert loss == pytest.approx(naive_loss(problem))
    objective = MarginObjective(problem, loss, 0.3)
    here, there = rng.normal(size=(2, 3))
    plane, other = objective.plane(here), objective.plane(there)
    planned = 0.15 * here @ here + plane.loss - plane.features @ here
    assert planned == pytest.approx(plane.value, abs=1e-8)
    assert other.value >= 0.15 * there @ there + plane.loss - plane.features @ there - 1e-9


def test_the_best_mixture_is_the_best():
    rng = np.random.default_rng(0)
    features, losses = rng.normal(size=(9, 3)), rng.random(9)
    theta = best_mixture(features, losses, 0.2)
    value = losses @ theta - np.sum((theta @ features) ** 2) / 0.4
    x = cp.Variable(9, nonneg=True)
    dual = losses @ x - cp.sum_squares(features.T @ x) / 0.4
    best = cp.Problem(cp.Maximize(dual), [cp.sum(x) == 1]).solve(solver=cp.CLARABEL)
    assert theta.sum() == pytest.approx(1.0)
    assert value == pytest.approx(best, abs=1e-7)


def test_an_expert_that_can_be_explained_is_explained():
    """As the regulariser goes to 0 the expert becomes optimal by a margin, where a cost exists."""
    world, basis, expert = jm.gallery.grid(5, macro_cells=3, randomness=0, seed=4)
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    problem = jm.Apprenticeship(world, basis, target)
    solver = jm.solvers.MaximumMarginPlanning(1e-6, expert=expert, accuracy=1e-4)
    answer = jm.solve(problem, solver)
    cost = problem.cost_of(answer.recovered)
    paid = jm.expected_cost(world, expert, cost)
    assert paid == pytest.approx(jm.expected_cost(world, answer.policy, cost), rel=1e-2)
    assert "the expert's policy is given" in answer.log


def test_units_do_not_matter():
    problem = solved_problem("grid, one start", jm.InfinityBall())
    basis = jm.CostBasis(1e3 * problem.basis.matrix)
    scale = np.full(basis.num_costs, 2.0)
    larger = jm.Apprenticeship(problem.world, basis, problem.demonstrations, jm.InfinityBall(scale))
    solver = jm.solvers.MaximumMarginPlanning(0.1)
    one, other = jm.solve(problem, solver), jm.solve(larger, solver)
    assert 1e3 * other.recovered == pytest.approx(one.recovered, rel=1e-4, abs=1e-5)


def test_what_cannot_be_used_is_refused():
    problem = solved_problem("garnet", jm.InfinityBall())
    with pytest.raises(
        jm.errors.InvalidProblem, match="MaximumMarginPlanning needs demonstrations"
    ):
        jm.solve(problem, jm.solvers.MaximumMarginPlanning())
    with pytest.raises(jm.errors.InvalidSolver, match="regulariser = 0"):
        jm.solvers.MaximumMarginPlanning(0)
