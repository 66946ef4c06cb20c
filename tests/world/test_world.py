from itertools import permutations

import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman import storage
from journeyman.testing import random_world

STEPS = np.random.default_rng(0).dirichlet(np.ones(3), size=(3, 2))
START = [0.2, 0.3, 0.5]


def two_states(stay=1.0, **more):
    return jm.World([[0, 1], [1 - stay, stay]], [1, 0], 0.9, **more)


def test_states_may_differ_in_their_number_of_actions():
    world = jm.World([[0, 1], [1, 0], [0, 1]], [1, 0], 0.9, choice_offsets=[0, 2, 3])
    assert (world.num_states, world.num_pairs) == (2, 3)
    assert world.pairs.actions_per_state.tolist() == [2, 1]
    assert [world.describe_pair(pair) for pair in range(3)] == [
        "state 0, action 0",
        "state 0, action 1",
        "state 1, action 0",
    ]


@pytest.mark.parametrize("layout", ["".join(axes) for axes in permutations("sax")])
def test_every_layout_names_the_same_world(layout):
    given = STEPS.transpose(["sax".index(axis) for axis in layout])
    world = jm.World.from_arrays(given, START, 0.9, layout=layout)
    np.testing.assert_allclose(world.transition.toarray(), STEPS.reshape(6, 3), rtol=1e-15)


def test_a_list_of_sparse_matrices_has_one_matrix_per_action():
    matrices = [sparse.csr_array(STEPS[:, action]) for action in range(2)]
    world = jm.World.from_arrays(matrices, START, 0.9, layout="asx")
    np.testing.assert_allclose(world.transition.toarray(), STEPS.reshape(6, 3), rtol=1e-15)


@pytest.mark.parametrize(
    ("transition", "layout", "message"),
    [
        (STEPS, "sas", "permutation of 'sax'"),
        (STEPS, "sxa", "3 states but 2 next states"),
        (STEPS[0], "sax", "2 axes"),
        ([sparse.eye_array(3)], "sax", "has layout 'asx'"),
        ([sparse.eye_array(3), sparse.eye_array(2)], "asx", "different shapes"),
    ],
)
def test_arrays_that_do_not_fit_their_layout_are_refused(transition, layout, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        jm.World.from_arrays(transition, START, 0.9, layout=layout)


def test_rows_that_nearly_sum_to_one_are_normalised_and_the_error_is_kept():
    rows = STEPS.reshape(6, 3).copy()
    rows[4] *= 1 + 5e-9
    world = jm.World(rows, START, 0.9)
    np.testing.assert_allclose(world.transition.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert world.normalisation_error == pytest.approx(5e-9, rel=1e-6)
    assert jm.World(np.eye(2), [1, 0], 0.9).normalisation_error == 0.0


def test_an_initial_law_that_nearly_sums_to_one_is_normalised():
    world = jm.World(STEPS.reshape(6, 3), np.array(START) * (1 + 5e-9), 0.9)
    assert world.initial.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("factor", [1 + 2e-8, 1 - 2e-8])
def test_a_larger_error_of_a_row_or_of_the_initial_law_is_refused(factor):
    rows = STEPS.reshape(6, 3).copy()
    rows[4] *= factor
    with pytest.raises(jm.errors.InvalidWorld, match=r"row 4 \(state 2, action 0\)"):
        jm.World(rows, START, 0.9)
    with pytest.raises(jm.errors.InvalidWorld, match="initial sums to"):
        jm.World(STEPS.reshape(6, 3), np.array(START) * factor, 0.9)


def test_repeated_entries_are_summed_and_stored_zeros_dropped():
    entries = ([0.25, 0.75, 0.0, 1.0], ([0, 0, 0, 1], [1, 1, 0, 1]))
    world = jm.World(sparse.coo_array(entries, shape=(2, 2)), [1, 0], 0.9)
    assert world.transition.nnz == 2
    assert world.transition.toarray().tolist() == [[0, 1], [0, 1]]


def test_absorbing_states_are_those_that_no_action_leaves():
    rows = [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0.5, 0, 0.5]]
    assert jm.World(rows, [1, 0, 0], 0.9).absorbing.tolist() == [False, True, False]


@pytest.mark.parametrize("leaving", [1e-3, 5e-9])
def test_a_state_that_is_rarely_left_is_not_absorbing(leaving):
    assert not two_states(stay=1 - leaving).absorbing[1]


@pytest.mark.parametrize("sink", [0, 2, -1])
def test_a_sink_must_be_absorbing(sink):
    with pytest.raises(jm.errors.InvalidWorld, match=f"sink = {sink}"):
        two_states(sink=sink)


def test_names_and_coordinates_are_kept_in_order():
    world = two_states(
        state_names=["home", "work"], action_names=["go"], coordinates=[[0, 1], [2, 3]], sink=1
    )
    assert world.state_names == ("home", "work")
    assert world.action_names == ("go",)
    assert world.coordinates.tolist() == [[0, 1], [2, 3]]
    assert world.sink == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("state_names", ["one"]), ("action_names", ["a", "b"]), ("coordinates", [[0.0]])],
)
def test_a_name_or_place_too_few_or_too_many_is_refused(field, value):
    with pytest.raises(jm.errors.InvalidWorld, match=field):
        two_states(**{field: value})


