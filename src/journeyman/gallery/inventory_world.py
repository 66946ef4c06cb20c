"""Inventory over a season: how much to order at the start of every week, until the season ends.

    stock' = max(stock + order - demand, 0),       stock + order <= capacity,       demand ~ Poisson

What is not sold is kept at a cost, what is asked for and not there is lost, and after the last week
nothing counts: a good buyer lets the stock run out. So the expert's orders depend on the week, and
an apprentice that ignores it buys too much at the end. The expert is optimal for weights that the
apprentice does not know, mixed with a share of uniform orders.

What it shows: a world with a horizon (`World.with_horizon`), policies that depend on time, and
totals of an episode without discounting. With one week it is the newsvendor problem, whose solution
is a quantile of demand.

Reference: Arrow, Harris and Marschak, "Optimal inventory policy", Econometrica 19 (1951).
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


def _poisson(mean: float) -> FloatArray:
    """Probabilities of 0, 1, 2, ..., of which the last has all that is beyond."""
    law = [np.exp(-mean)]
    while 1.0 - sum(law) > NEGLIGIBLE and len(law) < 10 * mean + 100:
        law.append(law[-1] * mean / len(law))
    return np.array([*law[:-1], 1.0 - sum(law[:-1])])
