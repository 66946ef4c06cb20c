"""Objectworld and highway: laws, features and rewards are those of their descriptions."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.errors import InvalidWorld
from journeyman.gallery.highway_world import KINDS, LANES, SPEEDS

MAKERS = [jm.gallery.objectworld, jm.gallery.highway]
of_both = pytest.mark.parametrize("make", MAKERS, ids=lambda one: one.__name__)


def column(example, name):
    return np.asarray(example.basis.matrix)[:, example.basis.names.index(name)]


@of_both
def test_a_seed_draws_the_objects_and_nothing_else(make):
    one, same, other = make(8, seed=1), make(8, seed=1), make(8, seed=2)
    assert np.array_equal(one.cost, same.cost)
    assert np.array_equal(one.basis.matrix, same.basis.matrix)
    assert not np.array_equal(one.basis.matrix, other.basis.matrix)
    assert one.basis.names == other.basis.names
    assert (one.world.transition != other.world.transition).nnz == 0


@of_both
@pytest.mark.parametrize("linear", [False, True])
def test_the_expert_is_optimal_for_the_cost(make, linear):
    world, _, expert, cost = make(8, linear=linear, seed=4)
    least = jm.expected_cost(world, jm.plan(world, cost).policy, cost)
    assert jm.expected_cost(world, expert, cost) == pytest.approx(least)
    soft = make(8, linear=linear, temperature=1.0, seed=4).expert
    again = jm.policy.soft_plan(world, cost).policy
    assert soft.per_pair == pytest.approx(again.per_pair)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("linear", [False, True])
def test_objectworld_rewards_two_outer_colours(seed, linear):
    example = jm.gallery.objectworld(10, colours=3, linear=linear, seed=seed)
    near = column(example, "outer 1 closer than 3")
    nearer = column(example, "outer 2 closer than 2")
    wanted = near - nearer if linear else near * (2 * nearer - 1)
    assert np.array_equal(-example.cost, wanted)


def test_objectworld_has_both_kinds_of_features_of_the_same_objects():
    indicators = jm.gallery.objectworld(9, seed=6)
    distances = jm.gallery.objectworld(9, seed=6, continuous=True)
    assert np.array_equal(indicators.cost, distances.cost)
    for title in ("inner 1", "inner 2", "outer 1", "outer 2"):
        far = column(distances, f"distance to {title}") * 9 * 2**0.5
        for limit in range(1, 10):
            below = column(indicators, f"{title} closer than {limit}")
            clear = np.abs(far - limit) > 1e-9
            assert np.array_equal(below[clear], (far < limit)[clear].astype(float))


def test_objectworld_acts_at_random_three_times_in_ten():
    world = jm.gallery.objectworld(5).world
    middle = 12
    rows = world.transition[middle * 5 : middle * 5 + 5].toarray()
    assert rows[4, middle] == pytest.approx(0.7 + 0.06)
    assert sorted(rows[0][rows[0] > 0].round(9)) == pytest.approx([0.06] * 4 + [0.76])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("linear", [False, True])
def test_highway_is_slow_beside_the_police(seed, linear):
    example = jm.gallery.highway(12, linear=linear, seed=seed)
    ahead, behind = (
        column(example, f"police {way} in any lane closer than 3") for way in ("ahead", "behind")
    )
    watched = (ahead + behind) > 0
    speed = example.world.coordinates[:, 2]
    reward = speed / 4 - watched if linear else np.where(watched & (speed > 2), -1, speed / 4)
    assert -example.cost == pytest.approx(reward)
    assert watched.any()


def test_highway_features_agree_with_each_other():
    length = 10
    example = jm.gallery.highway(length, sight=5, seed=2)
    shape = (length, LANES, SPEEDS)
    for kind in KINDS:
        for way, back in (("ahead", -1), ("behind", 1)):
            own, any_lane = (
                column(example, f"{kind} {way} in {where} closer than 1").reshape(shape)
                for where in ("the same lane", "any lane")
            )
            assert np.array_equal(any_lane, own.max(axis=1, keepdims=True) * np.ones(shape))
            closer = column(example, f"{kind} {way} in the same lane closer than 3").reshape(shape)
            spread = np.maximum.reduce([np.roll(own, k * back, axis=0) for k in range(3)])
            assert np.array_equal(closer, spread)
            left = column(example, f"{kind} {way} in the lane to the left closer than 1")
            assert np.array_equal(left.reshape(shape)[:, 1:], own[:, :-1])
            assert not left.reshape(shape)[:, 0].any()


def test_highway_moves_as_fast_as_it_drives():
    world = jm.gallery.highway(8).world
    state = {tuple(one): k for k, one in enumerate(world.coordinates.astype(int))}

    def law(place, lane, speed, action):
        pair = world.pairs.index([state[place, lane, speed]], [action])[0]
        row = world.transition[[pair]].toarray()[0]
        return {tuple(world.coordinates[k].astype(int)): row[k] for k in np.flatnonzero(row)}

    keep, left, _, faster, slower = range(5)
    assert law(3, 1, 1, keep) == {(3, 1, 1): pytest.approx(1)}
    assert law(6, 1, 3, keep) == {(0, 1, 3): pytest.approx(1)}
    assert law(3, 1, 2, faster) == {(5, 1, 3): pytest.approx(0.9), (4, 1, 2): pytest.approx(0.1)}
    assert law(3, 1, 2, slower) == {(3, 1, 1): pytest.approx(0.9), (4, 1, 2): pytest.approx(0.1)}
    assert law(3, 1, 2, left) == {(4, 0, 2): pytest.approx(0.9), (4, 1, 2): pytest.approx(0.1)}
    assert law(3, 0, 2, left) == {(4, 0, 2): pytest.approx(1)}
    assert law(3, 0, 4, faster) == {(6, 0, 4): pytest.approx(1)}


@pytest.mark.parametrize(
    "call",
    [
        lambda: jm.gallery.objectworld(3),
        lambda: jm.gallery.objectworld(8, colours=1),
        lambda: jm.gallery.objectworld(8, temperature=-1.0),
        lambda: jm.gallery.objectworld(8, temperature=float("nan")),
        lambda: jm.gallery.highway(7),
        lambda: jm.gallery.highway(sight=2),
        lambda: jm.gallery.highway(cells_per_vehicle=0),
        lambda: jm.gallery.highway(temperature=float("inf")),
    ],
)
def test_what_is_no_world_is_refused(call):
    with pytest.raises(InvalidWorld):
        call()
