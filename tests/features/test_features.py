"""Features: columns of measures, sparse or dense, checked at the door."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.features import base as module
from journeyman.features.base import Features
from journeyman.testing.strategies import seeds, worlds


def random_matrix(rng, num_pairs, num_features=3):
    return rng.normal(size=(num_pairs, num_features)) * (
        rng.random((num_pairs, num_features)) < 0.6
    )


@given(worlds(), seeds, st.booleans())
def test_a_measure_is_base_plus_combination(world, seed, with_base):
    rng = np.random.default_rng(seed)
    matrix, theta = random_matrix(rng, world.num_pairs), rng.normal(size=3)
    base = rng.normal(size=world.num_pairs) if with_base else None
    expected = matrix @ theta + (0.0 if base is None else base)
    for form in (matrix, sparse.csr_array(matrix), sparse.coo_array(matrix)):
        assert np.allclose(Features(form, base).measure(theta), expected, atol=1e-12)


@given(worlds(), seeds, st.booleans())
def test_normalised_columns_have_the_mass_of_an_occupancy(world, seed, is_sparse):
    matrix = random_matrix(np.random.default_rng(seed), world.num_pairs)
    matrix[:, 1] = 0.0
    matrix[0, [0, 2]] = 1.0
    given = Features(sparse.csr_array(matrix) if is_sparse else matrix)
    scaled = given.normalised(world)
    assert scaled.num_features == 2
    assert scaled.is_sparse == is_sparse
    assert np.allclose(scaled.masses, world.effective_horizon)
    directions = np.delete(matrix, 1, axis=1)
    directions /= np.abs(directions).sum(axis=0)
    dense = scaled.matrix.toarray() if is_sparse else scaled.matrix
    assert np.allclose(dense, directions * world.effective_horizon)


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_callable_is_asked_for_all_pairs_in_blocks(monkeypatch, as_rows):
    monkeypatch.setattr(module, "BLOCK", 3)
    world = jm.World(np.full((7, 3), 1 / 3), np.full(3, 1 / 3), 0.9, choice_offsets=[0, 1, 4, 7])
    features = Features.from_callable(
        world, lambda states, actions: as_rows(np.column_stack([states, actions + 1.0]))
    )
    assert features.is_sparse == (as_rows is sparse.csr_array)
    expected = np.column_stack([world.pairs.states, world.pairs.actions + 1.0])
    assert np.array_equal(features.measure([1.0, 10.0]), expected @ [1.0, 10.0])


def test_a_base_is_replaced_and_the_original_kept():
    features = Features([[1.0], [2.0]])
    based = features.with_base([5.0, 6.0])
    assert features.base is None
    assert based.measure([2.0]).tolist() == [7.0, 10.0]
    assert "with a base measure" in repr(based)


@pytest.mark.parametrize("matrix", [np.eye(2), sparse.eye_array(2)], ids=["dense", "sparse"])
def test_nothing_can_be_changed_afterwards(matrix):
    features = Features(matrix, [0.0, 1.0])
    held = features.matrix.data if features.is_sparse else features.matrix
    for array in (held, features.base):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 3.0


def test_signs_of_columns_and_base_are_seen():
    assert Features(np.eye(2)).is_nonnegative
    assert not Features(-np.eye(2)).is_nonnegative
    assert not Features(np.eye(2), [0.0, -1.0]).is_nonnegative


def test_assumption_2_is_reported():
    world = jm.World(np.eye(2), [0.5, 0.5], 0.5)
    assert "holds" in Features([[0.5, 1.0], [1.5, 1.0]]).assumption_2(world)
    assert "least entry 0" in Features([[2.0], [0.0]]).assumption_2(world)
    assert "not 2" in Features([[0.5], [0.5]]).assumption_2(world)


@pytest.mark.parametrize(
    ("matrix", "base", "message"),
    [
        (np.zeros((2, 0)), None, "empty"),
        ([[1.0, np.nan]], None, "not finite"),
        (sparse.csr_array([[np.inf]]), None, "not finite"),
        ([["a"]], None, "real numbers"),
        (np.eye(2), [1.0], "base measure"),
        (np.eye(2), [1.0, np.inf], "base measure"),
    ],
)
def test_unusable_features_are_refused(matrix, base, message):
    with pytest.raises(jm.errors.InvalidCosts, match=message):
        Features(matrix, base)


def test_features_of_another_world_are_refused():
    world = jm.World(np.eye(2), [0.5, 0.5], 0.5)
    with pytest.raises(jm.errors.InvalidCosts, match="3 rows, the world 2 pairs"):
        Features(np.eye(3)).on(world)
