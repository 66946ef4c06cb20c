"""Clarabel on linear models: in dual form it finds what the simplex method of HiGHS finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.problem.cone_program import Cone
from journeyman.solvers.exact.engines import Effort, Engine, dual_form, run_cone, run_engine
from journeyman.solvers.exact.occupancy_program import INFINITY, LinearModel, exact_program
from journeyman.solvers.running import Watch
from journeyman.testing import random_problem
from journeyman.testing.strategies import seeds

EFFORT = Effort(tolerance=1e-8, threads=1)


@given(seeds, st.integers(1, 4), st.integers(0, 4), st.integers(0, 2))
def test_dual_form_has_the_same_optimum_and_prices_that_prove_it(
    seed, num_equations, num_limits, num_free
):
    model = random_model(seed, num_equations, num_limits, num_free)
    exact, found = (
        run_engine(model, engine, EFFORT, quiet()) for engine in (Engine.SIMPLEX, Engine.CLARABEL)
    )
    assert exact.status is found.status is jm.Status.OPTIMAL
    unit = 1 + np.abs(exact.columns).max() + np.abs(exact.row_duals).max()
    assert model.cost @ found.columns == pytest.approx(model.cost @ exact.columns, abs=1e-6 * unit)
    assert model.row_upper @ found.row_duals == pytest.approx(
        model.cost @ exact.columns, abs=1e-6 * unit
    )
    assert_feasible(model, found, 1e-6 * unit)


def assert_feasible(model, found, allowance):
    rows = model.columns.T @ found.columns
    assert (rows <= model.row_upper + allowance).all()
    assert (rows >= model.row_lower - allowance).all()
    assert (found.columns >= model.lower - allowance).all()
    reduced = model.cost - model.columns @ found.row_duals
    bounded = np.isfinite(model.lower)
    assert (reduced[bounded] >= -allowance).all()
    assert reduced[~bounded] == pytest.approx(0.0, abs=allowance)
    assert (found.row_duals[np.isneginf(model.row_lower)] <= allowance).all()


def test_impossible_model_is_infeasible():
    model = random_model(0, num_equations=1, num_limits=1, num_free=0)
    columns = sparse.csr_array(np.ones((model.cost.size, 2)))
    impossible = LinearModel(
        columns, np.abs(model.cost), model.lower, model.upper, np.array([2.0, -INFINITY]),
        np.array([2.0, 1.0]),
    )  # fmt: skip
    for engine in (Engine.SIMPLEX, Engine.CLARABEL):
        found = run_engine(impossible, engine, EFFORT, quiet())
        assert found.status is jm.Status.INFEASIBLE


def test_dual_form_has_one_variable_per_row_and_cones_in_the_order_of_the_columns():
    problem = random_problem(0, jm.Simplex(), num_budgets=1)
    model = exact_program(problem)
    form = dual_form(model)
    num_limits = problem.basis.num_costs + 1
    assert form.cost.size == model.row_upper.size
    assert form.cones == (
        (Cone.NONNEGATIVE, problem.world.num_pairs), (Cone.ZERO, 1), (Cone.NONNEGATIVE, num_limits),
    )  # fmt: skip


@pytest.mark.parametrize("radius", [0.5, 3.0])
def test_prices_in_a_ball_leave_the_norm_of_what_is_missed(radius):
    """The one column costs nothing and must be at most `radius`; (1, 2) times it misses (3, 6)."""
    model = LinearModel(
        sparse.csr_array([[1.0, 2.0, 1.0]]), np.zeros(1), np.zeros(1), np.full(1, INFINITY),
        np.array([3.0, 6.0, -INFINITY]), np.array([3.0, 6.0, radius]),
    )  # fmt: skip
    found = run_cone(dual_form(model, slice(0, 2)), quiet(), threads=1)
    assert found.row_duals[0] == pytest.approx(radius, abs=1e-6)
    assert model.row_upper @ found.columns == pytest.approx((3 - radius) * np.sqrt(5), abs=1e-6)


def random_model(seed, num_equations, num_limits, num_free):
    """A feasible and bounded model: costs are prices of the rows plus positive reduced costs."""
    rng = np.random.default_rng(seed)
    num_rows, num_columns = num_equations + num_limits, num_equations + num_free + 5
    columns = rng.normal(size=(num_columns, num_rows))
    lower = np.zeros(num_columns)
    lower[num_columns - num_free :] = -INFINITY
    inside, slack = rng.random(num_columns), rng.random(num_limits)
    prices = np.append(rng.normal(size=num_equations), -rng.random(num_limits))
    reduced = np.where(np.isfinite(lower), rng.random(num_columns), 0.0)
    right = columns.T @ inside + np.append(np.zeros(num_equations), slack)
    return LinearModel(
        columns=sparse.csr_array(columns),
        cost=columns @ prices + reduced,
        lower=lower,
        upper=np.full(num_columns, INFINITY),
        row_lower=np.append(right[:num_equations], np.full(num_limits, -INFINITY)),
        row_upper=right,
    )


def quiet():
    return Watch("test", lambda event: None)


@pytest.mark.parametrize("cost_class", [jm.Simplex(), jm.InfinityBall(), jm.L1Ball()])
def test_an_engine_that_calls_a_problem_without_budgets_infeasible_is_not_believed(cost_class):
    """At 1 - 1e-8 the equations are dependent up to the engines' tolerances."""
    rng = np.random.default_rng(5)
    laws = rng.dirichlet(np.full(6, 0.5), size=(6, 2))
    world = jm.World.from_arrays(laws, np.full(6, 1 / 6), 1 - 1e-8)
    basis, target = jm.CostBasis(-rng.random((12, 3))), jm.ExpertExpectation(np.zeros(3))
    answer = jm.solve(jm.Apprenticeship(world, basis, target, cost_class))
    assert answer.status in (jm.Status.OPTIMAL, jm.Status.INACCURATE)
    assert answer.relaxation is None
    assert answer.lower_bound <= answer.value
