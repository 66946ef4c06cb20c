"""Proposition 1: occupancy measures are exactly the solutions of the flow constraints."""

import numpy as np
from hypothesis import given

from journeyman.policy import extract, occupancy
from journeyman.testing.random_worlds import random_policy
from journeyman.testing.strategies import seeds, worlds


@given(worlds(), seeds)
def test_an_occupancy_measure_satisfies_the_flow_constraints(world, seed):
    visits = occupancy(world, random_policy(world, seed))
    assert (visits.measure >= 0).all()
    assert np.abs(world.flow.residual(visits.measure)).sum() <= 1e-9
    assert np.isclose(visits.measure.sum(), world.effective_horizon, rtol=1e-9)


@given(worlds(), seeds)
def test_the_policy_of_an_occupancy_measure_has_that_occupancy(world, seed):
    measure = occupancy(world, random_policy(world, seed)).measure
    again = occupancy(world, extract(world, measure)).measure
    assert np.abs(again - measure).sum() <= 1e-9 * world.effective_horizon


@given(worlds(), seeds)
def test_a_mixture_of_occupancies_is_the_occupancy_of_one_policy(world, seed):
    rng = np.random.default_rng(seed)
    parts = [occupancy(world, random_policy(world, rng)).measure for _ in range(2)]
    mixture = 0.3 * parts[0] + 0.7 * parts[1]
    again = occupancy(world, extract(world, mixture)).measure
    assert np.abs(again - mixture).sum() <= 1e-9 * world.effective_horizon


@given(worlds(), seeds)
def test_the_policy_is_recovered_where_it_is_visited(world, seed):
    policy = random_policy(world, seed)
    visits = occupancy(world, policy)
    recovered = extract(world, visits.measure)
    visited = world.pairs.spread(visits.of_states) > 1e-9
    assert np.allclose(recovered.per_pair[visited], policy.per_pair[visited], atol=1e-9)
