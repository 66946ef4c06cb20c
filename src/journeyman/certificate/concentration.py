"""Inequalities for means of n independent samples, each failing with probability delta at most.

| function                     | bounds                                                            |
|------------------------------|-------------------------------------------------------------------|
| `hoeffding_radius`           | R sqrt(log(1/delta)/(2n)),  R the width of the range              |
| `empirical_bernstein_radius` | sqrt(2 Var log(2/delta)/n) + 7 R log(2/delta)/(3(n - 1))          |
| `hilbert_radius`             | sqrt(2 S log(2/delta)/n) + 2 B log(2/delta)/n  on the 2-norm of the
|                              | error of a mean of vectors, |x|_2 <= B and E |x|_2^2 <= S         |
| `upper_frequency`            | the probability of what k of n samples showed (exact)             |

*Reference*: Hoeffding (1963); Maurer and Pontil (2009), theorem 4; Pinelis (1994) in the form of
Smale and Zhou (2007), lemma 2; Clopper and Pearson (1934).
"""

import math

import numpy as np

from journeyman.arrays import FloatArray


def hoeffding_radius(width: float, count: int, failure_probability: float) -> float:
    """One-sided radius of a mean whose samples lie in a range of this width."""
    return width * math.sqrt(math.log(1 / failure_probability) / (2 * count))


def empirical_bernstein_radius(
    variance: float, width: float, count: int, failure_probability: float
) -> float:
    """One-sided radius from the sample variance (divided by n - 1)."""
    if count < 2:
        return math.inf
    log = math.log(2 / failure_probability)
    return math.sqrt(2 * variance * log / count) + 7 * width * log / (3 * (count - 1))


def upper_mean(samples: FloatArray, width: float, failure_probability: float) -> float:
    """An upper bound on the expectation of samples in [0, width], by empirical Bernstein.

    The samples are measured in the width: variances of squares would leave float64.
    """
    if not width > 0:
        return float(width)
    shares = samples / width
    radius = empirical_bernstein_radius(
        float(shares.var(ddof=1)), 1.0, shares.size, failure_probability
    )
    return width * min(1.0, float(shares.mean()) + radius)


def hilbert_radius(
    second_moment: float, largest: float, count: int, failure_probability: float
) -> float:
    """2-norm of (mean - expectation) for vectors of norm at most `largest`."""
    log = math.log(2 / failure_probability)
    return math.sqrt(2 * second_moment * log / count) + 2 * largest * log / count


def upper_frequency(seen: int, count: int, failure_probability: float) -> float:
    """An upper bound on the probability of what was seen `seen` times in `count` samples.

    >>> round(upper_frequency(0, 1000, 0.05), 6)
    0.002991
    """
    if seen >= count:
        return 1.0
    from scipy.special import betaincinv

    return float(np.nextafter(betaincinv(seen + 1, count - seen, 1 - failure_probability), 1.0))
