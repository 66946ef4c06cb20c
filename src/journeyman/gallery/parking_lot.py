"""Parking: drive through a lot to one space, in a style that nobody has written down as a cost.

A state lattice of a car: the position of its rear axle on a grid of 2/3 metres, one of 16 headings,
and the gear. A step drives straight on, or turns to the next heading on the left or right, or
switches between forward and reverse. A turn is a straight piece, an arc no tighter than `RADIUS`,
and a straight piece, the shortest ones that end on the lattice; in reverse the same ways are driven
backwards. Ways that come too near to a wall or a parked car do not exist. Laws are deterministic.
Costs of a step, the last three integrals over the metres that the car's middle is driven:

    forward             metres driven forward
    reverse             metres driven in reverse
    gear switches       1 for a switch
    turning             change of the heading, in radians
    near obstacles      1 - clearance/(1 metre), where it is positive
    off the lane        distance to the middle of the nearest lane over 4 metres, 1 at most
    against the lane    -cos of the angle between travel and lane, where it is positive, on lanes

A lot has aisles of two lanes, driven on the right, between rows of spaces, and a road of two lanes
at both ends. `seed` draws which spaces are taken, where walls stand between rows and bollards in
aisles, the space to reach, with which heading, and the starts: cars that drive along a lane. To
stand in the space, in any gear, is the end: the absorbing state `sink`, which costs nothing. States
that no start leads to, or that do not lead to the space, are left out.

Experts are optimal for the weights of a style, or err at a temperature. What it shows: a cost that
is learned in some lots and driven with in others (other seeds: the same costs, other states).

By default the discount is below 1: premises about the expert, columns, margins and games are proven
for such worlds only (`world.goals`), plans are as quick, and a trip of 50 steps keeps 60 % of its
last one. `discount=1` adds up whole trips.

Reference: Abbeel, Dolgov, Ng and Thrun, "Apprenticeship learning for motion planning with
application to parking lot navigation", IROS 2008, whose costs are of these kinds; their planner is
continuous and their drivers are people. Lattice, lots and weights are choices.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    generator,
    real_array,
    require_whole,
)
from journeyman.costs import CostBasis
from journeyman.errors import InvalidWorld
from journeyman.gallery.example import expert_of_cost
from journeyman.gallery.object_world import require_temperature
from journeyman.policy import Policy
from journeyman.world import World

NAMES = (
    "forward", "reverse", "gear switches", "turning", "near obstacles", "off the lane",
    "against the lane",
)  # fmt: skip
STYLES: dict[str, tuple[float, ...]] = {
    "nice": (1.0, 4.0, 5.0, 2.0, 6.0, 3.0, 5.0),
    "sloppy": (1.0, 1.5, 2.0, 0.1, 0.2, 0.1, 0.1),
    "backward": (3.0, 1.0, 2.0, 0.5, 1.0, 1.0, 0.5),
}
"""Weights of the costs: keeps to lanes and drives forward; cuts across; likes to reverse. Standing
and switching gears for ever costs weight/(1 - discount): more than any trip."""
ACTIONS = ("straight", "left", "right", "switch")
DIRECTIONS = (
    (1, 0), (2, 1), (1, 1), (1, 2), (0, 1), (-1, 2), (-1, 1), (-2, 1),
    (-1, 0), (-2, -1), (-1, -1), (-1, -2), (0, -1), (1, -2), (1, -1), (2, -1),
)  # fmt: skip
"""Headings, counterclockwise from that of the x axis."""
HEADINGS = len(DIRECTIONS)
FORWARD, REVERSE = 0, 1
METRES = 2 / 3
"""Metres between neighbouring positions of the lattice: the unit of what follows, a cell."""
RADIUS = 6.0
"""Of the tightest turn."""
FARTHEST = 6
"""Cells along an axis within which turns end."""
DISCS, WIDE = (0.0, 1.8, 3.6), 1.35
"""The car: discs of this radius so far before the rear axle; the second one is its middle."""
SAMPLED, FINE = 0.75, 4
"""Cells between samples of a way, and points per cell where distances are tabled."""
CLEAR, LANE = 1.5, 6.0
"""From where obstacles, and up to which distances from the lane, do not matter."""
AISLE, DEPTH, SPACE = 10, 8, 4
"""Widths of aisles, depths and widths of spaces."""
CAR = (2.7, 6.6)
"""Width and length of a parked car."""
THIN, BOLLARD, ASIDE = 0.2, 0.5, 2
"""Widths of walls between rows and of bollards; cells from the road's edge to a lane's middle."""
TAKEN, WALLED, BOLLARDS = 0.75, 0.4, 0.75
"""Share of the spaces and of the walls between rows; bollards per aisle, on the average."""


class Lot(NamedTuple):
    """What a lot looks like, in cells of the lattice."""

    width: float
    height: float
    cars: FloatArray
    """Rows of x, y (the lower left corner), x, y (the upper right one)."""
    walls: FloatArray
    """The same, bollards among them."""
    lanes: FloatArray
    """Rows of x, y where a lane begins, x, y where it ends."""
    goal: tuple[int, int, int]
    """Position and number of the heading."""


class ParkingExample(NamedTuple):
    """A world, the costs that may matter there, an expert to record, and the lot."""

    world: World
    basis: CostBasis
    expert: Policy
    lot: Lot


def parking(
    style: str | ArrayLike = "nice",
    *,
    width: int = 92,
    aisles: int = 3,
    starts: int = 64,
    temperature: float = 0.0,
    discount: float = 0.99,
    steps_at_most: float | None = None,
    seed: Seed = 0,
) -> ParkingExample:
    """A lot of `aisles` aisles, `width` cells wide, and cars on their way to one space.

    Args:
        style: of the expert: "nice", "sloppy", "backward", or weights of the seven costs.
        starts: states from which cars start, equally likely.
        temperature: of the expert's choices; 0 for the optimal ones.
        discount: 1 adds up the costs of whole ways; then `steps_at_most` declares how many more
            steps drivers expect at most, wherever they are.
        seed: of the lot, its goal and starts; a number, so that several styles drive in one lot.

    >>> world, basis, expert, lot = parking(width=36, aisles=1, starts=8)
    >>> world.num_states, lot.goal
    (14053, (20, 24, 12))
    """
    weights = _weights(style)
    require_whole("width", width, 2 * AISLE + 4 * SPACE, InvalidWorld)
    require_whole("aisles", aisles, 1, InvalidWorld)
    require_whole("starts", starts, 1, InvalidWorld)
    require_temperature(temperature)
    rng = generator(seed)
    lot = _drawn(width, aisles, rng)
    world, costs = _world(lot, starts, rng, discount, steps_at_most)
    expert = expert_of_cost(world, costs @ weights, temperature)
    return ParkingExample(world, CostBasis(costs, NAMES), expert, lot)


def _weights(style: str | ArrayLike) -> FloatArray:
    if isinstance(style, str):
        if style not in STYLES:
            raise InvalidWorld(f"style = {style!r}", f"Give one of {', '.join(STYLES)}, or weights")
        return np.array(STYLES[style])
    return real_array("style", style, ndim=1, size=len(NAMES), refusal=InvalidWorld)


def _drawn(width: int, aisles: int, rng: np.random.Generator) -> Lot:
    """Rows of spaces along the aisles, what stands there, and the space to reach."""
    height = aisles * (AISLE + 2 * DEPTH)
    count = (width - 2 * AISLE) // SPACE
    left = (width - SPACE * count) // 2
    right = left + SPACE * count
    lower = [DEPTH + k * (AISLE + 2 * DEPTH) for k in range(aisles)]
    spaces = [
        (left + SPACE * column + SPACE // 2, edge, side)
        for low in lower
        for edge, side in ((low, -1), (low + AISLE, 1))
        for column in range(count)
    ]
    goal = int(rng.integers(len(spaces)))
    taken = rng.random(len(spaces)) < TAKEN
    taken[goal] = False
    x, edge, side = spaces[goal]
    inwards = bool(rng.random() < 0.5)
    position = (x, edge + side * (2 if inwards else DEPTH - 2))
    heading = HEADINGS // 4 if (side > 0) == inwards else 3 * HEADINGS // 4
    cars = [
        _box(x, y + side * DEPTH / 2, *CAR)
        for (x, y, side), parked in zip(spaces, taken, strict=True)
        if parked
    ]
    walls = [
        _box(width / 2, -0.5, width + 2, 1), _box(width / 2, height + 0.5, width + 2, 1),
        _box(-0.5, height / 2, 1, height + 2), _box(width + 0.5, height / 2, 1, height + 2),
    ]  # fmt: skip
    between = [low - DEPTH for low in lower[1:] if rng.random() < WALLED]
    walls += [_box((left + right) / 2, y, right - left, THIN) for y in between]
    for low in lower:
        for _ in range(rng.poisson(BOLLARDS)):
            bollard = rng.uniform((left, low), (right, low + AISLE))
            beside = abs(bollard[0] - x) > AISLE or not low <= edge <= low + AISLE
            walls += [_box(bollard[0], bollard[1], BOLLARD, BOLLARD)] if beside else []
    boxes = [np.array(part, dtype=float).reshape(-1, 4) for part in (cars, walls)]
    lanes = _lanes(width, height, lower)
    return Lot(width, height, boxes[0], boxes[1], lanes, (*position, heading))


def _box(x: float, y: float, wide: float, high: float) -> tuple[float, float, float, float]:
    return x - wide / 2, y - high / 2, x + wide / 2, y + high / 2


def _lanes(width: int, height: int, lower: list[int]) -> FloatArray:
    """Two lanes to a road, driven on the right."""
    rows = []
    for low in lower:
        first, second = low + ASIDE, low + AISLE - ASIDE
        rows.append((ASIDE, first, width - ASIDE, first))
        rows.append((width - ASIDE, second, ASIDE, second))
    for near in (0, width - AISLE):
        up, down = near + AISLE - ASIDE, near + ASIDE
        rows.append((up, ASIDE, up, height - ASIDE))
        rows.append((down, height - ASIDE, down, ASIDE))
    return np.array(rows, dtype=float)


class _Way(NamedTuple):
    """From the origin, with one heading, driven forward."""

    end: tuple[int, int]
    heading: int
    """At its end."""
    length: float
    turned: float
    middles: FloatArray
    """(samples x 2) of the car's middle, each for an equal part of the length."""
    courses: FloatArray
    """(samples x 2) unit vectors of travel there."""
    discs: FloatArray
    """(points x 2): all discs at the samples and at both ends."""


