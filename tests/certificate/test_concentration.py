"""Inequalities for means: golden numbers, exact binomial tails, an exact interval, simulation."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from journeyman.certificate.concentration import (
    empirical_bernstein_radius,
    hilbert_radius,
    hoeffding_radius,
    upper_frequency,
    upper_mean,
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
    assert upper_mean(SAMPLES, 2.0, EXAMPLE["delta"]) == 2.0
    wide = np.tile(SAMPLES, 100)
    radius = empirical_bernstein_radius(float(wide.var(ddof=1)), 1.0, wide.size, EXAMPLE["delta"])
    assert upper_mean(wide, 1.0, EXAMPLE["delta"]) == close(wide.mean() + radius)


def test_the_hilbert_radius_by_hand():
    by_hand = math.sqrt(2 * 3.0 * math.log(40) / 100) + 2 * 5.0 * math.log(40) / 100
    assert hilbert_radius(3.0, 5.0, 100, 0.05) == close(by_hand)


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
    upper = np.array(
        [upper_mean(np.repeat([1.0, 0.0], [k, count - k]), 1.0, delta) for k in heads[::20]]
    )
    assert upper == pytest.approx(np.minimum(1.0, mean + radius)[::20])


@given(counts, chances, probabilities)
def test_the_hilbert_radius_holds_for_coins(count, chance, delta):
    """One dimension is a Hilbert space: x = +-1, |x| <= 1, E x^2 = 1, both sides together."""
    heads = np.arange(count + 1)
    error = np.abs(2 * heads / count - 1 - (2 * chance - 1))
    law = binom(count, chance).pmf(heads)
    assert law[error > hilbert_radius(1.0, 1.0, count, delta)].sum() <= delta + 1e-12
    if chance <= 0.5:
        rare = law[np.abs(heads / count - chance) > hilbert_radius(chance, 1.0, count, delta)]
        assert rare.sum() <= delta + 1e-12


@pytest.mark.parametrize("dimension", [1, 3, 30])
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_hilbert_radius_covers_in_simulation(dimension, delta):
    """Rare large vectors on top of small ones: the second moment is what counts."""
    rng, runs, count = np.random.default_rng(dimension), 800, 200
    directions = rng.normal(size=(runs, count, dimension))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    large = rng.random((runs, count, 1)) < 0.02
    samples = directions * np.where(large, 5.0, 0.2) + np.eye(dimension)[0] * 0.3
    moment = 0.02 * 25 + 0.98 * 0.04 + 0.09
    radius = hilbert_radius(moment, 5.3, count, delta)
    errors = np.linalg.norm(samples.mean(axis=1) - np.eye(dimension)[0] * 0.3, axis=1)
    assert binomtest(int((errors > radius).sum()), runs, delta, "greater").pvalue > 1e-3
    assert np.quantile(errors, 0.95) > 0.2 * radius


@given(st.integers(1, 500), chances, probabilities)
def test_the_upper_frequency_is_the_exact_one_sided_interval(count, share, delta):
    seen = round(share * count)
    twin = binomtest(seen, count).proportion_ci(1 - 2 * delta, "exact") if delta < 0.5 else None
    found = upper_frequency(seen, count, delta)
    if twin is not None:
        assert found == pytest.approx(twin.high, rel=1e-9, abs=1e-12)
    if seen < count:
        assert binom(count, found).cdf(seen) <= delta * (1 + 1e-9)
        assert binom(count, found * (1 - 1e-6)).cdf(seen) >= delta * (1 - 1e-9)
    else:
        assert found == 1.0


@given(st.integers(1, 200), chances, probabilities)
def test_the_upper_frequency_fails_no_more_often_than_it_says(count, chance, delta):
    seen = np.arange(count + 1)
    upper = np.array([upper_frequency(int(k), count, delta) for k in seen])
    assert binom(count, chance).pmf(seen)[upper < chance].sum() <= delta + 1e-12


def test_none_of_a_thousand():
    assert upper_frequency(0, 1000, 0.05) == pytest.approx(1 - 0.05**0.001, rel=1e-12)
