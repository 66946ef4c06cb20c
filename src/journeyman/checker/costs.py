"""Cost classes: support functions, members, the largest cost of a class, and radii of means.

    InfinityBall   |w_i| <= k_i          gap(z) = sum_i k_i |z_i|
    EuclideanBall  |w/k|_2 <= 1          gap(z) = |k z|_2
    L1Ball         |w/k|_1 <= 1          gap(z) = max_i k_i |z_i|
    Simplex        w/k a mixture         gap(z) = max_i k_i z_i
    KnownCost      w = k                 gap(z) = k z
    PriorBall      prior + radius ball   gap(z) = <prior, z> + radius gap_ball(z)
    Polytope       A w <= b              gap(z) = max over the vertices of <w, z>

where k is the scale of the class. N is the largest |<w, row>| over the class and all rows of the
basis. Radii are those of the textbooks.

*Reference*: Hoeffding (1963); McDiarmid (1989); Maurer and Pontil (2009).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from scipy import optimize, sparse, spatial

from journeyman.checker.archives import Floats, dense
from journeyman.checker.findings import Refused

INFINITY, EUCLIDEAN, L1 = "infinity-ball", "euclidean-ball", "l1-ball"
SIMPLEX, KNOWN, PRIOR, POLYTOPE = "simplex", "known-cost", "prior-ball", "polytope"
SPREAD = "combined sqrt(2 Var L/m) + 7 R L/(3(m - 1))"
BLOCK = 1 << 14
"""Rows of a basis that are weighed at a time."""
MOST_SORTED, MOST_PRODUCTS, MOST_SIGNS = 1 << 21, 1 << 29, 16
"""Entries of a basis whose rows are compared; rows times points that are multiplied; costs of which
all patterns of signs are taken together."""
CLOSE = 1e-9
"""In units of the largest weights of a polytope: points as close are one."""
HARDEST = 400_000
"""Vertices that are enumerated again."""


@dataclass(frozen=True, eq=False)
class Costs(ABC):
    """A cost class over a basis whose rows are pairs, states, or extreme costs."""

    name: str
    scale: Floats
    """The largest weight of every cost."""
    matrix: Any

    contains_zero = False
    round = False
    """Whether the directions of `probes` are not all of it."""
    symmetric = False
    """Whether -w is a member with w."""
    only_worse = False
    """Whether expectations above those of the expert count, and none below."""

    @abstractmethod
    def gap(self, difference: Floats) -> float:
        """The largest <w, difference> over the class."""

    def largest_gap(self, low: Floats, high: Floats) -> float:
        """No difference between `low` and `high` has a larger gap."""
        return self.gap(high)

    def least_gap(self, low: Floats, high: Floats) -> float:
        """No difference between `low` and `high` has a smaller gap."""
        return self.gap(low)

    @abstractmethod
    def row_sizes(self, rows: Floats) -> Floats:
        """The largest |<w, row>| over the class, of every row."""

    @abstractmethod
    def member(self, weights: Floats) -> Floats:
        """A point of the class close to `weights`."""

    def points(self) -> Floats | None:
        """Rows whose hull is the class; None where there are no such, or too many."""
        return None

    @abstractmethod
    def radii(self, horizon: float, count: int, delta: float) -> dict[str, tuple[float, str]]:
        """Every radius of a mean of totals that does not look at the data: by name, with its
        formula. The class and the count decide which is smallest, so any of them may be used."""

    @abstractmethod
    def probes(self) -> list[Floats]:
        """Groups of directions: if no <d, z> of group g is above t_g, gap(z) <= combined(t), but
        for what is round (`axes`)."""

    def combined(self, tops: list[float]) -> float:
        """One group: the vertices of the class."""
        return tops[0]

    def axes(self) -> Floats | None:
        """Of an ellipsoid that has no such directions: |axes z|_2 is added to `combined`."""
        return None

    def quadratic(self, spread: Floats) -> tuple[Floats, float]:
        """Weights s and a factor f with max_w |<w, x>| <= f sqrt(sum_i x_i^2/s_i) for all x."""
        return self.scale**-2.0, 1.0

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The least and the greatest entry of every cost."""
        if not sparse.issparse(self.matrix):
            return self.matrix.min(axis=0), self.matrix.max(axis=0)
        return self.matrix.min(axis=0).toarray().ravel(), self.matrix.max(axis=0).toarray().ravel()

    @property
    def ranges(self) -> Floats:
        return np.asarray(self.ends[1] - self.ends[0])

    @property
    def centre(self) -> Floats:
        return np.asarray((self.ends[0] + self.ends[1]) / 2)

    @property
    def norms(self) -> Floats:
        return np.maximum(-self.ends[0], self.ends[1])

    @cached_property
    def plain(self) -> float:
        """N as given."""
        return self.largest(self.row_sizes, np.zeros(self.scale.size))

    @cached_property
    def about_centre(self) -> float:
        """N with every cost moved to the middle of its range."""
        return self.largest(self.row_sizes, self.centre)

    @property
    def smaller(self) -> float:
        return min(self.plain, self.about_centre)

    def largest(self, sizes: Callable[[Floats], Floats], centre: Floats) -> float:
        """Of the sizes of all rows, moved by `centre`."""
        count = self.matrix.shape[0]
        blocks = (dense(self.matrix[at : at + BLOCK]) - centre for at in range(0, count, BLOCK))
        return max(float(sizes(block).max()) for block in blocks)

    def widths_of(self, points: Floats, horizon: float) -> Floats:
        """(max c_w - min c_w) h of every row w of `points`."""
        low, high = self.ends_of(points)
        return np.asarray(horizon * (high - low))

    @cached_property
    def different_rows(self) -> Any:
        few = self.matrix.shape[0] * self.matrix.shape[1] <= MOST_SORTED
        return np.unique(dense(self.matrix), axis=0) if few else self.matrix

    def ends_of(self, points: Floats, most_products: int = MOST_PRODUCTS) -> tuple[Floats, Floats]:
        """min c_w and max c_w of every row w of `points`; where these are too many what costs of
        rows with such entries, absolute sums and norms cannot exceed."""
        rows = self.different_rows
        if rows.shape[0] * len(points) > most_products:
            return self._wider_ends(points)
        low, high = np.full(len(points), math.inf), np.full(len(points), -math.inf)
        together = max(1, (BLOCK << 8) // len(points))
        for at in range(0, rows.shape[0], together):
            costs = dense(rows[at : at + together]) @ points.T
            low, high = np.minimum(low, costs.min(axis=0)), np.maximum(high, costs.max(axis=0))
        return low, high

    def _wider_ends(self, points: Floats) -> tuple[Floats, Floats]:
        up, down = np.maximum(points, 0.0), np.minimum(points, 0.0)
        low = up @ self.ends[0] + down @ self.ends[1]
        high = up @ self.ends[1] + down @ self.ends[0]
        for centre, sums, norms in self._row_norms:
            sizes = np.abs(points).max(axis=1) * sums, np.linalg.norm(points, axis=1) * norms
            low = np.maximum(low, points @ centre - np.minimum(*sizes))
            high = np.minimum(high, points @ centre + np.minimum(*sizes))
        return low, high

    @cached_property
    def _row_norms(self) -> list[tuple[Floats, float, float]]:
        """The largest absolute sum and 2-norm of a row, as given and about the centre."""
        return [
            (
                centre,
                self.largest(lambda rows: np.abs(rows).sum(axis=1), centre),
                self.largest(lambda rows: np.sqrt(np.square(rows).sum(axis=1)), centre),
            )
            for centre in (np.zeros(self.scale.size), self.centre)
        ]

    def of_tails(self, *, centred: bool) -> float:
        """N for time without a record: of costs at mid-range, or at nothing."""
        return self.about_centre if centred else self.plain

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

    def union(self, horizon: float, count: int, delta: float) -> float:
        """Of the gap, when every cost is within its own radius."""
        radius = self.ranges * horizon * hoeffding(1.0, count, delta / (2 * self.scale.size))
        return self.largest_gap(-radius, radius)

    def spread_radius(self, horizon: float, variances: Floats, count: int, delta: float) -> float:
        """The largest gap when every mean is within the radius of its variance, and each of its two
        sides may fail with its part of delta."""
        if count < 2:
            return math.inf
        both = zip(variances.tolist(), (self.ranges * horizon).tolist(), strict=True)
        part = delta / (2 * self.scale.size)
        radius = np.array([bernstein(one, width, count, part) for one, width in both])
        return self.largest_gap(-radius, radius)


class BallCosts(Costs):
    """|w/k| <= 1 in a norm; gaps depend on the sizes |k z| alone."""

    contains_zero = symmetric = True

    def gap(self, difference: Floats) -> float:
        sizes = np.abs(self.scale * difference)
        if self.name == INFINITY:
            return math.fsum(sizes)
        return math.hypot(*sizes) if self.name == EUCLIDEAN else float(sizes.max())

    def largest_gap(self, low: Floats, high: Floats) -> float:
        return self.gap(np.maximum(np.abs(low), np.abs(high)))

    def least_gap(self, low: Floats, high: Floats) -> float:
        return self.gap(np.clip(0.0, low, high))

    def row_sizes(self, rows: Floats) -> Floats:
        sizes = np.abs(self.scale * rows)
        if self.name == EUCLIDEAN:
            return np.asarray(np.sqrt((sizes**2).sum(axis=1)))
        return np.asarray(sizes.sum(axis=1) if self.name == INFINITY else sizes.max(axis=1))

    def norm(self, weights: Floats) -> float:
        """How far the ball must be stretched to hold the weights."""
        w = np.abs(weights / self.scale)
        if self.name == INFINITY:
            return float(w.max())
        return math.hypot(*w) if self.name == EUCLIDEAN else math.fsum(w)

    def points(self) -> Floats | None:
        if self.name == L1:
            return np.vstack([np.diag(self.scale), -np.diag(self.scale)])
        if self.name == EUCLIDEAN or self.scale.size > MOST_SIGNS:
            return None
        signs = (np.arange(1 << self.scale.size)[:, np.newaxis] >> np.arange(self.scale.size)) & 1
        return np.asarray((2.0 * signs - 1.0) * self.scale)

    def member(self, weights: Floats) -> Floats:
        if self.name == INFINITY:
            return np.clip(weights, -self.scale, self.scale)
        return np.asarray(weights / max(1.0, self.norm(weights)))

    def radii(self, horizon: float, count: int, delta: float) -> dict[str, tuple[float, str]]:
        union = self.union(horizon, count, delta)
        if self.name == L1:
            return {"union": (union, "max_i R_i sqrt(log(2n/delta)/(2m))")}
        n, log, root = self.scale.size, -math.log(delta), math.sqrt(count)
        euclid = BallCosts(EUCLIDEAN, self.scale, self.matrix)
        if self.name == EUCLIDEAN:
            radius = euclid.smaller * horizon * (1 + math.sqrt(2 * log)) / root
            return {"McDiarmid": (radius, "N2 h (1 + sqrt(2 log(1/delta)))/sqrt(m)")}
        width = 2 * self.smaller * horizon
        signs = width * math.sqrt((n * math.log(2) + log) / 2 / count)
        mean = math.sqrt(n) * euclid.smaller * horizon / root + hoeffding(width, count, delta)
        return {
            "union": (union, "sum_i R_i sqrt(log(2n/delta)/(2m))"),
            "signs": (signs, "2 N h sqrt((n log 2 + log(1/delta))/(2m))"),
            "McDiarmid": (mean, "sqrt(n/m) N2 h + 2 N h sqrt(log(1/delta)/(2m))"),
        }

    @property
    def round(self) -> bool:  # type: ignore[override]
        return self.name == EUCLIDEAN

    def probes(self) -> list[Floats]:
        """Patterns of signs, of up to 16 costs together; or both signs of every cost; or none."""
        points, count = np.diag(self.scale), self.scale.size
        if self.name == L1:
            return [np.vstack([points, -points])]
        if self.name == EUCLIDEAN:
            return []
        parts = np.array_split(np.arange(count), -(-count // MOST_SIGNS))
        return [
            (2.0 * np.indices((2,) * part.size).reshape(part.size, -1).T - 1) @ points[part]
            for part in parts
        ]

    def combined(self, tops: list[float]) -> float:
        return tops[0] if self.name == L1 else math.fsum(tops)

    def axes(self) -> Floats | None:
        return self.scale if self.name == EUCLIDEAN else None

    def quadratic(self, spread: Floats) -> tuple[Floats, float]:
        if self.name != INFINITY:
            return self.scale**-2.0, 1.0
        weights = spread / self.scale
        return weights, math.sqrt(math.fsum(self.scale**2 * weights))


class SimplexCosts(Costs):
    """w/k a mixture."""

    only_worse = True

    def gap(self, difference: Floats) -> float:
        return float((self.scale * difference).max())

    def row_sizes(self, rows: Floats) -> Floats:
        return np.asarray(np.abs(self.scale * rows).max(axis=1))

    def points(self) -> Floats | None:
        return np.diag(self.scale)

    def member(self, weights: Floats) -> Floats:
        w = np.maximum(weights / self.scale, 0.0)
        shares = w / w.sum() if w.any() else np.full(w.size, 1 / w.size)
        return np.asarray(self.scale * shares)

    def radii(self, horizon: float, count: int, delta: float) -> dict[str, tuple[float, str]]:
        widest, n = float((self.scale * self.ranges).max()) * horizon, self.scale.size
        radius = hoeffding(widest, count, delta / n)
        return {"one-sided": (radius, "max_i R_i sqrt(log(n/delta)/(2m))")}

    def probes(self) -> list[Floats]:
        return [np.diag(self.scale)]


class KnownCosts(SimplexCosts):
    """w = k, of one cost."""

    def member(self, weights: Floats) -> Floats:
        return self.scale

    def radii(self, horizon: float, count: int, delta: float) -> dict[str, tuple[float, str]]:
        radius = hoeffding(float((self.scale * self.ranges)[0]) * horizon, count, delta)
        return {"one cost": (radius, "R sqrt(log(1/delta)/(2m))")}


@dataclass(frozen=True, eq=False)
class PriorCosts(Costs):
    """prior + radius times a ball: whatever is asked is made of both parts."""

    prior: Floats
    radius: float
    ball: BallCosts

    @property
    def contains_zero(self) -> bool:  # type: ignore[override]
        return self.ball.norm(self.prior) <= self.radius

    def gap(self, difference: Floats) -> float:
        return float(self.prior @ difference) + self.radius * self.ball.gap(difference)

    def largest_gap(self, low: Floats, high: Floats) -> float:
        known = math.fsum(np.maximum(times(self.prior, low), times(self.prior, high)))
        return known + self.radius * self.ball.largest_gap(low, high)

    def least_gap(self, low: Floats, high: Floats) -> float:
        known = math.fsum(np.minimum(times(self.prior, low), times(self.prior, high)))
        return known + self.radius * self.ball.least_gap(low, high)

    def row_sizes(self, rows: Floats) -> Floats:
        return np.abs(rows @ self.prior) + self.radius * self.ball.row_sizes(rows)

    def points(self) -> Floats | None:
        around = self.ball.points()
        return None if around is None else self.prior + self.radius * around

    def member(self, weights: Floats) -> Floats:
        if self.ball.norm(weights - self.prior) <= self.radius:
            return weights
        away = (weights - self.prior) / self.radius
        return self.prior + self.radius * self.ball.member(away)

    def radii(self, horizon: float, count: int, delta: float) -> dict[str, tuple[float, str]]:
        width = float(self.widths_of(self.prior[np.newaxis], horizon)[0])
        known = hoeffding(width, count, delta / 2)
        formula = "R_0 sqrt(log(2/delta)/(2m)) + radius times, with delta/2, "
        return {
            f"prior and {name}": (known + self.radius * radius, formula + inner)
            for name, (radius, inner) in self.ball.radii(horizon, count, delta / 2).items()
        }

    @property
    def round(self) -> bool:  # type: ignore[override]
        return self.ball.round

    def probes(self) -> list[Floats]:
        groups = self.ball.probes()
        if len(groups) == 1:
            return [self.prior + self.radius * groups[0]]
        return [self.prior[np.newaxis], *groups]

    def combined(self, tops: list[float]) -> float:
        return tops[0] + (self.radius * self.ball.combined(tops[1:]) if tops[1:] else 0.0)

    def axes(self) -> Floats | None:
        return self.radius * self.ball.scale if self.ball.round else None

    def quadratic(self, spread: Floats) -> tuple[Floats, float]:
        weights, factor = self.ball.quadratic(spread)
        return weights, math.sqrt(math.fsum(weights * self.prior**2)) + self.radius * factor


@dataclass(frozen=True, eq=False)
class PolytopeCosts(Costs):
    """The hull of its vertices, which are { w : A w <= b }."""

    rows: Floats
    limits: Floats
    vertices: Floats

    def __post_init__(self) -> None:
        """The vertices lie in the polytope, and it has no others.

        In units of the largest weights: linear programs prove that it reaches no further than the
        vertices along orthonormal axes, the first of which span them, so it is bounded and lies in
        their plane. Within that plane all vertices are enumerated again, from the middle of the
        stored ones, and each has to be one of them.
        """
        if not self.vertices.size or (self.scale <= 0).any():
            raise Refused("the vertices of the polytope are not all of it")
        rows, points = self.rows * self.scale, self.vertices / self.scale
        norms = np.linalg.norm(rows, axis=1)
        if (self.limits[norms == 0] < 0).any():
            raise Refused("no weights satisfy the rows of the polytope")
        rows, limits = rows[norms > 0] / norms[norms > 0, None], self.limits[norms > 0]
        limits = limits / norms[norms > 0]
        room, middle = limits - points @ rows.T, points.mean(axis=0)
        if room.min() < -CLOSE:
            raise Refused("a vertex of the polytope lies outside of it")
        _, sizes, axes = np.linalg.svd(points - middle, full_matrices=len(points) < middle.size)
        for axis in (*axes, *-axes):
            found = optimize.linprog(-axis, rows, limits, bounds=(None, None))
            if found.status != 0 or -found.fun > float((points @ axis).max()) + CLOSE:
                raise Refused("the vertices of the polytope are not all of it")
        plane, inner = axes[: int((sizes > CLOSE).sum())], room.max(axis=0) > CLOSE
        if len(plane) < 2:  # a point, or both ends of a line
            return
        most = comb(int(inner.sum()) - -(-len(plane) // 2), len(plane) // 2)
        if most > HARDEST:
            raise Refused("the polytope may have too many vertices to enumerate them again")
        slopes, room = rows[inner] @ plane.T, limits[inner] - rows[inner] @ middle
        again = spatial.HalfspaceIntersection(np.column_stack([slopes, -room]), 0 * plane[:, 0])
        every = middle + again.intersections @ plane
        if not spatial.KDTree(points).query(every)[0].max() <= CLOSE:
            raise Refused("the vertices of the polytope are not all of it")

    @property
    def contains_zero(self) -> bool:  # type: ignore[override]
        return bool((self.limits >= 0).all())

    def points(self) -> Floats | None:
        return self.vertices

    def gap(self, difference: Floats) -> float:
        return float((self.vertices @ difference).max())

    def largest_gap(self, low: Floats, high: Floats) -> float:
        return float(
            np.maximum(times(self.vertices, low), times(self.vertices, high)).sum(axis=1).max()
        )

    def least_gap(self, low: Floats, high: Floats) -> float:
        return float(
            np.minimum(times(self.vertices, low), times(self.vertices, high)).sum(axis=1).max()
        )

    def row_sizes(self, rows: Floats) -> Floats:
        return np.asarray(np.abs(rows @ self.vertices.T).max(axis=1))

    def member(self, weights: Floats) -> Floats:
        """Moved towards the middle of the vertices until it is inside; its plane is theirs."""
        if (self.rows @ weights <= self.limits).all():
            return weights
        middle = self.vertices.mean(axis=0)
        few = len(self.vertices) < middle.size
        _, sizes, directions = np.linalg.svd(self.vertices - middle, full_matrices=few)
        extends = np.zeros(len(directions), dtype=bool)
        extends[: sizes.size] = sizes > 1e-9 * (float(np.abs(self.vertices).max()) or 1.0)
        plane = directions[~extends]
        away = weights - middle
        away = away - plane.T @ (plane @ away)
        inner = (self.limits - self.vertices @ self.rows.T).max(axis=0) > 1e-9 * (
            np.linalg.norm(self.rows, axis=1) * (float(np.abs(self.vertices).max()) or 1.0)
        )
        outwards, room = (self.rows @ away)[inner], (self.limits - self.rows @ middle)[inner]
        beyond = outwards > room
        share = float((room[beyond] / outwards[beyond]).min(initial=1.0))
        return np.asarray(middle + share * away)

    def radii(self, horizon: float, count: int, delta: float) -> dict[str, tuple[float, str]]:
        widest = float(self.widths_of(self.vertices, horizon).max())
        radius = hoeffding(widest, count, delta / len(self.vertices))
        union, formula = self.union(horizon, count, delta), "max_w sum_i |w_i| R_i"
        return {
            "vertices": (radius, "max_k R_k sqrt(log(K/delta)/(2m))"),
            "union": (union, f"{formula} sqrt(log(2n/delta)/(2m))"),
        }

    def probes(self) -> list[Floats]:
        return [self.vertices]

    def quadratic(self, spread: Floats) -> tuple[Floats, float]:
        found = []
        for weights in (spread / self.scale, self.scale**-2.0):
            factor = math.sqrt(float((self.vertices**2 @ weights).max()))
            size = factor * float(np.linalg.norm(spread / np.sqrt(weights)))
            found.append((size, weights, factor))
        _, weights, factor = found[int(found[1][0] < found[0][0])]
        return weights, factor


NORMS = {"infinity": INFINITY, "euclidean": EUCLIDEAN, "l1": L1}


def read_class(stated: Any, matrix: Any, vertices: Floats | None) -> Costs:
    """The class that a problem describes, over the rows of `matrix`."""
    facts, count = dict(stated), matrix.shape[1]
    name = facts.pop("name")
    scale = _numbers(facts.pop("scale", [1.0] * count), (count,))
    if (scale <= 0).any():
        raise Refused("a scale is not positive")
    found: Costs
    if name == PRIOR:
        prior, radius = _numbers(facts.pop("prior"), (count,)), float(facts.pop("radius"))
        ball = BallCosts(NORMS[facts.pop("norm")], scale, matrix)
        if not 0 < radius < math.inf:
            raise Refused(f"a ball of radius {radius} around a prior")
        largest = np.abs(prior) + radius * scale
        found = PriorCosts(name, largest, matrix, prior, radius, ball)
    elif name == POLYTOPE and vertices is not None and vertices.shape[1:] == (count,):
        limits = np.array(facts.pop("limits"), dtype=float)
        rows = _numbers(facts.pop("rows"), (limits.size, count))
        largest = np.abs(vertices).max(axis=0)
        found = PolytopeCosts(name, largest, matrix, rows, limits, vertices)
    elif name == KNOWN and count == 1:
        found = KnownCosts(name, scale, matrix)
    elif name in (INFINITY, EUCLIDEAN, L1, SIMPLEX):
        found = (SimplexCosts if name == SIMPLEX else BallCosts)(name, scale, matrix)
    else:
        raise Refused(f"the cost class {name!r} cannot be audited")
    if facts:
        raise Refused(f"the cost class {name!r} has the unknown parts {sorted(facts)}")
    return found


def _numbers(values: Any, shape: tuple[int, ...]) -> Floats:
    found = np.array(values, dtype=float)
    if found.shape != shape or not np.isfinite(found).all():
        raise Refused(f"a cost class has numbers of shape {found.shape}, or some are not finite")
    return found


def times(weights: Floats, ends: Floats) -> Floats:
    """Their products; zero times infinity is nothing."""
    with np.errstate(invalid="ignore"):
        return np.where(weights == 0, 0.0, weights * ends)


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
