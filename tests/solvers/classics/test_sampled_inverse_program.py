"""Ng and Russell's method for trajectories: its program, its end, what it says about experts."""

import re

import cvxpy as cp
import numpy as np
import pytest

import journeyman as jm
from journeyman.testing import Shape, random_problem
from solved_problems import NAMES, solved_problem

VERDICTS = ("explained", "exhausted", "degenerate")


def exact(example, cost_class=None):
    world, basis, expert = example
    target = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    return jm.Apprenticeship(world, basis, target, cost_class)


def excess_of(answer):
    """By how much the expert is from optimal for the recovered cost, by planning anew."""
    problem = answer.problem
    cost = problem.cost_of(answer.recovered)
    least = jm.expected_cost(problem.world, jm.plan(problem.world, cost).policy, cost)
    return float(answer.recovered @ problem.target) - least


@pytest.mark.parametrize("name", NAMES)
def test_the_excess_is_what_the_log_says(name):
    answer = jm.solve(solved_problem(name, jm.InfinityBall()), jm.solvers.SampledInverseProgram())
    reported = float(re.search(r"at most (\S+) more", answer.log)[1])
    assert excess_of(answer) == pytest.approx(reported, rel=1e-4, abs=1e-5)
    assert answer.log.split(":")[0] in VERDICTS
    assert answer.status in (jm.Status.CONVERGED, jm.Status.OPTIMAL)
    assert np.abs(answer.recovered).max() == pytest.approx(1.0)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_weights_are_those_of_the_papers_program(count):
    """The rivals of `count` iterations, rebuilt with CVXPY's weights in place of ours."""
    scale = np.array([0.5, 1.0, 2.0])
    problem = random_problem(5, jm.InfinityBall(scale), shape=Shape.RAGGED)
    world, basis = problem.world, problem.basis
    rivals, found = [jm.occupancy(world, jm.Policy.uniform(world)).expectations(basis)], []
    for _ in range(count):
        w = cp.Variable(3)
        rows = np.array(rivals) - problem.target
        gained = cp.sum(cp.minimum(rows @ w, 2 * rows @ w))
        cp.Problem(cp.Maximize(gained), [cp.abs(w) <= scale]).solve(solver=cp.CLARABEL)
        policy = jm.plan(world, problem.cost_of(w.value)).policy
        rivals.append(jm.occupancy(world, policy).expectations(basis))
        found.append((float(w.value @ (problem.target - rivals[-1])), w.value))
    best, weights = min(found, key=lambda one: one[0])
    solver = jm.solvers.SampledInverseProgram(max_iterations=count)
    answer = jm.solve(problem, solver)
    assert answer.recovered == pytest.approx(weights, abs=1e-4)
    assert excess_of(answer) == pytest.approx(best, abs=1e-3)


def test_a_deterministic_expert_is_explained():
    example = jm.gallery.grid(4, macro_cells=2, randomness=0)
    problem = exact(example)
    answer = jm.solve(problem, jm.solvers.SampledInverseProgram())
    assert answer.log.startswith("explained: ")
    assert excess_of(answer) <= 1e-6 * problem.gap_scale
    cost = problem.cost_of(answer.recovered)
    uniform = jm.expected_cost(problem.world, jm.Policy.uniform(problem.world), cost)
    assert uniform > float(answer.recovered @ problem.target) + 0.1


def test_a_noisy_expert_is_exhausted():
    problem = exact(jm.gallery.grid(5, macro_cells=2, randomness=0.3))
    answer = jm.solve(problem, jm.solvers.SampledInverseProgram())
    assert answer.log.startswith("exhausted: ")
    assert excess_of(answer) > 0.01
    assert answer.work.forward_solves <= answer.work.iterations < 100


def test_an_expert_like_any_other_is_degenerate():
    """All costs are the same everywhere: nothing separates the expert from the uniform policy."""
    world, _, expert = jm.gallery.garnet(10, seed=0)
    problem = exact((world, jm.CostBasis(np.ones((10, 2)) * [1.0, -2.0]), expert))
    answer = jm.solve(problem, jm.solvers.SampledInverseProgram())
    assert answer.log.startswith("degenerate: ")
    assert not answer.recovered.any()
    assert answer.policy.per_pair == pytest.approx(world.pairs.uniform)


def test_demonstrations_are_enough():
    world, basis, expert = jm.gallery.grid(5, macro_cells=2, randomness=0, seed=1)
    demos = jm.record(world, expert, trajectories=100, horizon=100, seed=0)
    answer = jm.solve(jm.Apprenticeship(world, basis, demos), jm.solvers.SampledInverseProgram())
    uniform = answer.problem.gap(jm.Policy.uniform(world))
    assert answer.value < uniform / 3
