"""Policies of least linear values: their features, ties, and what their constructors refuse."""

import numpy as np
import pytest

from journeyman.errors import InvalidPolicy
from journeyman.policy.linear_values import (
    LinearValuePolicy,
    QuadraticFeatures,
    RadialFeatures,
    StateFeatures,
)

ZERO, ONE = np.zeros(2), np.ones(2)


def test_features_are_those_of_their_docstrings():
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(20, 2))
    mean, scale, centres = np.array([0.5, -1.0]), np.array([2.0, 0.5]), rng.normal(size=(3, 2))
    z = (seen - mean) / scale
    found = QuadraticFeatures(mean, scale)(seen)
    clipped = np.clip(z, -5, 5)
    columns = [np.ones(20), *clipped.T, *(clipped[:, i] * clipped[:, j] for i, j in
                                          ((0, 0), (0, 1), (1, 1)))]  # fmt: skip
    assert found == pytest.approx(np.column_stack(columns))
    apart = ((z[:, np.newaxis] - centres) ** 2).sum(axis=2)
    found = RadialFeatures(mean, scale, centres, 0.7)(seen)
    assert found[:, :3] == pytest.approx(np.exp(-apart / (2 * 0.7**2)))
    assert (found[:, 3] == 1).all()
    found = StateFeatures(np.array([2, 5]))(np.array([5, 2, 3]))
    assert found.tolist() == [[0, 1], [1, 0], [0, 0]]


@pytest.mark.parametrize("off", [0.0, 3e-13, -3e-13])
def test_values_that_differ_by_rounding_are_equal(off):
    """Whoever adds up in another order takes the same actions."""
    table = np.array([[2.0, 2.0 + off, 2.0 - off], [0.0, -1.0, -1.0 - off]])
    policy = LinearValuePolicy(StateFeatures(np.array([0, 1])), table, 4, 0)
    assert policy.sample(np.array([0, 1, 9]), 0).tolist() == [4, 5, 4]
    assert policy.probabilities(np.array([1])).tolist() == [[0, 0, 0, 0, 0, 1, 0]]


def test_a_difference_that_is_none_of_rounding_decides():
    table = np.array([[2.0, 2.0 - 1e-8]])
    policy = LinearValuePolicy(StateFeatures(np.array([0])), table, 0, 0)
    assert policy.sample(np.array([0]), 0).tolist() == [1]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: QuadraticFeatures(ZERO, ZERO), "scale is not above 0"),
        (lambda: QuadraticFeatures(ZERO, [1.0]), "scale"),
        (lambda: QuadraticFeatures([np.nan, 0], ONE), "mean"),
        (lambda: RadialFeatures(ZERO, ONE, [[1.0]], 1.0), "centres of shape"),
        (lambda: RadialFeatures(ZERO, ONE, [[1.0, 1.0]], 0.0), "width 0"),
        (lambda: StateFeatures([3, 3]), "increasing order"),
        (lambda: LinearValuePolicy(StateFeatures([0, 1]), [[1.0]], 0, 0), "for 2 features"),
        (lambda: LinearValuePolicy(StateFeatures([0]), [[np.inf]], 0, 0), "coefficients"),
    ],
)
def test_what_makes_no_policy_is_refused(made, words):
    with pytest.raises(InvalidPolicy, match=words):
        made()
