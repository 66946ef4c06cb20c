"""The windy grid: gusts, goals, and an expert who avoids obstacles."""

import numpy as np
import pytest

import journeyman as jm
from journeyman.errors import InvalidWorld


def row(world, state, action):
    pair = int(world.pairs.index([state], [action])[0])
    return world.transition[[pair]].toarray()[0]


def test_a_gust_moves_one_further_to_the_left():
    world = jm.gallery.windy_grid(4, wind=0.25).world
    up, right, _, left = range(4)
    middle = 3 * 4 + 2  # the last row has no goal
    found = {action: np.flatnonzero(row(world, middle, action)) for action in (up, right, left)}
    assert found[up].tolist() == [2 * 4 + 1, 2 * 4 + 2]
    assert found[right].tolist() == [middle, middle + 1]
    assert found[left].tolist() == [3 * 4, 3 * 4 + 1]
    assert row(world, middle, up)[2 * 4 + 1] == pytest.approx(0.25)
    assert row(world, 3 * 4, left)[3 * 4] == pytest.approx(1.0)


def test_goals_end_the_journey_and_the_expert_goes_there():
    world, basis, expert = jm.gallery.windy_grid()
    weights = jm.gallery.windy_costs()
    assert np.flatnonzero(world.absorbing).tolist() == np.flatnonzero(weights < 0).tolist()
    assert basis.num_costs == 100
    best = jm.plan(world, basis.on(world) @ weights).policy
    assert jm.expected_cost(world, expert, basis.on(world) @ weights) == pytest.approx(
        jm.expected_cost(world, best, basis.on(world) @ weights)
    )
    assert jm.expected_cost(world, expert, basis.on(world) @ weights) < 0


def test_without_wind_moves_are_certain():
    world = jm.gallery.windy_grid(3, wind=0.0).world
    assert set(world.transition.data.tolist()) == {1.0}


@pytest.mark.parametrize("wrong", [{"wind": 1.0}, {"wind": -0.1}, {"size": 1}], ids=str)
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(InvalidWorld, match=next(iter(wrong))):
        jm.gallery.windy_grid(**wrong)
