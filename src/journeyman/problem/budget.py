"""Budgets: limits on known secondary costs, such as safety constraints.

<mu, d> = E sum_t discount^t d(x_t, a_t) <= b
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, assign, plain_array, real_array, require_between
from journeyman.costs import CostFunctions
from journeyman.errors import InvalidCosts
from journeyman.world import World


@dataclass(frozen=True, eq=False, init=False)
class Budget:
    """An upper limit on the expected discounted total of a known cost.

    Args:
        cost: d, per pair, per state, or as a (states x actions) table with a column for every
            action number; entries of actions that a state lacks are left out. In a world too
            large for that, `CostFunctions` with one cost.
        at_most: b, in discounted units: a limit of r per step is r / (1 - discount).
        name: for people.

    >>> Budget(cost=[0.0, 1.0], at_most=2.5, name="wear").at_most
    2.5
    """

    cost: FloatArray
    """Where the budget has a function, the ends of its range."""
    at_most: float
    name: str
    function: CostFunctions | None

    def __init__(
        self, cost: ArrayLike | CostFunctions, at_most: float, name: str = "budget"
    ) -> None:
        what, function = f"cost of budget {name!r}", None
        if isinstance(cost, CostFunctions):
            function, cost = cost, [cost.lowest[0], cost.highest[0]]
            if function.num_costs != 1:
                raise InvalidCosts(
                    f"the {what} is a function of {function.num_costs} costs",
                    "Give CostFunctions with one cost, and several budgets for several",
                )
        axes = 2 if plain_array(what, cost, InvalidCosts).ndim == 2 else 1
        values = real_array(what, cost, ndim=axes, refusal=InvalidCosts)
        if not values.size:
            raise InvalidCosts(f"the {what} is empty", "Give one entry per pair")
        limit = require_between(
            f"at_most of budget {name!r}", at_most, -np.inf, np.inf, InvalidCosts,
            "Give a finite number, and leave out a budget without a limit",
        )  # fmt: skip
        assign(self, cost=values, at_most=limit, name=name, function=function)

    @property
    def size(self) -> float:
        """max |d|."""
        return float(np.abs(self.cost).max())

    @property
    def span(self) -> float:
        """max d - min d."""
        return float(self.cost.max() - self.cost.min())

    def fitted(self, world: World) -> "Budget":
        """The same budget without entries of pairs that `world` does not offer."""
        shapes = ((world.num_pairs,), (world.num_states,))
        fits = world.pairs.is_complete or self.cost.shape in shapes
        if self.function is None and fits:
            return self
        return Budget(self.on(world), self.at_most, self.name)

    def on(self, world: World) -> FloatArray:
        """The cost with one entry per pair of `world`."""
        if self.function is not None:
            return self.function.at(world.pairs.states, world.pairs.actions)[:, 0]
        return world.pairs.flattened(f"cost of budget {self.name!r}", self.cost, InvalidCosts)
