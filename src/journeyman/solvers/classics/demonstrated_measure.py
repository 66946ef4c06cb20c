"""The occupancy measure of demonstrations: how often, discounted, each pair was seen.

    mu^_E(x, a) = c mean over episodes of sum_t discount^t 1{x_t = x, a_t = a}

with c such that the mass is 1/(1 - discount). A terminated episode rests in its last state for
ever; what the expert does there is not recorded and does not matter, so all actions of that state
share the mass. What is missing of truncated episodes is spread over everything that was seen.
"""

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.demonstrations import Demonstrations
from journeyman.world import World


def demonstrated_measure(demos: Demonstrations, world: World) -> FloatArray:
    """The empirical occupancy measure per pair of `world`.

    >>> world = World([[0, 1], [0, 1]], [1, 0], 0.5)
    >>> demonstrated_measure(Demonstrations([0, 1], [0], [0, 1], [True]), world).tolist()
    [1.0, 1.0]
    """
    weights = world.discount ** demos.step_times.astype(float)
    seen = np.bincount(demos.pairs_in(world), weights, minlength=world.num_pairs)
    rest = world.discount ** demos.lengths.astype(float) * world.effective_horizon
    kept = np.where(demos.terminated, rest, 0.0)
    resting = np.asarray(np.bincount(demos.last_states, kept, world.num_states), dtype=float)
    measure = seen + world.pairs.spread(resting) * world.pairs.uniform
    return np.asarray(measure * (world.effective_horizon / measure.sum()))
