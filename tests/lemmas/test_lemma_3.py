"""Lemma 3: the occupancy measure is the discounted sum of the laws of (x_t, a_t)."""

import numpy as np
from hypothesis import given

from journeyman.policy import occupancy
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.strategies import seeds, worlds


def steering(world, policy):
    """M^pi: state x to pair (x, a) with probability pi(a | x)."""
    M = np.zeros((world.num_states, world.num_pairs))
    M[world.pairs.states, np.arange(world.num_pairs)] = policy.per_pair
    return M


@given(worlds(), seeds)
def test_the_series_of_step_laws_sums_to_the_occupancy(world, seed):
    policy = random_policy(world, seed)
    M, P = steering(world, policy), world.transition.toarray()
    law, total, weight = world.initial @ M, np.zeros(world.num_pairs), 1.0
    steps = 400
    for _ in range(steps):
        total += weight * law
        law, weight = law @ P @ M, weight * world.discount
        assert np.isclose(law.sum(), 1.0)
    measure = occupancy(world, policy).measure
    tail = world.discount**steps * world.effective_horizon
    assert (measure >= total - 1e-9 * world.effective_horizon).all()
    assert np.abs(measure - total).sum() <= tail + 1e-9 * world.effective_horizon


@given(worlds(), seeds)
def test_the_closed_form_of_the_series(world, seed):
    policy = random_policy(world, seed)
    M, P = steering(world, policy), world.transition.toarray()
    closed = np.linalg.solve(
        np.eye(world.num_pairs) - world.discount * (P @ M).T, world.initial @ M
    )
    measure = occupancy(world, policy).measure
    assert np.abs(measure - closed).sum() <= 1e-9 * world.effective_horizon
