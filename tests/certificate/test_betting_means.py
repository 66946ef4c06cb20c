"""Betting bounds of means: their twin, their exact coverage, and what would break them."""

from fractions import Fraction
from itertools import product
from math import log, sqrt

import numpy as np
import pytest

from journeyman.certificate import betting_means
from journeyman.certificate.betting_means import (
    every_stake,
    lower_means,
    mean_in_ball,
    money,
    upper_mean,
)
from journeyman.errors import InvalidProblem


def twin(samples, delta):
    """One number at a time, and a search that knows nothing of monotone money."""
    n = len(samples)
    times = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]

    def stake(i):
        start = max(t for t in times if t <= i)
        mean = (0.5 + sum(samples[:start])) / (start + 1)
        variance = (0.25 + sum((x - mean) ** 2 for x in samples[:start])) / (start + 1)
        return sqrt(2 * log(1 / delta) / (n * variance))

    def refuted(m):
        have = 1.0
        for i, x in enumerate(samples):
            have *= 1 + min(stake(i), 0.95 / m) * (x - m)
            if have >= 1 / delta:
                return True
        return False

    grid = np.linspace(0, 1, 2001)[1:]
    return max((float(m) for m in grid if refuted(m)), default=0.0)


@pytest.mark.parametrize("count", [1, 2, 7, 100])
@pytest.mark.parametrize("delta", [0.3, 0.001])
def test_agrees_with_one_number_at_a_time(count, delta):
    X = np.random.default_rng(count).beta(2, 1, count)
    own = float(lower_means(X[:, np.newaxis], delta)[0])
    assert own - 1 / 2000 - 1e-12 <= twin(list(X), delta) <= own + 1e-12


def failure(p, n, delta):
    """P(lower > p) for n tosses with the probability p, over all 2^n outcomes."""
    outcomes = np.array(list(product((0.0, 1.0), repeat=n)))
    chances = np.prod(np.where(outcomes == 1, float(p), 1 - float(p)), axis=1)
    return float(chances[lower_means(outcomes.T, delta) > p].sum())


CASES = [(Fraction(k, 20), n, delta) for k in (1, 5, 10, 15, 19) for n in (1, 4, 11)
         for delta in (0.3, 0.05)]  # fmt: skip


def test_exact_coverage_of_tosses():
    assert all(failure(p, n, delta) <= delta for p, n, delta in CASES)


@pytest.mark.parametrize(
    ("constant", "value"),
    [("ROUNDING", -log(2)), ("CAP", 1.5)],
    ids=["half the money", "more staked than owned"],
)
def test_coverage_finds_broken_constants(monkeypatch, constant, value):
    monkeypatch.setattr(betting_means, constant, value)
    with np.errstate(all="ignore"):
        assert any(failure(p, n, delta) > delta for p, n, delta in CASES)


def test_coverage_finds_stakes_with_foresight(monkeypatch):
    def foresight(X, needed):
        return np.where(X > 0.5, 10.0, 0.0)

    monkeypatch.setattr(betting_means, "every_stake", foresight)
    assert any(failure(p, n, delta) > delta for p, n, delta in CASES)


@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (lambda rng, shape: rng.random(shape) < 0.03, 0.03),
        (lambda rng, shape: rng.random(shape) > 0.03, 0.97),
        (lambda rng, shape: rng.beta(0.3, 0.3, shape), 0.5),
        (lambda rng, shape: 0.5 + rng.uniform(-0.02, 0.02, shape), 0.5),
    ],
)
@pytest.mark.parametrize("count", [10, 50])
@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_coverage_of_laws(draw, mean, count, delta):
    X = np.asarray(draw(np.random.default_rng(count), (count, 3000)), dtype=float)
    allowed = delta + 3 * sqrt(delta / 3000)
    assert (lower_means(X, delta) > mean).mean() <= allowed
    assert (1 - lower_means(1 - X, delta) < mean).mean() <= allowed


def ball_failure(corners, chances, n, delta):
    """P(|v - mean| > r) for n draws among the corners, over all outcomes."""
    corners, chances = np.array(corners), np.array(chances)
    mean, failed = chances @ corners, 0.0
    for drawn in product(range(len(corners)), repeat=n):
        v, r = mean_in_ball(corners[list(drawn)], np.zeros(n), 1.0, delta)
        failed += float(np.prod(chances[list(drawn)])) * (np.linalg.norm(v - mean) > r + 1e-12)
    return failed


