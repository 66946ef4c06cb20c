"""Weights and prices inside their dual set, and Newton's system for them: what interior-point
methods over `dual_set.DualSet` share.

A point of the interior keeps its distances to the bounds (`above`, `below`) and has a multiplier
for each of them (`high`, `low`), for the equations (`total`) and for the ball (`cone`). With the
slope g of what is maximised over v,

    g = high - low + equations' total - ball,    high above = low below = mu,    above, below > 0

on the central path. Newton's steps eliminate all multipliers: one Cholesky factor of the size of v
for a matrix that stands for the curvature behind the slope.

Reference: Mehrotra, "On the implementation of a primal-dual interior point method", 1992.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from journeyman.arrays import FloatArray
from journeyman.solvers.exact.dual_set import DualSet
from journeyman.solvers.norm_cone import ConePoint, ConeStep, Scaling, centre

RIDGE = 1e-14
LEAST_SHARE = 1e-30
"""Of a width: a distance to a bound that rounding has eaten up."""


@dataclass(frozen=True, eq=False)
class WeightChange:
    """A step of v and of all multipliers."""

    v: FloatArray
    high: FloatArray
    low: FloatArray
    total: FloatArray
    cone: ConeStep

    def plus(
        self, other: "WeightChange", along: float = 1.0, across: float = 1.0
    ) -> "WeightChange":
        """With so much of another one for v, and so much for the multipliers."""
        return WeightChange(
            self.v + along * other.v, self.high + across * other.high,
            self.low + across * other.low, self.total + across * other.total,
            ConeStep(
                self.cone.s + along * other.cone.s, self.cone.z + across * other.cone.z
            ),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Products:
    """Wanted changes of the products of distances and multipliers."""

    high: FloatArray
    low: FloatArray
    cone: FloatArray


@dataclass(frozen=True, eq=False)
class InteriorWeights:
    """A point inside the dual set with its multipliers."""

    duals: DualSet
    v: FloatArray
    above: FloatArray
    below: FloatArray
    high: FloatArray
    low: FloatArray
    total: FloatArray
    cone: ConePoint

    @classmethod
    def start(cls, duals: DualSet, slope: FloatArray, size: float) -> "InteriorWeights":
        """The middle, with multipliers that answer a slope and are at least of a size."""
        v, pressure = duals.middle(), slope.copy()
        ball = ball_of(duals)
        cone = centre(-pressure[ball], size)
        pressure[ball] = 0.0
        return cls(
            duals, v, duals.upper - v, v - duals.lower, np.maximum(pressure, 0.0) + size,
            np.maximum(-pressure, 0.0) + size, np.zeros_like(duals.right), cone,
        )  # fmt: skip

    @property
    def product(self) -> float:
        """The sum of all products, which is mu times their number on the central path."""
        return float(self.high @ self.above + self.low @ self.below) + self.cone.product

    @property
    def num_products(self) -> int:
        return 2 * self.v.size + self.duals.is_ball

    @property
    def left(self) -> FloatArray:
        """What the equations lack."""
        if not self.duals.right.size:
            return np.zeros(0)
        return self.duals.totals(self.v) - self.duals.right

    def balance(self, slope: FloatArray) -> FloatArray:
        """What the multipliers lack to answer a slope."""
        missing = self.high - self.low - slope
        missing[ball_of(self.duals)] -= self.cone.z[1:]
        if self.duals.right.size:
            missing += self.duals.spread(self.total)
        return missing

    def emptied(self) -> Products:
        """Aiming at products of zero."""
        cone = -self.cone.z if self.cone.is_there else self.cone.z
        return Products(-self.high * self.above, -self.low * self.below, cone)

    def reach(self, change: WeightChange) -> tuple[float, float]:
        """How far, up to 1, v and the multipliers may follow a step."""
        along, across = self.cone.reach(change.cone)
        along = min(along, longest(self.above, -change.v), longest(self.below, change.v))
        across = min(across, longest(self.high, change.high), longest(self.low, change.low))
        return along, across

    def moved(self, change: WeightChange, along: float, across: float) -> "InteriorWeights":
        step, width = along * change.v, LEAST_SHARE * (self.duals.upper - self.duals.lower)
        return InteriorWeights(
            self.duals, self.v + step, np.maximum(self.above - step, width),
            np.maximum(self.below + step, width), self.high + across * change.high,
            self.low + across * change.low, self.total + across * change.total,
            self.cone.moved(change.cone, along, across),
        )  # fmt: skip


class WeightSystem:
    """Newton's system at a point, factorised; raises `LinAlgError` or `ValueError` when the
    arithmetic has given out."""

    def __init__(self, at: InteriorWeights, slope: FloatArray, matrix: FloatArray) -> None:
        self.at, self.ball = at, ball_of(at.duals)
        self.missing, self.left = at.balance(slope), at.left
        matrix, diagonal = matrix.copy(), np.diag_indices_from(matrix)
        self.from_high, self.from_low = at.high / at.above, at.low / at.below
        matrix[diagonal] += self.from_high + self.from_low
        self.scaling = Scaling(at.cone)
        if at.duals.is_ball:
            self.stiffness = self.scaling.softened(np.eye(at.duals.num_lifted), -1.0)
            matrix[self.ball, self.ball] += self.stiffness
        self.scale = 1 / np.sqrt(np.maximum(matrix[diagonal], np.finfo(float).tiny))
        matrix *= self.scale * self.scale[:, np.newaxis]
        matrix[diagonal] += RIDGE
        self.factor = cho_factor(matrix, overwrite_a=True)
        if self.left.size:
            self.answers = self._solved(at.duals.spread(np.eye(self.left.size)))
            self.totals = np.atleast_2d(at.duals.totals(self.answers))

    def raised(self, goal: float, first: WeightChange) -> Products:
        """Products of `goal`, less what a first step would miss."""
        cone = self.at.cone.z
        if self.at.cone.is_there:
            cone = goal * self.at.cone.inverse - self.scaling.second_order(first.cone)
        return Products(goal + first.high * first.v, goal - first.low * first.v, cone)

    def change(self, wanted: Products, behind: FloatArray, *, repair: bool) -> WeightChange:
        """The step towards wanted products, with a slope that changes by `behind` beside what the
        matrix knows; with `repair` it also answers the slope and meets the equations."""
        at = self.at
        right = behind - wanted.high / at.above + wanted.low / at.below
        right[self.ball] += wanted.cone[1:]
        if repair:
            right -= self.missing
        v = self._solved(right)
        total: FloatArray = np.zeros_like(at.duals.right)
        if total.size:
            surplus = at.duals.totals(v) + repair * self.left
            total = np.asarray(np.linalg.lstsq(self.totals, surplus, rcond=None)[0])
            v = v - self.answers @ total
        pressure = self.stiffness @ v[self.ball] if at.duals.is_ball else v[self.ball]
        return WeightChange(
            v, wanted.high / at.above + self.from_high * v,
            wanted.low / at.below - self.from_low * v, total,
            self.scaling.step(wanted.cone, pressure),
        )  # fmt: skip

    def _solved(self, right: FloatArray) -> FloatArray:
        scale = self.scale if right.ndim == 1 else self.scale[:, np.newaxis]
        return np.asarray(scale * cho_solve(self.factor, scale * right))


def ball_of(duals: DualSet) -> slice:
    """The entries of v that share a ball."""
    return slice(0, duals.num_lifted if duals.is_ball else 0)


def longest(values: FloatArray, step: FloatArray) -> float:
    """The largest part of a step, up to 1, that keeps values nonnegative."""
    shrinking = step < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, float((-values[shrinking] / step[shrinking]).min()))
