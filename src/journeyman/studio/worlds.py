"""The worlds of the studio: a choice made on the page becomes a `Stage`.

    {"kind": "grid", "cells": ["11#", "12*", ...], "regions": ["ground", "pond"], "slip": 0.2, ...}
    {"kind": "driving"}
    {"kind": "gymnasium", "name": "FrozenLake-v1", "options": {"map_name": "8x8"}}
    {"kind": "file", "world": "world.npz", "costs": "costs.csv", "options": {"discount": "0.95"}}

A stage is a world, the costs that may matter there, and a *board*: how a state is shown and which
key stands for which action, as plain values for the page. Files are found below the directory that
was chosen when the studio was started, and nowhere else.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.costs import CostBasis
from journeyman.errors import InvalidFile, InvalidInput, InvalidWorld, JourneymanError
from journeyman.runs.run_inputs import world_digest
from journeyman.world import World
from journeyman.world.conversions import read

LARGEST_GRID, MOST_REGIONS, LONGEST_NAME = 40, 8, 24
WALL, GOAL = "#", "*"
LEAST_DISCOUNT, MOST_DISCOUNT = 0.5, 0.999
MOST_STEPS = 1000
"""Steps of an episode, whatever the world."""
MOST_STATES, MOST_PAIRS_SHOWN = 200_000, 1_000_000
WORLD_SUFFIXES = (".npz", ".umb", ".csv", ".parquet")
MOST_LISTED, DEEPEST = 200, 4
ARROWS = {"up": "ArrowUp", "right": "ArrowRight", "down": "ArrowDown", "left": "ArrowLeft"}
STEPS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1), "stay": (0, 0)}
OTHER_KEYS = "123456789"

TOY_TEXT: dict[str, dict[str, Any]] = {
    "FrozenLake-v1": {"title": "Frozen lake", "limit": 100},
    "CliffWalking-v1": {"title": "Cliff walking", "limit": 200},
    "CliffWalkingSlippery-v1": {"title": "Cliff walking, slippery", "limit": 200},
    "Taxi-v4": {"title": "Taxi", "limit": 200},
}
"""Environments of Gymnasium that have a table of laws; cliffs have no time limit of their own."""
TOY_ACTIONS = {
    "FrozenLake-v1": ("left", "down", "right", "up"),
    "CliffWalking-v1": ("up", "right", "down", "left"),
    "CliffWalkingSlippery-v1": ("up", "right", "down", "left"),
    "Taxi-v4": ("down", "up", "right", "left", "pick up", "drop off"),
}
TAXI_STOPS = [0, 4, 20, 23]
TAXI_WALLS = [1, 6, 15, 17, 20, 22]
"""Cells with a wall to their right."""
FIELDS = {
    "--discount": "Fill in the discount",
    "--initial": "Fill in where episodes start: a state, or uniform",
}
"""What the page offers instead of options of the command line."""
LAKE = {"S": "start", "F": "ice", "H": "hole", GOAL: "goal"}


@dataclass(frozen=True, eq=False)
class Stage:
    """A world with its costs, and how it is shown."""

    title: str
    world: World
    basis: CostBasis
    board: dict[str, Any]
    most_steps: int
    """After so many steps an episode is truncated."""
    choice: dict[str, Any] | None = None
    """What it was built from, where that can be done again."""


def build(choice: Any, directory: Path) -> Stage:
    """The stage that a choice describes, or an error that says what is wrong with it."""
    if not isinstance(choice, dict):
        raise InvalidWorld("the choice of a world is not an object", "Send an object with a kind")
    kinds = {"grid": _grid, "driving": _driving, "gymnasium": _gymnasium, "file": _file}
    make = kinds.get(str(choice.get("kind")))
    if make is None:
        raise InvalidWorld(
            f"there is no kind of world {choice.get('kind')!r}", f"Take one of {', '.join(kinds)}"
        )
    stage = make(choice, directory)
    return stage if choice["kind"] == "file" else replace(stage, choice=choice)


def restored(choice: Any, title: str, world: World, basis: CostBasis, most_steps: int) -> Stage:
    """The stage of a saved world, shown as it was chosen where that gives this very world."""
    require_size(world)
    if isinstance(choice, dict) and choice.get("kind") in ("grid", "driving", "gymnasium"):
        with suppress(JourneymanError):
            stage = build(choice, Path())
            if world_digest(stage.world) == world_digest(world):
                return replace(stage, title=title, world=world, basis=basis, most_steps=most_steps)
    return Stage(title, world, basis, board_of(world), most_steps)


# Numbers and texts of a choice


def _number(choice: Mapping[str, Any], name: str, low: float, high: float, usual: float) -> float:
    value = choice.get(name, usual)
    sound = isinstance(value, int | float) and not isinstance(value, bool)
    if not sound or not low <= value <= high:
        raise InvalidWorld(f"{name} is {value!r}", f"Give a number from {low:g} to {high:g}")
    return float(value)


def _steps(choice: Mapping[str, Any], usual: int) -> int:
    value = _number(choice, "most_steps", 1, MOST_STEPS, usual)
    if value != int(value):
        raise InvalidWorld(f"most_steps is {value}", "Give a whole number")
    return int(value)


def _text(choice: Mapping[str, Any], name: str) -> str:
    value = choice.get(name)
    if not isinstance(value, str) or not value or len(value) > 400:
        raise InvalidWorld(f"{name} is missing", f"Give {name} as a text")
    return value


def _options(choice: Mapping[str, Any]) -> dict[str, str]:
    given = choice.get("options") or {}
    if not isinstance(given, dict) or not all(isinstance(one, str) for one in given.values()):
        raise InvalidWorld("options are not texts by name", 'Give for example {"discount": "0.95"}')
    return {str(name): value for name, value in given.items() if value != ""}


# Grids drawn by hand


def _grid(choice: Mapping[str, Any], directory: Path) -> Stage:
    from journeyman.gallery.grid_world import floor

    cells = _drawn(choice.get("cells"))
    size, places = len(cells), [(row, column) for row, line in enumerate(cells)
                                for column, _ in enumerate(line)]  # fmt: skip
    look = {(row, column): cells[row][column] for row, column in places}
    walls = [cell for cell in places if look[cell] == WALL]
    goals = [cell for cell in places if look[cell] == GOAL]
    free = [cell for cell in places if look[cell] != WALL]
    starts = _starts(choice.get("starts"), look)
    law = np.array([cell in starts for cell in free], dtype=float)
    world = floor(
        size, walls=walls, goals=goals, initial=law / law.sum(),
        slip=_number(choice, "slip", 0, 1, 0.2),
        discount=_number(choice, "discount", LEAST_DISCOUNT, MOST_DISCOUNT, 0.95),
    )  # fmt: skip
    names = _region_names(choice.get("regions"))
    used = sorted({look[cell] for cell in free}, key=lambda one: (one == GOAL, one))
    index = {one: place for place, one in enumerate(used)}
    rows = np.arange(len(free) + 1)
    indicators = sparse.csr_array(
        (np.ones(len(free)), [index[look[cell]] for cell in free], rows),
        shape=(len(free), len(used)),
    )
    named = {one: "goal" if one == GOAL else names[int(one) - 1] for one in used}
    board = _grid_board(world, (size, size), [look[cell] for cell in places])
    board["legend"] = [{"look": one, "name": named[one]} for one in used]
    if walls:
        board["legend"].append({"look": WALL, "name": "wall"})
    basis = CostBasis(indicators, list(named.values()))
    return Stage(f"Grid, {size} x {size}", world, basis, board, _steps(choice, 60))


def _drawn(cells: Any) -> list[str]:
    """Rows of a square drawing."""
    known = {WALL, GOAL, *"12345678"[:MOST_REGIONS]}
    size = len(cells) if isinstance(cells, list) else 0
    if not 2 <= size <= LARGEST_GRID:
        raise InvalidWorld(
            f"the drawing has {size} rows", f"Draw a square of 2 to {LARGEST_GRID} rows"
        )
    for number, line in enumerate(cells):
        if not isinstance(line, str) or len(line) != size:
            raise InvalidWorld(f"row {number} does not have {size} cells", "Draw a square")
        strange = next((one for one in line if one not in known), None)
        if strange is not None:
            raise InvalidWorld(
                f"row {number} holds {strange!r}", f"Draw with {''.join(sorted(known))}"
            )
    return list(cells)


def _starts(given: Any, look: Mapping[tuple[int, int], str]) -> set[tuple[int, int]]:
    """Cells in which episodes start; by default every free cell that is not a goal."""
    usual = {cell for cell, one in look.items() if one not in (WALL, GOAL)}
    if not usual:
        raise InvalidWorld("no cell is left to start in", "Leave a cell without wall and goal")
    if not given:
        return usual
    try:
        chosen = {(int(row), int(column)) for row, column in given}
    except (TypeError, ValueError):
        raise InvalidWorld("starts are not pairs of row and column", "Give [[0, 0], ...]") from None
    wrong = next((cell for cell in sorted(chosen) if cell not in usual), None)
    if wrong is not None:
        raise InvalidWorld(f"the start {wrong} is not a free cell", "Start beside walls and goals")
    return chosen


def _region_names(given: Any) -> list[str]:
    names = list(given) if isinstance(given, list) else []
    if len(names) > MOST_REGIONS or not all(isinstance(one, str) for one in names):
        raise InvalidWorld("regions are not at most 8 names", "Give a list of texts")
    names = [one.strip()[:LONGEST_NAME] for one in names]
    names += [""] * (MOST_REGIONS - len(names))
    names = [one or f"region {place + 1}" for place, one in enumerate(names)]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None or "goal" in names:
        raise InvalidWorld(
            f"two regions are called {twice or 'goal'!r}", "Give every region a name of its own"
        )
    return names


def _grid_board(world: World, sides: tuple[int, int], looks: list[str]) -> dict[str, Any]:
    """The board of a world whose states are the cells of a plane grid, one on each."""
    assert world.coordinates is not None
    rows, columns = sides
    places = (world.coordinates @ [columns, 1]).astype(int)
    if world.sink is not None:
        places[world.sink] = -1
    cells = np.full(rows * columns, -1)
    cells[places[places >= 0]] = np.flatnonzero(places >= 0)
    return {
        "kind": "grid", "rows": rows, "columns": columns, "cells": cells.tolist(),
        "looks": looks, "place": places.tolist(), "map": True, "legend": [],
        "actions": _keys(world),
    }  # fmt: skip


def _keys(world: World) -> list[dict[str, Any]]:
    """Every action with its name and key: arrows for directions, numbers for others."""
    names = action_names(world)
    left = iter(OTHER_KEYS)
    return [
        {"name": name, "key": ARROWS.get(name.lower()) or next(left, "")} for name in names
    ]  # fmt: skip


def action_names(world: World) -> list[str]:
    """A name for every action number."""
    if world.action_names is not None:
        return list(world.action_names)
    return [f"action {number}" for number in range(world.pairs.width)]


# Examples


def _driving(choice: Mapping[str, Any], directory: Path) -> Stage:
    from journeyman.gallery import driving_simulator as road

    world, basis, _ = road.driving()
    shown = [
        {"x": road.POSITIONS[position], "speed": speed, "lane": road.LANES[lane],
         "distance": road.DISTANCES[distance]}
        for position, speed, lane, distance in np.ndindex(*road.SHAPE)
    ]  # fmt: skip
    board = {
        "kind": "road", "map": False, "legend": [], "positions": list(road.POSITIONS),
        "lanes": list(road.LANES), "states": [*shown, None],
        "speeds": ["slow", "middle", "fast"],
        "actions": [
            {"name": "left", "key": "ArrowLeft"}, {"name": "straight", "key": "ArrowUp"},
            {"name": "right", "key": "ArrowRight"},
        ],
    }  # fmt: skip
    return Stage("Driving", world, basis, board, _steps(choice, 40))


def _gymnasium(choice: Mapping[str, Any], directory: Path) -> Stage:
    """A toy-text environment; its costs are how likely a step has each of its rewards."""
    from journeyman.adapters.world_sources import make_environment

    name = _text(choice, "name")
    if name not in TOY_TEXT:
        raise InvalidWorld(f"{name!r} is not offered", f"Take one of {', '.join(TOY_TEXT)}")
    options = _options(choice)
    known = {"map_name", "is_slippery"} if name == "FrozenLake-v1" else set()
    if set(options) - known:
        raise InvalidWorld(f"{name} has no option {min(set(options) - known)!r}", "Leave it out")
    discount = _number(choice, "discount", LEAST_DISCOUNT, MOST_DISCOUNT, 0.95)
    environment = make_environment(name, options)
    try:
        table = environment.unwrapped.P
        desc = getattr(environment.unwrapped, "desc", None)
        found = read(environment)
    finally:
        environment.close()
    sides, places = _toy_places(name, desc, len(table))
    coordinates = np.column_stack([*np.divmod(np.append(places, 0), sides[1])]).astype(float)
    world = World(
        found.transition, found.initial, discount, sink=len(table),
        coordinates=coordinates if name != "Taxi-v4" else None, action_names=TOY_ACTIONS[name],
        state_names=_taxi_names() if name == "Taxi-v4" else None,
    )  # fmt: skip
    if name == "Taxi-v4":
        board = _taxi_board(world, places)
    else:
        board = _grid_board(world, sides, _toy_looks(name, desc))
        board["legend"] = _toy_legend(name)
    board["ends"] = _ends(table, places)
    limit = 200 if options.get("map_name") == "8x8" else int(TOY_TEXT[name]["limit"])
    basis = _reward_indicators(table, world)
    return Stage(str(TOY_TEXT[name]["title"]), world, basis, board, _steps(choice, limit))


def _toy_places(name: str, desc: Any, count: int) -> tuple[tuple[int, int], np.ndarray[Any, Any]]:
    """Rows and columns, and the cell of every state."""
    if name == "Taxi-v4":
        return (5, 5), np.arange(count) // 20
    return (tuple(desc.shape) if name == "FrozenLake-v1" else (4, 12)), np.arange(count)


def _toy_looks(name: str, desc: Any) -> list[str]:
    if name == "FrozenLake-v1":
        return [GOAL if cell == b"G" else cell.decode() for cell in desc.ravel()]
    return [*"F" * 36, "S", *"H" * 10, GOAL]


def _toy_legend(name: str) -> list[dict[str, str]]:
    words = LAKE if name == "FrozenLake-v1" else LAKE | {"F": "ground", "H": "cliff"}
    return [{"look": look, "name": word} for look, word in words.items()]


def _taxi_board(world: World, places: np.ndarray[Any, Any]) -> dict[str, Any]:
    looks = ["F"] * 25
    for place, letter in zip(TAXI_STOPS, "RGYB", strict=True):
        looks[place] = letter
    return {
        "kind": "grid", "rows": 5, "columns": 5, "looks": looks, "map": False,
        "cells": list(range(25)), "place": [*places.tolist(), -1], "actions": _keys(world),
        "legend": [{"look": "F", "name": "street"},
                   *({"look": one, "name": f"stop {one}"} for one in "RGYB"),
                   {"look": "F", "mark": "passenger", "name": "passenger"},
                   {"look": "F", "mark": "flag", "name": "destination"}],
        "names": list(world.state_names or ()), "bars": TAXI_WALLS, "stops": TAXI_STOPS,
    }  # fmt: skip


def _taxi_names() -> list[str]:
    stops = ("R", "G", "Y", "B", "the taxi")
    return [
        f"row {row + 1}, column {column + 1}; passenger {'in' if who == 4 else 'at'} {stops[who]}, "
        f"to {stops[to]}"
        for row, column, who, to in np.ndindex(5, 5, 5, 4)
    ] + ["the episode is over"]


def _ends(table: Any, places: Any) -> dict[str, list[list[float]]]:
    """For every pair that can end an episode, the cells where it does, with probabilities: the
    world itself has one state for all ends."""
    ends = {}
    width = len(table[0])
    for state in range(len(table)):
        for action in range(width):
            branches = [
                [int(places[int(target)]), float(probability)]
                for probability, target, _, done in table[state][action]
                if done and probability > 0
            ]
            if branches:
                ends[str(state * width + action)] = branches
    return ends


def _reward_indicators(table: Any, world: World) -> CostBasis:
    """One cost for every reward that the table holds, apart for steps that end the episode: the
    probability that a step has it. The environment's own reward is a combination of them."""
    width, kinds = len(table[0]), dict[tuple[float, bool], int]()
    entries: list[tuple[int, tuple[float, bool], float]] = []
    for state in range(len(table)):
        for action in range(width):
            for probability, _, reward, done in table[state][action]:
                kind = (float(reward), bool(done))
                kinds.setdefault(kind, len(kinds))
                entries.append((state * width + action, kind, float(probability)))
    matrix = np.zeros((world.num_pairs, len(kinds)))
    for pair, kind, probability in entries:
        matrix[pair, int(kinds[kind])] += probability
    names = [f"{'end' if done else 'step'} with reward {reward:g}" for reward, done in kinds]
    return CostBasis(matrix, names)


