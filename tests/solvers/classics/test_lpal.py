"""LPAL is `LinearProgram` with `Simplex`: the program as its paper writes it, solved elsewhere.

Syed, Bowling and Schapire 2008 maximise B over occupancies x such that the apprentice earns at
least B more than the expert in every reward feature:

    B <= sum_sa x_sa R^i_sa - V^i_E,      sum_a x_sa = alpha_s + discount sum_s'a x_s'a theta_s'as,

x >= 0. The policy is x_sa/sum_b x_sb.
"""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

import journeyman as jm
from solved_problems import NAMES, solved_problem

SIMPLEX = jm.Simplex()


def lpal(problem):
    """B and x by HiGHS, from rewards and transitions alone."""
    world = problem.world
    rewards = -sparse.csr_array(problem.cost_matrix)
    leaving = sparse.csr_array(
        (np.ones(world.num_pairs), (world.pairs.states, np.arange(world.num_pairs))),
        shape=(world.num_states, world.num_pairs),
    )
    flow = leaving - world.discount * sparse.csr_array(world.transition).T
    ones = sparse.csr_array(np.ones((problem.basis.num_costs, 1)))
    nothing = sparse.csr_array((world.num_states, 1))
    found = linprog(
        np.r_[np.zeros(world.num_pairs), -1.0],
        A_ub=sparse.hstack([-rewards.T, ones]), b_ub=problem.target,
        A_eq=sparse.hstack([flow, nothing]), b_eq=world.initial,
        bounds=[(0, None)] * world.num_pairs + [(None, None)], method="highs",
    )  # fmt: skip
    assert found.success, found.message
    return found.x[-1], found.x[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_the_least_gap_is_minus_what_lpal_earns(name):
    problem = solved_problem(name, SIMPLEX)
    answer = jm.solve(problem, jm.LinearProgram())
    earned, _ = lpal(problem)
    assert answer.status is jm.Status.OPTIMAL
    assert answer.value == pytest.approx(-earned, abs=1e-6 * problem.gap_scale)


@pytest.mark.parametrize("name", NAMES)
def test_the_policy_of_lpal_is_an_optimum_of_ours_and_ours_of_lpal(name):
    problem = solved_problem(name, SIMPLEX)
    answer = jm.solve(problem, jm.LinearProgram())
    earned, measure = lpal(problem)
    slack = 1e-6 * problem.gap_scale
    theirs = jm.policy.extract(problem.world, measure)
    assert problem.gap(theirs) <= answer.value + slack
    ours = -np.asarray(problem.cost_matrix.T @ answer.occupancy.measure)
    assert (ours + problem.target).min() >= earned - slack


def test_of_the_optima_of_lpal_ours_surpasses_the_expert_most():
    problem = solved_problem("driving", SIMPLEX)
    answer = jm.solve(problem, jm.LinearProgram())
    _, measure = lpal(problem)
    surplus = -problem.difference(measure).sum()
    assert answer.total_surplus >= surplus - 1e-6 * problem.gap_scale
    assert answer.total_surplus > 0.1
