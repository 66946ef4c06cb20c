"""What `jm.solve` takes depends on size, structure, starts and horizon; both are equally exact."""

from importlib import import_module

import numpy as np
import pytest

import journeyman as jm
from journeyman.solvers import StochasticPrimalDual
from journeyman.solvers.solve import default_solver

default_choice = import_module("journeyman.solvers.solve")  # the package shows the function


@pytest.fixture
def tiny_limits(monkeypatch):
    """A grid of 12 x 12 cells (576 pairs) is beyond small, and just narrow enough."""
    monkeypatch.setattr(default_choice, "SMALL", 10)
    monkeypatch.setattr(default_choice, "NARROW", 600)


def test_narrow_worlds_are_solved_as_linear_programs(tiny_limits):
    solver, reason = default_solver(grid_problem(discount=0.99))  # 9 costs, a horizon of 100
    assert isinstance(solver, jm.LinearProgram)
    assert reason == "a narrow world of 576 pairs, whose factors stay sparse"


def test_many_starts_with_a_short_horizon_and_few_costs_are_for_columns(tiny_limits, monkeypatch):
    problem = grid_problem(discount=0.9)
    monkeypatch.setattr(default_choice, "FEW_SUMS", 89.0)
    assert isinstance(default_solver(problem)[0], jm.LinearProgram)
    monkeypatch.setattr(default_choice, "FEW_SUMS", 91.0)
    solver, _ = default_solver(problem)
    assert isinstance(solver, jm.ColumnGeneration)
    assert solver.tolerance == pytest.approx(1e-8 * problem.gap_scale)


@pytest.mark.parametrize("discount", [0.9, 0.99])
def test_single_start_may_be_several_times_larger(discount, tiny_limits, monkeypatch):
    monkeypatch.setattr(default_choice, "NARROW", 100)
    solver, _ = default_solver(grid_problem(discount, initial=[0, 0]))
    assert isinstance(solver, jm.LinearProgram)
    solver, _ = default_solver(grid_problem(discount))
    assert isinstance(solver, jm.ColumnGeneration)


def test_surplus_is_worth_waiting_for(tiny_limits, monkeypatch):
    monkeypatch.setattr(default_choice, "NARROW", 300)
    assert isinstance(default_solver(grid_problem(0.99))[0], jm.ColumnGeneration)
    simplex = grid_problem(0.99, jm.Simplex())
    assert isinstance(default_solver(simplex)[0], jm.LinearProgram)


def test_columns_and_linear_program_agree_where_the_choice_changes(monkeypatch):
    problem = grid_problem(0.9)
    linear = jm.solve(problem)
    assert linear.engine.startswith("Clarabel")
    monkeypatch.setattr(default_choice, "SMALL", 10)
    monkeypatch.setattr(default_choice, "NARROW", 600)
    columns = jm.solve(problem)
    assert columns.engine.startswith("column generation")
    allowance = 2e-7 * problem.gap_scale
    assert columns.value == pytest.approx(linear.value, abs=allowance, rel=0)


def grid_problem(discount, cost_class=None, initial=None):
    world, basis, expert = jm.gallery.grid(12, macro_cells=3, discount=discount, initial=initial)
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


def test_a_large_second_stage_is_for_smoothing(tiny_limits, monkeypatch):
    """Unless all policies have the same surplus, as with the cells of a grid."""
    world, basis, _ = jm.gallery.grid(12, macro_cells=3, discount=0.99)
    monkeypatch.setattr(default_choice, "SURPLUS", 100)
    assert isinstance(default_solver(grid_problem(0.99, jm.Simplex()))[0], jm.LinearProgram)
    uneven = jm.CostBasis(basis.matrix.toarray() * np.arange(1, 10))
    nobody = jm.ExpertExpectation(np.zeros(9))
    chosen = default_solver(jm.Apprenticeship(world, uneven, nobody, jm.Simplex()))
    assert isinstance(chosen.solver, jm.solvers.SmoothedProgram)
    assert chosen.reason == "a large second stage, 576 pairs"


def test_beyond_exact_programs_features_and_structure_decide(monkeypatch):
    """Interior points, unless there are many features and factors fill up."""
    reduced = import_module("journeyman.solvers.reduced.reduced_program")
    monkeypatch.setattr(default_choice, "EXACT_UP_TO", 100)
    monkeypatch.setattr(default_choice, "SMALL", 10)
    monkeypatch.setattr(default_choice, "NARROW", 10)
    for make, few, many in (
        (lambda: jm.gallery.garnet(300, seed=0), jm.ReducedProgram, StochasticPrimalDual),
        (lambda: jm.gallery.grid(12), jm.ReducedProgram, jm.ReducedProgram),
    ):
        world, basis, expert = make()
        demos = jm.record(world, expert, trajectories=20, horizon=30, seed=0)
        problem = jm.Apprenticeship(world, basis, demos)
        monkeypatch.setattr(reduced, "MOST_FEATURES", 10_000)
        assert isinstance(default_solver(problem).solver, few)
        monkeypatch.setattr(reduced, "MOST_FEATURES", 20)
        solver, reason = default_solver(problem)
        assert isinstance(solver, many)
        assert ("factors fill up" in reason) == (many is StochasticPrimalDual)