def _way(heading: int, turn: int) -> _Way:
    """The shortest straight piece, arc and straight piece that end on the lattice; or one straight
    step."""
    first = np.array(DIRECTIONS[heading]) / np.linalg.norm(DIRECTIONS[heading])
    if turn == 0:
        end, pieces = DIRECTIONS[heading], (float(np.linalg.norm(DIRECTIONS[heading])), 0.0, 0.0)
    else:
        end, pieces = _turn(heading, turn)
    after = (heading + turn) % HEADINGS
    start, second = np.arctan2(*first[::-1]), DIRECTIONS[after]
    angle = (np.arctan2(*second[::-1]) - start + np.pi) % (2 * np.pi) - np.pi
    before, radius, behind = pieces
    length = before + radius * abs(angle) + behind
    count = int(np.ceil(length / SAMPLED))
    parts = np.concatenate([[0.0], (np.arange(count) + 0.5) / count * length, [length]])
    places, turned = _along(parts, start, angle, before, radius)
    courses = np.column_stack([np.cos(turned), np.sin(turned)])
    discs = np.concatenate([places + ahead * courses for ahead in DISCS])
    middles = (places + DISCS[1] * courses)[1:-1]
    return _Way(end, after, length, abs(angle), middles, courses[1:-1], discs)


