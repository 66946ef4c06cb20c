"""What double precision can have hidden of a figure that is a sum over the pairs of a world.

A sum of n products is off by at most n eps/2 times the sum of their sizes, in whatever order it is
made. Expectations, flow residuals and what follows from them are sums over at most `num_pairs`
pairs, the branches of a pair and the features behind a measure, with costs of at most a size:

    2 eps (pairs + branches + features + 8) (1 + |u|_1) size h
"""

import numpy as np

from journeyman.certificate.terms import Term
from journeyman.world import World

EPSILON = float(np.finfo(float).eps)


def rounding_term(
    world: World, mass: float, size: float, formula: str, num_features: int = 0
) -> Term:
    """The term for a measure of the given mass |u|_1 and costs of the given size."""
    branches = int(np.diff(world.transition.indptr).max())
    terms = world.num_pairs + branches + num_features + 8
    value = 2 * EPSILON * terms * (1.0 + mass) * size * world.effective_horizon
    return Term("rounding", value, formula, "double precision")
