import numpy as np
import pytest
from scipy import sparse

import journeyman as jm
from journeyman.testing import random_world

ENTRIES = np.array([[0.0, -1.0, 2.0], [0.5, 0.0, 2.0], [0.0, -3.0, 2.0]])


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.coo_array])
def test_sparse_and_dense_bases_have_the_same_ranges(form):
    basis = jm.CostBasis(form(ENTRIES))
    assert basis.num_costs == 3
    assert basis.lowest.tolist() == [0.0, -3.0, 2.0]
    assert basis.highest.tolist() == [0.5, 0.0, 2.0]
    assert basis.centre.tolist() == [0.25, -1.5, 2.0]
    np.testing.assert_array_equal(basis.centred(), ENTRIES - [0.25, -1.5, 2.0])


def test_sparse_input_stays_sparse():
    assert sparse.issparse(jm.CostBasis(sparse.csr_array(ENTRIES)).matrix)
    assert isinstance(jm.CostBasis(ENTRIES).matrix, np.ndarray)


def test_centred_costs_range_evenly_around_zero():
    centred = jm.CostBasis(ENTRIES).centred()
    np.testing.assert_allclose(centred.max(axis=0), -centred.min(axis=0))


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_rewards_become_costs_and_are_shown_as_rewards(form):
    basis = jm.CostBasis.from_rewards(form(ENTRIES), names="abc")
    matrix = basis.matrix.toarray() if sparse.issparse(basis.matrix) else basis.matrix
    np.testing.assert_array_equal(matrix, -ENTRIES)
    assert basis.rewards
    assert basis.names == ("a", "b", "c")
    assert basis.as_given(np.array([-1.0, 2.0, 0.5])).tolist() == [1.0, -2.0, -0.5]


def test_costs_are_shown_as_they_are():
    basis = jm.CostBasis(ENTRIES)
    assert not basis.rewards
    assert basis.as_given(np.array([-1.0, 2.0])).tolist() == [-1.0, 2.0]


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize("make", [jm.CostBasis, jm.CostBasis.from_rewards])
def test_a_basis_cannot_be_changed(form, make):
    matrix = make(form(ENTRIES)).matrix
    stored = matrix.data if sparse.issparse(matrix) else matrix
    assert not stored.flags.writeable


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_costs_of_states_hold_for_each_of_their_actions(form):
    world = random_world(0)
    per_state = np.random.default_rng(1).normal(size=(world.num_states, 2))
    rows = jm.CostBasis(form(per_state)).on(world)
    rows = rows.toarray() if sparse.issparse(rows) else rows
    np.testing.assert_array_equal(rows, per_state[world.pairs.states])


def test_costs_of_pairs_are_used_as_given():
    world = random_world(0)
    per_pair = np.random.default_rng(1).normal(size=(world.num_pairs, 2))
    np.testing.assert_array_equal(jm.CostBasis(per_pair).on(world), per_pair)


def test_a_basis_of_another_world_is_refused():
    with pytest.raises(jm.errors.InvalidCosts, match="cost basis has 3 rows"):
        jm.CostBasis(ENTRIES).on(random_world(0))


def test_a_vector_is_a_single_cost():
    assert jm.CostBasis([1.0, 2.0]).matrix.tolist() == [[1.0], [2.0]]


def test_costs_without_names_are_numbered():
    assert jm.CostBasis(ENTRIES).names == ("cost 0", "cost 1", "cost 2")


@pytest.mark.parametrize(
    ("matrix", "names", "message"),
    [
        (ENTRIES, ["a", "b"], "2 names for 3 costs"),
        (ENTRIES, ["a", "b", "a"], "two costs are named 'a'"),
        (np.zeros((0, 2)), None, "empty"),
        (np.zeros((2, 0)), None, "empty"),
        ([[1.0, np.nan]], None, r"not finite at \(0, 1\)"),
        (sparse.csr_array([[1.0, np.inf]]), None, "not finite"),
        (np.zeros((2, 2, 2)), None, "3 axes"),
    ],
)
def test_what_is_no_basis_is_refused(matrix, names, message):
    with pytest.raises(jm.errors.InvalidCosts, match=message):
        jm.CostBasis(matrix, names)


@pytest.mark.parametrize("size", [1e-170, 1e155])
def test_costs_whose_squares_vanish_or_overflow_are_refused(size):
    with pytest.raises(jm.errors.InvalidCosts, match="'cost 1' has costs of size 1e"):
        jm.CostBasis([[0.0, size], [1.0, 0.0]])
    assert jm.CostBasis([[0.0, 0.0], [1.0, 0.0]]).norms.tolist() == [1, 0]
