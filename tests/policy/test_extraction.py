import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.testing import Shape, random_world
from journeyman.testing.strategies import measures, policies, worlds

WORLD = jm.World(np.full((6, 3), 1 / 3), [1, 0, 0], 0.9, choice_offsets=[0, 2, 3, 6])


def test_laws_are_shares_of_the_positive_part():
    policy = jm.policy.extract(WORLD, [3.0, 1.0, -2.0, 1.0, -5.0, 1.0])
    assert policy.per_pair.tolist() == [0.75, 0.25, 1.0, 0.5, 0.0, 0.5]


@pytest.mark.parametrize("nothing", [0.0, -0.0, -1.0])
def test_a_state_without_positive_mass_gets_the_uniform_law(nothing):
    policy = jm.policy.extract(WORLD, [1.0, 3.0, 1.0, nothing, nothing, nothing])
    np.testing.assert_allclose(policy.per_pair, [0.25, 0.75, 1.0, 1 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-12, 1.0, 1e12, 4e307])
def test_laws_do_not_depend_on_the_size_of_the_measure(size):
    policy = jm.policy.extract(WORLD, np.array([3.0, 1.0, 1.0, 1.0, 0.0, 4.0]) * size)
    np.testing.assert_allclose(policy.per_pair, [0.75, 0.25, 1, 0.2, 0, 0.8], rtol=1e-15)


def test_the_smallest_number_there_is_counts_as_mass():
    smallest = np.nextafter(0.0, 1.0)
    policy = jm.policy.extract(WORLD, [smallest, 0.0, 1.0, smallest, 0.0, smallest])
    assert policy.per_pair.tolist() == [1.0, 0.0, 1.0, 0.5, 0.0, 0.5]


@given(st.data())
def test_states_may_be_rescaled_one_by_one(data):
    world = data.draw(worlds())
    measure = data.draw(measures(world))
    factors = 10.0 ** np.random.default_rng(0).uniform(-100, 100, world.num_states)
    np.testing.assert_allclose(
        jm.policy.extract(world, measure * factors[world.pairs.states]).per_pair,
        jm.policy.extract(world, measure).per_pair,
        rtol=1e-14,
    )


@given(st.data())
def test_extraction_inverts_the_occupancy_where_a_state_is_visited(data):
    world = data.draw(worlds())
    policy = data.draw(policies(world))
    measure = jm.occupancy(world, policy).measure
    visited = world.pairs.spread(world.pairs.total(measure)) > 0
    np.testing.assert_allclose(
        jm.policy.extract(world, measure).per_pair[visited], policy.per_pair[visited], rtol=1e-12
    )


@pytest.mark.parametrize("measure", [np.ones(3), np.full(6, np.nan), np.ones((3, 2))])
def test_what_is_no_measure_of_the_world_is_refused(measure):
    with pytest.raises(jm.errors.InvalidPolicy, match="measure"):
        jm.policy.extract(WORLD, measure)


def test_a_periodic_world_is_inverted_too():
    world = random_world(0, Shape.PERIODIC)
    policy = jm.policy.extract(world, np.random.default_rng(1).random(world.num_pairs))
    again = jm.policy.extract(world, jm.occupancy(world, policy).measure)
    np.testing.assert_allclose(again.per_pair, policy.per_pair, rtol=1e-12)
