"""Highway: drive fast, but slowly beside the police.

Three lanes in the frame of the traffic: all other vehicles drive at speed 1 and lie still in it, in
drawn cells of a ring road. The driver has one of four speeds (1 to 4 times that of the traffic) and
moves speed - 1 cells ahead in every step. Five actions: nothing, left, right, faster, slower; one
that cannot be carried out, and one in ten of the others, does nothing. A vehicle is a car or a
motorcycle, and civilian or of the police. The expert's reward is

    speed/4     where speed <= 2, or no police vehicle is within two cells, in whatever lane
    -1          elsewhere: above double the traffic's speed near the police

Features are indicators of the speed and the lane, and whether the nearest vehicle of each kind
(car, motorcycle, civilian, police) is closer than r = 1 .. `sight` cells ahead or behind, in the
own lane, the one to the left, the one to the right, or any. The reward is a conjunction of a speed
and a distance. A learned cost is tried in another drawing of the traffic (another `seed`).

Reference: Levine, Popovic and Koltun, "Nonlinear inverse reinforcement learning with Gaussian
processes", NIPS 2011, which describes it in words; the ring, the density of the traffic (a vehicle
to `cells_per_vehicle` cells of the road, a quarter of them police), that vehicles can be passed
through and the failing actions are choices.
"""

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Seed, generator, require_whole
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery.example import HiddenCostExample, expert_of_cost
from journeyman.gallery.object_world import indicators, require_temperature
from journeyman.world import World

LANES, SPEEDS = 3, 4
ACTIONS = {"keep": (0, 0), "left": (-1, 0), "right": (1, 0), "faster": (0, 1), "slower": (0, -1)}
"""Changes of lane and speed."""
KINDS = ("car", "motorcycle", "civilian", "police")
FAILING = 0.1
POLICE = 0.25
"""Of all vehicles, beside two of them."""
WITHIN, DOUBLE = 2, 2
"""Cells from the police, and the highest speed there, in units of the traffic's."""


def highway(
    length: int = 32,
    *,
    sight: int = 4,
    cells_per_vehicle: int = 4,
    linear: bool = False,
    temperature: float = 0.0,
    discount: float = 0.9,
    seed: Seed = 0,
) -> HiddenCostExample:
    """A ring road of `length` cells and three lanes.

    Args:
        linear: the reward is speed/4 less 1 within two cells of a police vehicle, at any speed.
        temperature: of the expert's choices; 0 for the optimal ones.
        seed: of the traffic.

    >>> world, basis, expert, cost = highway(16)
    >>> world.num_states, basis.num_costs, basis.names[7]
    (192, 135, 'car ahead in the same lane closer than 1')
    """
    require_whole("length", length, 8, InvalidWorld)
    require_whole("sight", sight, WITHIN + 1, InvalidWorld)
    require_whole("cells_per_vehicle", cells_per_vehicle, 1, InvalidWorld)
    require_temperature(temperature)
    shape = (length, LANES, SPEEDS)
    place, lane, level = (part.ravel() for part in np.indices(shape))
    world = World(
        _transition(shape, place, lane, level),
        np.full(place.size, 1 / place.size),
        discount,
        coordinates=np.column_stack([place, lane, level + 1]).astype(float),
        action_names=tuple(ACTIONS),
    )
    traffic = _traffic(length, cells_per_vehicle, generator(seed))
    titles, distances, police = _seen(traffic, place, lane, length)
    near = indicators(distances, titles, range(1, sight + 1))
    own = [level == k for k in range(SPEEDS)] + [lane == k for k in range(LANES)]
    names = [f"speed {k + 1}" for k in range(SPEEDS)] + [f"lane {k + 1}" for k in range(LANES)]
    basis = CostBasis(
        np.column_stack([np.array(own).T.astype(float), near.matrix]), [*names, *near.names]
    )
    speed = level + 1
    watched = police <= WITHIN
    if linear:
        reward = speed / SPEEDS - 1.0 * watched
    else:
        reward = np.where(watched & (speed > DOUBLE), -1.0, speed / SPEEDS)
    return HiddenCostExample(world, basis, expert_of_cost(world, -reward, temperature), -reward)


def _transition(
    shape: tuple[int, int, int], place: IntArray, lane: IntArray, level: IntArray
) -> sparse.csr_array:
    """The new lane and speed first, then as many cells ahead as that speed gains."""
    count = place.size
    here = np.arange(count)

    def after(sideways: int, more: int) -> IntArray:
        possible = (lane + sideways >= 0) & (lane + sideways < LANES)
        possible &= (level + more >= 0) & (level + more < SPEEDS)
        new = [np.where(possible, old + change, old) for old, change in
               ((lane, sideways), (level, more))]  # fmt: skip
        cells = (place + new[1], new[0], new[1])
        return np.asarray(np.ravel_multi_index(cells, shape, mode=("wrap", "raise", "raise")))

    kept, entries = after(0, 0), []
    for action, change in enumerate(ACTIONS.values()):
        pairs = here * len(ACTIONS) + action
        entries.append((pairs, after(*change), np.full(count, 1 - FAILING)))
        entries.append((pairs, kept, np.full(count, FAILING)))
    rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    matrix = sparse.coo_array((values, (rows, columns)), shape=(count * len(ACTIONS), count))
    return sparse.csr_array(matrix)


def _traffic(length: int, cells_per_vehicle: int, rng: np.random.Generator) -> IntArray:
    """Rows of place, lane, motorcycle (0 or 1), police (0 or 1); two of the police at least."""
    count = max(4, length // cells_per_vehicle)
    cells = rng.permutation(length * LANES)[:count]
    motorcycle, police = rng.random((2, count)) < np.array([[1 / 2], [POLICE]])
    police[:2] = True
    return np.column_stack([cells // LANES, cells % LANES, motorcycle, police])


def _seen(
    traffic: IntArray, place: IntArray, lane: IntArray, length: int
) -> tuple[list[str], FloatArray, FloatArray]:
    """Names and distances of the nearest vehicles (`length` where there is none), and the distance
    to the nearest one of the police."""
    ahead = (traffic[:, 0] - place[:, np.newaxis]) % length
    aside = traffic[:, 1] - lane[:, np.newaxis]
    kinds = (traffic[:, 2] == 0, traffic[:, 2] == 1, traffic[:, 3] == 0, traffic[:, 3] == 1)
    lanes = {
        "the same lane": aside == 0,
        "the lane to the left": aside == -1,
        "the lane to the right": aside == 1,
        "any lane": np.ones_like(aside, dtype=bool),
    }
    ways = {"ahead": ahead, "behind": (-ahead) % length}
    titles, columns = [], []
    for kind, chosen in zip(KINDS, kinds, strict=True):
        for way, cells in ways.items():
            for where, inside in lanes.items():
                titles.append(f"{kind} {way} in {where}")
                found = np.where(inside & chosen, cells, length).min(axis=1, initial=length)
                columns.append(found.astype(float))
    police = np.where(kinds[3], np.minimum(ahead, (-ahead) % length), length).min(axis=1)
    return titles, np.column_stack(columns), police
