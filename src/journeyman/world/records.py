"""A world of which nothing is known but records: how costs count, and in which range they lie.

    E sum_t discount^t c_t,     lowest <= c_t <= highest,     c_t = 0 once an episode has ended

Costs may depend on anything, on what is not observed and on the past too. All that is declared is
their range; zero always belongs to it, because a policy may end its episodes where the expert went
on, or go on where the expert ended. No law is known and nothing can be drawn, so nothing can be
planned here; `jm.certify` compares a policy with recorded actions (`certificate.agreement`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray, assign, read_only
from journeyman.errors import InvalidCosts, InvalidProblem
from journeyman.world.laws import discount as checked_discount

COST = "any cost in the declared range"


@dataclass(frozen=True, init=False, repr=False)
class Records:
    """What has to be declared where there are nothing but records.

    Args:
        discount: by which the costs of later steps count less.
        cost_range: the least and the greatest cost of a step; zero, the cost after an end, is added
            where it lies outside.
        use_probabilities: take the expert's logged probabilities into account
            (`Demonstrations.probabilities`). They must be conditional on *everything* the expert
            acted on: those of a model fitted to the records, or averaged over something that the
            expert saw and the record does not hold, make the bound false.

    >>> world = Records(discount=0.95, cost_range=(0, 1))
    >>> world, world.spread
    (Records(discount 0.95, costs from 0 to 1), 1.0)
    """

    discount: float
    cost_range: tuple[float, float]
    use_probabilities: bool

    def __init__(
        self, discount: float, cost_range: tuple[float, float], *, use_probabilities: bool = False
    ) -> None:
        try:
            low, high = (float(end) for end in cost_range)
        except (TypeError, ValueError):
            raise InvalidCosts(
                f"cost_range = {cost_range!r}", "Give the least and the greatest cost of a step"
            ) from None
        if not (np.isfinite([low, high]).all() and low <= high):
            raise InvalidCosts(
                f"cost_range = ({low}, {high})", "Give two finite numbers, the smaller one first"
            )
        if low == high == 0:
            raise InvalidCosts(
                "cost_range = (0, 0): nothing costs anything", "Give a range with another cost"
            )
        if not isinstance(use_probabilities, bool):
            raise InvalidProblem(
                f"use_probabilities = {use_probabilities!r}",
                "Give True to use Demonstrations.probabilities, which hold the numbers",
            )
        assign(
            self, discount=checked_discount(discount), use_probabilities=use_probabilities,
            cost_range=(min(low, 0.0), max(high, 0.0)),
        )  # fmt: skip

    @property
    def effective_horizon(self) -> float:
        """1/(1 - discount)."""
        return 1.0 / (1.0 - self.discount)

    @property
    def spread(self) -> float:
        """S: by how much the costs of two steps differ at most."""
        return self.cost_range[1] - self.cost_range[0]

    # As costs of a problem: one cost, which may be any within the range.

    @property
    def names(self) -> tuple[str, ...]:
        return (COST,)

    @cached_property
    def lowest(self) -> FloatArray:
        return read_only(np.array(self.cost_range[:1]))

    @cached_property
    def highest(self) -> FloatArray:
        return read_only(np.array(self.cost_range[1:]))

    def __repr__(self) -> str:
        low, high = self.cost_range
        logged = ", the expert's probabilities logged" if self.use_probabilities else ""
        return f"Records(discount {self.discount:g}, costs from {low:g} to {high:g}{logged})"
