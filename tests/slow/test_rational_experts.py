"""Rational experts over hundreds of random worlds, without and with budgets: no bound is broken, no
true premise refuted."""

import numpy as np
import pytest

from journeyman.costs import EuclideanBall, InfinityBall, L1Ball, Simplex
from journeyman.problem.rational import RationalSet
from problem.test_budget_prices import checked as checked_within_budgets
from problem.test_rational import checked, contradictory

pytestmark = pytest.mark.slow
WORLDS, FIRST = 400, 1000


def test_no_bound_is_broken_and_no_true_premise_refuted():
    assert not any(checked(seed) for seed in range(FIRST, FIRST + WORLDS))


def test_no_bound_within_budgets_is_broken_and_no_true_premise_refuted():
    assert not any(checked_within_budgets(seed) for seed in range(FIRST, FIRST + WORLDS))


@pytest.mark.parametrize("cost_class", [InfinityBall(), Simplex(), EuclideanBall(), L1Ball()])
@pytest.mark.parametrize(("noise", "count"), [(0.05, 50), (0.2, 9), (0.2, 50), (1.0, 9)])
def test_contradictions_are_found_and_few_steps_are_named(noise, count, cost_class):
    for seed in range(4):
        given = RationalSet.of(contradictory(noise, count, cost_class, seed))
        assert given.is_refuted
        found = given.contradiction()
        assert given.restricted(found).is_refuted
        assert np.unique(found).size <= 40
