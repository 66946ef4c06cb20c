"""What a person reads of a certificate: true, and nothing that matters left out."""

import numpy as np
import pytest

import journeyman as jm


@pytest.fixture(scope="module")
def grid():
    world, basis, expert = jm.gallery.grid(5, macro_cells=2)
    return world, basis, expert, jm.record(world, expert, trajectories=600, horizon=120, seed=0)


def test_the_summary_has_bound_probability_and_grounds(grid):
    world, basis, expert, demos = grid
    certificate = jm.certify(jm.Apprenticeship(world, basis, demos), expert)
    said = certificate.summary()
    assert said.startswith("With probability 0.95 the policy costs at most")
    assert f"{certificate.bound:.4g} more than the expert" in said
    assert "declared: independent trajectories" in said


def test_a_negative_bound_says_less_instead_of_more(grid):
    world, basis, expert, _ = grid
    spent = jm.occupancy(world, expert).expectations(basis)
    dearer = jm.Apprenticeship(world, basis, jm.ExpertExpectation(spent + 1.0), jm.Simplex())
    certificate = jm.certify(dearer, expert)
    assert certificate.bound == pytest.approx(-1.0)
    assert "the policy costs at least 1 less than the expert" in certificate.summary()


def test_a_budget_that_is_not_kept_is_said_everywhere(grid):
    world, basis, expert, demos = grid
    budget = jm.Budget(cost=np.ones(25), at_most=1.0, name="time")
    problem = jm.Apprenticeship(world, basis, demos, constraints=budget)
    certificate = jm.certify(problem, expert)
    assert "'time' is NOT shown to be kept: up to 20 may be spent, 19 more" in certificate.summary()
    assert "1 of 1 budgets NOT certified" in repr(certificate)
    with pytest.raises(jm.NotCertified, match="by 19 more than allowed"):
        certificate.require(gap=40)


def test_nothing_is_called_probable_that_is_certain(grid):
    world, basis, expert, _ = grid
    forward = jm.Forward(world, np.arange(25) / 25)
    said = jm.certify(forward, expert).summary()
    assert said.startswith("The policy's expected cost is at most")
    exact = jm.ExpertExpectation(jm.occupancy(world, expert).expectations(basis))
    declared = jm.certify(jm.Apprenticeship(world, basis, exact), expert).summary()
    assert declared.startswith("If the declared expectations are the expert's, the policy costs")
    assert "probability" not in said + declared


def test_a_failed_premise_comes_first_and_alone(grid):
    world, basis, expert, demos = grid
    elsewhere = jm.World(world.transition, np.eye(25)[0], world.discount)
    certificate = jm.certify(jm.Apprenticeship(elsewhere, basis, demos), expert)
    assert certificate.summary().startswith("Nothing is certified because a premise failed")
    assert certificate.advice().startswith("A premise has failed")
    assert "probability" not in repr(certificate)


def test_advice_about_samples_of_the_policy(grid):
    world, basis, expert, demos = grid
    problem = jm.Apprenticeship(world, basis, demos)
    sampled = jm.certify(problem, expert, evaluation=jm.Rollouts(50, 100, 0))
    assert "evaluated exactly" in sampled.advice()
    assert "evaluated exactly" not in jm.certify(problem, expert).advice()


@pytest.mark.parametrize("gap", [float("nan"), -1.0, 0.0])
def test_what_is_not_shown_is_not_passed(grid, gap):
    world, basis, expert, demos = grid
    with pytest.raises(jm.NotCertified):
        jm.certify(jm.Apprenticeship(world, basis, demos), expert).require(gap=gap)


def test_a_problem_is_asked_for(grid):
    _, _, expert, demos = grid
    with pytest.raises(jm.InvalidProblem, match="a Demonstrations is not a problem"):
        jm.certify(demos, expert)


def test_a_lower_bound_that_says_nothing_is_not_said(grid):
    world, basis, expert, demos = grid
    attained = jm.certify(jm.Apprenticeship(world, basis, demos), expert)
    assert attained.lower_bound <= 1e-9
    assert "on this data its gap is" in attained.summary()
    assert "no policy can be below" not in attained.summary()
    spent = jm.occupancy(world, expert).expectations(basis)
    cheaper = jm.ExpertExpectation(spent - 0.5)
    problem = jm.Apprenticeship(world, basis, cheaper)
    solved = jm.certify(problem, jm.solve(problem))
    assert solved.lower_bound > 0
    assert f"and no policy can be below {solved.lower_bound:.4g}" in solved.summary()
    for cost, said in ((np.zeros(25), False), (np.arange(25) - 30.0, True)):
        forward = jm.Forward(world, cost)
        words = jm.certify(forward, jm.solve(forward)).summary()
        assert ("no policy can be below" in words) is said