@pytest.mark.parametrize(("discount", "horizon"), [(0.5, 2.0), (0.9, 10.0), (0.99, 100.0)])
def test_effective_horizon_is_the_mass_of_an_occupancy(discount, horizon):
    world = random_world(0, discount=discount)
    assert world.effective_horizon == pytest.approx(horizon)
    mass = jm.occupancy(world, jm.Policy.uniform(world)).measure.sum()
    assert mass == pytest.approx(horizon)


@pytest.mark.parametrize("discount", [0, 1, -0.1, 1.1, np.nan, "high"])
def test_the_discount_lies_strictly_between_zero_and_one(discount):
    with pytest.raises(jm.errors.InvalidWorld, match="discount"):
        jm.World(np.eye(2), [1, 0], discount)


def test_a_world_is_its_own_copy_and_cannot_be_changed():
    rows, initial = np.eye(2), np.array([1.0, 0.0])
    world = jm.World(rows, initial, 0.9)
    rows[:], initial[:] = 0.5, 0.5
    assert world.transition.toarray().tolist() == [[1, 0], [0, 1]]
    assert world.initial.tolist() == [1, 0]
    for array in (world.transition.data, world.transition.indices, world.initial):
        assert not array.flags.writeable


def test_a_saved_world_comes_back_whole(tmp_path):
    drawn = random_world(3)
    world = jm.World(
        drawn.transition,
        drawn.initial,
        drawn.discount,
        choice_offsets=drawn.pairs.offsets,
        coordinates=np.arange(10).reshape(5, 2),
        state_names="abcde",
        action_names=[f"action {k}" for k in range(drawn.pairs.max_actions)],
    )
    world.save(tmp_path / "world.npz")
    again = jm.World.load(tmp_path / "world.npz")
    np.testing.assert_array_equal(again.transition.toarray(), world.transition.toarray())
    np.testing.assert_array_equal(again.initial, world.initial)
    np.testing.assert_array_equal(again.coordinates, world.coordinates)
    assert again.pairs == world.pairs
    assert again.discount == world.discount
    assert again.state_names == world.state_names
    assert again.action_names == world.action_names
    assert again.sink is None


@pytest.mark.parametrize("sink", [1, np.int64(1)])
def test_the_sink_survives_a_file(tmp_path, sink):
    two_states(sink=sink).save(tmp_path / "world.npz")
    assert jm.World.load(tmp_path / "world.npz").sink == 1


def test_only_a_reader_that_knows_of_estimates_reads_an_estimated_world(tmp_path):
    two_states().save(tmp_path / "exact.npz")
    facts, _ = storage.load_arrays(tmp_path / "exact.npz", "world", 1)
    assert "initial_error" in facts
    two_states(transition_error=0.1).save(tmp_path / "estimated.npz")
    with pytest.raises(jm.errors.InvalidFile, match="schema version 2"):
        storage.load_arrays(tmp_path / "estimated.npz", "world", 1)


def test_a_file_from_before_estimates_loads_as_an_exact_world(tmp_path):
    path = tmp_path / "world.npz"
    two_states(sink=1).save(path)
    facts, arrays = storage.load_arrays(path, "world", 1)
    old = {name: facts[name] for name in ("discount", "sink", "state_names", "action_names")}
    storage.save_arrays(path, "world", 1, arrays, **old)
    again = jm.World.load(path)
    assert not again.is_estimated
    assert again.support is None
    assert again.sink == 1


@pytest.mark.parametrize(
    ("name", "damage"),
    [("support_indices", np.array([7, 1, 1])), ("support_indptr", np.array(["a", "b", "c"]))],
)
def test_a_damaged_support_in_a_file_is_refused(tmp_path, name, damage):
    path = tmp_path / "world.npz"
    two_states(support=[[1, 1], [0, 1]]).save(path)
    facts, arrays = storage.load_arrays(path, "world", 1)
    facts = {key: facts[key] for key in facts if key not in ("kind", "version")}
    storage.save_arrays(path, "world", 1, {**arrays, name: damage}, **facts)
    with pytest.raises(jm.errors.InvalidWorld, match="support is not a sound sparse matrix"):
        jm.World.load(path)
