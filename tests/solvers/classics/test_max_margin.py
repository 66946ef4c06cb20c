"""The program of the max-margin method, against an independent solve of its dual and primal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import journeyman as jm
from journeyman.solvers.classics.nearest_mixture import MaxMargin, project
from solved_problems import SMALL, solved_problem

BALL = jm.EuclideanBall()


@given(seed=st.integers(0, 10_000), count=st.integers(1, 7))
def test_the_shares_are_those_of_the_nearest_point(seed, count):
    """Nearest if and only if no policy lies on the near side of the plane through the point."""
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(count, 3)) + rng.normal(size=3)
    shares = MaxMargin().reweigh(differences, np.full(count, 1 / count), count - 1)
    point = shares @ differences
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
    assert (differences @ point).min() >= point @ point - 1e-9


@given(seed=st.integers(0, 10_000))
def test_the_margin_is_the_largest_one(seed):
    """The program as the paper writes it: maximise t with <w, m_j - e> >= t and |w| <= 1."""
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(4, 3)) + 3 * rng.normal(size=3)
    distance = np.linalg.norm(MaxMargin().reweigh(differences, np.full(4, 0.25), 3) @ differences)
    found = minimize(
        lambda x: -x[3],
        np.zeros(4),
        jac=lambda x: np.array([0.0, 0.0, 0.0, -1.0]),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda x: differences @ x[:3] - x[3]},
            {"type": "ineq", "fun": lambda x: 1 - x[:3] @ x[:3]},
        ],
    )
    assert found.success
    assert max(-found.fun, 0.0) == pytest.approx(distance, abs=1e-5)


@given(seed=st.integers(0, 10_000))
def test_it_is_never_farther_than_a_step_of_the_projection(seed):
    rng = np.random.default_rng(seed)
    differences, shares = rng.normal(size=(5, 3)) + 1, rng.dirichlet(np.ones(5))
    reached = np.linalg.norm(MaxMargin().reweigh(differences, shares, 4) @ differences)
    assert reached <= np.linalg.norm(project(differences, shares, 4) @ differences)


@pytest.mark.parametrize("name", SMALL)
def test_few_policies_are_mixed_and_few_are_needed(name):
    problem = solved_problem(name, BALL)
    margin, projection = (
        jm.solve(problem, kind(2e-3)) for kind in (jm.solvers.MaxMargin, jm.solvers.Projection)
    )
    assert len(margin.mixture.candidates) <= problem.basis.num_costs + 1
    assert margin.work.forward_solves <= projection.work.forward_solves + 3


def test_a_high_accuracy_is_reached_where_the_projection_would_crawl():
    problem = solved_problem("grid, its own expert", BALL)
    answer = jm.solve(problem, jm.solvers.MaxMargin(1e-8))
    assert answer.status is jm.Status.OPTIMAL
    assert answer.work.forward_solves <= 30
