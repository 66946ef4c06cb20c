"""Weighted Gram matrices and their factors, against dense products and solves."""

import numpy as np
import pytest
from scipy import sparse

from journeyman.solvers.reduced import dual_repair
from journeyman.solvers.reduced.dual_repair import add_gram, factored_gram, seconds, stored_rows


@pytest.mark.parametrize("density", [0.02, 0.4, 1.0])
@pytest.mark.parametrize("size", [1, 2, 17, 120])
@pytest.mark.parametrize("few", [0, 1 << 40])
def test_solutions_are_those_of_dense_arithmetic(size, density, few, monkeypatch):
    monkeypatch.setattr(dual_repair, "FEW_PRODUCTS", few)
    rng = np.random.default_rng(size)
    block = sparse.random_array((3 * size, size), density=density, rng=rng, format="csr")
    block = sparse.csr_array(sparse.vstack([block, sparse.eye_array(size)]))
    weights, right = rng.exponential(size=4 * size), rng.normal(size=size)
    exact = block.toarray().T @ (weights[:, np.newaxis] * block.toarray())
    gram = np.zeros((size, size))
    add_gram(stored_rows(block), weights, gram)
    assert np.tril(gram) == pytest.approx(np.tril(exact), rel=1e-12, abs=1e-12)
    found = factored_gram(gram)(right)
    assert found == pytest.approx(np.linalg.solve(exact, right), rel=1e-8, abs=1e-10)


def test_a_singular_direction_is_left_alone():
    assert factored_gram(np.diag([4.0, 0.0, 1.0]))(np.array([4.0, 0.0, 3.0])) == pytest.approx(
        [1.0, 0.0, 3.0]
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_matrices_of_any_size_have_a_factor(scale):
    rows = np.random.default_rng(0).normal(size=(9, 5))
    exact = rows.T @ rows
    right = np.arange(5.0)
    found = factored_gram(scale * exact)(scale * right)
    assert found == pytest.approx(np.linalg.solve(exact, right), rel=1e-9)


def test_a_matrix_that_is_not_finite_has_solutions_that_are_not():
    assert np.isnan(factored_gram(np.full((3, 3), np.nan))(np.ones(3))).all()


def test_time_grows_with_the_work():
    narrow, wide = np.ones((1000, 10)), np.ones((1000, 100))
    assert 0 < seconds(narrow) < seconds(wide)
    assert seconds(stored_rows(sparse.eye_array(500, format="csr"))) < seconds(np.eye(500))
