"""Inequalities for means: golden numbers, exact binomial tails, an exact interval, simulation."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from journeyman.certificate.concentration import (
    empirical_bernstein_radius,
    hoeffding_radius,
)

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())
EXAMPLE = GOLDEN["concentration"]
SAMPLES = np.array(EXAMPLE["x"])

counts = st.integers(2, 400)
probabilities = st.floats(1e-6, 0.99)
chances = st.integers(0, 1000).map(lambda k: k / 1000)


def close(value):
    return pytest.approx(value, rel=1e-12)


def test_golden_hoeffding():
    radius = hoeffding_radius(EXAMPLE["R"], SAMPLES.size, EXAMPLE["delta"])
    assert SAMPLES.mean() + radius == close(EXAMPLE["hoeffding_ucb"])


def test_golden_empirical_bernstein():
    variance = float(SAMPLES.var(ddof=1))
    radius = empirical_bernstein_radius(variance, EXAMPLE["R"], SAMPLES.size, EXAMPLE["delta"])
    assert variance == close(EXAMPLE["var_unbiased"])
    assert SAMPLES.mean() + radius == close(EXAMPLE["empirical_bernstein_ucb"])


def test_one_sample_has_no_empirical_bernstein_radius():
    assert empirical_bernstein_radius(0.0, 1.0, 1, 0.05) == math.inf


@given(counts, chances, probabilities)
def test_hoeffding_fails_no_more_often_than_it_says(count, chance, delta):
    """Exactly, for coins: P(mean - chance >= radius) <= delta on both sides."""
    radius = hoeffding_radius(1.0, count, delta)
    heads = np.arange(count + 1)
    law = binom(count, chance).pmf(heads)
    for sign in (-1, 1):
        assert law[sign * (heads / count - chance) > radius].sum() <= delta + 1e-12


@given(counts, chances, probabilities)
def test_empirical_bernstein_fails_no_more_often_than_it_says(count, chance, delta):
    heads = np.arange(count + 1)
    law, mean = binom(count, chance).pmf(heads), heads / count
    variance = mean * (1 - mean) * count / (count - 1)
    radius = np.array([empirical_bernstein_radius(v, 1.0, count, delta) for v in variance])
    for sign in (-1, 1):
        assert law[sign * (mean - chance) > radius].sum() <= delta + 1e-12
