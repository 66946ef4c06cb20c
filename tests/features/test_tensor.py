"""Tensor features: products of tents over factors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.errors import InvalidCosts, InvalidWorld
from journeyman.features.partition import ClonedVisits, Flat, GivenBase, SmoothedVisits
from journeyman.features.tensor import (
    EvenKnots,
    GivenKnots,
    ProductOfVisits,
    QuantileKnots,
    tensor,
)
from journeyman.testing.random_worlds import random_policy, random_world
from journeyman.testing.strategies import seeds


def recorded(world, seed=0):
    return jm.record(world, random_policy(world, seed), trajectories=5, horizon=8, seed=seed)


@given(
    seeds,
    st.integers(1, 3),
    st.integers(1, 4),
    st.sampled_from([EvenKnots(), QuantileKnots(), QuantileKnots(flat_share=0.0)]),
    st.sampled_from([Flat(), SmoothedVisits(), ProductOfVisits(), ClonedVisits()]),
)
def test_columns_are_measures_with_few_entries_a_row(seed, num_factors, num_knots, knots, base):
    rng = np.random.default_rng(seed)
    world = random_world(rng, num_states=9)
    factors = rng.integers(0, 5, (9, num_factors))
    demos = recorded(world, seed)
    features = tensor(world, demos, num_knots, factors=factors, knots=knots, base=base)
    assert features.is_sparse
    assert features.is_nonnegative
    assert np.allclose(features.masses, world.effective_horizon)
    assert np.diff(features.matrix.indptr).max() <= 2**num_factors


def test_columns_are_products_of_tents_times_actions():
    world = jm.gallery.grid(4, macro_cells=2).world
    knots = ([0.0, 3.0], [0.0, 1.0, 3.0])
    features = tensor(world, knots=GivenKnots(knots)).matrix.toarray()
    tents = [
        np.column_stack([np.interp(values, at, height) for height in np.eye(len(at))])
        for values, at in zip(world.coordinates.T, knots, strict=True)
    ]
    for column, (first, second, action) in enumerate(np.ndindex(2, 3, 4)):
        weight = tents[0][:, first] * tents[1][:, second]
        measure = weight[world.pairs.states] * (world.pairs.actions == action)
        assert np.allclose(features[:, column], measure * world.effective_horizon / measure.sum())


def test_product_of_visits_multiplies_the_factors_visits():
    world = jm.gallery.grid(3, macro_cells=1).world
    demos = recorded(world)
    visits = np.bincount(demos.step_states, minlength=9)
    ends = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    base = np.ones(9)
    for place in world.coordinates.T.astype(int):
        K = ends[place]
        smooth = K @ ((K.T @ visits) / K.sum(axis=0))
        base *= 0.8 * smooth / smooth.sum() + 0.2 / 9
    product = tensor(world, demos, 2, base=ProductOfVisits(flat_share=0.2))
    same = tensor(world, demos, 2, base=GivenBase(base))
    assert np.allclose(product.matrix.toarray(), same.matrix.toarray())


def test_quantile_knots_stand_where_the_visits_are():
    factors, visits = np.arange(101.0)[:, np.newaxis], np.zeros(101)
    visits[10:20] = 1.0
    visits[[0, 100]] = 50.0  # the ends have a knot anyway
    (knots,) = QuantileKnots(flat_share=0.0).over(factors, visits, np.array([4]))
    assert knots[[0, -1]].tolist() == [0.0, 100.0]
    assert ((knots[1:-1] >= 10) & (knots[1:-1] < 20)).all()
    assert knots.size == 4
    (even,) = QuantileKnots(flat_share=1.0).over(factors, visits, np.array([5]))
    assert np.allclose(even, [0, 25, 50, 75, 100], atol=1)


def test_each_factor_may_have_its_own_number_of_knots():
    world = jm.gallery.grid(6, macro_cells=2).world
    assert tensor(world, num_knots=[2, 5], knots=EvenKnots()).num_features == 2 * 5 * 4


def test_heuristics_take_the_place_of_actions():
    world = jm.gallery.grid(6, macro_cells=2).world
    heuristics = [jm.Policy.uniform(world), random_policy(world, 0), random_policy(world, 1)]
    assert tensor(world, num_knots=2, heuristics=heuristics).num_features == 2 * 2 * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_knots": 0}, "num_knots = 0"),
        ({"num_knots": [2, 2, 2]}, "3 entries for 2 factors"),
        ({"num_knots": 1.5}, "not a whole number"),
        ({"knots": GivenKnots([[0.0, 1.0]])}, "knots for 1 factors"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(change, message):
    with pytest.raises(InvalidCosts, match=message):
        tensor(jm.gallery.grid(4).world, **change)


@pytest.mark.parametrize("knots", [[[1.0, 0.0]], [[]], [[0.0, 0.0]]])
def test_knots_that_do_not_ascend_are_refused(knots):
    with pytest.raises(InvalidCosts, match="knots of factor 0 are not ascending"):
        GivenKnots(knots)


@pytest.mark.parametrize("make", [ProductOfVisits, QuantileKnots])
def test_shares_out_of_range_are_refused(make):
    with pytest.raises(InvalidCosts, match="flat_share"):
        make(flat_share=-0.1)


def test_a_world_without_factors_is_refused():
    with pytest.raises(InvalidWorld, match="no coordinates"):
        tensor(random_world(0))
