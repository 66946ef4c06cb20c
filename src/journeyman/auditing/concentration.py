"""Radii of means of independent samples, from their textbook forms.

*Reference*: Hoeffding (1963); McDiarmid (1989); Pinelis (1994); Clopper and Pearson (1934); Maurer
and Pontil (2009).
"""

import math

from scipy import optimize, special

from journeyman.auditing.costs import EUCLIDEAN, INFINITY, KNOWN, Costs


def hoeffding(width: float, count: int, delta: float) -> float:
    return width * math.sqrt(-math.log(delta) / 2 / count)


def bernstein(variance: float, width: float, count: int, delta: float) -> float:
    """sqrt(2 Var log(2/delta)/n) + 7 R log(2/delta)/(3(n - 1))."""
    if count < 2:
        return math.inf
    log = math.log(2) - math.log(delta)
    return math.sqrt(2 * log * variance / count) + 7 / 3 * width * log / (count - 1)


def pinelis(second_moment: float, largest: float, count: int, delta: float) -> float:
    """sqrt(2 S log(2/delta)/n) + 2 B log(2/delta)/n."""
    share = (math.log(2) - math.log(delta)) / count
    return math.sqrt(2 * share * second_moment) + 2 * share * largest


def clopper_pearson(seen: int, count: int, delta: float) -> float:
    """The p with P(at most `seen` of `count`) = delta."""
    if seen >= count:
        return 1.0
    excess = lambda p: special.bdtr(seen, count, p) - delta  # noqa: E731
    return float(optimize.brentq(excess, 0.0, 1.0, xtol=1e-18, rtol=1e-14))


def data_independent(
    costs: Costs, horizon: float, count: int, delta: float
) -> dict[str, tuple[float, str]]:
    """Every radius of the class that does not look at the data, by name, with its formula."""
    n, log = costs.scale.size, -math.log(delta)
    widths = costs.scale * costs.ranges * horizon
    root = math.sqrt(count)
    if costs.kind == KNOWN:
        radius = hoeffding(float(widths[0]), count, delta)
        return {"one cost": (radius, "R sqrt(log(1/delta)/(2m))")}
    if costs.kind == EUCLIDEAN:
        radius = costs.euclidean * horizon * (1 + math.sqrt(2 * log)) / root
        return {"McDiarmid": (radius, "N2 h (1 + sqrt(2 log(1/delta)))/sqrt(m)")}
    if costs.kind != INFINITY:
        radius = hoeffding(float(widths.max()), count, delta / n)
        return {"one-sided": (radius, "max_i R_i sqrt(log(n/delta)/(2m))")}
    union = math.fsum(hoeffding(float(width), count, delta / (2 * n)) for width in widths)
    width = 2 * costs.smaller * horizon
    signs = width * math.sqrt((n * math.log(2) + log) / 2 / count)
    mean = math.sqrt(n) * costs.euclidean * horizon / root
    return {
        "union": (union, "sum_i R_i sqrt(log(2n/delta)/(2m))"),
        "signs": (signs, "2 N h sqrt((n log 2 + log(1/delta))/(2m))"),
        "McDiarmid": (
            mean + hoeffding(width, count, delta),
            "sqrt(n/m) N2 h + 2 N h sqrt(log(1/delta)/(2m))",
        ),
    }
