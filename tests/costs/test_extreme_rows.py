"""Rows that stand for all costs with a declared range and a declared sum: none is larger."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.costs.functions import extreme_rows, least_costs

CLASSES = (jm.InfinityBall, jm.EuclideanBall, jm.Simplex)
QUARTERS = st.integers(-8, 8).map(lambda number: number / 4)


@st.composite
def declarations(draw, ranges=("any", "one-sided", "symmetric"), scaled=True):
    """lowest, highest, largest and scale."""
    count, kind = draw(st.integers(1, 4)), draw(st.sampled_from(ranges))
    ends = np.array([sorted(draw(st.tuples(QUARTERS, QUARTERS))) for _ in range(count)])
    low, high = ends.T
    if kind == "one-sided":
        low, high = np.where(low + high < 0, low, 0.0), np.where(low + high < 0, 0.0, high)
        high = np.maximum(high, low)
    if kind == "symmetric":
        high = np.maximum(np.abs(low), np.abs(high))
        low = -high
    least, most = np.abs(least_costs(low, high)).sum(), np.maximum(np.abs(low), np.abs(high)).sum()
    largest = least + draw(st.integers(0, 8)) / 8 * (most - least)
    scales = st.sampled_from([0.25, 0.5, 1.0, 2.0])
    scale = np.array([draw(scales) if scaled else 1.0 for _ in range(count)])
    return low, high, largest, scale


def corners(low, high, largest):
    """Every extreme point of the costs: all at an end or at the least, but one that fills up."""
    least = least_costs(low, high)
    found = []
    for chosen in product(*zip(least, low, high, strict=True)):
        row = np.array(chosen)
        found.append(row)
        for i, sign in product(range(row.size), (-1, 1)):
            left = largest - np.abs(np.delete(row, i)).sum()
            other = row.copy()
            other[i] = sign * left
            found.append(other)
    rows = np.array(found)
    inside = ((rows >= low) & (rows <= high)).all(axis=1)
    return rows[inside & (np.abs(rows).sum(axis=1) <= largest + 1e-12)]


@settings(max_examples=300, deadline=None)
@given(declarations())
def test_no_row_of_costs_is_larger(declared):
    low, high, largest, scale = declared
    rows, possible = jm.CostBasis(extreme_rows(*declared)), corners(low, high, largest)
    assert (rows.lowest <= possible.min(axis=0) + 1e-12).all()
    assert (rows.highest >= possible.max(axis=0) - 1e-12).all()
    np.testing.assert_allclose(rows.lowest, possible.min(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(rows.highest, possible.max(axis=0), rtol=0, atol=1e-12)
    for cost_class in (kind(scale) for kind in CLASSES):
        for centre in (0.0, rows.centre):
            bound = cost_class.pointwise_bound(rows.matrix - centre)
            assert bound >= cost_class.pointwise_bound(possible - centre) - 1e-12


@settings(max_examples=200, deadline=None)
@given(declarations(("one-sided", "symmetric")), st.booleans())
def test_the_bounds_are_attained(declared, centred):
    low, high, largest, scale = declared
    rows, possible = jm.CostBasis(extreme_rows(*declared)), corners(low, high, largest)
    centre = rows.centre if centred else 0.0
    for cost_class in (jm.InfinityBall(scale), jm.Simplex(scale)):
        bound = cost_class.pointwise_bound(rows.matrix - centre)
        assert bound == pytest.approx(cost_class.pointwise_bound(possible - centre), abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(declarations(("one-sided", "symmetric"), scaled=False))
def test_without_scales_the_euclidean_bound_is_attained(declared):
    low, high, largest, _ = declared
    bound = jm.EuclideanBall().pointwise_bound(extreme_rows(*declared))
    wanted = jm.EuclideanBall().pointwise_bound(corners(low, high, largest))
    assert bound == pytest.approx(wanted, abs=1e-12)


def test_costs_that_exclude_each_other():
    rows = extreme_rows(np.zeros(3), np.ones(3), 1.0, np.ones(3))
    assert rows.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


def test_without_a_smaller_sum_the_rows_are_the_corners_of_the_box():
    low, high = np.array([-2.0, 0.0, -1.0]), np.array([1.0, 3.0, 1.0])
    rows = extreme_rows(low, high, 6.0, np.ones(3))
    assert rows.tolist() == [[-2, 0, -1], [1, 3, 1], [-2, 3, 1]]


def one_hot(states, actions):
    return np.eye(16)[states % 16]


def problem_of(cost_class=None, **declared):
    costs = jm.CostFunctions(
        one_hot, [f"cell {i}" for i in range(16)], lowest=0, highest=1, **declared
    )
    world = jm.World(np.eye(16), np.full(16, 1 / 16), 0.9)
    return jm.Apprenticeship(world, costs, jm.ExpertExpectation(np.zeros(16)), cost_class)


def test_the_declared_sum_is_the_largest_cost_of_guarantees():
    loose, tight = problem_of(), problem_of(largest=1)
    assert loose.gap_scale == pytest.approx(2 * 16 * 10, rel=1e-12)
    assert tight.gap_scale == pytest.approx(2 * 1 * 10, rel=1e-9)
    assert tight.gap_scale >= 2 * 1 * 10
    penalties = jm.ExactPenalty().of(tight)
    assert (penalties.pairs, penalties.flow) == pytest.approx((20, 10), rel=1e-9)
    scaled = problem_of(jm.InfinityBall([3.0, *[1.0] * 15]), largest=1)
    assert scaled.gap_scale == pytest.approx(2 * 3 * 10, rel=1e-9)


def test_the_slack_of_the_check_is_in_the_bound():
    """What `at` lets pass for rounding, guarantees count in."""
    costs = jm.CostFunctions(
        lambda states, actions: np.tile([0.5 + 0.9e-12, 0.5], (states.size, 1)), ["a", "b"],
        lowest=0, highest=1, largest=1,
    )  # fmt: skip
    passed = np.abs(costs.at([0], [0])).sum()
    bound = jm.InfinityBall().pointwise_bound(
        jm.InfinityBall().extreme_rows(costs.lowest, costs.highest, costs.largest_passed)
    )
    assert 1 < passed <= bound < 1 + 1e-11
