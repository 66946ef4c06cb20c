"""Maps show the occupancy and the directions there are, in worlds that are maps."""

import re

import numpy as np
import pytest

import journeyman as jm
from journeyman.report.grid_maps import (
    MOST_SQUARES,
    directions,
    grid_of,
    maps,
    of_policy,
    of_record,
    recorded_visits,
)
from journeyman.report.rendering import render
from journeyman.report.report_data import ReportData

LINE = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0],
                 [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])  # fmt: skip
"""Three cells in a row: action 0 leads to the right, action 1 to the left; the ends reflect."""


def line(**more):
    return jm.World(LINE, [1, 0, 0], 0.5, coordinates=[[0, 4], [0, 5], [0, 6]], **more)


def test_time_is_the_exact_occupancy():
    world = line()
    rightwards = jm.Policy([[1.0, 0.0]] * 3)
    found = of_policy(grid_of(world), rightwards)
    assert found.time == pytest.approx([0.5, 0.25, 0.25])
    assert found.time.sum() == pytest.approx(1)


def test_arrows_point_where_actions_lead_with_and_without_names():
    law = jm.Policy([[1.0, 0.0], [0.75, 0.25], [0.5, 0.5]])
    for world in (line(), line(action_names=["right", "left"])):
        assert directions(world)[:2].tolist()[0] == [0.0, 1.0]
        found = of_policy(grid_of(world), law)
        assert found.arrows[:2].tolist() == [[0.0, 1.0], [0.0, 0.5]]


def test_the_record_reports_visits_and_frequencies():
    world = line()
    demos = jm.Demonstrations.from_arrays([[0, 1, 2], [0, 1, 0]], [[0, 0], [0, 1]])
    layout = grid_of(world)
    assert recorded_visits(world, demos) == pytest.approx([2 / 3, 1 / 3, 0])
    found = of_record(layout, demos)
    assert found.arrows[:2].tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert found.seen.tolist() == [True, True, False]


def test_terminated_episodes_rest_where_they_ended():
    absorbed = np.array([[0.0, 1.0], [0.0, 1.0]])
    world = jm.World(absorbed, [1, 0], 0.5, coordinates=[[0, 0], [0, 1]])
    demos = jm.Demonstrations.from_arrays([[0, 1]], [[0]], [True])
    assert recorded_visits(world, demos) == pytest.approx([0.5, 0.5])


def test_recorded_visits_come_close_to_the_occupancy_of_the_expert():
    world, _, expert = jm.gallery.grid(4, macro_cells=2)
    demos = jm.record(world, expert, trajectories=4000, horizon=100, seed=0)
    exact = jm.occupancy(world, expert).of_states / world.effective_horizon
    assert np.abs(recorded_visits(world, demos) - exact).sum() < 0.05


@pytest.mark.parametrize(
    "coordinates",
    [None, [[0], [1], [2]], [[0, 0], [0, 1], [0, 1]], [[0, 0.5], [0, 1], [0, 2]],
     [[0, 0], [50, 50], [99, 99]]],
)  # fmt: skip
def test_other_worlds_have_no_map(coordinates):
    world = jm.World(LINE, [1, 0, 0], 0.5, coordinates=coordinates)
    assert grid_of(world) is None


def test_a_sink_has_no_place_on_the_map():
    rows = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    places = [[0, 0], [0, 1], [0, 0]]
    world = jm.World(rows, [1, 0, 0], 0.5, coordinates=places, sink=2)
    assert grid_of(world).shape == (1, 2)


def test_large_maps_are_drawn_in_squares():
    world, _, expert = jm.gallery.grid(30, macro_cells=2)
    layout = grid_of(world)
    assert layout.step == 2
    assert max(layout.shape) <= MOST_SQUARES
    assert of_policy(layout, expert).time.sum() == pytest.approx(1)


def test_every_free_cell_has_its_arrow_and_every_wall_its_place():
    world, basis, expert = jm.gallery.grid(4, macro_cells=2, walls=[(1, 1), (2, 2)])
    demos = jm.record(world, expert, trajectories=500, horizon=100, seed=0)
    problem = jm.Apprenticeship(world, basis, demos)
    html = render(maps(ReportData.of(jm.certify(problem, expert)), ""))
    arrows = re.findall(r'<path class="arrow" d="([^"]*)"', html)
    assert [path.count("M") for path in arrows] == [14, 14]
    walls = re.findall(r'<path class="wall" d="([^"]*)"', html)
    assert walls == ["M40 40h40v40H40zM80 80h40v40H80z"] * 2
    assert "counted from 0 at the top left" in html
