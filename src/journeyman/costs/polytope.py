"""Weights between linear inequalities: what is known about prices and their ratios.

    W = { w : A w <= b },      gap(z) = max over the vertices of W of <vertex, z>

The vertices are enumerated once (by Qhull, within the smallest affine space that holds W), so that
gaps are maxima, radii are unions over vertices and compiled loops compare products. Programs hold
the inequalities themselves, which are far fewer.

*Cost*: a box over n costs has 2^n vertices, a simplex with ratios of prices n. Polytopes with more
than `MOST_VERTICES` are refused.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, comb, floor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, Matrix, assign, dense, read_only, real_array
from journeyman.costs.cost_class import (
    HULL,
    CostClass,
    KernelForm,
    Rate,
    Totals,
    WeightSet,
    soft_maximum,
    times,
    union_over_costs,
    union_over_points,
)
from journeyman.errors import InvalidCosts

MOST_VERTICES = 20_000
HARDEST = 400_000
"""No polytope is enumerated of which the upper bound theorem allows more vertices than this."""
ROUNDING = 1e-9
"""Relative to the size of the weights: slacks below are none, points as close are one."""
MERGED = 1e-11
"""Vertices closer than this, in units of their costs, are one."""
THINNEST = 1e-6
"""A polytope is flat, or at least so thick, in units of its costs."""
MOST_UNLIKE = 1e3
"""Between the largest weights of two costs: what is computed in common units resolves no more."""
BLOCK = 1 << 14
"""Rows of a cost basis that are weighed at a time."""


@dataclass(frozen=True, eq=False, init=False)
class Polytope(CostClass):
    """A w <= b: one row for each thing that is known about the weights.

    Args:
        rows: A, (rows x costs).
        limits: b, one for each row.

    W must be bounded and not empty, which is checked. There is no scale: write it into the rows.

    >>> # collision, delay: a collision costs at least ten times a delay; weights add up to 1
    >>> prices = Polytope([[-1, 10], [-1, 0], [0, -1], [1, 1], [-1, -1]], [0, 0, 0, 1, -1])
    >>> prices.vertices.round(3).tolist()
    [[0.909, 0.091], [1.0, 0.0]]
    >>> round(prices.gap([-0.1, 0.5]), 3)
    -0.045
    """

    name: ClassVar[str] = "polytope"
    bears_clipping: ClassVar[bool] = False

    rows: FloatArray
    limits: FloatArray
    vertices: FloatArray
    """(vertices x costs), in lexicographic order."""

    def __init__(self, rows: ArrayLike, limits: ArrayLike) -> None:
        A = real_array("rows", rows, ndim=2, refusal=InvalidCosts)
        b = real_array("limits", limits, ndim=1, size=A.shape[0], refusal=InvalidCosts)
        if 0 in A.shape:
            raise InvalidCosts(f"rows have shape {A.shape}", "Give at least one row and one cost")
        assign(self, rows=A, limits=b, vertices=np.zeros((0, A.shape[1])))
        assign(self, vertices=read_only(_vertices(A, b)))
        idle = np.abs(self.vertices).max(axis=0) == 0
        if idle.any():
            raise InvalidCosts(
                f"the weight of cost {int(np.argmax(idle))} is zero in all of the polytope",
                "Leave the cost out of the basis",
            )

    @property
    def contains_zero(self) -> bool:
        return bool((self.limits >= 0).all())

    def scaling(self, num_costs: int) -> FloatArray:
        if num_costs != self.rows.shape[1]:
            raise InvalidCosts(
                f"the rows of the polytope have {self.rows.shape[1]} entries, the basis has "
                f"{num_costs} costs",
                "Give one column per cost",
            )
        return np.asarray(np.abs(self.vertices).max(axis=0))

    def gap(self, difference: ArrayLike) -> float:
        return float(self._products(difference).max())

    def row_gaps(self, matrix: Matrix) -> FloatArray:
        self.scaling(matrix.shape[1])
        parts = range(0, matrix.shape[0], BLOCK)
        found = [np.asarray(matrix[at : at + BLOCK] @ self.vertices.T).max(axis=1) for at in parts]
        return np.concatenate(found)

    def worst_case(self, difference: ArrayLike) -> FloatArray:
        return np.array(self.vertices[int(np.argmax(self._products(difference)))])

    def admit(self, weights: ArrayLike) -> FloatArray:
        """Moved to the plane of the polytope, then towards its middle until it is inside."""
        w = np.asarray(weights, dtype=float)
        self.scaling(w.size)
        if (self.rows @ w <= self.limits).all():
            return w
        middle, plane = self._middle, self._plane
        away = w - middle
        away = away - plane.T @ (plane @ away)
        outwards, room = self._inner @ away, self._inner_limits - self._inner @ middle
        beyond = outwards > room
        share = float((room[beyond] / outwards[beyond]).min(initial=1.0))
        return np.asarray(middle + share * away)

    def largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        for end in (low, high):
            self.scaling(np.size(end))
        ends = np.maximum(times(self.vertices, low), times(self.vertices, high))
        return float(ends.sum(axis=1).max())

    def least_gap(self, low: FloatArray, high: FloatArray) -> float:
        """min_z max_w <w, z> is at least max_w min_z <w, z>."""
        for end in (low, high):
            self.scaling(np.size(end))
        ends = np.minimum(times(self.vertices, low), times(self.vertices, high))
        return float(ends.sum(axis=1).max())

    def pointwise_bound(self, matrix: Matrix) -> float:
        self.scaling(matrix.shape[1])
        largest = 0.0
        for start in range(0, matrix.shape[0], BLOCK):
            costs = np.asarray(matrix[start : start + BLOCK] @ self.vertices.T)
            largest = max(largest, float(np.abs(costs).max()))
        return largest

    def image_bound(self, matrix: Matrix) -> float:
        return float(np.linalg.norm(dense(matrix) @ self.vertices.T, axis=0).max())

    def extreme_rows(self, lowest: FloatArray, highest: FloatArray, largest: float) -> FloatArray:
        """For every vertex the corners of the ranges in which its cost is largest and least."""
        self.scaling(lowest.size)
        up = np.where(self.vertices > 0, highest, lowest)
        down = np.where(self.vertices > 0, lowest, highest)
        return np.unique(np.vstack([lowest, highest, up, down]), axis=0)

    def quadratic_bound(self, spread: FloatArray) -> tuple[FloatArray, float]:
        """|<w, x>| <= sqrt(sum_i s_i w_i^2) sqrt(sum_i x_i^2/s_i) for every vertex w; the better of
        s as for the infinity ball and s as for the Euclidean one."""
        scale = self.scaling(spread.size)
        choices = []
        for weights in (spread / scale, 1 / scale**2):
            factor = float(np.sqrt((self.vertices**2 @ weights).max()))
            choices.append((factor * float(np.linalg.norm(spread / np.sqrt(weights))), factor))
        best = int(choices[1][0] < choices[0][0])
        return (spread / scale, 1 / scale**2)[best], choices[best][1]

    def probes(self, num_costs: int) -> tuple[FloatArray, ...]:
        self.scaling(num_costs)
        return (self.vertices,)

    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        return (
            union_over_points(totals, self.vertices, delta, two_sided=two_sided),
            union_over_costs(totals, self, delta),
        )

    def smoothed(self, difference: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """r the least entropy of shares of vertices that make w: softmax over the vertices."""
        value, shares = soft_maximum(self.vertices @ difference, temperature)
        return value, np.asarray(shares @ self.vertices)

    def smoothing_error(self, num_costs: int) -> float:
        return max(float(np.log(len(self.vertices))), 0.1)

    def weight_set(self, num_costs: int) -> WeightSet:
        """v are the weights and the slacks of the rows; rows without slack are equations."""
        self.scaling(num_costs)
        inner, plane = self._inner, self._plane
        count, slacks = num_costs, len(inner)
        room = self._inner_limits - self.vertices @ inner.T
        low, high = self.vertices.min(axis=0), self.vertices.max(axis=0)
        implied = np.arange(count + slacks) < count
        return WeightSet(
            np.zeros(count), np.hstack([np.eye(count), np.zeros((count, slacks))]),
            np.concatenate([low, np.zeros(slacks)]),
            np.concatenate([high, np.maximum(room.max(axis=0), 0.0)]),
            implied, np.ones(count + slacks, dtype=bool),
            np.vstack([
                np.hstack([inner, np.eye(slacks)]),
                np.hstack([plane, np.zeros((len(plane), slacks))]),
            ]),
            np.concatenate([self._inner_limits, plane @ self._middle]),
            rows=_Slacks(self),
        )  # fmt: skip

    def kernel_form(self, num_costs: int) -> KernelForm:
        scale = self.scaling(num_costs)
        return KernelForm(HULL, scale, np.zeros(num_costs), self.vertices)

    def parameters(self) -> dict[str, Any]:
        return {"rows": self.rows.tolist(), "limits": self.limits.tolist()}

    def _products(self, difference: ArrayLike) -> FloatArray:
        z = np.asarray(difference, dtype=float)
        self.scaling(z.size)
        return np.asarray(self.vertices @ z)

    @cached_property
    def _middle(self) -> FloatArray:
        """The mean of the vertices: inside of every row that has slack."""
        return np.asarray(self.vertices.mean(axis=0))

    @cached_property
    def _has_slack(self) -> np.ndarray:
        """Which rows are not met with equality in all of W."""
        norms = np.linalg.norm(self.rows, axis=1)
        slack = (self.limits - self.vertices @ self.rows.T).max(axis=0)
        return np.asarray(slack > ROUNDING * norms * _size(self.vertices))

    @cached_property
    def _inner(self) -> FloatArray:
        return np.asarray(self.rows[self._has_slack])

    @cached_property
    def _inner_limits(self) -> FloatArray:
        return np.asarray(self.limits[self._has_slack])

    @cached_property
    def _plane(self) -> FloatArray:
        """Orthonormal directions in which W does not extend."""
        away = self.vertices - self._middle
        _, sizes, directions = np.linalg.svd(away, full_matrices=len(away) < away.shape[1])
        extends = np.zeros(len(directions), dtype=bool)
        extends[: sizes.size] = sizes > ROUNDING * _size(self.vertices)
        return np.asarray(directions[~extends])


@dataclass(frozen=True, eq=False)
class _Slacks:
    """What programs ask about (w, slacks)."""

    polytope: Polytope

    def support(self, pulled: FloatArray) -> float:
        return self.polytope.gap(pulled[: self.polytope.rows.shape[1]])

    def admit(self, v: FloatArray) -> FloatArray:
        return self._with_slacks(self.polytope.admit(v[: self.polytope.rows.shape[1]]))

    def middle(self) -> FloatArray:
        return self._with_slacks(self.polytope._middle)

    def _with_slacks(self, w: FloatArray) -> FloatArray:
        slacks = self.polytope._inner_limits - self.polytope._inner @ w
        return np.concatenate([w, np.maximum(slacks, 0.0)])


def _vertices(A: FloatArray, b: FloatArray) -> FloatArray:
    """All vertices, after it was proven that W is bounded and not empty.

    They are sought in units of the largest weight of each cost, and rows of norm one: tolerances
    are relative to these. What they cannot resolve is refused, because a vertex that is lost would
    make gaps too small.
    """
    norms = np.linalg.norm(A, axis=1)
    if (b[norms == 0] < 0).any():
        raise InvalidCosts(
            f"row {int(np.argmax((norms == 0) & (b < 0)))} is zero and its limit negative",
            "No weights satisfy it: take it back",
        )
    A, b = A[norms > 0] / norms[norms > 0, np.newaxis], b[norms > 0] / norms[norms > 0]
    low, high = _bounds(A, b)
    units = np.maximum(np.abs(low), np.abs(high))
    units[units == 0] = 1.0
    if units.max() > MOST_UNLIKE * units.min():
        least, most = int(np.argmin(units)), int(np.argmax(units))
        raise InvalidCosts(
            f"the weight of cost {most} reaches {units[most]:.3g}, that of cost {least} no more "
            f"than {units[least]:.3g}: too different for exact vertices",
            f"Express the costs in units in which their weights are alike: multiply column {least} "
            "of the basis and divide its weights, or the other way round",
        )
    A = A * units
    norms = np.linalg.norm(A, axis=1)
    A, b = A / norms[:, np.newaxis], b / norms
    least_of_rows = np.array([_extreme(row, A, b)[0] for row in A])
    slack = b - least_of_rows
    has_slack = slack > ROUNDING
    if (has_slack & (slack < THINNEST)).any():
        raise InvalidCosts(
            "the polytope is too thin: its vertices cannot be distinguished from rounding",
            "Replace rows that nearly meet by one equation, written as two rows",
        )
    point = _inside(A, b, has_slack)
    directions = np.eye(A.shape[1])
    if not has_slack.all():
        _, sizes, basis = np.linalg.svd(A[~has_slack])
        rank = int((sizes > ROUNDING).sum())
        directions = basis[rank:]
    found = _enumerated(A[has_slack], b[has_slack], point, directions)
    _, first = np.unique(np.round(found / MERGED), axis=0, return_index=True)
    found = found[first]
    _require_complete(found, A, low / units, high / units, least_of_rows)
    return np.where(np.abs(found) <= 1e-15, 0.0, found) * units


def _bounds(A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least and the largest weight of every cost."""
    ends = []
    for cost in range(A.shape[1]):
        for sign in (1.0, -1.0):
            towards = np.zeros(A.shape[1])
            towards[cost] = sign
            value, status = _extreme(towards, A, b)
            if status == 2:
                raise InvalidCosts(
                    "no weights satisfy all rows of the polytope",
                    "Take back a row, or check the signs: every row says row @ weights <= limit",
                )
            if status != 0:
                word = "falls" if sign > 0 else "grows"
                raise InvalidCosts(
                    f"the polytope is unbounded: the weight of cost {cost} {word} without end",
                    "Add a row that bounds it, for example weights that add up to one",
                )
            ends.append(sign * value)
    return np.array(ends[::2]), np.array(ends[1::2])


