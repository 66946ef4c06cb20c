"""Lower bounds of means by betting, and what they say about all directions of a cost class.

Samples x_1, x_2, ... >= 0 refute that their mean is m or less, up to a probability delta, when

    K_t(m) = prod_{i<=t} (1 + min(l_i, 0.95/m) (x_i - m)) >= 1/delta        at some time t,

whatever l_i >= 0 were chosen before x_i was seen (Ville's inequality). K_t(m) falls with m. Here
l_i = sqrt(2 log(1/delta)/(n V_i)), and V_i is the variance about their mean of the samples before
the last of the times 0, 1, 2, 3, 4, 6, 8, 12, ... up to i, with one more at 1/2 and 1/4 in front.

*Reference*: Waudby-Smith and Ramdas (2024); Ville (1939).
"""

import hashlib
import math
from collections import Counter

import numpy as np

from journeyman.checker.archives import Bools, Floats, Ints

CAP, SLACK, STEPS = 0.95, 1e-9, 40
MIDDLE, SPREAD = 0.5, 0.25
FIRST, BLOCK, TOGETHER = 64, 1 << 18, 8
"""Directions that are bounded at once; numbers of a block; factors per logarithm."""


def reading_order(episodes: list[bytes]) -> Ints:
    """Of digests of all episodes, of an episode, and of its number among equals."""
    digests = [hashlib.sha256(one).digest() for one in episodes]
    record = hashlib.sha256(b"".join(sorted(digests))).digest()
    equals: Counter[bytes] = Counter()
    keys = []
    for digest in digests:
        keys.append(hashlib.sha256(record + digest + equals[digest].to_bytes(8, "little")).digest())
        equals[digest] += 1
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def lower_means(x: Floats, delta: float) -> Floats:
    """Of every column."""
    needed = -math.log(delta)
    stakes = np.repeat(stakes_of(x, needed), np.diff([*changes(len(x)), len(x)]), axis=0)
    low, high = np.zeros(x.shape[1]), x.mean(axis=0)
    for _ in range(STEPS):
        m = (low + high) / 2
        with np.errstate(divide="ignore"):
            gains = np.log1p(np.minimum(stakes, CAP / m) * (x - m))
        above = np.cumsum(gains, axis=0).max(axis=0) < needed + SLACK
        low, high = np.where(above, low, m), np.where(above, m, high)
    return low


def upper_mean(x: Floats, width: float, delta: float) -> float:
    """Of numbers from 0 to `width`."""
    if not width > 0:
        return 0.0
    below = np.maximum(1 - x[:, np.newaxis] / width, 0.0)
    return width * (1 - float(lower_means(below, delta)[0]))


def mean_in_ball(y: Floats, blur: Floats, radius: float, delta: float) -> tuple[Floats, float]:
    """Values and an error that |values - mean|_2 exceeds with the probability delta at most, for
    rows x_i with |x_i| <= radius that are within blur_i of y_i.

    For stakes l_i in [0, 1) and c_i from the past, r_i >= |x_i - c_i| and f(l) = -log(1 - l) - l,
    cosh|sum_i (l_i/r_i) (x_i - mean)| exp(-sum_i f(l_i) |x_i - c_i|^2/r_i^2) is expected to fall.
    Here c_i is the mean of y before i and a zero, r_i = radius + |c_i|, l = x/(1 + x) with
    x = r_i sqrt(2 log(2/delta)/(n V_i)), V_i the mean of (|y - c| + blur)^2 before i and
    radius^2/4.
    """
    if radius <= 0:
        return y.mean(axis=0), float(blur.mean())
    times, needed = np.arange(len(y)), math.log(2) - math.log(delta)
    c = (np.cumsum(y, axis=0) - y) / (times + 1)[:, np.newaxis]
    r = radius + np.sqrt(np.square(c).sum(axis=1))
    far = np.square(np.sqrt(np.square(y - c).sum(axis=1)) + blur)
    V = (radius**2 / 4 + np.cumsum(far) - far) / (times + 1)
    x = r * np.sqrt(2 * needed / len(y) / V)
    stakes = x / (1 + x)
    w = stakes / r
    loss = (np.log1p(x) - stakes) * far / r**2
    error = (needed + math.fsum(loss) + math.fsum(w * blur)) / math.fsum(w)
    return np.asarray(w @ y / math.fsum(w)), (1 + SLACK) * error


def largest_error(
    factors: Floats, centre: Floats, samples: Floats, low: Floats, high: Floats, delta: float
) -> float:
    """max over the rows w of `factors` of centre_w less the lower mean of <w, sample>, which lies
    from low_w to high_w. What varies less than others is bounded only where its money against
    the largest error of those is too little."""
    width = np.where(high > low, high - low, 1.0)
    away = samples - samples.mean(axis=0)
    moments = ((factors @ (away.T @ away)) * factors).sum(axis=1)
    order, found = np.argsort(-moments, kind="stable"), -math.inf
    at, step = 0, FIRST
    while at < order.size:
        chosen = order[at : at + step]
        chosen = chosen[centre[chosen] - found > low[chosen]]
        x = np.maximum((samples @ factors[chosen].T - low[chosen]) / width[chosen], 0.0)
        if at > 0:
            claims = (centre[chosen] - found - low[chosen]) / width[chosen]
            open_ = ~refutes(x, claims, -math.log(delta))
            chosen, x = chosen[open_], x[:, open_]
        if chosen.size:
            least = low[chosen] + width[chosen] * lower_means(x, delta)
            found = max(found, float((centre[chosen] - least).max()))
        at, step = at + step, max(FIRST, BLOCK // len(samples))
    return found


def refutes(x: Floats, m: Floats, needed: float) -> Bools:
    """Whether the money against every m is enough now and then."""
    have, enough = np.zeros(m.size), np.zeros(m.size, dtype=bool)
    edges = [*changes(len(x)), len(x)]
    for k, stakes in enumerate(stakes_of(x, needed)):
        bets = np.minimum(stakes, CAP / m)
        for first in range(edges[k], edges[k + 1], TOGETHER):
            part = x[first : min(first + TOGETHER, edges[k + 1])]
            have = have + np.log((1 + bets * (part - m)).prod(axis=0))
            enough |= have >= needed + SLACK
    return enough


def stakes_of(x: Floats, needed: float) -> Floats:
    """l from every one of the times on: (times x columns)."""
    count, found = len(x), []
    for start in changes(count):
        past = x[:start]
        mean = (MIDDLE + past.sum(axis=0)) / (start + 1)
        variance = (SPREAD + np.square(past - mean).sum(axis=0)) / (start + 1)
        found.append(np.sqrt(2 * needed / (count * variance)))
    return np.array(found)


def changes(count: int) -> list[int]:
    """0, 1, 2, 3, 4, 6, 8, 12, 16, ... below `count`."""
    powers = [2**k for k in range(1, max(count, 2).bit_length())]
    return sorted(one for one in {0, 1, *powers, *(3 * p // 2 for p in powers)} if one < count)
