"""Engine replacement: keep a bus running or replace its engine, month by month.

    wear' = min(wear + o, bins - 1)  after keeping,   o  after replacing,      o ~ increments

Wear is the mileage since the last replacement, in bins. Keeping costs wear (0.001 a bin), replacing
a fixed amount. The expert is the logit choice of a superintendent who minimises expected discounted
costs plus independent Gumbel noise of temperature 1: soft-optimal for the given weights. A panel of
buses is a record of it, `jm.record(world, expert, trajectories=buses, horizon=months, seed=0)`.

What it shows: a law that all pairs share (`jm.world.SharedLaws`), a discount near one, and costs
recovered from choices.

Reference: Rust, "Optimal replacement of GMC bus engines", Econometrica 55 (1987); the defaults are
of the size that it reports.
"""

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import real_array
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery.example import Example
from journeyman.policy import soft_plan
from journeyman.world import SharedLaws, World
from journeyman.world.laws import probability_vector

KEEP, REPLACE = 0, 1
PER_BIN = 0.001


def engine_replacement(
    bins: int = 90,
    *,
    increments: ArrayLike = (0.35, 0.64, 0.01),
    weights: ArrayLike = (2.6, 9.8),
    discount: float = 0.9999,
) -> Example:
    """Keep or replace, with `bins` levels of wear.

    Args:
        increments: probabilities that wear grows by 0, 1, 2, ... bins in a month.
        weights: of the costs `wear` and `replacement` in the expert's choices.

    >>> world, basis, expert = engine_replacement(20, discount=0.95)
    >>> world.num_pairs, basis.names
    (40, ('wear', 'replacement'))
    >>> bool(expert.probabilities([19])[0, 1] > expert.probabilities([0])[0, 1])
    True
    """
    if not isinstance(bins, int | np.integer) or bins < 2:
        raise InvalidWorld(f"bins = {bins!r}", "Give a whole number from 2")
    sizes = real_array("increments", increments, ndim=1, refusal=InvalidWorld)
    law = probability_vector("increments", sizes, sizes.size)
    theta = real_array("weights", weights, ndim=1, size=2, refusal=InvalidWorld)
    rule = SharedLaws.increments(
        bins, np.arange(law.size), num_actions=2, resets={REPLACE: 0}
    )  # fmt: skip
    wear, action = (part.ravel() for part in np.indices((bins, 2)))
    world = World(
        rule.laws(wear, action, law[np.newaxis]),
        np.eye(bins)[0],
        discount,
        coordinates=np.arange(bins, dtype=float)[:, np.newaxis],
        action_names=("keep", "replace"),
    )
    kept = action == KEEP
    basis = CostBasis(
        np.column_stack([PER_BIN * wear * kept, ~kept]).astype(float), ["wear", "replacement"]
    )
    return Example(world, basis, soft_plan(world, basis.matrix @ theta).policy)
