"""Cost classes: support functions, members, the largest cost of a class, and radii of means.

    InfinityBall   |w_i| <= k_i          gap(z) = sum_i k_i |z_i|      row size  sum_i k_i |x_i|
    EuclideanBall  |w/k|_2 <= 1          gap(z) = |k z|_2              row size  |k x|_2
    Simplex        w/k a mixture         gap(z) = max_i k_i z_i        row size  max_i k_i |x_i|
    KnownCost      w = k                 gap(z) = k z                  row size  k |x|

where k is the scale of the class. Radii are those of the textbooks.

*Reference*: Hoeffding (1963); McDiarmid (1989); Pinelis (1994); Clopper and Pearson (1934); Maurer
and Pontil (2009).
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import optimize, sparse, special

from journeyman.checker.files import Floats
from journeyman.checker.findings import Refused

INFINITY, EUCLIDEAN, SIMPLEX, KNOWN = "infinity-ball", "euclidean-ball", "simplex", "known-cost"
SPREAD = "combined sqrt(2 Var L/m) + 7 R L/(3(m - 1))"


@dataclass(frozen=True, eq=False)
class Costs:
    """A cost class over a basis whose rows are pairs, states, or extreme costs."""

    kind: str
    scale: Floats
    matrix: Any

    def __post_init__(self) -> None:
        if self.kind not in (INFINITY, EUCLIDEAN, SIMPLEX, KNOWN):
            raise Refused(f"the cost class {self.kind!r} cannot be audited")
        if self.kind == KNOWN and self.scale.size != 1:
            raise Refused("a known cost is one cost")

    @property
    def two_sided(self) -> bool:
        """Whether the class holds minus each of its members, and so the zero cost."""
        return self.kind in (INFINITY, EUCLIDEAN)

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The least and the greatest entry of every cost."""
        if not sparse.issparse(self.matrix):
            return self.matrix.min(axis=0), self.matrix.max(axis=0)
        columns, found = self.matrix.tocsc(), []
        for start, stop in zip(columns.indptr[:-1], columns.indptr[1:], strict=True):
            entries = columns.data[start:stop]
            if stop - start < self.matrix.shape[0]:
                entries = np.append(entries, 0.0)
            found.append((entries.min(), entries.max()))
        low, high = np.array(found).T
        return low, high

    @property
    def ranges(self) -> Floats:
        return np.asarray(self.ends[1] - self.ends[0])

    @property
    def centre(self) -> Floats:
        return np.asarray((self.ends[0] + self.ends[1]) / 2)

    @property
    def norms(self) -> Floats:
        return np.maximum(-self.ends[0], self.ends[1])

    def gap(self, difference: Floats) -> float:
        """The largest <w, difference> over the class."""
        z = self.scale * difference
        if self.kind == INFINITY:
            return math.fsum(abs(z))
        return math.hypot(*z) if self.kind == EUCLIDEAN else float(z.max())

    def largest_gap(self, low: Floats, high: Floats) -> float:
        """Over all differences between `low` and `high`."""
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            return math.inf
        return self.gap(np.maximum(np.abs(low), np.abs(high)) if self.two_sided else high)

    def member(self, weights: Floats) -> Floats:
        """The point of the class that stands for `weights`."""
        w = weights / self.scale
        if self.kind == INFINITY:
            w = np.minimum(np.maximum(w, -1.0), 1.0)
        elif self.kind == EUCLIDEAN:
            w = w / max(1.0, math.hypot(*w))
        elif self.kind == SIMPLEX:
            w = np.maximum(w, 0.0)
            w = w / w.sum() if w.any() else np.full(w.size, 1 / w.size)
        else:
            w = np.ones(1)
        return np.asarray(self.scale * w)

    @cached_property
    def plain(self) -> float:
        """N as given."""
        return self._largest(self.kind, np.zeros(self.scale.size))

    @cached_property
    def about_centre(self) -> float:
        """N with every cost moved to the middle of its range."""
        return self._largest(self.kind, self.centre)

    @property
    def smaller(self) -> float:
        return min(self.plain, self.about_centre)

    def size(self, horizon: float) -> float:
        """What absolute errors of gaps are measured by: the largest gap of two policies, and a
        little of what it would be without centring, because that is what was rounded."""
        return 2 * (self.smaller + 1e-3 * self.plain) * horizon

    def trivial(self, horizon: float, target: Floats | None, sign: float = 1.0) -> float:
        """What no gap exceeds because costs are bounded: 2 N h, or N h and the distance of a target
        that is taken as exact. With sign -1: what minus a gap does not exceed."""
        if target is None:
            return 2 * self.smaller * horizon
        given = self.plain * horizon + self.gap(-sign * target)
        moved = self.gap(sign * (horizon * self.centre - target))
        return min(given, self.about_centre * horizon + moved)

    def radii(self, horizon: float, count: int, delta: float) -> dict[str, tuple[float, str]]:
        """Every radius of a mean of totals that does not look at the data: by name, with its
        formula. The class and the count decide which is smallest, so any of them may be used."""
        n, log = self.scale.size, -math.log(delta)
        widths, root = self.scale * self.ranges * horizon, math.sqrt(count)
        if self.kind == KNOWN:
            radius = hoeffding(float(widths[0]), count, delta)
            return {"one cost": (radius, "R sqrt(log(1/delta)/(2m))")}
        if self.kind == SIMPLEX:
            radius = hoeffding(float(widths.max()), count, delta / n)
            return {"one-sided": (radius, "max_i R_i sqrt(log(n/delta)/(2m))")}
        zero = np.zeros(n)
        norm = min(self._largest(EUCLIDEAN, zero), self._largest(EUCLIDEAN, self.centre))
        if self.kind == EUCLIDEAN:
            radius = norm * horizon * (1 + math.sqrt(2 * log)) / root
            return {"McDiarmid": (radius, "N2 h (1 + sqrt(2 log(1/delta)))/sqrt(m)")}
        union = math.fsum(hoeffding(float(width), count, delta / (2 * n)) for width in widths)
        width = 2 * self.smaller * horizon
        signs = width * math.sqrt((n * math.log(2) + log) / 2 / count)
        mean = math.sqrt(n) * norm * horizon / root + hoeffding(width, count, delta)
        return {
            "union": (union, "sum_i R_i sqrt(log(2n/delta)/(2m))"),
            "signs": (signs, "2 N h sqrt((n log 2 + log(1/delta))/(2m))"),
            "McDiarmid": (mean, "sqrt(n/m) N2 h + 2 N h sqrt(log(1/delta)/(2m))"),
        }

    def spread_radius(
        self, horizon: float, variances: Floats, count: int, delta: float
    ) -> tuple[Floats, float]:
        """Of every mean, when each of its two sides may fail with its part of delta; and the
        largest gap of an error within them."""
        widths = self.ranges * horizon
        radius = np.array([
            bernstein(float(variance), float(width), count, delta / (2 * widths.size))
            for variance, width in zip(variances, widths, strict=True)
        ])  # fmt: skip
        return radius, self.largest_gap(radius, radius)

    def _largest(self, kind: str, centre: Floats) -> float:
        if kind == INFINITY:
            return float(self._row_totals(centre, 1).max())
        if kind == EUCLIDEAN:
            return math.sqrt(max(0.0, float(self._row_totals(centre, 2).max())))
        low, high = self.ends
        return float((self.scale * np.maximum(high - centre, centre - low)).max())

    def _row_totals(self, centre: Floats, power: int) -> Floats:
        """sum_i (k_i |x_i - centre_i|)^power of every row x; a sparse basis stays sparse."""
        if not sparse.issparse(self.matrix):
            return np.asarray((np.abs(self.matrix - centre) ** power) @ self.scale**power)
        hidden = (self.scale * np.abs(centre)) ** power
        columns = self.matrix.indices
        shown = (self.scale[columns] * np.abs(self.matrix.data - centre[columns])) ** power
        parts = (shown - hidden[columns], columns, self.matrix.indptr)
        more = sparse.csr_array(parts, shape=self.matrix.shape).sum(axis=1)
        return np.asarray(hidden.sum() + np.asarray(more).ravel())


def hoeffding(width: float, count: int, delta: float) -> float:
    return width * math.sqrt(-math.log(delta) / 2 / count)


def bernstein(variance: float, width: float, count: int, delta: float) -> float:
    """sqrt(2 Var log(2/delta)/n) + 7 R log(2/delta)/(3(n - 1))."""
    if count < 2:
        return math.inf
    log = math.log(2) - math.log(delta)
    return math.sqrt(2 * log * variance / count) + 7 / 3 * width * log / (count - 1)


def smaller_radii(variances: Floats, widths: Floats, count: int, delta: float) -> Floats:
    """The smaller of both radii, each at `delta`, of every mean."""
    both = zip(variances.tolist(), widths.tolist(), strict=True)
    return np.array([
        min(hoeffding(width, count, delta), bernstein(variance, width, count, delta))
        for variance, width in both
    ])  # fmt: skip


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