# Files


def _file(choice: Mapping[str, Any], directory: Path) -> Stage:
    """A world and costs from files below the directory, by the readers of the command line."""
    from journeyman.adapters.cost_sources import built_in_costs, read_costs
    from journeyman.adapters.world_sources import read_world

    name, costs = _text(choice, "world"), _text(choice, "costs")
    path = inside(directory, name)
    if path.suffix.lower() not in WORLD_SUFFIXES:
        raise InvalidFile(f"{name} is not a world file", f"Take {', '.join(WORLD_SUFFIXES)}")
    world = _naming(name, path, lambda: read_world(path, options=_options(choice)))
    require_size(world)
    basis = None
    if ":" in costs or "." not in costs:
        basis = built_in_costs(costs, world)
        if basis is None:
            raise InvalidInput(
                f"there is no set of costs {costs!r}",
                "Give a file, or state-indicator, coordinates, macro-cells:4 or time",
            )
    else:
        place = inside(directory, costs)
        basis = _naming(costs, place, lambda: read_costs(str(place), world))
    return Stage(path.stem, world, basis, board_of(world), _steps(choice, 100))


def _naming(name: str, path: Path, read_it: Any) -> Any:
    """What a reader returns; its errors name file and fields as the page does."""
    try:
        return read_it()
    except InvalidInput as fault:
        what, remedy = (one.replace(str(path), name) for one in (fault.what, fault.remedy))
        fields = (own for option, own in FIELDS.items() if option in remedy)
        raise type(fault)(what, next(fields, remedy)) from fault


