"""What policies can attain of one cost, by policy iteration from scratch.

A blended target is moved to the nearest value that some policy attains. The certificate knows the
ends of that range up to a little beyond them; `TOLERANCE` says how far beyond.
"""

import numpy as np
from numpy.typing import NDArray

from journeyman.auditing.chain import Chain
from journeyman.auditing.inputs import World

Floats = NDArray[np.float64]
TOLERANCE = 1e-6
"""Of h times the span of a cost."""
ROUNDS = 200
TIE = 1e-12
"""Relative: an action that is better by less is not taken."""


def within_range(world: World, cost: Floats, value: float) -> tuple[float, float]:
    """Where `value` comes to lie when it is moved into the range: the end that it is beyond, give
    or take the tolerance; the value itself where it is inside."""
    slack = TOLERANCE * world.horizon * float(np.ptp(cost))
    for sign in (1.0, -1.0):
        end = sign * least(world, sign * cost)
        if sign * value < sign * end:
            return end - slack, end + slack
    return value, value


def least(world: World, cost: Floats) -> float:
    """The smallest expected total of a cost over all policies."""
    chosen = world.first[:-1].copy()
    size = world.horizon * float(np.abs(cost).max())
    for _ in range(ROUNDS):
        policy = np.zeros(world.num_pairs)
        policy[chosen] = 1.0
        values = Chain(world, policy).values(cost[:, np.newaxis])[:, 0]
        ahead = cost + world.discount * (world.rows @ values)
        best = np.minimum.reduceat(ahead, world.first[:-1])
        worse = ahead[chosen] > best + TIE * size
        if not worse.any():
            break
        order = np.lexsort((ahead, world.state_of))
        chosen = np.where(worse, order[world.first[:-1]], chosen)
    return float(world.initial @ values)
