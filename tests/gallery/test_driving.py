from itertools import product

import numpy as np
import pytest

import journeyman as jm

WORLD, BASIS, EXPERT = jm.gallery.driving()
FEATURES = BASIS.as_given(BASIS.matrix)
START = 1530
LEFT, STRAIGHT, RIGHT = range(3)
SPEED, SAFE, ON_ROAD = range(3)


def state(x, speed, lane, y):
    """The id of blue at `x` with `speed`, red in `lane` at `y`, in the order of the cells."""
    position, row = (x - 120) // 5, (y - 10) // 20
    return ((position * 3 + speed) * 3 + (lane - 140) // 20) * 10 + row


def law(start, action):
    row = WORLD.transition.toarray()[3 * start + action]
    return {int(target): row[target] for target in np.flatnonzero(row)}


def every_state():
    return product(range(120, 201, 5), range(3), (140, 160, 180), range(10, 191, 20))


def test_the_world_has_the_published_size():
    assert (WORLD.num_states, WORLD.num_pairs, WORLD.discount) == (1531, 4593, 0.9)
    assert WORLD.pairs == jm.world.Pairs.rectangular(1531, 3)
    assert WORLD.initial[START] == 1.0
    assert BASIS.names == ("speed", "no collision", "on road")


def test_states_are_numbered_without_gaps():
    assert [state(*cell) for cell in every_state()] == list(range(START))


def test_features_lie_in_their_ranges():
    assert set(FEATURES[:, SPEED]) == {0.5, 0.75, 1.0}
    assert set(FEATURES[:, SAFE]) == {0.0, 0.5}
    assert set(FEATURES[:, ON_ROAD]) == {0.0, 0.5}
    assert FEATURES[START].tolist() == [0.75, 0.5, 0.5]


def test_features_are_rewards():
    assert BASIS.rewards
    np.testing.assert_array_equal(BASIS.matrix, -FEATURES)
    assert BASIS.as_given(EXPERT.values).tolist() == [5.25, 4.15, 5.0]
    assert EXPERT.is_declared


def test_speed_and_road_features_follow_their_definitions():
    for x, speed, lane, y in every_state():
        features = FEATURES[state(x, speed, lane, y)]
        assert features[SPEED] == (0.5, 0.75, 1.0)[speed]
        assert features[ON_ROAD] == (0.5 if 140 <= x <= 180 else 0.0)


def overlap(first, second):
    """Whether two open intervals meet, by looking at the half points between."""
    return any(
        first[0] < point < first[1] and second[0] < point < second[1]
        for point in np.arange(0, 260, 0.5)
    )


def test_cars_collide_when_their_boxes_overlap():
    for x, lane, y in product(range(120, 201, 5), (140, 160, 180), range(10, 191, 20)):
        sideways = overlap((x - 19, x - 1), (lane - 20, lane))
        hit = sideways and overlap((131, 169), (y - 40, y))
        assert (FEATURES[state(x, 0, lane, y), SAFE] == 0) == hit


@pytest.mark.parametrize(
    ("x", "lane", "y", "hit"),
    [
        (160, 160, 150, True),
        (160, 160, 190, True),
        (160, 160, 130, False),
        (160, 140, 150, False),
        (155, 140, 150, True),
        (160, 180, 150, False),
        (165, 180, 150, True),
        (200, 180, 150, False),
        (195, 180, 150, True),
    ],
)
@pytest.mark.parametrize("speed", range(3))
def test_collisions_at_chosen_places(x, lane, y, hit, speed):
    assert FEATURES[state(x, speed, lane, y), SAFE] == (0.0 if hit else 0.5)


@pytest.mark.parametrize("speed", range(3))
def test_the_first_action_picks_the_speed(speed):
    expected = {state(160, speed, lane, 10): 1 / 3 for lane in (140, 160, 180)}
    assert law(START, speed) == pytest.approx(expected)


@pytest.mark.parametrize(("speed", "approach"), [(0, 20), (1, 40), (2, 80)])
@pytest.mark.parametrize(("action", "step"), [(LEFT, -5), (STRAIGHT, 0), (RIGHT, 5)])
def test_the_red_car_approaches_surely_in_its_lane(speed, approach, action, step):
    target = state(150 + step, speed, 180, 30 + approach)
    assert law(state(150, speed, 180, 30), action) == {target: 1.0}


@pytest.mark.parametrize(("speed", "last"), [(0, 190), (1, 170), (2, 130)])
def test_a_new_car_appears_when_the_old_one_has_passed(speed, last):
    fresh = {state(150, speed, lane, 10): 1 / 3 for lane in (140, 160, 180)}
    assert law(state(150, speed, 180, last), STRAIGHT) == pytest.approx(fresh)
    assert len(law(state(150, speed, 180, last - 20), STRAIGHT)) == 1


@pytest.mark.parametrize(("x", "action"), [(120, LEFT), (200, RIGHT)])
def test_the_road_ends_stop_the_blue_car(x, action):
    assert law(state(x, 0, 140, 30), action) == {state(x, 0, 140, 50): 1.0}


def test_the_world_is_the_same_every_time():
    again = jm.gallery.driving()
    np.testing.assert_array_equal(again.world.transition.data, WORLD.transition.data)
    np.testing.assert_array_equal(again.world.transition.indices, WORLD.transition.indices)
    np.testing.assert_array_equal(again.basis.matrix, BASIS.matrix)
