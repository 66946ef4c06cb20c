"""Concatenation keeps every column, sparsity where it can, and one base measure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import journeyman as jm
from journeyman.features.base import Features, concatenate
from journeyman.testing.strategies import seeds


@given(seeds, st.lists(st.booleans(), min_size=1, max_size=4))
def test_measures_add_up(seed, kinds):
    rng = np.random.default_rng(seed)
    matrices = [rng.normal(size=(5, rng.integers(1, 4))) for _ in kinds]
    parts = [
        Features(sparse.csr_array(matrix) if is_sparse else matrix)
        for matrix, is_sparse in zip(matrices, kinds, strict=True)
    ]
    joined = concatenate(parts)
    theta = rng.normal(size=joined.num_features)
    assert joined.is_sparse == all(kinds)
    assert np.allclose(joined.measure(theta), np.hstack(matrices) @ theta)


@pytest.mark.parametrize("place", [0, 1])
def test_the_one_base_is_kept_wherever_it_is(place):
    parts = [Features(np.eye(2)), Features(np.eye(2))]
    parts[place] = parts[place].with_base([3.0, 4.0])
    assert concatenate(parts).measure(np.zeros(4)).tolist() == [3.0, 4.0]


def test_what_cannot_be_joined_is_refused():
    based = Features(np.eye(2), [1.0, 1.0])
    with pytest.raises(jm.errors.InvalidCosts, match="nothing to concatenate"):
        concatenate([])
    with pytest.raises(jm.errors.InvalidCosts, match="two feature sets have a base"):
        concatenate([based, based])
