import numpy as np
import pytest

import journeyman as jm
from journeyman.gallery.grid_world import MOVES

UP, RIGHT, DOWN, LEFT = range(4)


def law(world, cell, action):
    """The next cells and their probabilities."""
    cells = [tuple(place) for place in world.coordinates.astype(int).tolist()]
    row = world.transition.toarray()[4 * cells.index(cell) + action]
    return {cells[target]: row[target] for target in np.flatnonzero(row)}


@pytest.mark.parametrize(
    ("cell", "action", "target"),
    [
        ((1, 1), UP, (0, 1)),
        ((1, 1), RIGHT, (1, 2)),
        ((1, 1), DOWN, (2, 1)),
        ((1, 1), LEFT, (1, 0)),
        ((0, 0), UP, (0, 0)),
        ((0, 0), LEFT, (0, 0)),
        ((2, 2), DOWN, (2, 2)),
        ((2, 2), RIGHT, (2, 2)),
    ],
)
def test_a_move_goes_one_cell_and_the_border_reflects(cell, action, target):
    world = jm.gallery.grid(3, macro_cells=1, slip=0).world
    assert law(world, cell, action) == {target: 1.0}


def test_a_slipped_move_is_uniform_over_the_four_directions():
    world = jm.gallery.grid(3, macro_cells=1, slip=0.4).world
    assert law(world, (1, 1), UP) == pytest.approx(
        {(0, 1): 0.7, (1, 2): 0.1, (2, 1): 0.1, (1, 0): 0.1}
    )
    assert law(world, (0, 0), UP) == pytest.approx({(0, 0): 0.8, (0, 1): 0.1, (1, 0): 0.1})


def test_walls_are_no_states_and_reflect():
    world = jm.gallery.grid(3, macro_cells=1, slip=0, walls=[(0, 1)]).world
    assert world.num_states == 8
    assert [0, 1] not in world.coordinates.tolist()
    assert law(world, (0, 0), RIGHT) == {(0, 0): 1.0}
    assert law(world, (1, 1), UP) == {(1, 1): 1.0}
    assert law(world, (0, 2), DOWN) == {(1, 2): 1.0}


@pytest.mark.parametrize(("size", "macro_cells"), [(4, 2), (5, 2), (6, 3), (3, 3)])
def test_every_cell_belongs_to_one_macro_cell(size, macro_cells):
    world, basis, _ = jm.gallery.grid(size, macro_cells=macro_cells)
    indicators = basis.matrix.toarray()
    assert basis.num_costs == macro_cells**2
    assert set(indicators.ravel()) <= {0.0, 1.0}
    assert (indicators.sum(axis=1) == 1).all()
    assert (indicators.sum(axis=0) > 0).all()
    for (row, column), cell in zip(world.coordinates, indicators.argmax(axis=1), strict=True):
        place = f"cell {int(row * macro_cells / size)},{int(column * macro_cells / size)}"
        assert basis.names[cell] == place


def test_the_start_is_uniform_a_cell_or_a_law():
    assert jm.gallery.grid(3, macro_cells=1).world.initial.tolist() == [1 / 9] * 9
    cell = jm.gallery.grid(3, macro_cells=1, initial=(1, 2), walls=[(0, 0)]).world
    assert cell.coordinates[cell.initial == 1].tolist() == [[1, 2]]
    given = np.arange(9) / 36
    np.testing.assert_allclose(
        jm.gallery.grid(3, macro_cells=1, initial=given).world.initial, given
    )


def test_the_expert_mixes_an_optimal_policy_with_uniform_actions():
    expert = jm.gallery.grid(6, macro_cells=2, randomness=0.2).expert
    laws = np.sort(expert.probabilities(np.arange(36)), axis=1)
    np.testing.assert_allclose(laws, [[0.05, 0.05, 0.05, 0.85]] * 36)


def test_the_expert_is_better_than_chance_for_its_hidden_cost():
    world, basis, expert = jm.gallery.grid(6, macro_cells=2, randomness=0.0, seed=3)
    hidden = basis.on(world) @ np.random.default_rng(3).uniform(-1, 1, basis.num_costs)
    best = world.initial @ jm.plan(world, hidden).values
    assert jm.expected_cost(world, expert, hidden) == pytest.approx(best)
    assert jm.expected_cost(world, jm.Policy.uniform(world), hidden) > best + 0.1


def test_the_seed_decides_the_expert_and_only_it():
    first, again, other = (jm.gallery.grid(6, macro_cells=2, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.expert.per_pair, again.expert.per_pair)
    assert not np.array_equal(first.expert.per_pair, other.expert.per_pair)
    np.testing.assert_array_equal(first.world.transition.data, other.world.transition.data)


def test_the_default_grid_has_the_stated_size():
    world, basis, expert = jm.gallery.grid()
    assert (world.num_states, world.num_pairs, basis.num_costs) == (256, 1024, 16)
    assert world.action_names == tuple(MOVES)
    assert expert.pairs == world.pairs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "size=0"),
        ({"size": 2, "macro_cells": 3}, "macro_cells=3"),
        ({"slip": 1.5}, "slip=1.5"),
        ({"walls": [(16, 0)]}, r"wall at \(16, 0\)"),
        ({"size": 1, "macro_cells": 1, "walls": [(0, 0)]}, "no free cell"),
        ({"initial": (0, 16)}, r"start \(0, 16\)"),
        ({"initial": (1, 1), "walls": [(1, 1)]}, r"start \(1, 1\)"),
    ],
)
def test_grids_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        jm.gallery.grid(**arguments)


def test_staying_is_an_action_on_request():
    world, _, expert = jm.gallery.grid(3, macro_cells=1, slip=0.5, stay=True)
    assert world.action_names == ("up", "right", "down", "left", "stay")
    staying = world.transition[[4 * 5 + 4]].toarray().ravel()
    expected = np.zeros(9)
    expected[[1, 3, 5, 7]] = 0.1
    expected[4] = 0.6
    np.testing.assert_allclose(staying, expected, atol=1e-15)
    assert expert.pairs == world.pairs
