"""Sets of costs that need nothing but the world, by name.

state-indicator          one cost per state: how long the state is visited
pair-indicator           one cost per state-action pair
coordinates              the world's own coordinates, each brought to [0, 1]
macro-cells:4            indicators of 4 x 4 (x 4 ...) boxes of its coordinates
time                     1 everywhere but in absorbing states: how long an episode lasts
"""

from collections.abc import Callable, Mapping

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray
from journeyman.costs import CostBasis
from journeyman.errors import InvalidCosts
from journeyman.world import World

MOST_COSTS = 100_000
"""More indicators than this help nobody, and take gigabytes later on."""


def built_in_costs(source: str, world: World) -> CostBasis | None:
    """The set called `source`, or None when there is none of that name."""
    name, _, number = source.partition(":")
    if name == "macro-cells":
        return macro_cells(world, _whole(source, number))
    build = PLAIN.get(source)
    return None if build is None else build(world)


def state_indicators(world: World) -> CostBasis:
    return _indicators(np.arange(world.num_states), world.num_states, "state")


def pair_indicators(world: World) -> CostBasis:
    basis = _indicators(np.arange(world.num_pairs), world.num_pairs, "pair")
    if world.pairs.numbers is None:
        return basis
    return CostBasis(basis.matrix, [world.describe_pair(pair) for pair in range(world.num_pairs)])


def coordinates(world: World) -> CostBasis:
    """Coordinates between 0 and 1."""
    share = _shares(world)
    return CostBasis(share, [f"coordinate {k}" for k in range(share.shape[1])])


def time(world: World) -> CostBasis:
    """Whether the world goes on."""
    going_on = 1.0 - world.absorbing
    if not going_on.any():
        raise InvalidCosts("every state is absorbing, so that time costs nothing", "Give others")
    return CostBasis(going_on[:, np.newaxis], ["time"])


def macro_cells(world: World, number: int) -> CostBasis:
    """Boxes of equal size, `number` along every coordinate; those without a state are left out."""
    share = _shares(world)
    boxes = np.minimum((share * number).astype(np.int64), number - 1)
    cells, place = np.unique(boxes, axis=0, return_inverse=True)
    names = ["cell " + ",".join(str(k) for k in cell) for cell in cells.tolist()]
    basis = _indicators(place.ravel(), len(names), "cell")
    return CostBasis(basis.matrix, names)


def _shares(world: World) -> FloatArray:
    """Coordinates, brought to [0, 1]."""
    if world.coordinates is None:
        raise InvalidCosts(
            "the world has no coordinates", "Give costs from a file, or the world coordinates="
        )
    low, high = world.coordinates.min(axis=0), world.coordinates.max(axis=0)
    return np.asarray((world.coordinates - low) / np.where(high > low, high - low, 1.0))


def _indicators(
    place: np.ndarray[tuple[int, ...], np.dtype[np.int64]], size: int, what: str
) -> CostBasis:
    if size > MOST_COSTS:
        raise InvalidCosts(f"{size} indicators are too many", f"Take at most {MOST_COSTS}")
    parts = (np.ones(place.size), place, np.arange(place.size + 1))
    matrix = sparse.csr_array(parts, shape=(place.size, size))
    return CostBasis(matrix, [f"{what} {k}" for k in range(size)])


def _whole(source: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1_000_000:
        raise InvalidCosts(f"{source!r} does not say how many cells", "Give macro-cells:4")
    return int(text)


PLAIN: Mapping[str, Callable[[World], CostBasis]] = {
    "state-indicator": state_indicators,
    "pair-indicator": pair_indicators,
    "coordinates": coordinates,
    "time": time,
}
"""Sets without a number."""
