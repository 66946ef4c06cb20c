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
