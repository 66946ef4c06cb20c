"""The interior-point master against a linear program in its obvious form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog, minimize

import journeyman as jm
from journeyman.solvers.exact.column_master import Master, solve_master
from journeyman.solvers.exact.dual_set import DualSet
from journeyman.solvers.exact.start_blocks import Blocks, Core, core_around, value_blocks
from journeyman.testing.random_worlds import Shape, random_world
from journeyman.testing.strategies import seeds, worlds


def random_master(seed, cost_class, *, budgets=0):
    rng = np.random.default_rng(seed)
    costs, blocks = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    rows = np.concatenate([np.arange(blocks), rng.integers(0, blocks, 12)])
    size = costs + budgets
    coupling = sparse.csr_array(
        (np.ones(rows.size), (rows, np.arange(rows.size))), shape=(blocks, rows.size)
    )

    def feasible(x):
        positive = np.maximum(x, 0.0)
        return positive / np.bincount(rows, positive, blocks)[rows]

    return Master(
        rng.normal(size=(rows.size, size)), coupling, np.ones(blocks), rng.normal(size=size),
        DualSet.of(cost_class, costs, budgets, 3.0), feasible,
    )  # fmt: skip


def optimum(master):
    """min t'up + ... with one variable per positive and negative part."""
    num, size = master.expectations.shape
    costs, duals = master.duals.num_costs, master.duals
    one_sided = not duals.is_box
    if one_sided:
        objective = np.concatenate([np.zeros(num), [1.0], duals.upper[costs:]])
        tops = np.zeros((size, 1 + size - costs))
        tops[:costs, 0] = 1.0
        tops[costs:, 1:] = np.eye(size - costs)
    else:
        objective = np.concatenate([np.zeros(num), duals.upper])
        tops = np.eye(size)
    above = np.hstack([master.expectations.T, -tops])
    below = np.hstack([-master.expectations.T, -tops])[: 0 if one_sided else costs]
    free = [(None, None)] if one_sided else []
    extra = tops.shape[1] - len(free)
    found = linprog(
        objective,
        A_ub=np.vstack([above, below]),
        b_ub=np.concatenate([master.target, -master.target[: below.shape[0]]]),
        A_eq=np.hstack([master.coupling.toarray(), np.zeros((master.right.size, tops.shape[1]))]),
        b_eq=master.right,
        bounds=[(0, None)] * num + free + [(0, None)] * extra,
    )
    return found.fun


@settings(max_examples=80)
@given(seeds, st.booleans(), st.integers(0, 2))
def test_values_enclose_the_optimum_of_a_linear_program(seed, simplex, budgets):
    master = random_master(seed, jm.Simplex() if simplex else jm.InfinityBall(), budgets=budgets)
    point, exact = solve_master(master, 1e-7), optimum(master)
    assert point.upper - point.lower <= 1e-7
    assert point.lower <= exact + 1e-9
    assert point.upper >= exact - 1e-9
    assert point.mixture.min() >= 0
    assert master.coupling @ point.mixture == pytest.approx(master.right)


@settings(max_examples=40)
@given(seeds, st.integers(0, 2))
def test_values_enclose_the_optimum_for_the_ball(seed, budgets):
    master = random_master(seed, jm.EuclideanBall(), budgets=budgets)
    point = solve_master(master, 1e-7)
    assert point.upper - point.lower <= 1e-7
    assert np.linalg.norm(point.dual[: master.duals.num_costs]) <= 1
    rows = master.coupling.tocoo().coords[0]
    objective = lambda x: master.duals.support(  # noqa: E731
        master.expectations.T @ master.feasible(np.abs(x) + 1e-12) - master.target
    )
    for start in range(3):
        rng = np.random.default_rng(start)
        other = minimize(objective, rng.random(rows.size), method="Nelder-Mead").fun
        assert other >= point.lower - 1e-9


@given(seeds, st.floats(1e-4, 0.5))
def test_a_rough_point_is_valid_too(seed, tolerance):
    master = random_master(seed, jm.InfinityBall())
    point, exact = solve_master(master, tolerance), optimum(master)
    assert point.upper - point.lower <= tolerance
    assert point.lower <= exact + 1e-9 <= point.upper + 2e-9


@given(worlds(), seeds, st.integers(1, 6))
def test_the_rows_of_a_core_are_kept_by_what_is_repaired(world, seed, size):
    rng = np.random.default_rng(seed)
    start_rows = Core(world, core_around(world, size))
    exits = np.flatnonzero(np.diff(start_rows.starts.indptr))
    rows = np.repeat(exits, 2)
    x = rng.random(start_rows.pairs.size + rows.size) * (rng.random() < 0.9)
    generated = sparse.csr_array(
        (np.ones(rows.size), (rows, np.arange(rows.size))), shape=(start_rows.num_rows, rows.size)
    )
    repaired = start_rows.feasible(x, rows)
    kept = sparse.hstack([start_rows.coupling, generated]) @ repaired
    assert repaired.min(initial=0.0) >= 0
    assert kept == pytest.approx(start_rows.right, abs=1e-9)


def test_blocks_take_all_the_mass_and_join_what_is_alike():
    world = random_world(0, Shape.UNREACHABLE, num_states=20)
    values = np.arange(20.0)[:, None]
    blocks = value_blocks(values, world.initial, 4)
    start_rows = Blocks(world, blocks)
    assert start_rows.starts.sum(axis=0) == pytest.approx(world.initial)
    assert (np.diff(blocks[np.argsort(values[: blocks.size, 0])]) != 0).sum() == 3
    assert value_blocks(np.zeros((20, 1)), world.initial, 4).max() == 0


def test_a_core_grows_by_steps_from_the_start():
    world, _, _ = jm.gallery.grid(9, initial=[4, 4])
    core = core_around(world, 15)
    cells = world.coordinates[core]
    assert sorted(np.abs(cells - 4).sum(axis=1).tolist()) == [0.0] + [1.0] * 4 + [2.0] * 8
