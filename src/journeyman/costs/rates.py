"""Radii of estimated expectations: bounds that fall like 1/sqrt(m), whatever the data are.

    P( gap_W(+-(estimate - truth)) > s(m, delta) ) <= delta         s = scale(delta)/sqrt(m)

for the mean of m independent trajectories. Every cost class has its own (`CostClass.rates`).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray
from journeyman.costs.basis import CostBasis
from journeyman.errors import InvalidProblem

if TYPE_CHECKING:
    from journeyman.costs.cost_class import CostClass

BLOCK = 1 << 16
"""Rows of a basis that are weighed at a time."""


@dataclass(frozen=True)
class Rate:
    """A bound that falls like scale/sqrt(count).

    >>> rate = Rate("union", 3.0, "3/sqrt(m)")
    >>> rate.at(9), rate.smallest(1.0), rate.smallest(0.999)
    (1.0, 9, 10)
    """

    name: str
    scale: float
    formula: str

    def at(self, count: int) -> float:
        """The bound after `count` trajectories or steps."""
        return self.scale / math.sqrt(count)

    def smallest(self, target: float) -> int:
        """The least count with `at(count) <= target`."""
        guess = (self.scale / target) ** 2 if self.scale < 1e150 * target else math.inf
        if not math.isfinite(guess):
            raise InvalidProblem(
                f"no finite number brings the {self.name} bound to {target:.3g}",
                "Ask for a larger accuracy",
            )
        low, high = math.floor(guess * (1 - 1e-12)), math.ceil(guess * (1 + 1e-12)) + 1
        low = max(0, low - 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.at(middle) <= target else (middle, high)
        return high


@dataclass(frozen=True, eq=False)
class Totals:
    """What is known of one trajectory's discounted totals: costs, and h = 1/(1 - discount)."""

    basis: CostBasis
    horizon: float

    @property
    def num_costs(self) -> int:
        return self.basis.num_costs

    def ranges(self, scale: FloatArray) -> FloatArray:
        """R_i = (max psi_i - min psi_i) h, times the scale of each cost."""
        return np.asarray(self.horizon * scale * (self.basis.highest - self.basis.lowest))

    def norm(self, cost_class: "CostClass") -> float:
        """N h, N after the best of two constants was subtracted from each cost."""
        return self.horizon * cost_class.centred_bound(self.basis)

    def ranges_of(self, points: FloatArray) -> FloatArray:
        """(max c_w - min c_w) h of every row w of `points`."""
        matrix = self.basis.matrix
        low, high = np.full(len(points), np.inf), np.full(len(points), -np.inf)
        for start in range(0, matrix.shape[0], BLOCK):
            rows = matrix[start : start + BLOCK]
            costs = np.asarray((rows.toarray() if sparse.issparse(rows) else rows) @ points.T)
            low, high = np.minimum(low, costs.min(axis=0)), np.maximum(high, costs.max(axis=0))
        return np.asarray(self.horizon * (high - low))


def union_over_points(totals: Totals, points: FloatArray, delta: float, *, two_sided: bool) -> Rate:
    """max_k R_k sqrt(log(K/delta)/(2m)): Hoeffding's inequality for each of K weights, at once.

    The gap of a polytope is attained at one of its K vertices w_k, and R_k is the range of the
    total cost <w_k, .>; both signs need 2K.
    """
    events, name = (2, "2K") if two_sided else (1, "K")
    widest = float(totals.ranges_of(points).max())
    scale = widest * math.sqrt(math.log(events * len(points) / delta) / 2)
    return Rate("vertices", scale, f"max_k R_k sqrt(log({name}/delta)/(2m))")


def union_over_costs(totals: Totals, cost_class: "CostClass", delta: float) -> Rate:
    """sup_w sum_i |w_i| R_i sqrt(log(2n/delta)/(2m)): every cost within its own radius, at once."""
    ranges = totals.ranges(np.ones(totals.num_costs))
    scale = cost_class.largest_gap(-ranges, ranges)
    scale *= math.sqrt(math.log(2 * totals.num_costs / delta) / 2)
    return Rate("union", scale, "max_w sum_i |w_i| R_i sqrt(log(2n/delta)/(2m))")