def _extreme(towards: FloatArray, A: FloatArray, b: FloatArray) -> tuple[float, int]:
    """The least <towards, w> over W, and the status of the program that found it."""
    from scipy.optimize import linprog

    found = linprog(towards, A_ub=A, b_ub=b, bounds=(None, None), method="highs")
    if found.status in (2, 3, 4):  # not every presolve says which of both
        empty = linprog(0 * towards, A_ub=A, b_ub=b, bounds=(None, None), method="highs").status
        return np.nan, 2 if empty == 2 else 3
    return float(found.fun), int(found.status)


def _inside(A: FloatArray, b: FloatArray, has_slack: np.ndarray) -> FloatArray:
    """The middle of a ball of radius 1, or the largest, within the rows that have no slack."""
    from scipy.optimize import linprog

    norms = np.where(has_slack, np.linalg.norm(A, axis=1), 0.0)
    found = linprog(
        np.append(np.zeros(A.shape[1]), -1.0), A_ub=np.column_stack([A, norms]), b_ub=b,
        bounds=[(None, None)] * A.shape[1] + [(0, 1)], method="highs",
    )  # fmt: skip
    return np.asarray(found.x[:-1])


def _enumerated(
    A: FloatArray, b: FloatArray, point: FloatArray, directions: FloatArray
) -> FloatArray:
    """Vertices of { point + directions' u : A w <= b }, where `point` lies inside."""
    dimension = len(directions)
    if dimension == 0:
        return point[np.newaxis]
    slopes, room = A @ directions.T, b - A @ point
    moving = np.abs(slopes).max(axis=1) > 0
    slopes, room = slopes[moving], room[moving]
    if dimension == 1:
        up, down = slopes[:, 0] > 0, slopes[:, 0] < 0
        ends = (room[up] / slopes[up, 0]).min(), (room[down] / slopes[down, 0]).max()
        return point + np.outer(ends, directions[0])
    _require_few(len(room), dimension)
    from scipy.spatial import HalfspaceIntersection, QhullError

    try:
        found = HalfspaceIntersection(np.column_stack([slopes, -room]), np.zeros(dimension))
    except QhullError as fault:
        raise InvalidCosts(
            "the vertices of the polytope could not be enumerated",
            "It may be too thin: replace rows that nearly meet by one",
        ) from fault
    points = found.intersections[np.isfinite(found.intersections).all(axis=1)]
    if len(points) > 4 * MOST_VERTICES:
        _refuse_many()
    return np.asarray(point + points @ directions)


