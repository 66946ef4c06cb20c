"""Confidence bounds for the mean of bounded variables, by betting.

Whoever claims that the mean is m or less must accept every bet at fair odds against it. Start with
one unit of money and stake on the samples X_1, X_2, ... in [0, 1], one after the other,

    K_t(m) = prod_{i<=t} (1 + l_i(m) (X_i - m)),      l_i(m) = min(l_i, CAP/m),

where l_i depends on X_1, ..., X_{i-1} only. If the mean given the past is at most m, each factor
has a conditional expectation of at most 1, no money is ever owed, and it becomes 1/delta times as
much with probability delta at most, at any time (Ville's inequality). The lower bound is the least
m that is not refuted:

    lower = inf { m : max_t K_t(m) < 1/delta }

*Guarantee*: P(lower > mean) <= delta for independent samples with this mean, or with any mean
given the past that is at least as large; the number of samples is fixed beforehand. What is above
1 only helps, what is below 0 is refused. The order of the samples must not depend on their values.

*Why bisection is right*: min(l, CAP/m) (X - m) falls with m, whatever l >= 0 and X >= 0 are: both
l (X - m) and CAP (X/m - 1) do, and they are equal where one takes over from the other. So K_t(m)
falls with m, and the refuted means are those below one number.

*Stakes*: l_i = sqrt(2 log(1/delta)/(n V)) would be best for small deviations of variance V. V is
the variance of the samples before the last one of the times 1, 2, 3, 4, 6, 8, 12, 16, ... that has
passed, one sample of mean 1/2 and variance 1/4 put in front of them; anything may be in its place.

*Cost*: about 40 passes over the samples.

*Reference*: Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by
betting; Ville (1939).
"""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from journeyman.arrays import BoolArray, FloatArray
from journeyman.errors import InvalidProblem
from journeyman.progress import beginning, working

CAP = 0.95
"""Of all money, what can be lost with one sample."""
FIRST_MEAN, FIRST_VARIANCE = 0.5, 0.25
"""Of a sample before all others."""
HALVINGS = 40
FIRST_DIRECTIONS = 64
"""Directions in which lower bounds are computed before any is compared."""
MOST_NUMBERS, MULTIPLIED = 1 << 18, 16
"""Numbers of a block of directions; samples whose factors are multiplied before logarithms."""
NEARLY = 1e-12
"""Relative to a range: what rounding may lead out of it."""
ROUNDING = 1e-9
"""Of the logarithm of the money: more than its sums can be off by."""


