"""Inventory over a season: how much to order at the start of every week, until the season ends.

    stock' = max(stock + order - demand, 0),       stock + order <= capacity,       demand ~ Poisson

What is not sold is kept at a cost, what is asked for and not there is lost, and after the last week
nothing counts: a good buyer lets the stock run out. So the expert's orders depend on the week, and
an apprentice that ignores it buys too much at the end. The expert is optimal for weights that the
apprentice does not know, mixed with a share of uniform orders.

What it shows: a world with a horizon (`World.with_horizon`), policies that depend on time, and
totals of an episode without discounting. With one week it is the newsvendor problem, whose solution
is a quantile of demand.

`shop` has no season: totals are discounted, every order is possible, and what does not fit in the
evening is thrown away. Its expert follows prices that need not be those of the shop.

Reference: Arrow, Harris and Marschak, "Optimal inventory policy", Econometrica 19 (1951); prices of
`shop`: Junca, Leiva, "Apprenticeship learning with prior beliefs using inverse optimization", 2025.
"""

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, real_array, require_between, require_whole
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery.example import Example
from journeyman.policy import Policy, plan
from journeyman.world import World

NAMES = ("orders", "units", "holding", "lost sales")
NEGLIGIBLE = 1e-12
"""Of demand: larger ones have less probability together."""


def inventory(
    capacity: int = 20,
    weeks: int = 12,
    *,
    mean_demand: float = 6.0,
    weights: ArrayLike = (0.2, 0.3, 0.25, 2.0),
    randomness: float = 0.1,
) -> Example:
    """A season of `weeks` weeks with stocks up to `capacity`, which starts without any.

    Args:
        mean_demand: of a week.
        weights: of the costs `orders` (one for every order), `units` (ordered), `holding` and
            `lost sales` (in units; all but the first in parts of the capacity) in the expert's
            own cost.
        randomness: with which the expert orders anything that there is room for.

    >>> world, basis, expert = inventory(5, weeks=3, mean_demand=2.0)
    >>> world
    World(6 states, 21 pairs, 91 transitions, 3 steps)
    >>> [int(expert.at_step(week).likeliest([0])[0]) for week in range(3)]
    [5, 4, 3]
    """
    most = require_whole("capacity", capacity, 1, InvalidWorld)
    mean = require_between(
        "mean_demand", mean_demand, 0, np.inf, InvalidWorld, "Give a positive number"
    )
    theta = real_array("weights", weights, ndim=1, size=len(NAMES), refusal=InvalidWorld)
    demand = _poisson(mean)
    stock = np.repeat(np.arange(most + 1), np.arange(most + 1, 0, -1))
    offsets = np.concatenate([[0], np.cumsum(np.arange(most + 1, 0, -1))])
    order = np.arange(stock.size) - offsets[stock]
    left = (stock + order)[:, np.newaxis] - np.arange(demand.size)
    laws = np.zeros((stock.size, most + 1))
    np.add.at(laws, (np.arange(stock.size)[:, np.newaxis], np.maximum(left, 0)), demand)
    first = np.zeros(most + 1)
    first[0] = 1.0
    week = World(
        laws, first, 0.99, choice_offsets=offsets,
        state_names=[f"{units} in stock" for units in range(most + 1)],
        action_names=[f"order {units}" for units in range(most + 1)],
    )  # fmt: skip
    costs = np.column_stack([
        order > 0, order / most, np.maximum(left, 0) @ demand / most,
        np.maximum(-left, 0) @ demand / most,
    ])  # fmt: skip
    season, basis = week.with_horizon(weeks, discount=1.0), CostBasis(costs, NAMES)
    best = plan(season, costs @ theta).policy
    return Example(season, basis, best.mixed_with(Policy.uniform(season), randomness))


def shop(
    capacity: int = 15,
    *,
    mean_demand: float = 10.0,
    prices: ArrayLike = (15.0, 3.0, 0.5),
    discount: float = 0.9,
) -> Example:
    """A shop that sells, orders and keeps stock, day by day; all orders up to the capacity.

        stock' = min(max(stock + order - demand, 0), capacity),          demand ~ Poisson

    Args:
        mean_demand: of a day.
        prices: of a unit sold, a unit ordered and a unit kept (stock and order) in the expert's
            eyes, who is optimal for them.

    The costs are in units, and the first is minus the expected sales: prices are their weights.

    >>> world, basis, expert = shop()
    >>> world
    World(16 states, 256 pairs, 3416 transitions, discount 0.9)
    >>> [int(action) for action in expert.likeliest([0, 5, 15])]
    [15, 10, 0]
    """
    most = require_whole("capacity", capacity, 1, InvalidWorld)
    mean = require_between(
        "mean_demand", mean_demand, 0, np.inf, InvalidWorld, "Give a positive number"
    )
    own = real_array("prices", prices, ndim=1, size=3, refusal=InvalidWorld)
    demand = _poisson(mean)
    stock = np.repeat(np.arange(most + 1), most + 1)
    order = np.tile(np.arange(most + 1), most + 1)
    left = (stock + order)[:, np.newaxis] - np.arange(demand.size)
    laws = np.zeros((stock.size, most + 1))
    np.add.at(laws, (np.arange(stock.size)[:, np.newaxis], np.clip(left, 0, most)), demand)
    world = World(
        laws, np.full(most + 1, 1 / (most + 1)), discount,
        state_names=[f"{units} in stock" for units in range(most + 1)],
        action_names=[f"order {units}" for units in range(most + 1)],
    )  # fmt: skip
    sold = np.minimum((stock + order)[:, np.newaxis], np.arange(demand.size)) @ demand
    basis = CostBasis(np.column_stack([-sold, order, stock + order]), ("sales", "orders", "stock"))
    return Example(world, basis, plan(world, basis.on(world) @ own).policy)


def _poisson(mean: float) -> FloatArray:
    """Probabilities of 0, 1, 2, ..., of which the last has all that is beyond."""
    law = [np.exp(-mean)]
    while 1.0 - sum(law) > NEGLIGIBLE and len(law) < 10 * mean + 100:
        law.append(law[-1] * mean / len(law))
    return np.array([*law[:-1], 1.0 - sum(law[:-1])])