def _turn(heading: int, turn: int) -> tuple[tuple[int, int], tuple[float, float, float]]:
    """Where the shortest turn ends, and its straight piece, radius and straight piece."""
    first, second = (
        np.array(DIRECTIONS[k % HEADINGS]) / np.linalg.norm(DIRECTIONS[k % HEADINGS])
        for k in (heading, heading + turn)
    )
    # an arc of radius 1 to the left goes from (sin a, -cos a) to (sin b, -cos b)
    arc = turn * np.array([second[1] - first[1], first[0] - second[0]])
    angle = np.arccos(first @ second)
    best: tuple[float, tuple[int, int], tuple[float, float, float]] | None = None
    for i in range(-FARTHEST, FARTHEST + 1):
        for j in range(-FARTHEST, FARTHEST + 1):
            straight = np.column_stack([first, second])
            whole, less = np.linalg.solve(straight, np.column_stack([(i, j), arc])).T
            radius = float(np.min(whole / less))  # with the largest one a straight piece vanishes
            if radius < RADIUS or (less <= 0).any():
                continue
            before, behind = np.maximum(whole - radius * less, 0.0).tolist()
            length = before + radius * angle + behind
            if best is None or length < best[0]:
                best = length, (i, j), (before, radius, behind)
    assert best is not None
    return best[1:]


