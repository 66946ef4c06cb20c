import numpy as np
import pytest
from scipy.stats import poisson

import journeyman as jm
from journeyman.errors import InvalidWorld


def test_one_week_is_the_newsvendor_problem():
    """The least order y with P(demand <= y) >= price of a lost sale/(that + price of holding)."""
    season, basis, _ = jm.gallery.inventory(15, weeks=1, mean_demand=5.0)
    for lost in (0.5, 1.0, 3.0, 9.0):
        policy = jm.plan(season, basis.on(season) @ np.array([0, 0, 1.0, lost])).policy
        (order,) = policy.at_step(0).likeliest([0])
        assert order == poisson(5.0).ppf(lost / (lost + 1.0))


def test_laws_and_costs_are_those_of_demand():
    season, basis, expert = jm.gallery.inventory(4, weeks=3, mean_demand=2.0)
    week, demand = season.layers.base, poisson(2.0)
    pair = int(week.pairs.index([1], [2])[0])
    expected = [demand.sf(2), *(demand.pmf(3 - left) for left in (1, 2, 3)), 0.0]
    assert week.transition[[pair]].toarray()[0] == pytest.approx(expected, abs=1e-11)
    kept = sum(left * demand.pmf(3 - left) for left in (1, 2, 3))
    lost = 2.0 - 3.0 + kept
    wanted = [1.0, 0.5, kept / 4, lost / 4]
    assert basis.on(week)[pair] == pytest.approx(wanted, abs=1e-9)
    assert expert.horizon == 3
    assert season.layers.discount == 1


def test_a_buyer_lets_the_stock_run_out():
    _, _, expert = jm.gallery.inventory()
    first, last = (expert.at_step(week).likeliest([0])[0] for week in (0, 11))
    assert last < first


def test_what_is_no_season_is_refused():
    with pytest.raises(InvalidWorld, match="capacity = 0"):
        jm.gallery.inventory(0)
    with pytest.raises(InvalidWorld, match="mean_demand"):
        jm.gallery.inventory(mean_demand=-1.0)
    with pytest.raises(InvalidWorld, match="horizon = 0"):
        jm.gallery.inventory(weeks=0)


def test_the_shop_is_that_of_the_paper():
    """16 x 16; the cost of a pair as the paper writes it, its expectation by scipy."""
    world, basis, expert = jm.gallery.shop()
    assert (world.num_states, world.num_pairs, world.discount) == (16, 256, 0.9)
    demand = poisson(10.0)
    stock, order = world.pairs.states, world.pairs.actions
    costs = basis.on(world) @ np.array([15.0, 3.0, 0.5])
    for pair in (0, 37, 255):
        there = stock[pair] + order[pair]
        sold = sum(min(there, d) * demand.pmf(d) for d in range(100))
        expected = 3.0 * order[pair] + 0.5 * there - 15.0 * sold
        assert costs[pair] == pytest.approx(expected, abs=1e-8)
        law = world.transition[[pair]].toarray()[0]
        assert law[0] == pytest.approx(demand.sf(there - 1), abs=1e-9)
        assert law[15] == pytest.approx(demand.cdf(there - 15), abs=1e-9)
    best = jm.plan(world, costs).policy
    assert np.array_equal(expert.likeliest(np.arange(16)), best.likeliest(np.arange(16)))


def test_an_expert_with_a_taste_of_his_own_orders_less():
    usual, other = (jm.gallery.shop(prices=one).expert for one in ([15, 3, 0.5], [15, 5, 8]))
    assert (other.likeliest(np.arange(16)) <= usual.likeliest(np.arange(16))).all()


@pytest.mark.parametrize("wrong", [{"capacity": 0}, {"mean_demand": 0.0}, {"prices": [1, 2]}])
def test_wrong_numbers_of_a_shop_are_refused(wrong):
    with pytest.raises(InvalidWorld, match=next(iter(wrong))):
        jm.gallery.shop(**wrong)