def _require_few(rows: int, dimension: int) -> None:
    """McMullen's bound on the number of vertices."""
    most = comb(rows - ceil(dimension / 2), floor(dimension / 2))
    most += comb(rows - floor(dimension / 2) - 1, ceil(dimension / 2) - 1)
    if most > HARDEST:
        _refuse_many()


def _refuse_many() -> None:
    raise InvalidCosts(
        f"the polytope may have more than {MOST_VERTICES:,} vertices",
        "Use fewer rows or costs; a PriorBall or InfinityBall bounds each weight by itself",
    )


def _require_complete(
    found: FloatArray, A: FloatArray, low: FloatArray, high: FloatArray, least: FloatArray
) -> None:
    """The vertices reach as far as linear programs do, in the directions of costs and rows."""
    if len(found) > MOST_VERTICES:
        _refuse_many()
    reached = np.concatenate([found.min(axis=0), -found.max(axis=0), (A @ found.T).min(axis=1)])
    wanted = np.concatenate([low, -high, least])
    if (np.abs(reached - wanted) > 1e3 * ROUNDING).any():
        raise InvalidCosts(
            "the vertices of the polytope could not be enumerated exactly",
            "Bring the rows to similar sizes",
        )


def _size(points: FloatArray) -> float:
    return float(np.abs(points).max()) or 1.0