def require_size(world: World) -> None:
    """Refuse what a page cannot show and a key press could not answer."""
    if world.layers is not None or world.has_goal or world.averages is not None:
        raise InvalidWorld(
            "the studio takes worlds of discounted costs, without a horizon",
            "Give a discount below 1; journeyman learn takes the others",
        )
    if world.num_states > MOST_STATES or world.num_pairs > MOST_PAIRS_SHOWN:
        raise InvalidWorld(
            f"the world has {world.num_states:,} states, more than the {MOST_STATES:,} of a page",
            "Use journeyman learn for it",
        )


def board_of(world: World) -> dict[str, Any]:
    """A map where the coordinates are those of a plane grid, a list of actions elsewhere."""
    from journeyman.report.grid_maps import grid_of

    layout = grid_of(world)
    names = list(world.state_names) if world.state_names else None
    if layout is None or max(layout.cells.max(axis=0)) >= LARGEST_GRID:
        return {
            "kind": "list", "map": False, "legend": [], "names": names, "actions": _keys(world),
        }  # fmt: skip
    rows, columns = (int(side) + 1 for side in layout.cells.max(axis=0))
    places = np.full(world.num_states, -1)
    places[layout.states] = layout.cells @ [columns, 1]
    cells = np.full(rows * columns, -1)
    cells[places[layout.states]] = layout.states
    looks = ["1" if state >= 0 else WALL for state in cells]
    resting = np.flatnonzero(world.absorbing & (places >= 0))
    for state in resting:
        looks[places[state]] = GOAL
    legend = [{"look": "1", "name": "floor"}]
    legend += [{"look": GOAL, "name": "end"}] * bool(resting.size)
    legend += [{"look": WALL, "name": "wall"}] * bool((cells < 0).any())
    return {
        "kind": "grid", "rows": rows, "columns": columns, "cells": cells.tolist(), "looks": looks,
        "place": places.tolist(), "map": True, "legend": legend, "actions": _keys(world),
        "names": names,
    }  # fmt: skip


def inside(directory: Path, name: str) -> Path:
    """The file or directory `name` below `directory`; no way leads out of it."""
    refusal = InvalidFile(
        f"{name!r} is not a file of the chosen directory", "Give a path below it, without .."
    )
    if "\0" in name or "\\" in name or name.startswith("/"):
        raise refusal
    path = directory
    for part in name.split("/"):
        if part in ("", ".", ".."):
            raise refusal
        path = path / part
        if path.is_symlink():
            raise refusal
    if not path.exists() or not path.resolve().is_relative_to(directory.resolve()):
        raise refusal
    return path


def listed(directory: Path) -> Iterator[Path]:
    """Files and directories below `directory`, a few levels deep, without links and hidden ones."""
    found, waiting = 0, [(directory, 0)]
    while waiting:
        place, depth = waiting.pop(0)
        try:
            inner = sorted(place.iterdir())
        except OSError:
            continue
        for path in inner:
            if path.name.startswith(".") or path.is_symlink():
                continue
            found += 1
            if found > 100 * MOST_LISTED:
                return
            yield path
            if path.is_dir() and depth < DEEPEST:
                waiting.append((path, depth + 1))