def lower_means(samples: FloatArray, failure_probability: float) -> FloatArray:
    """A lower bound on the mean of each column of `samples`, (time x columns), from 0 to 1.

    Each fails with this probability.

    >>> tosses = np.tile([1.0, 0.0], 50)[:, np.newaxis]
    >>> lower_means(tosses, 0.05).round(3).tolist()
    [0.382]
    """
    X = np.asarray(samples, dtype=float)
    if X.ndim != 2 or X.shape[0] == 0 or not (X >= 0).all() or not np.isfinite(X).all():
        raise InvalidProblem(
            "samples of a mean are not a table of finite numbers from 0 on",
            "Give one row a sample; subtract the least possible value and divide by the range",
        )
    needed = math.log(1 / failure_probability)
    stakes = every_stake(X, needed)
    low, high = np.zeros(X.shape[1]), X.mean(axis=0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        refuted = money(X, stakes, middle) >= needed + ROUNDING
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def upper_mean(samples: FloatArray, width: float, failure_probability: float) -> float:
    """An upper bound on the mean of samples from 0 to `width`, one after the other.

    >>> upper_mean(np.zeros(1000), 1.0, 0.05) < 0.0033
    True
    """
    X = np.asarray(samples, dtype=float)
    if X.size and float(X.max()) > width * (1 + NEARLY):
        raise InvalidProblem(
            f"a sample is {X.max():.6g}, its range ends at {width:.6g}",
            "Give the largest value that a sample can have",
        )
    if not width > 0:
        return 0.0
    below = np.maximum(1 - X / width, 0.0)
    return width * float(1 - lower_means(below[:, np.newaxis], failure_probability)[0])


def mean_in_ball(
    samples: FloatArray, blur: FloatArray, radius: float, failure_probability: float
) -> tuple[FloatArray, float]:
    """Values v and an error r with |v - mean|_2 <= r, from X_1, X_2, ... in the ball |X| <= radius.

    Samples (time x coordinates) may be known up to `blur` only: |X_i - Y_i| <= blur_i for the rows
    Y_i of `samples`. With the mean c_i of the rows before Y_i and of one zero in front of them,
    R_i = radius + |c_i|, d_i = |Y_i - c_i| + blur_i and stakes l_i in [0, 1) that depend on the
    past only,

        v = sum_i (l_i/R_i) Y_i / L,        L = sum_i l_i/R_i
        r = (log(2/delta) + sum_i f(l_i) (d_i/R_i)^2 + sum_i (l_i/R_i) blur_i)/L
        f(l) = -log(1 - l) - l

    *Guarantee*: P(|v - mean|_2 > r) <= delta, in any dimension, for samples whose mean given the
    past is the same.

    *Why*: for |y| <= 1 and every vector u, with u/|u| any unit vector where u = 0,

        cosh|u + l y| exp(-f(l) |y|^2) <= cosh|u| + l sinh|u| <u/|u|, y>.

    Where y is a multiple of u this is exp(l t - f(l) t^2) <= 1 + l t, t >= -1 (Fan), once for
    t = |y| and once for -|y|. Otherwise only the angle changes: |u + l y|^2 is linear in its
    cosine, cosh of a root is convex, and the right side is linear. So the left side is largest, by
    comparison, at one of the two ends. With y = (X_i - c_i)/R_i, whose mean is a, and u = s - l a,
    the expectation of the right side is cosh|u| + l <grad cosh|u|, a> <= cosh|s| by convexity.
    Hence

        cosh|sum_i (l_i/R_i) (X_i - mean)| exp(-sum_i f(l_i) |X_i - c_i|^2/R_i^2)

    is a supermartingale that starts at 1, below 1/delta with probability 1 - delta (Ville), and
    cosh x >= e^x/2.

    *Stakes*: l = x/(1 + x), x = R_i sqrt(2 log(2/delta)/(n V_i)), minimises the error where all
    d_i^2 are V_i, with l^2/(2 (1 - l)) in the place of f(l); V_i is the mean of the d^2 before,
    and of radius^2/4.

    *Reference*: Pinelis (1994), Optimum bounds for the distributions of martingales in Banach
    spaces; Fan, Grama and Liu (2015), Exponential inequalities for martingales with applications.

    >>> tosses = np.tile([[1.0, 0.0], [0.0, 1.0]], (50, 1))
    >>> values, error = mean_in_ball(tosses, np.zeros(100), 1.0, 0.05)
    >>> values.round(2).tolist(), round(error, 3)
    ([0.5, 0.5], 0.246)
    """
    Y, count, needed = samples, len(samples), math.log(2 / failure_probability)
    if not radius > 0:
        return Y.mean(axis=0), float(blur.mean())
    before = np.arange(1, count + 1)
    past = np.vstack([np.zeros(Y.shape[1]), Y[:-1]]).cumsum(axis=0) / before[:, np.newaxis]
    reach = radius + np.linalg.norm(past, axis=1)
    away = np.linalg.norm(Y - past, axis=1) + blur
    squares = np.concatenate([[FIRST_VARIANCE * radius**2], away[:-1] ** 2])
    best = reach * np.sqrt(2 * needed * before / (count * squares.cumsum()))
    stakes = best / (1 + best)
    weights = stakes / reach
    spent = needed + float((-np.log1p(-stakes) - stakes) @ (away / reach) ** 2)
    total = float(weights.sum())
    error = (spent + float(weights @ blur)) / total
    return np.asarray(weights @ Y / total), (1 + ROUNDING) * error


BOUNDING = "bounds on what the expert costs, direction by direction"


def largest_error(
    directions: FloatArray,
    centre: FloatArray,
    samples: FloatArray,
    low: FloatArray,
    high: FloatArray,
    failure_probability: float,
) -> float:
    """max_w centre_w - lower bound of <w, mean>, over the rows w of `directions`.

    The samples (time x costs) have <w, sample> from low_w to high_w. Each lower bound fails with
    `failure_probability`, so no error centre_w - <w, mean> is larger, except with that times the
    number of directions.

    The bounds of directions in which the samples vary most are computed, all others are only
    compared with the largest error so far: an error is at most r if the money against
    centre_w - r is enough, at whatever time. So nothing is lost, and no maximum is guessed.
    """
    width, centred = np.where(high > low, high - low, 1.0), samples - samples.mean(axis=0)
    spread = ((directions @ (centred.T @ centred)) * directions).sum(axis=1)
    order = np.argsort(-spread, kind="stable")
    largest, needed = -math.inf, math.log(1 / failure_probability)
    together = max(FIRST_DIRECTIONS, MOST_NUMBERS // len(samples))
    stops = [*range(FIRST_DIRECTIONS, len(order), together), len(order)]
    since = beginning()
    for start, stop in pairwise([0, *stops]):
        working(BOUNDING, start, len(order), since=since)
        part = order[start:stop]
        part = part[centre[part] - low[part] > largest]
        X = samples @ (directions[part] / width[part, np.newaxis]).T
        X -= low[part] / width[part]
        np.maximum(X, 0.0, out=X)
        if start > 0:
            candidates = (centre[part] - largest - low[part]) / width[part]
            left = ~is_refuted(X, candidates, needed)
            part, X = part[left], X[:, left]
        if part.size:
            bounds = low[part] + width[part] * lower_means(X, failure_probability)
            largest = max(largest, float((centre[part] - bounds).max()))
    return largest


def is_refuted(X: FloatArray, means: FloatArray, needed: float) -> BoolArray:
    """Whether the money against each mean is enough at one of some times; True is always right."""
    have, most = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start, stop, stakes in stakes_of(X, needed):
        bets = np.minimum(stakes, CAP / means)
        factors = X[start:stop] * bets
        factors += 1 - bets * means
        products = np.multiply.reduceat(factors, range(0, stop - start, MULTIPLIED), axis=0)
        sums = have + np.log(products).cumsum(axis=0)
        most, have = np.maximum(most, sums.max(axis=0)), sums[-1]
    return np.asarray(most >= needed + ROUNDING)


def stakes_of(X: FloatArray, needed: float) -> Iterator[tuple[int, int, FloatArray]]:
    """Time by time, from and before when stakes are l, before they are cut to CAP/m."""
    count, sums, squares = len(X), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start, stop in pairwise([*epochs(count), count]):
        mean = (FIRST_MEAN + sums) / (start + 1)
        spread = np.maximum(squares - 2 * mean * sums + start * mean**2, 0.0)
        variance = (FIRST_VARIANCE + spread) / (start + 1)
        yield start, stop, np.sqrt(2 * needed / (count * variance))
        new = X[start:stop]
        sums, squares = sums + new.sum(axis=0), squares + np.einsum("ij,ij->j", new, new)


def every_stake(X: FloatArray, needed: float) -> FloatArray:
    """l_i of every sample."""
    return np.concatenate([
        np.broadcast_to(stakes, (stop - start, stakes.size))
        for start, stop, stakes in stakes_of(X, needed)
    ])  # fmt: skip


def money(X: FloatArray, stakes: FloatArray, means: FloatArray) -> FloatArray:
    """log max_t K_t(m) for every column with its own m; the stakes are those of every sample."""
    with np.errstate(divide="ignore"):
        bets = np.minimum(stakes, CAP / means)
    return np.asarray(np.log1p(bets * (X - means)).cumsum(axis=0).max(axis=0))


def epochs(count: int) -> list[int]:
    """Times at which stakes change.

    >>> epochs(20)
    [0, 1, 2, 3, 4, 6, 8, 12, 16]
    """
    found, power = {0, 1}, 2
    while power < count:
        found |= {power, power * 3 // 2}
        power *= 2
    return sorted(time for time in found if time < count)
