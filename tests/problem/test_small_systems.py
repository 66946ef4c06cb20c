"""Small definite systems, against LAPACK."""

import numpy as np
import pytest

from journeyman.problem.small_systems import solve_definite


@pytest.mark.parametrize("size", [1, 2, 17, 120])
def test_it_solves_what_lapack_solves(size):
    rng = np.random.default_rng(size)
    rows = rng.normal(size=(2 * size, size))
    matrix, right = rows.T @ rows, rng.normal(size=size)
    expected = np.linalg.solve(matrix, right)
    assert solve_definite(matrix.copy(), right) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_singular_direction_stays_small():
    matrix = np.diag([4.0, 0.0, 1.0])
    found = solve_definite(matrix, np.array([4.0, 1.0, 3.0]))
    assert found == pytest.approx([1.0, 0.25, 3.0])
