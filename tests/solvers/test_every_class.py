"""Solvers over features, mixtures and the master problem, on cost classes beyond the paper's."""

import cvxpy as cp
import numpy as np
import pytest

import journeyman as jm
from class_examples import NAMES, example
from corridors import made
from journeyman.problem import Reduced
from journeyman.problem.surrogate import Surrogate
from journeyman.solvers.policy_mixture import best_weights
from journeyman.testing import random_problem
from naive.exact_program import gap_of

every = pytest.mark.parametrize("name", NAMES)
NUM_COSTS = 3


def surrogate_of(name):
    problem = random_problem(1, example(name, NUM_COSTS), num_costs=NUM_COSTS, trajectories=10)
    features = jm.features.partition(problem.world, problem.demonstrations, num_cells=6)
    return problem, features, Surrogate(Reduced(problem, features), jm.ExactPenalty())


def least_loss(surrogate):
    """The surrogate in CVXPY."""
    reduced, penalties = surrogate.reduced, surrogate.penalties
    theta = cp.Variable(reduced.num_features)
    gap = gap_of(reduced.problem.cost_class, reduced.matching @ theta - reduced.matching_target)
    below = cp.sum(cp.pos(reduced.floor - reduced.pair_rows @ theta))
    missed = cp.norm1(reduced.flow_rows @ theta - reduced.flow_target)
    program = cp.Problem(cp.Minimize(gap + penalties.pairs * below + penalties.flow * missed))
    return float(program.solve(solver=cp.CLARABEL))


@every
def test_the_reduced_program_is_solved(name):
    problem, features, surrogate = surrogate_of(name)
    for engine in (None, jm.solvers.Engine.CLARABEL):
        answer = jm.solve(problem, jm.ReducedProgram(features, engine=engine))
        assert answer.status is jm.Status.CONVERGED
        expected = least_loss(surrogate)
        assert answer.reduced.loss == pytest.approx(expected, abs=1e-5 * problem.gap_scale)
        slack = 1e-6 * problem.gap_scale
        assert answer.reduced.loss - answer.reduced.loss_lower_bound <= slack


@every
def test_descent_ends_between_its_bound_and_its_start(name):
    problem, features, surrogate = surrogate_of(name)
    answer = jm.solve(problem, jm.StochasticSubgradient(features, steps=2000), seed=1)
    least = least_loss(surrogate)
    assert answer.reduced.loss_lower_bound <= least + 1e-6 * problem.gap_scale
    assert least - 1e-6 * problem.gap_scale <= answer.reduced.loss
    assert answer.reduced.loss < surrogate.value(np.zeros(features.num_features))


@every
@pytest.mark.parametrize("candidates", [1, 5])
def test_mixtures_have_the_least_gap(name, candidates):
    rng, cost_class = np.random.default_rng(candidates), example(name, NUM_COSTS)
    expectations, target = rng.normal(size=(candidates, NUM_COSTS)), rng.normal(size=NUM_COSTS)
    found = best_weights(expectations, target, cost_class)
    shares = cp.Variable(candidates, nonneg=True)
    program = cp.Problem(
        cp.Minimize(gap_of(cost_class, expectations.T @ shares - target)), [cp.sum(shares) == 1]
    )
    assert found.value == pytest.approx(program.solve(solver=cp.CLARABEL), abs=1e-6)
    assert found.value - found.lower_bound <= 1e-6
    assert found.weights.sum() == pytest.approx(1)


@every
def test_certificates_hold_on_average(name):
    """The gap to the expert's true expectations is below the bound, in nearly all of the runs."""
    cost_class = example(name, NUM_COSTS)
    base = random_problem(2, cost_class, num_costs=NUM_COSTS, trajectories=5)
    expert = jm.Policy.uniform(base.world)
    truth = jm.occupancy(base.world, expert).expectations(base.basis)
    broken = 0
    for seed in range(20):
        demos = jm.record(base.world, expert, trajectories=30, horizon=40, seed=seed)
        problem = jm.Apprenticeship(base.world, base.basis, demos, cost_class)
        answer = jm.solve(problem)
        certificate = jm.certify(problem, answer, failure_probability=0.1)
        reached = answer.occupancy.expectations(base.basis)
        broken += cost_class.gap(reached - truth) > certificate.bound
    assert broken <= 4


@every
def test_worlds_of_callables_are_learned_and_certified(name):
    cost_class, kit = example(name, NUM_COSTS), made()
    costs = jm.CostFunctions(
        lambda x, a: np.column_stack([x / 6, 1.0 * a, x > 3]), ["height", "effort", "top"],
        lowest=0, highest=1,
    )  # fmt: skip
    target = jm.ExpertExpectation([4.0, 9.0, 3.0])
    problem = jm.Apprenticeship(kit["world"], costs, target, cost_class)
    answer = jm.solve(problem, jm.StochasticSubgradient(kit["features"], steps=200), seed=1)
    for evaluation in (jm.Rollouts(trajectories=200, horizon=60), jm.SampledRows(rows=500)):
        certificate = jm.certify(problem, answer, failure_probability=0.1, evaluation=evaluation)
        assert certificate.valid
        assert certificate.bound <= certificate.trivial_bound * (1 + 1e-12)
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * NUM_COSTS)).reshape(NUM_COSTS, -1).T
    assert problem.gap_scale >= 20 * cost_class.pointwise_bound(corners) - 1e-9
