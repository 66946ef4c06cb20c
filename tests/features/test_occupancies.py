"""Occupancies as features: mixtures of policies, exactly."""

import numpy as np
import pytest
from hypothesis import given

import journeyman as jm
from journeyman.features.base import occupancies
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.strategies import seeds, worlds


@given(worlds(), seeds)
def test_mixtures_keep_the_flow_and_are_the_occupancy_of_their_policy(world, seed):
    rng = np.random.default_rng(seed)
    features = occupancies(world, [random_policy(world, rng) for _ in range(3)])
    mixture = features.measure(rng.dirichlet(np.ones(3)))
    tolerance = 1e-9 * world.effective_horizon
    assert np.abs(world.flow.residual(mixture)).sum() <= tolerance
    assert np.allclose(features.masses, world.effective_horizon)
    reached = jm.occupancy(world, jm.policy.extract(world, mixture)).measure
    assert np.abs(reached - mixture).sum() <= tolerance * world.effective_horizon


def test_columns_that_visit_little_are_sparse():
    chain = jm.World(np.eye(9), np.eye(9)[0], 0.5)
    assert occupancies(chain, [jm.Policy.uniform(chain)]).is_sparse
    everywhere = jm.World(np.eye(9), np.full(9, 1 / 9), 0.5)
    assert not occupancies(everywhere, [jm.Policy.uniform(everywhere)]).is_sparse


def test_no_policies_and_foreign_policies_are_refused():
    world = jm.World(np.eye(2), [0.5, 0.5], 0.5)
    with pytest.raises(jm.errors.InvalidCosts, match="no policies"):
        occupancies(world, [])
    with pytest.raises(jm.errors.InvalidPolicy, match="3 states"):
        occupancies(world, [jm.Policy(np.ones((3, 1)))])
