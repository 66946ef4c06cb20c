"""What `jm.solve` takes depends on size, structure, starts and horizon; both are equally exact."""

from importlib import import_module

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers import BandedProgram
from journeyman.solvers.exact.band import band_order
from journeyman.solvers.solve import default_solver

default_choice = import_module("journeyman.solvers.solve")  # the package shows the function


@pytest.fixture
def tiny(monkeypatch):
    """A grid of 12 x 12 cells (576 pairs) is beyond small."""
    monkeypatch.setattr(default_choice, "SMALL", 10)


def test_narrow_worlds_are_for_an_interior_point(tiny):
    problem = grid_problem()
    solver, reason = default_solver(problem)
    assert isinstance(solver, BandedProgram)
    assert reason == "a narrow world, 576 pairs"
    assert solver.tolerance == pytest.approx(1e-7 * problem.gap_scale)


def test_wide_bands_are_for_columns(tiny, monkeypatch):
    problem = grid_problem()
    work = band_order(problem.world).operations + default_choice.PER_PAIR * 576
    monkeypatch.setattr(default_choice, "BANDED", 1.01 * work)
    assert isinstance(default_solver(problem)[0], BandedProgram)
    monkeypatch.setattr(default_choice, "BANDED", 0.99 * work)
    assert isinstance(default_solver(problem)[0], jm.ColumnGeneration)
    monkeypatch.setattr(default_choice, "FEW_COSTS", 8.0)  # there are 9
    assert isinstance(default_solver(problem)[0], BandedProgram)


def test_costs_of_few_states_are_eliminated_with_them(tiny, monkeypatch):
    problem = grid_problem()
    monkeypatch.setattr(default_choice, "CELLS", 17)  # a cell has 16 states
    solver, reason = default_solver(problem)
    assert isinstance(solver, jm.LinearProgram)
    assert reason == "a narrow world of 576 pairs with costs of few states"


def test_large_worlds_are_solved_less_exactly(tiny, monkeypatch):
    monkeypatch.setattr(default_choice, "NARROW", 500)
    assert default_solver(grid_problem())[0].tolerance is None


def test_interior_point_columns_and_linear_program_agree(monkeypatch):
    problem = grid_problem(0.9)
    linear = jm.solve(problem)
    assert linear.engine.startswith("Clarabel")
    monkeypatch.setattr(default_choice, "SMALL", 10)
    inner = jm.solve(problem)
    assert inner.engine.startswith("interior point")
    monkeypatch.setattr(default_choice, "BANDED", 10.0)
    columns = jm.solve(problem)
    assert columns.engine.startswith("column generation")
    allowance = 2e-7 * problem.gap_scale
    for answer in (inner, columns):
        assert answer.value == pytest.approx(linear.value, abs=allowance, rel=0)


def grid_problem(discount=0.99, cost_class=None):
    world, basis, expert = jm.gallery.grid(12, macro_cells=3, discount=discount)
    seen = jm.occupancy(world, expert).expectations(basis)
    noise = np.random.default_rng(1).normal(size=seen.size) * 0.1
    expectation = jm.ExpertExpectation(seen + noise)
    return jm.Apprenticeship(world, basis, expectation, cost_class or jm.InfinityBall())


def test_columns_are_taken_for_all_but_few_pairs_of_a_horizon():
    world, basis, _ = jm.gallery.grid(8)
    nobody = jm.ExpertExpectation(np.zeros(basis.num_costs))
    few, many = (
        default_solver(jm.Apprenticeship(world.with_horizon(steps, 1.0), basis, nobody))
        for steps in (10, 40)
    )
    assert isinstance(few.solver, jm.LinearProgram)
    assert isinstance(many.solver, jm.ColumnGeneration)
    assert "horizon" in many.reason


def test_a_second_stage_is_for_a_band_or_for_smoothing(tiny, monkeypatch):
    """Unless all policies have the same surplus, as with the cells of a grid."""
    world, basis, _ = jm.gallery.grid(12, macro_cells=3, discount=0.99)
    uneven = jm.CostBasis(basis.matrix.toarray() * np.arange(1, 10))
    problem = jm.Apprenticeship(world, uneven, jm.ExpertExpectation(np.zeros(9)), jm.Simplex())
    assert isinstance(default_solver(problem)[0], BandedProgram)
    monkeypatch.setattr(default_choice, "BANDED", 10.0)
    chosen = default_solver(problem)
    assert isinstance(chosen.solver, jm.solvers.SmoothedProgram)
    assert chosen.reason == "a large second stage, 576 pairs"
    constant = default_solver(grid_problem(0.99, jm.Simplex()))
    assert isinstance(constant.solver, jm.ColumnGeneration)


def test_a_small_garnet_has_its_second_stage_by_dense_equations(tiny):
    world, basis, _ = jm.gallery.garnet(50)
    nobody = jm.ExpertExpectation(np.zeros(basis.num_costs))
    chosen = default_solver(jm.Apprenticeship(world, basis, nobody, jm.Simplex()))
    assert isinstance(chosen.solver, BandedProgram)
    assert "second stage" in chosen.reason
    other = default_solver(jm.Apprenticeship(world, basis, nobody))
    assert isinstance(other.solver, jm.solvers.SmoothedProgram)


def test_many_costs_in_a_small_garnet_are_for_dense_equations(tiny, monkeypatch):
    monkeypatch.setattr(default_choice, "MANY_COSTS", 5)
    world, basis, _ = jm.gallery.garnet(50)  # 8 costs
    problem = jm.Apprenticeship(world, basis, jm.ExpertExpectation(np.zeros(basis.num_costs)))
    chosen = default_solver(problem)
    assert isinstance(chosen.solver, BandedProgram)
    assert "many costs" in chosen.reason
