"""Loops of NumPy beside their compiled twins, and evaluations that are cut short or go wrong."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.policy import plain_steps, steps, system_kernels
from journeyman.policy.policy_evaluation import Chains, compiled_system
from journeyman.policy.steps import MOST_EFFORT, Steps, is_small
from journeyman.testing.strategies import seeds, worlds


def both(world):
    """The system of a world for either kind of loops."""
    plain = plain_steps.PlainSystem(world.continuation, world.discount)
    return plain, compiled_system(*plain)


def drawn(world, seed):
    rng = np.random.default_rng(seed)
    offsets = world.pairs.offsets
    choice = np.array([rng.integers(*ends) for ends in pairwise(offsets)])
    return rng.normal(size=world.num_pairs), rng.normal(size=world.num_states), choice


@given(worlds(), seeds)
def test_a_bellman_step_is_the_same_by_numpy_and_compiled(world, seed):
    cost, values, _ = drawn(world, seed)
    cost = np.round(cost)  # so that actions are equally good
    plain, compiled = both(world)
    best, choice = plain_steps.greedy_step(plain, world.pairs, cost, values)
    twin, same = np.empty_like(best), np.empty(best.size, np.int64)
    system_kernels.greedy_step(compiled, world.pairs.offsets, cost, values, twin, same)
    assert best == pytest.approx(twin, abs=1e-12)
    ahead = cost + world.discount * (world.continuation @ values)
    naive = [
        min(range(*ends), key=lambda pair: ahead[pair]) for ends in pairwise(world.pairs.offsets)
    ]
    assert choice.tolist() == naive
    assert ahead[same] == pytest.approx(best, abs=1e-12)


@given(worlds(), seeds)
def test_sweeps_over_chosen_rows_are_the_same(world, seed):
    cost, values, choice = drawn(world, seed)
    plain, compiled = both(world)
    rows, twins = (
        plain_steps.choose_rows(plain, choice), system_kernels.choose_rows(compiled, choice)
    )  # fmt: skip
    out, same = np.empty_like(values), np.empty_like(values)
    span = plain_steps.sweep(rows, cost[choice], values, out)
    twin = system_kernels.sweep(twins, cost[choice], values, same)
    exact = cost[choice] + world.discount * (world.continuation[choice] @ values)
    assert out == pytest.approx(exact, abs=1e-12)
    assert same == pytest.approx(exact, abs=1e-12)
    assert span == pytest.approx(np.ptp(exact - values), abs=1e-12)
    assert twin == pytest.approx(span, abs=1e-12)


@given(worlds(), seeds, st.sampled_from([1e-200, 1.0, 1e200]))
def test_solutions_are_those_of_a_full_matrix(world, seed, scale):
    cost, _, choice = drawn(world, seed)
    right = scale * cost[choice]
    rows = plain_steps.choose_rows(both(world)[0], choice)
    full = plain_steps.full_rows(both(world)[0], choice)
    assert np.array_equal(full.matrix, rows.matrix.toarray())
    matrix = np.eye(world.num_states) - world.discount * world.continuation[choice].toarray()
    exact = np.linalg.solve(matrix, right)
    assert plain_steps.solved(full, right) / scale == pytest.approx(exact / scale, rel=1e-9)
    x = np.zeros_like(right)
    plain_steps.bicgstab(rows, right, x, 1e-12 * np.abs(right).max(), 1000)
    assert np.isfinite(x).all()
    near, wanted = exact.copy(), 1e-6 * np.abs(right).max()
    assert plain_steps.bicgstab(rows, right, near, wanted, 1000) == 0
    assert near / scale == pytest.approx(exact / scale, abs=1e-9)


@pytest.mark.parametrize("size", [91, 100, 127, 128])
@pytest.mark.parametrize("discount", [0.9, 1 - 1e-9])
def test_solutions_by_halves_are_as_good(size, discount):
    rng = np.random.default_rng(size)
    world = jm.testing.random_world(size, num_states=size, discount=discount)
    system = plain_steps.PlainSystem(world.transition, discount)
    full = plain_steps.full_rows(system, world.pairs.offsets[:-1])
    right = rng.normal(size=size)
    x = plain_steps.solved(full, right)
    out = np.empty_like(x)
    unit = 1e-15 * size * np.abs(x).max()
    assert plain_steps.sweep(full, right, x, out) <= 10 * unit
    assert np.abs(out - x).max() <= 10 * unit


@pytest.mark.parametrize("size", [6, 25, 40])
@pytest.mark.parametrize("effort", [1, 10, 100, MOST_EFFORT])
def test_an_evaluation_leaves_what_it_says(size, effort):
    world, _, _ = jm.gallery.grid(size, discount=0.99)
    cost, guess, choice = drawn(world, effort)
    before = np.ptp(cost[choice] + 0.99 * (world.continuation[choice] @ guess) - guess)
    values, left = Steps(world).evaluate(choice, cost[choice], guess, 1e-6, effort)
    residual = cost[choice] + 0.99 * (world.continuation[choice] @ values) - values
    assert np.ptp(residual) <= left + 1e-12
    assert left <= before
    assert effort < MOST_EFFORT or left <= 1e-6
    assert abs(residual.min() + residual.max()) <= left + 1e-9


@pytest.mark.parametrize("nonsense", [1e300, np.nan, np.inf])
@pytest.mark.parametrize("size", [12, 40])
def test_nonsense_of_an_iterative_solver_is_not_believed(monkeypatch, nonsense, size):
    def broken(system, right, x, wanted, most):
        x[:] = nonsense
        return 1

    for loops in (plain_steps, system_kernels):
        monkeypatch.setattr(loops, "bicgstab", broken)
    world, basis, _ = jm.gallery.grid(size, discount=0.99)
    cost = basis.on(world) @ np.random.default_rng(0).normal(size=basis.num_costs)
    found = jm.plan(world, cost)
    assert found.error <= 1e-8 * np.abs(cost).max() * world.effective_horizon
    chains, choice = Chains(world), world.pairs.offsets[:-1]
    values, left = chains.values(choice, cost, np.zeros(size**2), 1e-9, MOST_EFFORT)
    residual = cost[choice] + 0.99 * (world.continuation[choice] @ values) - values
    assert np.ptp(residual) <= 1e-8
    assert left <= 1e-8


def test_the_size_of_a_world_decides_which_loops_it_takes():
    sizes = {size: is_small(jm.gallery.grid(size)[0].transition) for size in (5, 20, 40)}
    assert sizes == {5: True, 20: True, 40: False}
    assert steps.DENSE_STATES < steps.PLAIN_STATES


@pytest.mark.parametrize("discount", [0.5, 0.99, 0.9999, 0.999999])
@pytest.mark.parametrize("make", ["cycle", "corridor", "garnet", "one action", "equal"])
def test_plans_of_worlds_beyond_the_small_ones_are_proven(make, discount):
    rng, size = np.random.default_rng(3), 1200
    ahead = {
        "cycle": np.column_stack([np.roll(np.arange(size), -1), np.arange(size)]),
        "corridor": np.column_stack([np.arange(1, size + 1).clip(max=size - 1), np.arange(size)]),
        "garnet": rng.integers(size, size=(size, 3)),
        "one action": rng.integers(size, size=(size, 1)),
        "equal": np.repeat(rng.integers(size, size=(size, 1)), 3, axis=1),
    }[make]
    actions = ahead.shape[1]
    rows = np.arange(size * actions)
    matrix = sparse.csr_array((np.ones(rows.size), (rows, ahead.ravel())), (rows.size, size))
    world = jm.World(matrix, np.full(size, 1 / size), discount)
    cost = rng.normal(size=world.num_pairs)
    found = jm.plan(world, cost)
    unit = np.abs(cost).max() * world.effective_horizon
    assert found.error <= 1e-8 * unit
    change = world.pairs.smallest(cost + discount * matrix @ found.values) - found.values
    assert np.ptp(change) * world.effective_horizon <= found.error * (1 + 1e-9)


def test_a_solution_without_an_error_ends_without_a_warning():
    """A residual of exactly zero, which SciPy divides by where nothing is allowed to be left."""
    rows = plain_steps.PlainSystem(np.zeros((3, 3)), 0.5)
    x = np.zeros(3)
    plain_steps.bicgstab(rows, np.full(3, 2.0), x, 0.0, 10)
    assert np.isfinite(x).all()