def _along(
    parts: FloatArray, start: float, angle: float, before: float, radius: float
) -> tuple[FloatArray, FloatArray]:
    """Positions and headings after so many metres of a way."""
    curved = np.clip(parts - before, 0.0, radius * abs(angle))
    turned = start + (np.sign(angle) * curved / radius if radius else 0.0 * curved)
    side = np.sign(angle) * radius
    arc = side * np.column_stack([np.sin(turned) - np.sin(start), np.cos(start) - np.cos(turned)])
    begun = np.minimum(parts, before)[:, np.newaxis] * [np.cos(start), np.sin(start)]
    rest = np.maximum(parts - before - radius * abs(angle), 0.0)[:, np.newaxis]
    return begun + arc + rest * np.column_stack([np.cos(turned), np.sin(turned)]), turned


class _Ground:
    """What lies at each point of a lot, in a table of `FINE` points per metre."""

    def __init__(self, lot: Lot) -> None:
        self.lot = lot
        xs, ys = (np.arange(size * FINE + 1) / FINE for size in (lot.width, lot.height))
        self.clearance = np.full((ys.size, xs.size), np.inf)
        for x0, y0, x1, y1 in np.vstack([lot.cars, lot.walls]):
            beside = np.maximum(np.maximum(x0 - xs, xs - x1), 0.0)
            above = np.maximum(np.maximum(y0 - ys, ys - y1), 0.0)
            np.minimum(self.clearance, np.hypot(beside, above[:, np.newaxis]), out=self.clearance)
        self.clearance -= WIDE
        self.aside = np.full((ys.size, xs.size), np.inf)
        self.course = np.zeros((ys.size, xs.size, 2))
        for x0, y0, x1, y1 in lot.lanes:
            beside = np.maximum(np.maximum(min(x0, x1) - xs, xs - max(x0, x1)), 0.0)
            above = np.maximum(np.maximum(min(y0, y1) - ys, ys - max(y0, y1)), 0.0)
            distance = np.hypot(beside, above[:, np.newaxis])
            nearer = distance < self.aside
            self.aside[nearer] = distance[nearer]
            self.course[nearer] = np.sign([x1 - x0, y1 - y0])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the lattice."""
        return int(self.lot.height) + 1, int(self.lot.width) + 1

    def at(self, table: FloatArray, points: FloatArray, outside: float) -> FloatArray:
        """A table at the positions of the lattice, each moved by every one of `points`: (points x
        rows x columns)."""
        y, x = (
            np.arange(size)[:, np.newaxis] * FINE + np.round(moved * FINE).astype(int)
            for size, moved in zip(self.shape, points.T[::-1], strict=True)
        )
        padded = np.pad(table, ((0, 1), (0, 1)), constant_values=outside)
        y = np.where((y >= 0) & (y < table.shape[0]), y, table.shape[0])
        x = np.where((x >= 0) & (x < table.shape[1]), x, table.shape[1])
        return np.asarray(padded[y.T[:, :, np.newaxis], x.T[:, np.newaxis, :]])

    def along(self, way: _Way) -> tuple[BoolArray, FloatArray]:
        """Where a way can begin (rows x columns), and what it costs there: (4 x rows x columns),
        obstacles, lane, and against it when driven forward and in reverse."""
        possible = self.at(self.clearance, way.discs, -1.0).min(axis=0) >= 0.0
        clearance = self.at(self.clearance, way.middles, 0.0)
        aside = self.at(self.aside, way.middles, np.inf)
        lane = [self.at(part, way.middles, 0.0) for part in np.moveaxis(self.course, -1, 0)]
        x, y = way.courses.T[:, :, np.newaxis, np.newaxis]
        along = np.where(aside <= ASIDE + 1, lane[0] * x + lane[1] * y, 0.0)
        parts = (
            np.clip(1.0 - clearance / CLEAR, 0.0, 1.0), np.minimum(aside / LANE, 1.0),
            np.maximum(-along, 0.0), np.maximum(along, 0.0),
        )  # fmt: skip
        return possible, np.array([part.mean(axis=0) for part in parts]) * way.length * METRES


class _Steps(NamedTuple):
    """Steps of the lattice, whose states are numbered by gear, heading, row and column."""

    tails: IntArray
    heads: IntArray
    actions: IntArray
    costs: FloatArray
    """(steps x costs)"""


def _steps(ground: _Ground) -> _Steps:
    rows, columns = ground.shape
    places = np.arange(rows * columns).reshape(rows, columns)
    poses = HEADINGS * places.size
    found = []
    for heading in range(HEADINGS):
        for action, turn in enumerate((0, 1, -1)):
            way = _way(heading, turn)
            possible, costs = ground.along(way)
            y, x = np.nonzero(possible)
            begins = heading * places.size + places[y, x]
            ends = way.heading * places.size + places[y + way.end[1], x + way.end[0]]
            near, off, *against = costs[:, y, x]
            for gear in (FORWARD, REVERSE):
                table = np.zeros((begins.size, len(NAMES)))
                table[:, gear] = way.length * METRES
                table[:, 3] = way.turned
                table[:, 4:] = np.column_stack([near, off, against[gear]])
                tails, heads = (begins, ends) if gear == FORWARD else (ends, begins)
                number = np.full(begins.size, action)
                found.append(_Steps(gear * poses + tails, gear * poses + heads, number, table))
    driven = np.unique(np.concatenate([one.tails % poses for one in found]))
    for gear in (FORWARD, REVERSE):
        table = np.zeros((driven.size, len(NAMES)))
        table[:, 2] = 1.0
        other = (1 - gear) * poses + driven
        number = np.full(driven.size, ACTIONS.index("switch"))
        found.append(_Steps(gear * poses + driven, other, number, table))
    return _Steps(*(np.concatenate(part) for part in zip(*found, strict=True)))


def _world(
    lot: Lot, starts: int, rng: np.random.Generator, discount: float, limit: float | None
) -> tuple[World, FloatArray]:
    """States between the starts and the goal, and the costs of all pairs."""
    ground = _Ground(lot)
    steps = _steps(ground)
    shape = (2, HEADINGS, *ground.shape)
    count = int(np.prod(shape))
    x, y, heading = lot.goal
    goals = np.ravel_multi_index(([FORWARD, REVERSE], heading, y, x), shape)
    heads = np.where(np.isin(steps.heads, goals), count, steps.heads)
    leaves = ~np.isin(steps.tails, goals)
    graph = _graph(steps.tails[leaves], heads[leaves], count + 1)
    arriving = _reached(graph.T.tocsr(), [count])
    first = _starts(ground, shape, arriving[:-1], starts, rng)
    kept = arriving & _reached(graph, first)
    inside = leaves & kept[steps.tails] & kept[heads]
    order = np.flatnonzero(inside)[np.lexsort([steps.actions[inside], steps.tails[inside]])]
    number = np.cumsum(kept) - 1
    sink = int(number[-1])
    following = np.append(number[heads[order]], sink)
    size = following.size
    sizes = np.bincount(number[steps.tails[order]], minlength=sink)
    initial = np.zeros(sink + 1)
    initial[number[first]] = 1 / starts
    world = World(
        sparse.csr_array((np.ones(size), (np.arange(size), following)), shape=(size, sink + 1)),
        initial,
        discount,
        choice_offsets=np.concatenate([[0], np.cumsum(sizes), [size]]),
        observed_actions=np.append(steps.actions[order], 0),
        action_names=ACTIONS,
        coordinates=_coordinates(np.flatnonzero(kept[:-1]), shape, lot),
        sink=sink,
        steps_at_most=limit,
    )
    return world, np.vstack([steps.costs[order], np.zeros(len(NAMES))])


def _graph(tails: IntArray, heads: IntArray, count: int) -> sparse.csr_array:
    return sparse.csr_array((np.ones(tails.size), (tails, heads)), shape=(count, count))


def _reached(graph: sparse.csr_array, first: ArrayLike) -> BoolArray:
    """States that some of `first` lead to, these among them."""
    from scipy.sparse.csgraph import breadth_first_order

    sources = np.asarray(first)
    count = graph.shape[0]
    rows = sparse.csr_array(
        (np.ones(sources.size), (np.zeros(sources.size, int), sources)), shape=(1, count)
    )
    beside = sparse.csr_array((count + 1, 1))
    everything = sparse.hstack([sparse.vstack([graph, rows]), beside], format="csr")
    reached = np.zeros(count + 1, dtype=bool)
    reached[breadth_first_order(everything, count, return_predecessors=False)] = True
    return reached[:-1]


def _starts(
    ground: _Ground, shape: tuple[int, ...], possible: BoolArray, starts: int,
    rng: np.random.Generator,
) -> IntArray:  # fmt: skip
    """States in the middle of a lane, driving along it, from where the goal can be reached."""
    on_lattice = (slice(None, None, FINE), slice(None, None, FINE))
    lane, middle = ground.course[on_lattice], ground.aside[on_lattice] == 0
    along = np.zeros(shape, dtype=bool)
    for heading, course in enumerate(DIRECTIONS):
        along[FORWARD, heading] = middle & (lane == course).all(axis=-1)
    candidates = np.flatnonzero(along.ravel() & possible)
    if candidates.size < starts:
        raise InvalidWorld(
            f"{candidates.size} places on lanes lead to the space, and starts = {starts}",
            "Ask for fewer, for a larger lot, or for another seed",
        )
    return np.sort(rng.choice(candidates, starts, replace=False))


def _coordinates(states: IntArray, shape: tuple[int, ...], lot: Lot) -> FloatArray:
    """Position in metres, heading in degrees and gear; those of the goal at the end."""
    gear, heading, y, x = np.unravel_index(states, shape)
    degrees = np.degrees([np.arctan2(b, a) for a, b in DIRECTIONS]) % 360
    found = np.column_stack([x * METRES, y * METRES, degrees[heading], gear])
    column, row, turned = lot.goal
    return np.vstack([found, [column * METRES, row * METRES, degrees[turned], FORWARD]])
