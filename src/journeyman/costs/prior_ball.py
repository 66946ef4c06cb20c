"""A ball around prior weights: the prices are roughly known.

    W = { prior + radius u : |u| <= 1 },      gap(z) = <prior, z> + radius gap_ball(z)

where |.| is the norm of a ball. Nothing here asks which: whatever a class is asked, the answer for
this one is made of that for the prior alone and that for the ball.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, Matrix, assign, real_array, require_between
from journeyman.costs.cost_class import Ball, CostClass, KernelForm, Rate, Totals, WeightSet, times
from journeyman.costs.euclidean_ball import EuclideanBall
from journeyman.costs.infinity_ball import InfinityBall
from journeyman.costs.l1_ball import L1Ball
from journeyman.errors import InvalidCosts

NORMS: dict[str, type[Ball]] = {
    "infinity": InfinityBall, "euclidean": EuclideanBall, "l1": L1Ball,
}  # fmt: skip
MOST_CORNERS = 12
"""Costs of a declared range (`CostFunctions`) up to which all its corners are taken."""


@dataclass(frozen=True, eq=False, init=False)
class PriorBall(CostClass):
    """|(w - prior) / scale| <= radius: prices that are known up to a radius.

    Args:
        prior: the weight of each cost as far as it is known.
        radius: how far the weights can be from it, in the norm.
        norm: "infinity" (every price by itself), "euclidean" or "l1" (one price is off), or a ball
            as a value, such as `EuclideanBall(scale)`.
        scale: the unit of each cost's distance; with it the radius is relative, for example
            `PriorBall(prices, 0.2, scale=prices)` for prices that are right to 20 %.

    The smaller the radius, the smaller the bounds: what is known need not be learned. The gap can
    be negative when the zero cost is not within the radius.

    >>> PriorBall([10.0, 1.0], 0.5).gap([0.1, -1.0])
    0.55
    """

    name: ClassVar[str] = "prior-ball"
    bears_clipping: ClassVar[bool] = False

    prior: FloatArray
    radius: float
    ball: Ball

    def __init__(
        self,
        prior: ArrayLike,
        radius: float,
        norm: str | Ball = "infinity",
        scale: ArrayLike | None = None,
    ) -> None:
        weights = real_array("prior", prior, ndim=1, refusal=InvalidCosts)
        if not weights.size:
            raise InvalidCosts("the prior has no weights", "Give one weight per cost")
        size = require_between(
            "radius", radius, 0.0, math.inf, InvalidCosts,
            "Give how far the weights can be from the prior; a cost that is known exactly belongs "
            "to jm.Forward",
        )  # fmt: skip
        if isinstance(norm, Ball):
            if scale is not None:
                raise InvalidCosts(
                    "scale is given beside a norm that is a ball", "Give the scale to the ball"
                )
            ball = norm
        elif isinstance(norm, str) and norm in NORMS:
            ball = NORMS[norm](scale)
        else:
            raise InvalidCosts(
                f"norm = {norm!r}", f"Give one of {', '.join(NORMS)}, or a ball as a value"
            )
        ball.scaling(weights.size)
        assign(self, prior=weights, radius=float(size), ball=ball)

    @property
    def is_round(self) -> bool:  # type: ignore[override]
        return self.ball.is_round

    @property
    def contains_zero(self) -> bool:
        return self.ball.norm(self.prior) <= self.radius

    def scaling(self, num_costs: int) -> FloatArray:
        if num_costs != self.prior.size:
            raise InvalidCosts(
                f"the cost class has {self.prior.size} prior weights, the basis {num_costs} costs",
                "Give one weight per cost",
            )
        return np.asarray(np.abs(self.prior) + self.radius * self.ball.scaling(num_costs))

    def gap(self, difference: ArrayLike) -> float:
        z = np.asarray(difference, dtype=float)
        self.scaling(z.size)
        return float(self.prior @ z) + self.radius * self.ball.gap(z)

    def row_gaps(self, matrix: Matrix) -> FloatArray:
        return np.asarray(matrix @ self.prior) + self.radius * self.ball.row_gaps(matrix)

    def worst_case(self, difference: ArrayLike) -> FloatArray:
        z = np.asarray(difference, dtype=float)
        self.scaling(z.size)
        return self.prior + self.radius * self.ball.worst_case(z)

    def admit(self, weights: ArrayLike) -> FloatArray:
        w = np.asarray(weights, dtype=float)
        self.scaling(w.size)
        if self.ball.norm(w - self.prior) <= self.radius:
            return w
        return self.prior + self.radius * self.ball.admit((w - self.prior) / self.radius)

    def largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        """Both parts at their largest; attained where low = -high."""
        self._require_sizes(low, high)
        known = float(np.maximum(times(self.prior, low), times(self.prior, high)).sum())
        return known + self.radius * self.ball.largest_gap(low, high)

    def least_gap(self, low: FloatArray, high: FloatArray) -> float:
        """Both parts at their least."""
        self._require_sizes(low, high)
        known = float(np.minimum(times(self.prior, low), times(self.prior, high)).sum())
        return known + self.radius * self.ball.least_gap(low, high)

    def _require_sizes(self, *ends: FloatArray) -> None:
        for end in ends:
            self.scaling(np.size(end))

    def pointwise_bound(self, matrix: Matrix) -> float:
        """A ball has both signs: |<prior, row>| + radius gap_ball(row)."""
        known = np.abs(np.asarray(matrix @ self.prior))
        return float((known + self.radius * self.ball.row_gaps(matrix)).max())

    def image_bound(self, matrix: Matrix) -> float:
        known = float(np.linalg.norm(np.asarray(matrix @ self.prior)))
        return known + self.radius * self.ball.image_bound(matrix)

    def extreme_rows(self, lowest: FloatArray, highest: FloatArray, largest: float) -> FloatArray:
        """All corners of the ranges: |<prior, row>| + radius gap_ball(row) is convex in the row."""
        if lowest.size > MOST_CORNERS:
            raise InvalidCosts(
                f"the largest of {lowest.size} costs given by functions is not known for a "
                "PriorBall",
                f"Use at most {MOST_CORNERS} costs, or a cost class without a prior",
            )
        corners = list(product(*zip(lowest, highest, strict=True)))
        return np.unique(np.array(corners), axis=0)

    def quadratic_bound(self, spread: FloatArray) -> tuple[FloatArray, float]:
        """<prior, x> <= sqrt(sum_i s_i prior_i^2) sqrt(sum_i x_i^2/s_i), and the ball's bound."""
        weights, factor = self.ball.quadratic_bound(spread)
        return weights, float(np.sqrt((weights * self.prior**2).sum())) + self.radius * factor

    def probes(self, num_costs: int) -> tuple[FloatArray, ...]:
        """Those of the ball, moved to the prior; where it has none or several groups, the prior
        apart."""
        self.scaling(num_costs)
        groups = self.ball.probes(num_costs)
        if len(groups) == 1:
            return (self.prior + self.radius * groups[0],)
        return (self.prior[np.newaxis], *groups)

    def combined(self, tops: FloatArray) -> float:
        if tops.size == 1:
            return float(tops[0])
        return float(tops[0]) + self.radius * self.ball.combined(tops[1:])

    def axes(self, num_costs: int) -> FloatArray | None:
        round_part = self.ball.axes(num_costs)
        return None if round_part is None else self.radius * round_part

    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        """Half of delta for the total under the prior, R_0 its range, by Hoeffding's inequality;
        half for the ball. gap(e) = <prior, e> + radius gap_ball(e)."""
        events, count = (2, "4") if two_sided else (1, "2")
        width = float(totals.ranges_of(self.prior[np.newaxis])[0])
        known = width * math.sqrt(math.log(2 * events / delta) / 2)
        return tuple(
            Rate(
                f"prior and {rate.name}", known + self.radius * rate.scale,
                f"R_0 sqrt(log({count}/delta)/(2m)) + radius times, with delta/2, {rate.formula}",
            )
            for rate in self.ball.rates(totals, delta / 2, two_sided=two_sided)
        )  # fmt: skip

    def smoothed(self, difference: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        value, weights = self.ball.smoothed(difference, temperature)
        return (
            float(self.prior @ difference) + self.radius * value,
            self.prior + self.radius * weights,
        )

    def smoothing_error(self, num_costs: int) -> float:
        return self.radius * self.ball.smoothing_error(num_costs)

    def weight_set(self, num_costs: int) -> WeightSet:
        self.scaling(num_costs)
        return self.ball.weight_set(num_costs).moved(self.prior, self.radius)

    def kernel_form(self, num_costs: int) -> KernelForm:
        code, scale, _, points = self.ball.kernel_form(num_costs)
        return KernelForm(code, self.radius * scale, self.prior, self.prior + self.radius * points)

    def parameters(self) -> dict[str, Any]:
        norms = {kind.name: norm for norm, kind in NORMS.items()}
        return {
            "prior": self.prior.tolist(), "radius": self.radius, "norm": norms[self.ball.name],
            **self.ball.parameters(),
        }  # fmt: skip
