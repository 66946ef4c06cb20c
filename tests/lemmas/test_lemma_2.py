"""Lemma 2: how far the occupancy of a measure's policy can be from the measure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import World
from journeyman.policy import extract, occupancy
from journeyman.testing.strategies import measures, seeds, worlds


def violations(world, u):
    """(V1, V2): total negativity and flow violation."""
    return np.maximum(-u, 0).sum(), np.abs(world.flow.residual(u)).sum()


@given(st.data(), worlds())
def test_distance_is_bounded_by_the_violations(data, world):
    u = data.draw(measures(world))
    mu = occupancy(world, extract(world, u)).measure
    negativity, flow_violation = violations(world, u)
    bound = (2 * negativity + flow_violation) * world.effective_horizon
    assert np.abs(mu - u).sum() <= bound * (1 + 1e-9) + 1e-9 * world.effective_horizon


@given(st.data(), worlds())
def test_the_positive_part_is_closer_still(data, world):
    u = data.draw(measures(world))
    positive = np.maximum(u, 0)
    mu = occupancy(world, extract(world, u)).measure
    negativity, flow_violation = violations(world, u)
    residual = np.abs(world.flow.residual(positive)).sum()
    unit = world.effective_horizon
    assert np.abs(mu - positive).sum() <= residual * unit * (1 + 1e-9) + 1e-9 * unit
    limit = (1 + world.discount) * negativity + flow_violation
    assert residual <= limit * (1 + 1e-9) + 1e-12


@given(worlds(), seeds)
def test_any_state_weighting_of_a_policy_is_covered(world, seed):
    rng = np.random.default_rng(seed)
    policy = extract(world, rng.exponential(size=world.num_pairs))
    approximate = world.pairs.spread(rng.normal(size=world.num_states)) * policy.per_pair
    mu = occupancy(world, policy).measure
    bound = np.abs(world.flow.residual(approximate)).sum() * world.effective_horizon
    assert np.abs(mu - approximate).sum() <= bound * (1 + 1e-9) + 1e-9 * world.effective_horizon


@pytest.mark.parametrize("v", [0.1, 0.5, 1.0])
def test_the_bound_is_attained(v):
    gamma = 0.9
    world = World([[1, 0], [1, 0], [0, 1], [1, 0]], [1, 0], gamma)
    first = (1 - gamma * v) / (1 - gamma)
    u = np.array([first / 2, first / 2, v / (1 - gamma), -v])
    negativity, flow_violation = violations(world, u)
    assert negativity == pytest.approx(v)
    assert flow_violation == pytest.approx(0, abs=1e-12)
    mu = occupancy(world, extract(world, u)).measure
    assert np.abs(mu - u).sum() == pytest.approx(2 * v / (1 - gamma))
