"""The step of the projection method."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.solvers.classics.nearest_mixture import project


def test_it_stops_at_the_foot_of_the_perpendicular():
    differences = np.array([[3.0, 1.0], [-1.0, 1.0]])
    np.testing.assert_allclose(project(differences, np.array([1.0, 0.0]), 1), [0.25, 0.75])


def test_it_does_not_go_beyond_the_policy_where_there_is_none():
    differences = np.array([[3.0, 1.0], [2.0, 1.0]])
    assert project(differences, np.array([1.0, 0.0]), 1).tolist() == [0.0, 1.0]


def test_it_stays_where_the_policy_is_no_better():
    differences = np.array([[1.0, 0.0], [2.0, 1.0]])
    assert project(differences, np.array([1.0, 0.0]), 1).tolist() == [1.0, 0.0]
    assert project(differences[[0, 0]], np.array([1.0, 0.0]), 1).tolist() == [1.0, 0.0]


@given(seed=st.integers(0, 10_000), count=st.integers(2, 6))
def test_no_point_on_the_way_is_nearer(seed, count):
    rng = np.random.default_rng(seed)
    differences = rng.normal(size=(count, 3)) + rng.normal(size=3)
    shares = rng.dirichlet(np.ones(count))
    moved = project(differences, shares, count - 1)
    assert moved.sum() == pytest.approx(1)
    assert (moved >= 0).all()
    only = np.eye(count)[count - 1]
    ways = [(1 - step) * shares + step * only for step in np.linspace(0, 1, 101)]
    least = min(np.linalg.norm(way @ differences) for way in ways)
    assert np.linalg.norm(moved @ differences) <= least + 1e-12
