"""Route choice: trips through a road network, one link after another, until they arrive.

A state is the link that a traveller is on, an action one of the links that start where it ends; at
the destination there is one action more, to stop, which leads to the absorbing state `sink`. Laws
are deterministic. Costs of a step, none of them after the arrival:

    length       of the next link, in units of a block
    left turn    1 for a turn to the left
    u-turn       1 for going back along the same road
    crossing     1 for every crossing passed

Roads are those of a town: crossings on a jittered square grid, some of the streets between
neighbours left out, all crossings connected, all streets open in both directions. The expert is the
recursive logit: soft-optimal for the given weights at temperature 1.

What it shows: episodes that end, deterministic laws, one cost in several worlds: the same `seed`
gives the same roads for every `destination`.

Reference: Fosgerau, Frejinger, Karlstrom, "A link based network route choice model with
unrestricted choice set", Transportation Research Part B 56 (2013).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Seed, generator, real_array
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery.example import Example
from journeyman.policy import soft_plan
from journeyman.policy.planning import NoSoftPolicy
from journeyman.world import World

NAMES = ("length", "left turn", "u-turn", "crossing")
FILLED = 0.85
"""Share of the streets between neighbouring crossings that exist."""
JITTER = 0.3
SHARPEST, SLIGHTEST = 177.0, 40.0
"""Degrees: a turn to the left is between these."""


def road_network(
    num_links: int = 300,
    *,
    destination: int = 0,
    weights: ArrayLike = (2.0, 1.0, 4.0, 1.0),
    discount: float = 0.99,
    steps_at_most: float | None = None,
    seed: Seed = 0,
) -> Example:
    """A town with `num_links` one-way links, and trips from anywhere to one crossing.

    Args:
        num_links: an even number from 12; every street has two links.
        destination: 0, 1, 2, ...: the crossings in an order drawn from `seed`.
        weights: of the four costs in the expert's choices.
        discount: 1 adds up the costs of whole trips; then `steps_at_most` declares how many more
            steps travellers expect at most, wherever they are.
        seed: of the roads and of the order of destinations; a number, so that several worlds can
            have the same roads.

    >>> world, basis, expert = road_network(60)
    >>> world.num_states, world.sink, basis.names
    (61, 60, ('length', 'left turn', 'u-turn', 'crossing'))
    """
    if not isinstance(num_links, int | np.integer) or num_links < 12 or num_links % 2:
        raise InvalidWorld(
            f"num_links = {num_links!r}", "Give an even number from 12: streets have two directions"
        )
    theta = real_array("weights", weights, ndim=1, size=len(NAMES), refusal=InvalidWorld)
    rng = generator(seed)
    roads = _town(int(num_links), rng)
    order = rng.permutation(len(roads.places))
    if destination not in range(order.size):
        raise InvalidWorld(
            f"destination = {destination!r}", f"Give a whole number from 0 to {order.size - 1}"
        )
    goal = int(order[destination])
    here, following, offsets = _choices(roads, goal)
    sink = int(num_links)
    costs = _costs(roads, here, following)
    shape = (here.size, sink + 1)
    world = World(
        sparse.csr_array((np.ones(here.size), (np.arange(here.size), following)), shape=shape),
        np.append(np.full(sink, 1.0 / sink), 0.0),
        discount,
        choice_offsets=offsets,
        coordinates=np.vstack([roads.middles, roads.places[goal]]),
        sink=sink,
        steps_at_most=steps_at_most,
    )
    basis = CostBasis(costs, NAMES)
    try:
        return Example(world, basis, soft_plan(world, costs @ theta).policy)
    except NoSoftPolicy:
        raise InvalidWorld(
            "with these weights it would be worth driving on for ever",
            "Give larger weights, or a discount below 1",
        ) from None


class _Roads(NamedTuple):
    places: FloatArray
    """(crossings x 2)"""
    tails: IntArray
    heads: IntArray
    """Where every link starts and ends; link k ^ 1 goes back along link k."""

    @property
    def middles(self) -> FloatArray:
        return np.asarray((self.places[self.tails] + self.places[self.heads]) / 2)

    @property
    def directions(self) -> FloatArray:
        return np.asarray(self.places[self.heads] - self.places[self.tails])


def _town(num_links: int, rng: np.random.Generator) -> _Roads:
    """A connected part of a grid with as many streets as asked."""
    from scipy.sparse.csgraph import minimum_spanning_tree

    wanted = num_links // 2
    height, width = _size_of_town(wanted)
    rows, columns = (part.ravel() for part in np.indices((height, width)))
    node = np.arange(rows.size).reshape(height, width)
    ends = np.vstack(
        [
            np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()]),
            np.column_stack([node[:-1].ravel(), node[1:].ravel()]),
        ]
    )
    lots = rng.permutation(len(ends)) + 1.0
    shape = (rows.size, rows.size)
    tree = minimum_spanning_tree(sparse.csr_array((lots, (ends[:, 0], ends[:, 1])), shape=shape))
    needed = np.isin(lots, tree.data)
    chosen = np.argsort(np.where(needed, 0.0, lots), kind="stable")[:wanted]
    streets = ends[np.sort(chosen)]
    places = np.column_stack([rows, columns]) + rng.uniform(-JITTER, JITTER, (rows.size, 2))
    tails = streets.ravel()
    return _Roads(places, tails, streets[:, ::-1].ravel())


def _size_of_town(streets: int) -> tuple[int, int]:
    """Rows and columns of the smallest grid of which the streets are the wanted share, or at least
    a connected part."""
    sizes = [(k // 2, (k + 1) // 2) for k in range(4, 4 + streets)]
    fitting = [
        (rows, columns)
        for rows, columns in sizes
        if rows * columns - 1 <= streets <= 2 * rows * columns - rows - columns
    ]
    full = [
        (rows, columns)
        for rows, columns in fitting
        if streets <= FILLED * (2 * rows * columns - rows - columns)
    ]
    return (full or fitting)[0]


def _choices(roads: _Roads, goal: int) -> tuple[IntArray, IntArray, IntArray]:
    """Link, next link and the first pair of every state; the sink is the last of both."""
    count = roads.tails.size
    by_tail = np.argsort(roads.tails, kind="stable")
    first = np.searchsorted(roads.tails[by_tail], np.arange(len(roads.places) + 1))
    nexts = [by_tail[first[head] : first[head + 1]] for head in roads.heads]
    following = [
        np.append(links, count) if head == goal else links
        for links, head in zip(nexts, roads.heads, strict=True)
    ]
    following.append(np.array([count]))
    sizes = np.array([links.size for links in following])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return np.repeat(np.arange(count + 1), sizes), np.concatenate(following), offsets


def _costs(roads: _Roads, here: IntArray, following: IntArray) -> FloatArray:
    """(pairs x costs); nothing for stopping, and nothing after."""
    count = roads.tails.size
    drives = following < count
    before, after = np.where(drives, here, 0), np.where(drives, following, 0)
    way = roads.directions
    a, b = way[before], way[after]
    turn = np.degrees(np.arctan2(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], (a * b).sum(axis=1)))
    back = after == (before ^ 1)
    left = (turn > SLIGHTEST) & (turn < SHARPEST) & ~back
    length = np.linalg.norm(b, axis=1)
    columns = [length, left, back, np.ones(here.size)]
    return np.asarray(np.column_stack(columns) * drives[:, np.newaxis], dtype=float)
