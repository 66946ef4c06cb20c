"""Objectworld: a grid with coloured objects, and a cost that is no combination of its features.

Objects lie in drawn cells; each has an inner and an outer colour. Five actions move to a neighbour
or stay, and 30 % of the time one of the five is taken at random. With d(k) the Euclidean distance
to the nearest object of outer colour k, the expert's reward in a cell is

    +1    where d(1) < 3 and d(2) < 2
    -1    where d(1) < 3 and not d(2) < 2
     0    elsewhere

Features are the distances to the nearest object of every inner and of every outer colour, as
indicators "closer than r" for r = 1 .. size or as numbers; inner colours and further outer colours
distract. The reward is the conjunction of two of the indicators, which no weights express. A
learned cost is tried in another drawing of objects (another `seed`), whose features have the same
names.

Reference: Levine, Popovic and Koltun, "Nonlinear inverse reinforcement learning with Gaussian
processes", NIPS 2011. How many objects there are is our choice (one to 20 cells), and that there
are objects of outer colours 1 and 2 in every drawing.
"""

import numpy as np

from journeyman.arrays import FloatArray, Seed, generator, require_between, require_whole
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery.example import HiddenCostExample, expert_of_cost
from journeyman.gallery.grid_world import floor

CELLS_PER_OBJECT = 20
NEAR, NEARER = 3, 2
"""Distances to outer colours 1 and 2 that the reward depends on."""


def objectworld(
    size: int = 32,
    *,
    colours: int = 2,
    continuous: bool = False,
    linear: bool = False,
    temperature: float = 0.0,
    discount: float = 0.9,
    seed: Seed = 0,
) -> HiddenCostExample:
    """A `size` x `size` grid of coloured objects.

    Args:
        colours: inner, and as many outer ones.
        continuous: features are distances, as shares of the diagonal, and no indicators.
        linear: the reward is +1 where d(1) < 3 and -1 where d(2) < 2, and their sum where both
            hold: a combination of the indicators.
        temperature: of the expert's choices; 0 for the optimal ones.
        seed: of the objects.

    >>> world, basis, expert, cost = objectworld(8)
    >>> world.num_states, basis.num_costs, basis.names[0], sorted(set(cost.tolist()))
    (64, 32, 'inner 1 closer than 1', [-1.0, 0.0, 1.0])
    """
    require_whole("size", size, 4, InvalidWorld)
    require_whole("colours", colours, 2, InvalidWorld)
    world = floor(size, slip=0.3, discount=discount, stay=True)
    assert world.coordinates is not None
    distances = _distances(world.coordinates, size, colours, generator(seed))
    titles = [f"{part} {k + 1}" for part in ("inner", "outer") for k in range(colours)]
    if continuous:
        basis = CostBasis(distances / (size * 2**0.5), [f"distance to {title}" for title in titles])
    else:
        basis = indicators(distances, titles, range(1, size + 1))
    near, nearer = (
        (distances[:, colours + k] < limit).astype(float) for k, limit in enumerate((NEAR, NEARER))
    )
    reward = near - nearer if linear else near * (2 * nearer - 1)
    cost = np.asarray(0.0 - reward, dtype=float)
    require_temperature(temperature)
    return HiddenCostExample(world, basis, expert_of_cost(world, cost, temperature), cost)


def require_temperature(temperature: float) -> None:
    """Zero or a positive number."""
    if temperature != 0:
        require_between(
            "temperature", temperature, 0, np.inf, InvalidWorld,
            "Give 0 for an optimal expert, or a positive temperature",
        )  # fmt: skip


def indicators(distances: FloatArray, titles: list[str], limits: range) -> CostBasis:
    """Whether each distance is below each limit: a column for every two of them."""
    names = [f"{title} closer than {limit}" for title in titles for limit in limits]
    columns = [distance < limit for distance in distances.T for limit in limits]
    return CostBasis(np.column_stack(columns).astype(float), names)


def _distances(cells: FloatArray, size: int, colours: int, rng: np.random.Generator) -> FloatArray:
    """To the nearest object of every inner colour, then of every outer one; the diagonal where
    there is none."""
    count = max(2, len(cells) // CELLS_PER_OBJECT)
    places = cells[rng.permutation(len(cells))[:count]]
    inner, outer = rng.integers(colours, size=(2, count))
    outer[:2] = 0, 1
    there = np.linalg.norm(cells[:, np.newaxis] - places, axis=2)
    columns = [
        np.where(own == colour, there, size * 2**0.5).min(axis=1)
        for own in (inner, outer)
        for colour in range(colours)
    ]
    return np.column_stack(columns)
