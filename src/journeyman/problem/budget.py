"""Budgets: limits on known secondary costs, such as safety constraints.

<mu, d> = E sum_t discount^t d(x_t, a_t) <= b
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, real_array
from journeyman.errors import InvalidCosts
from journeyman.frozen import assign
from journeyman.world import World


@dataclass(frozen=True, eq=False, init=False)
class Budget:
    """An upper limit on the expected discounted total of a known cost.

    Args:
        cost: d, per pair or per state.
        at_most: b, in discounted units: a limit of r per step is r / (1 - discount).
        name: for people.

    >>> Budget(cost=[0.0, 1.0], at_most=2.5, name="wear").at_most
    2.5
    """

    cost: FloatArray
    at_most: float
    name: str

    def __init__(self, cost: ArrayLike, at_most: float, name: str = "budget") -> None:
        vector = real_array(f"cost of budget {name!r}", cost, ndim=1, refusal=InvalidCosts)
        if not vector.size:
            raise InvalidCosts(f"the cost of budget {name!r} is empty", "Give one entry per pair")
        try:
            limit = float(at_most)
        except (TypeError, ValueError):
            limit = np.nan
        if not np.isfinite(limit):
            raise InvalidCosts(
                f"budget {name!r} has at_most = {at_most!r}",
                "Give a finite number, and leave out a budget without a limit",
            )
        assign(self, cost=vector, at_most=limit, name=name)

    @property
    def size(self) -> float:
        """max |d|."""
        return float(np.abs(self.cost).max())

    @property
    def span(self) -> float:
        """max d - min d."""
        return float(self.cost.max() - self.cost.min())

    def on(self, world: World) -> FloatArray:
        """The cost with one entry per pair of `world`."""
        per_pair: FloatArray = world.pairs.per_pair(
            f"cost of budget {self.name!r}", self.cost, InvalidCosts
        )
        return per_pair