BALLS = [
    ([[1.0], [-1.0]], [p, 1 - p], n, delta)
    for p in (0.02, 0.15, 0.5) for n in (1, 4, 9) for delta in (0.3, 0.05)
] + [
    ([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [0.05, 0.1, 0.85], 6, 0.3),
]  # fmt: skip


def test_exact_coverage_in_balls():
    assert all(ball_failure(*case) <= case[-1] for case in BALLS)


def test_coverage_in_balls_finds_a_missing_constant(monkeypatch):
    """Without log(2/delta) the radius has nothing against chance."""
    real = betting_means.math.log
    with monkeypatch.context() as patch:
        patch.setattr(betting_means.math, "log", lambda x: 0.1 * real(x))
        assert any(ball_failure(*case) > case[-1] for case in BALLS)


def test_the_supermartingale_of_a_ball():
    """cosh|u + l y| exp(-f |y|^2) <= cosh|u| + l sinh|u| <u/|u|, y>, and not with a smaller f."""
    rng = np.random.default_rng(0)
    size, share, cosine = rng.exponential(2, 10**5), rng.random(10**5), rng.uniform(-1, 1, 10**5)
    stake = 0.99 * rng.random(10**5)
    f = -np.log1p(-stake) - stake
    length = np.sqrt(
        np.maximum(size**2 + 2 * stake * share * cosine * size + (stake * share) ** 2, 0)
    )
    right = np.cosh(size) + stake * share * cosine * np.sinh(size)
    assert (np.cosh(length) * np.exp(-f * share**2) <= right * (1 + 1e-12)).all()
    assert (np.cosh(length) * np.exp(-0.9 * f * share**2) > right * (1 + 1e-12)).any()


@pytest.mark.parametrize("delta", [0.3, 0.05])
@pytest.mark.parametrize("count", [20, 100])
def test_coverage_in_balls_of_rare_events_with_blur(count, delta):
    """Events of the chance 1.5/n, each sample known up to a tenth in the worst direction."""
    rng, failed = np.random.default_rng(count), 0
    for _ in range(1000):
        X = np.zeros((count, 4))
        X[np.arange(count), rng.integers(4, size=count)] = rng.random(count) < 1.5 / count
        values, error = mean_in_ball(X - 0.05, np.full(count, 0.1), 1.0, delta)
        failed += np.linalg.norm(values - 1.5 / count / 4) > error
    assert failed / 1000 <= delta + 3 * sqrt(delta / 1000)


def test_a_mean_in_a_ball_is_told_in_its_units():
    Y = np.random.default_rng(2).normal(size=(60, 3))
    (v, r), (w, s) = (mean_in_ball(k * Y, k * np.ones(60) / 9, 4.0 * k, 0.1) for k in (1.0, 1e3))
    assert (w, s) == (pytest.approx(1e3 * v), pytest.approx(1e3 * r))
    assert mean_in_ball(np.zeros((3, 2)), np.full(3, 0.5), 0.0, 0.1)[1] == 0.5


def test_money_falls_with_the_mean():
    X = np.random.default_rng(0).beta(0.5, 0.5, (30, 1))
    stakes = every_stake(X, 3.0)
    steps = np.array([money(X, stakes, np.array([m]))[0] for m in np.linspace(1e-3, 1, 999)])
    assert (np.diff(steps) <= 1e-12).all()


def test_constant_samples_leave_the_least_possible_radius():
    """All money on every sample would give X delta^(1/n); the cap takes a little of that."""
    low = float(lower_means(np.full((200, 1), 0.5), 0.05)[0])
    best = 0.5 * 0.05 ** (1 / 200)
    assert 0.5 - best < 0.5 - low < 1.2 * (0.5 - best)


def test_never_far_above_hoeffding_and_far_below_it_where_samples_vary_little():
    rng, radius = np.random.default_rng(3), sqrt(log(1 / 0.01) / 400)
    tosses = (rng.random((200, 200)) < 0.5).astype(float)
    assert np.median(tosses.mean(axis=0) - lower_means(tosses, 0.01)) < 1.05 * radius
    narrow = 0.5 + rng.uniform(-0.05, 0.05, (200, 20))
    assert (narrow.mean(axis=0) - lower_means(narrow, 0.01)).max() < 0.2 * radius


def test_upper_mean_in_units_of_its_range():
    X = np.random.default_rng(1).beta(1, 3, 80)
    assert upper_mean(7 * X, 7.0, 0.1) == pytest.approx(7 * upper_mean(X, 1.0, 0.1), rel=1e-9)
    assert upper_mean(X, 1.0, 0.1) > X.mean()
    assert upper_mean(np.zeros(5), 0.0, 0.1) == 0.0


@pytest.mark.parametrize("bad", [[[-0.1]], [[np.nan]], [0.5], np.zeros((0, 2))])
def test_refuses_what_is_not_samples(bad):
    with pytest.raises(InvalidProblem, match="table of finite numbers from 0"):
        lower_means(np.array(bad), 0.1)


def test_refuses_samples_above_their_range():
    with pytest.raises(InvalidProblem, match="range ends at 1"):
        upper_mean(np.array([0.5, 1.5]), 1.0, 0.1)
