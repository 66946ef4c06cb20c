import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import journeyman as jm

SIZES = [12, 40, 300, 1000]


@pytest.mark.parametrize("num_links", SIZES)
def test_every_link_leads_on_and_one_crossing_is_the_end(num_links):
    world, basis, expert = jm.gallery.road_network(num_links, seed=3)
    assert world.num_states == num_links + 1
    assert np.flatnonzero(world.absorbing).tolist() == [world.sink] == [num_links]
    assert (world.transition.data == 1).all()
    assert world.pairs.actions_per_state.max() <= 5
    towards = world.transition.indices == world.sink
    stopping = world.pairs.states[towards][:-1]
    assert 1 <= stopping.size <= 4
    assert not basis.matrix[towards].any()
    graph = jm.policy.Policy.uniform(world)
    steps = np.repeat(graph.on(world), np.diff(world.transition.indptr))
    moved = world.transition.copy()
    moved.data = steps
    spread = np.add.reduceat(moved.toarray(), world.pairs.offsets[:-1])
    assert connected_components(spread, connection="strong")[0] == 2
    assert expert.pairs == world.pairs


def test_the_same_seed_has_the_same_roads_for_every_destination():
    first, second = (jm.gallery.road_network(60, destination=k, seed=5) for k in range(2))
    other = jm.gallery.road_network(60, seed=6)
    assert np.array_equal(first.world.coordinates[:-1], second.world.coordinates[:-1])
    assert not np.array_equal(first.world.coordinates[-1], second.world.coordinates[-1])
    assert not np.array_equal(first.world.coordinates[:-1], other.world.coordinates[:-1])


def test_costs_are_those_of_the_next_link_and_the_turn():
    world, basis, _ = jm.gallery.road_network(60, seed=1)
    here, there = world.pairs.states, world.transition.indices
    drives = there < world.sink
    assert (basis.matrix[~drives] == 0).all()
    length, left, back, crossing = basis.matrix[drives].T
    assert (crossing == 1).all()
    assert (back == (there[drives] == here[drives] ^ 1)).all()
    assert ((left == 1) | (left == 0)).all()
    assert 0 < left.mean() < 0.5
    assert not (left * back).any()
    assert 0.3 < length.min() < length.max() < 2
    once = {int(a): float(b) for a, b in zip(there[drives], length, strict=True)}
    assert all(once[int(a)] == b for a, b in zip(there[drives], length, strict=True))
    middles = world.coordinates
    assert np.abs(middles[here[drives]] - middles[there[drives]]).max() < 2


def test_left_is_where_the_left_hand_is():
    """Coordinates are (x, y): a quarter turn against the clock is a turn to the left."""
    world, basis, _ = jm.gallery.road_network(300, seed=2)
    middle = world.coordinates
    here, there = world.pairs.states, world.transition.indices
    for pair in np.flatnonzero(basis.matrix[:, 1]):
        a, b = middle[there[pair]] - middle[here[pair]], middle[here[pair]]
        assert np.isfinite(a).all()
        assert b.size == 2
        mirrored = np.flatnonzero((here == there[pair] ^ 1) & (there == here[pair] ^ 1))
        assert basis.matrix[mirrored, 1].tolist() == [0]


def test_trips_arrive():
    world, _, expert = jm.gallery.road_network(300)
    trips = jm.record(world, expert, trajectories=100, horizon=400, seed=0)
    assert trips.terminated.all()
    assert 3 < trips.lengths.mean() < 30


@pytest.mark.parametrize(
    "arguments", [{"num_links": 13}, {"num_links": 4}, {"destination": 999}, {"weights": [1, 2]}]
)
def test_what_makes_no_sense_is_refused(arguments):
    with pytest.raises(jm.errors.InvalidWorld):
        jm.gallery.road_network(**{"num_links": 60} | arguments)


def test_sizes_between_the_steps_of_the_grid_exist():
    for num_links in range(12, 200, 2):
        assert jm.gallery.road_network(num_links).world.num_states == num_links + 1


def test_whole_trips_are_the_limit_of_discounted_ones():
    whole = jm.gallery.road_network(60, discount=1, steps_at_most=60)
    nearly = jm.gallery.road_network(60, discount=1 - 1e-10)
    assert whole.world.has_goal
    laws = [one.expert.on(one.world) for one in (whole, nearly)]
    np.testing.assert_allclose(*laws, atol=1e-7)
    with pytest.raises(jm.errors.InvalidWorld, match="worth driving on for ever"):
        jm.gallery.road_network(60, discount=1, steps_at_most=60, weights=[0.1] * 4)
