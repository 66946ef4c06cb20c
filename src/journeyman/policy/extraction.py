"""The policy of a measure.

    pi_u(a | x) = u+(x, a) / sum_b u+(x, b),      uniform where u(x, .) <= 0

where u+ is the positive part. For an occupancy measure this inverts the map from policies to
measures (Proposition 1); for any other u Lemma 2 bounds how far the policy's occupancy is from u.
"""

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, real_array
from journeyman.errors import InvalidPolicy
from journeyman.policy.policy import Policy
from journeyman.world import World


def extract(world: World, measure: ArrayLike) -> Policy:
    """The policy of a vector over the pairs of `world`.

    >>> world = World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2])
    >>> extract(world, [3.0, -1.0]).probabilities([0]).tolist()
    [[1.0, 0.0]]
    """
    u = real_array("measure", measure, ndim=1, size=world.num_pairs, refusal=InvalidPolicy)
    positive = np.maximum(u, 0.0)
    peak = _largest(world, positive)
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = positive / world.pairs.spread(peak)
        probabilities = scaled / world.pairs.spread(world.pairs.total(scaled))
    unreached = world.pairs.spread(peak) == 0
    uniform = world.pairs.uniform
    return Policy(np.where(unreached, uniform, probabilities), world.pairs)


def _largest(world: World, positive: FloatArray) -> FloatArray:
    """Largest entry per state: dividing by it first keeps tiny measures exact."""
    return -world.pairs.smallest(-positive)
