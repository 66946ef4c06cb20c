"""Maps of a grid world: where expert and apprentice spend their time, and where they go.

A world is drawn as a map when its states are on the points of a plane grid, one on each. Large maps
are drawn in squares of several cells, each with the sum of their visits and the mean of their
directions.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from journeyman.arrays import FloatArray, IntArray
from journeyman.demonstrations import Demonstrations
from journeyman.policy import Policy, occupancy
from journeyman.report.drawing import Element, scaled_picture, tag
from journeyman.report.numbers import exact_column, share
from journeyman.report.rendering import Section
from journeyman.report.report_data import ReportData
from journeyman.world import World

DIRECTIONS = {
    "up": (-1.0, 0.0), "right": (0.0, 1.0), "down": (1.0, 0.0), "left": (0.0, -1.0),
    "north": (-1.0, 0.0), "east": (0.0, 1.0), "south": (1.0, 0.0), "west": (0.0, -1.0),
    "stay": (0.0, 0.0),
}  # fmt: skip
MOST_SQUARES = 24
"""Along a side."""
LARGEST_SIDE = 1000
SPARSEST = 0.2
"""Share of cells that are states, below which a world is no map."""
ROUNDING = 1e-9
CELL = 40
"""Units of the drawing along a square."""
LEVELS = 8
"""Shades of the time spent, each a step of its square root."""
UNDECIDED = 0.15
"""Mean directions shorter than this are drawn as a dot."""
SHOWN_LEVELS = (1, 2, 4, 6, LEVELS)
"""Those of the legend."""
MOST_LISTED = 8


@dataclass(frozen=True, eq=False)
class GridLayout:
    """Squares of a map; several cells to a square where there are many."""

    world: World
    states: IntArray
    """Those with a place on the map."""
    cells: IntArray
    """(states x 2): row and column."""
    step: int
    """Cells along the side of a square."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of squares."""
        rows, columns = self.cells.max(axis=0) // self.step + 1
        return int(rows), int(columns)

    @property
    def squares(self) -> IntArray:
        """The square of every state on the map."""
        return np.asarray(np.ravel_multi_index((self.cells // self.step).T, self.shape))

    def total(self, values: FloatArray) -> FloatArray:
        """Sums over squares of a value per state of the world."""
        size = math.prod(self.shape)
        sums = np.bincount(self.squares, weights=values[self.states], minlength=size)
        return np.asarray(sums, dtype=float)

    def inhabited(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Squares that hold a state."""
        return self.total(np.ones(self.world.num_states)) > 0

    def arrows(self, law: FloatArray, weights: FloatArray) -> FloatArray:
        """(squares x 2): the mean direction of a law per pair, cells counting by their weight."""
        pairs = self.world.pairs
        steps = directions(self.world)
        means = [pairs.total(law * steps[:, axis]) * weights for axis in (0, 1)]
        mass = self.total(weights)
        whole = np.column_stack([self.total(mean) for mean in means])
        return np.divide(whole, mass[:, None], out=np.zeros_like(whole), where=mass[:, None] > 0)


def grid_of(world: World | None) -> GridLayout | None:
    """The layout of a world whose coordinates are those of a plane grid, otherwise None."""
    if world is None or world.coordinates is None or world.coordinates.shape[1] != 2:
        return None
    states = np.arange(world.num_states)
    if world.sink is not None:
        states = np.delete(states, world.sink)
    places = world.coordinates[states]
    cells = np.rint(places)
    if not states.size or (np.abs(places - cells) > ROUNDING).any():
        return None
    cells = (cells - cells.min(axis=0)).astype(np.int64)
    sides = cells.max(axis=0) + 1
    if sides.max() > LARGEST_SIDE or len(np.unique(cells, axis=0)) < len(cells):
        return None
    if len(cells) < SPARSEST * sides.prod():
        return None
    return GridLayout(world, states, cells, math.ceil(int(sides.max()) / MOST_SQUARES))


def directions(world: World) -> FloatArray:
    """(pairs x 2): where each action leads, by its name or, without one, by the law of the step."""
    names = world.action_names
    if names is not None and all(name.lower() in DIRECTIONS for name in names):
        return np.array([DIRECTIONS[name.lower()] for name in names])[world.pairs.actions]
    assert world.coordinates is not None
    moved = world.transition @ world.coordinates - world.coordinates[world.pairs.states]
    sizes = np.linalg.norm(moved, axis=1, keepdims=True)
    unit = np.divide(moved, sizes, out=np.zeros_like(moved), where=sizes > ROUNDING)
    return np.asarray(unit)


@dataclass(frozen=True, eq=False)
class Behaviour:
    """Shares of the discounted time and mean directions, square by square."""

    time: FloatArray
    arrows: FloatArray
    seen: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """Squares in which something is known of the actions."""


def maps(data: ReportData, prefix: str) -> Section | None:
    """None where the world is no plane grid."""
    layout = grid_of(data.world)
    if layout is None:
        return None
    ours = of_policy(layout, data.certificate.policy)
    demos = data.demonstrations
    theirs = None if demos is None else of_record(layout, demos)
    known = {"expert": theirs, "apprentice": ours}
    most = max(float(one.time.max()) for one in known.values() if one is not None)
    content = {
        "step": layout.step, "walls": not layout.inhabited().all(),
        "demonstrations": 0 if demos is None else len(demos),
        "drawings": [
            (who, _drawing(layout, one, most, who, f"{prefix}map-{who}"))
            for who, one in known.items()
            if one is not None
        ],
        "shades": [(level, share(most * (level / LEVELS) ** 2)) for level in SHOWN_LEVELS],
        **_table(layout, theirs, ours),
    }  # fmt: skip
    return Section("maps", "Where they go", content, link="Maps")


def of_policy(layout: GridLayout, policy: Policy) -> Behaviour:
    """The exact occupancy of a policy."""
    world = layout.world
    found = occupancy(world, policy)
    visits = np.where(world.has_goal & world.absorbing, 0.0, found.of_states) / found.steps
    everywhere = np.maximum(visits, 1e-300)
    arrows = layout.arrows(policy.on(world), everywhere)
    return Behaviour(layout.total(visits), arrows, layout.inhabited())


def of_record(layout: GridLayout, demos: Demonstrations) -> Behaviour:
    """Discounted visits of the recorded steps, ends of terminated episodes added, as shares of
    the time that is known; directions are the frequencies of actions."""
    world = layout.world
    visits = recorded_visits(world, demos)
    counts = np.bincount(demos.pairs_in(world), minlength=world.num_pairs).astype(float)
    seen = world.pairs.total(counts)
    law = counts / np.maximum(world.pairs.spread(seen), 1.0)
    return Behaviour(layout.total(visits), layout.arrows(law, seen), layout.total(seen) > 0)


def recorded_visits(world: World, demos: Demonstrations) -> FloatArray:
    """The share of the recorded discounted time that was spent in each state."""
    weights = world.discount**demos.step_times
    found = np.bincount(demos.step_states, weights=weights, minlength=world.num_states)
    if world.has_goal:
        return np.asarray(found / found.sum())
    ended = demos.terminated
    tails = world.discount ** demos.lengths[ended] * world.effective_horizon
    found += np.bincount(demos.last_states[ended], weights=tails, minlength=world.num_states)
    return np.asarray(found / found.sum())


def _drawing(layout: GridLayout, behaviour: Behaviour, most: float, who: str, name: str) -> Markup:
    rows, columns = layout.shape
    busiest = int(behaviour.time.argmax())
    at = f"row {busiest // columns}, column {busiest % columns}"
    return scaled_picture(
        name, f"Map of the {who}",
        f"{rows} rows and {columns} columns of squares. The {who} spends most time in {at}: "
        f"{share(float(behaviour.time[busiest]))} of its discounted time.",
        (CELL * columns, CELL * rows),
        tag("rect", width=f"{CELL * columns}", height=f"{CELL * rows}", cls="free"),
        *_shades(layout, behaviour, most), _arrows(layout, behaviour),
    )  # fmt: skip


def _shades(layout: GridLayout, behaviour: Behaviour, most: float) -> list[Element]:
    """One path for the walls and one for every shade; neighbours of a shade are one piece."""
    levels = np.ceil(LEVELS * np.sqrt(behaviour.time / most)).astype(int)
    levels = np.where(layout.inhabited(), levels, -1).reshape(layout.shape)
    paths = []
    for level in (-1, *range(1, LEVELS + 1)):
        pieces = [
            f"M{CELL * first} {CELL * row}h{CELL * (behind - first)}v{CELL}H{CELL * first}z"
            for row, line in enumerate(levels == level)
            for first, behind in _runs(line)
        ]
        if pieces:
            kind = "wall" if level < 0 else f"v{level}"
            paths.append(tag("path", d="".join(pieces), cls=kind))
    return paths


def _runs(line: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[tuple[int, int]]:
    """First and one behind the last of every row of True."""
    turns = np.flatnonzero(np.diff(np.concatenate([[False], line, [False]])))
    return [(int(first), int(behind)) for first, behind in turns.reshape(-1, 2)]


def _arrows(layout: GridLayout, behaviour: Behaviour) -> Element:
    """All arrows as one path."""
    columns = layout.shape[1]
    parts = []
    for index in np.flatnonzero(behaviour.seen).tolist():
        down, right = (float(part) for part in behaviour.arrows[index])
        row, column = divmod(index, columns)
        parts.append(_arrow(CELL * column + CELL // 2, CELL * row + CELL // 2, right, down))
    return tag("path", d="".join(parts), cls="arrow")


def _arrow(x: int, y: int, right: float, down: float) -> str:
    """A notched head around (x, y), longer the surer the direction; a dot where there is none."""
    length = math.hypot(right, down)
    if length < UNDECIDED:
        return f"M{x - 2} {y}a2 2 0 1 0 4 0a2 2 0 1 0-4 0z"
    along, across = right / length, down / length
    reach = 7 + 8 * min(length, 1.0)
    corners = [(reach, 0.0), (-reach, 7.0), (-0.55 * reach, 0.0), (-reach, -7.0)]
    places = [
        (round(x + ahead * along - aside * across), round(y + ahead * across + aside * along))
        for ahead, aside in corners
    ]
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(places)]
    return f"M{_joined(*places[0])}" + "".join(f"l{_joined(*step)}" for step in steps) + "z"


def _joined(x: int, y: int) -> str:
    """Two numbers, without a blank where a sign parts them."""
    return f"{x}{y}" if y < 0 else f"{x} {y}"


def _table(layout: GridLayout, theirs: Behaviour | None, ours: Behaviour) -> dict[str, Any]:
    """The squares in which the two differ most or, alone, those with most of the time."""
    parts = {"apprentice": ours.time}
    if theirs is not None:
        parts = {"expert": theirs.time, **parts, "difference": ours.time - theirs.time}
    size = np.abs(list(parts.values())[-1])
    order = np.argsort(-size, kind="stable")[:MOST_LISTED]
    order = order[size[order] > 0]
    like = [100 * float(ours.time[index]) for index in order]
    cells = [
        exact_column([100 * float(part[index]) for index in order], like)
        for part in parts.values()
    ]  # fmt: skip
    places = zip(*divmod(order, layout.shape[1]), strict=True)
    names = [f"row {row}, column {column}" for row, column in places]
    return {
        "columns": list(parts),
        "rows": list(zip(names, zip(*cells, strict=True), strict=True)),
    }
