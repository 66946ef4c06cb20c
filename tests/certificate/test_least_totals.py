"""Least totals over policies between bounds, against linear programs over occupancy measures."""

import numpy as np
import pytest
from scipy.optimize import linprog

import journeyman as jm
from journeyman.certificate.consistency import least_totals


def bounded(seed):
    """A world with ragged actions, and bounds: a known action, an interval, or nothing."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(1, 5, size=int(rng.integers(2, 6)))
    offsets = np.concatenate([[0], np.cumsum(actions)])
    law = rng.dirichlet(np.full(actions.size, 0.5), size=offsets[-1])
    initial = rng.dirichlet(np.ones(actions.size))
    world = jm.World(law, initial, rng.uniform(0.3, 0.97), choice_offsets=offsets)
    lowest, highest = np.zeros(offsets[-1]), np.ones(offsets[-1])
    for state, count in enumerate(actions):
        own = slice(offsets[state], offsets[state + 1])
        kind = rng.integers(3)
        if kind == 0:
            lowest[own] = highest[own] = np.eye(count)[rng.integers(count)]
        elif kind == 1:
            inside = rng.dirichlet(np.ones(count))
            lowest[own] = inside * rng.random(count)
            highest[own] = inside + rng.random(count) * (1 - inside)
    return world, lowest, highest, rng.normal(size=(offsets[-1], 2))


def by_program(world, lowest, highest, cost):
    states = world.pairs.states
    of_state = np.eye(world.num_states)[states]
    flow = of_state.T - world.discount * world.transition.toarray().T
    rows = np.vstack([
        lowest[:, np.newaxis] * of_state[:, states] - np.eye(states.size),
        np.eye(states.size) - highest[:, np.newaxis] * of_state[:, states],
    ])  # fmt: skip
    found = linprog(cost, rows, np.zeros(len(rows)), flow, world.initial)
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("seed", range(40))
def test_least_totals_are_those_of_a_linear_program(seed):
    world, lowest, highest, costs = bounded(seed)
    least, values = least_totals(world, costs, lowest, highest)
    for cost, total in zip(costs.T, least, strict=True):
        true = by_program(world, lowest, highest, cost)
        size = world.effective_horizon * np.abs(cost).max()
        assert true - 1e-5 * size <= total <= true + 1e-9 * size
    assert values.shape == (2, world.num_states)


def test_without_bounds_it_is_the_attainable_range():
    world, basis, _ = jm.gallery.grid(6)
    costs = basis.on(world)[:, :3].toarray()
    least, _ = least_totals(world, costs, np.zeros(world.num_pairs), np.ones(world.num_pairs))
    for cost, total in zip(costs.T, least, strict=True):
        found = jm.plan(world, cost)
        assert total == pytest.approx(float(world.initial @ found.values), abs=1e-5)
        assert total <= float(world.initial @ found.values) + found.error


def test_known_actions_leave_one_policy():
    world, basis, expert = jm.gallery.grid(5)
    law = expert.on(world)
    least, _ = least_totals(world, basis.on(world), law, law)
    exact = jm.policy.occupancy(world, expert).expectations(basis)
    assert np.abs(least - exact).max() <= 1e-4
    assert (least <= exact + 1e-10).all()
