"""Cost features from every kind of source, by the form of its name.

    costs.csv, costs.npz       a table: one row per state or per state-action pair
    model.umb                  rewards and labels of a model checker's model
    state-indicator, pair-indicator, coordinates, macro-cells:4, time
                               built-in sets
    gallery:grid, icu-sepsis   the costs of an example; options are those of its world
    gym:FrozenLake-v1          the mean reward of every pair; options are those of its world
    module:function            called with the world; returns a basis, a table, or (table, names)

Tables hold costs, lower is better; `rewards:` in front of a table, a set or a function says that
higher is. `module:function` *runs that module's code*, as typed by the user: it is the only source
that does, besides environments, and no file can ask for it.
"""

import importlib
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.adapters.npz_arrays import NpzArrays, open_npz
from journeyman.adapters.source_options import MEMORY_LIMIT, require_memory
from journeyman.adapters.umb_files import read_umb_costs
from journeyman.adapters.world_sources import (
    GALLERY,
    GYMNASIUM,
    ICU_SEPSIS,
    NO_OPTIONS,
    make_environment,
    read_gallery,
)
from journeyman.arrays import FloatArray, IntArray, first_true
from journeyman.costs import CostBasis
from journeyman.costs.basis import KEYS, numbers_rows
from journeyman.errors import InvalidCosts, InvalidFile, JourneymanError
from journeyman.tables import (
    FRAME,
    Ids,
    Table,
    WorldNames,
    csv_table,
    frame_table,
    is_frame,
    plain_name,
)
from journeyman.world import World, expected_rewards
from journeyman.world.pairs import LARGEST_NUMBER, MOST_NAMED

REWARDS = "rewards:"


def read_costs(source: Any, world: World, *, options: Mapping[str, str] = NO_OPTIONS) -> CostBasis:
    """The cost features that `source` names, one row per state or pair of `world`; a data frame is
    read as a CSV file is.

    >>> from journeyman.adapters.world_sources import read_world
    >>> grid = read_world("gallery:grid", options={"size": "8"})
    >>> read_costs("macro-cells:2", grid).names
    ('cell 0,0', 'cell 0,1', 'cell 1,0', 'cell 1,1')
    """
    if is_frame(source):
        return _from_table(source, world)
    source = os.fspath(source)
    if source.startswith(REWARDS):
        given = read_costs(source.removeprefix(REWARDS), world, options=options)
        if given.rewards:
            raise InvalidCosts(f"{source} are rewards anyway", f"Leave {REWARDS!r} out")
        return CostBasis.from_rewards(given.matrix, given.names).noted(given.note)
    basis = _read(source, world, options)
    basis.on(world)
    return basis


def runs_code(source: str) -> bool:
    """Whether reading `source` runs code of a module the user has named."""
    module, colon, function = source.removeprefix(REWARDS).partition(":")
    names = [*module.split("."), function]
    known = f"{module}:" in (GALLERY, GYMNASIUM)
    return bool(colon) and not known and all(name.isidentifier() for name in names)


def _read(source: str, world: World, options: Mapping[str, str]) -> CostBasis:
    if source.startswith(GALLERY) or source == ICU_SEPSIS:
        return _of_example(source, world, options)
    if source.startswith(GYMNASIUM):
        return _of_environment(source, world, options)
    if options:
        raise InvalidCosts(f"{source} takes no options", f"Leave out {', '.join(options)}")
    found = _from_file(source, world) or built_in_costs(source, world)
    if found is not None:
        return found
    if runs_code(source):
        return _by_function(source, world)
    raise InvalidCosts(
        f"{source!r} is not a source of costs",
        f"Give a .csv, .npz or .umb file, {', '.join(PLAIN)}, macro-cells:4, gallery:NAME, "
        "gym:NAME, or module:function",
    )


def _from_file(source: str, world: World) -> CostBasis | None:
    """The costs in a file, or None when the name is not that of one."""
    suffix = Path(source.removesuffix(".gz").removesuffix(".xz")).suffix.lower()
    if suffix == ".umb":
        return CostBasis(*read_umb_costs(source, world))
    if source.lower().endswith(".csv"):
        return _from_table(source, world)
    return _from_npz(source, world) if source.lower().endswith(".npz") else None


def _from_table(source: Any, world: World) -> CostBasis:
    table = read_cost_table(source, world)
    try:
        basis = CostBasis(table.values, table.names).noted(table.note)
        basis.on(world)
    except InvalidCosts as fault:
        where = FRAME if is_frame(source) else source
        raise InvalidCosts(f"{where}: {fault.what}", fault.remedy) from None
    return basis


def _from_npz(path: str, world: World) -> CostBasis:
    """The table in a file, whose name stands before whatever is wrong with it."""
    try:
        basis = CostBasis(*read_npz_costs(path))
        basis.on(world)
    except InvalidCosts as fault:
        raise InvalidCosts(f"{path}: {fault.what}", fault.remedy) from None
    return basis


def _of_example(source: str, world: World, options: Mapping[str, str]) -> CostBasis:
    name = f"{GALLERY}icu_sepsis" if source == ICU_SEPSIS else source
    theirs, basis = read_gallery(name, options)
    same = theirs.pairs == world.pairs and theirs.transition.shape == world.transition.shape
    if not same or (theirs.transition != world.transition).nnz:
        raise InvalidCosts(
            f"the costs of {source} belong to another world ({theirs!r})",
            "Give the options with which the world was made",
        )
    return basis


def _of_environment(source: str, world: World, options: Mapping[str, str]) -> CostBasis:
    environment = make_environment(source.removeprefix(GYMNASIUM), options)
    try:
        rewards = expected_rewards(environment)
    finally:
        environment.close()
    if rewards.size != world.num_pairs:
        raise InvalidCosts(
            f"{source} has {rewards.size} pairs, the world {world.num_pairs}",
            "Give the options with which the world was made",
        )
    return CostBasis.from_rewards(rewards, ["reward"])


def _by_function(source: str, world: World) -> CostBasis:
    """Call the function that the user has named."""
    module_name, _, name = source.partition(":")
    here, known = str(Path.cwd()), list(sys.path)
    sys.path.insert(0, here)
    try:
        function = getattr(importlib.import_module(module_name), name, None)
        if not callable(function):
            raise InvalidCosts(f"{module_name} has no function {name!r}", "Check the spelling")
        made = function(world)
    except JourneymanError:
        raise
    except ModuleNotFoundError as fault:
        raise InvalidCosts(
            f"there is no module {fault.name!r}", "Install it, or start where its file lies"
        ) from fault
    except Exception as fault:  # whatever the user's own code raises
        raise InvalidCosts(
            f"{source} failed: {type(fault).__name__}: {fault}", "Repair the function"
        ) from fault
    finally:
        sys.path[:] = known
    return _as_basis(made)


def _as_basis(made: Any) -> CostBasis:
    if isinstance(made, CostBasis):
        return made
    if isinstance(made, tuple) and len(made) == 2 and not np.isscalar(made[1]):
        return CostBasis(made[0], list(made[1]))
    return CostBasis(made)


TABLES = ("costs", "matrix", "features", "feature_matrix")
NAMES = "names"
NAME_LIMIT = 10_000
AS_IN_WORLD = "Write states and actions as in the world: by their numbers, or their names"
PER_BYTE = 16
"""Bytes of memory for each byte of text, at most: a digit and a comma become a float in a list."""


@dataclass(frozen=True, eq=False)
class CostTable:
    """Numbers, their names, and what was left out, in words; nothing was if that is empty."""

    values: FloatArray
    names: list[str]
    note: str


def read_cost_table(source: Any, world: World) -> CostTable:
    """One row per state or pair, and the names of the costs, which stand in the first line of a CSV
    file, or are those of the columns of a data frame.

    Columns called `state` and `action` say which row is whose, in any order, by the numbers or the
    names that states and actions have in the world; without them rows are taken in the order of the
    world's states or pairs, or of all states and action numbers. Rows of actions that a state does
    not offer are left out. A column that numbers the rows (`id`, `machine_id`, `index`, or the
    nameless first column that data frames write) is not a cost. The end that a world has added for
    terminated episodes, and numbers that occur nowhere in a log, cost nothing if the table has no
    row for them: who wrote it may not know of them.
    """
    given = frame_table(source) if is_frame(source) else csv_table(source)
    if not is_frame(source):
        require_memory(source, PER_BYTE * Path(source).stat().st_size, MEMORY_LIMIT)
    table, known = given.knowing(KEYS), WorldNames.of(world)
    _require_columns(table)
    keys = {
        "state": Ids(table, "state", known.states, AS_IN_WORLD, LARGEST_NUMBER),
        "action": Ids(table, "action", known.actions, AS_IN_WORLD, LARGEST_NUMBER),
    }
    lines: list[int] = []
    values: list[list[float]] = []
    for line, row in table.rows:
        values.append(_numbers(table, line, row, keys))
        lines.append(line)
    if not values:
        raise InvalidFile(
            f"{table.name} holds no costs", "Give a line with names, then a row per state"
        )
    return _Reading(table.name, table.header, np.array(values), lines, table.unit).on(world)


@dataclass(frozen=True, eq=False)
class _Reading:
    """A table of numbers with the names of its columns and the line of every row."""

    path: str
    header: list[str]
    values: FloatArray
    lines: list[int]
    unit: str
    """What is counted: lines of a file, rows of a data frame."""

    def at(self, row: int) -> str:
        """The place of a row, for messages."""
        return f"{self.path}, {self.unit} {self.lines[row]}"

    def on(self, world: World) -> CostTable:
        keys = {name: place for place, name in enumerate(self.header) if name in KEYS}
        numbering = [
            place for place, name in enumerate(self.header) if numbers_rows(name, first=place == 0)
        ]
        used = {*keys.values(), *numbering}
        costs = [place for place in range(len(self.header)) if place not in used]
        names = [self.header[place] for place in costs]
        _require_names(self.path, names)
        if not costs:
            raise InvalidFile(f"{self.path} has no column of costs", "Add one column per cost")
        notes = [f"the column {self.header[place]!r} numbers the rows" for place in numbering]
        by_key = {name: self.values[:, place].astype(np.int64) for name, place in keys.items()}
        if by_key:
            values, left_out, free = self._ordered(by_key, self.values[:, costs], world)
        else:
            for place in numbering:
                self._require_in_order(place)
            values, left_out, free = self._as_listed(self.values[:, costs], world)
        if left_out:
            notes.append(f"{left_out} rows are for actions that their states do not offer")
        parts = [f"{' and '.join(notes)}; left out"] if notes else []
        if free.size:
            parts.append(_free_in_words(free, world))
        return CostTable(values, names, f"{self.path}: {'; '.join(parts)}" if parts else "")

    def _require_in_order(self, place: int) -> None:
        """Rows that are numbered otherwise than they stand may be meant in another order."""
        column = self.values[:, place]
        wrong = column != column[0] + np.arange(column.size)
        if wrong.any() and not np.isnan(column).any():
            row = int(np.argmax(wrong))
            raise InvalidCosts(
                f"{self.at(row)}: {self.header[place]!r} is {column[row]:g}, "
                f"after {column[row - 1]:g}: the rows do not stand in the order of their numbers",
                "Call the column state if it says whose costs these are, and add a column action "
                "if they differ by action; if it does not, leave it out",
            )

    def _as_listed(self, values: FloatArray, world: World) -> tuple[FloatArray, int, IntArray]:
        none = np.zeros(0, dtype=np.int64)
        if len(values) == world.sink == world.num_states - 1:
            return np.vstack([values, np.zeros_like(values[:1])]), 0, np.array([world.sink])
        rows, complete = len(values), world.num_states * world.pairs.width
        if rows not in (world.num_states, world.num_pairs, complete):
            also = "" if world.pairs.is_complete else f" ({complete} with all action numbers)"
            raise InvalidCosts(
                f"{self.path} has {rows} rows of costs, the last in {self.unit} {self.lines[-1]}; "
                f"the world has {world.num_states} states and {world.num_pairs} state-action pairs"
                f"{also}",
                "Give one row per state, or one per pair; columns state and action say which is "
                "whose",
            )
        if rows in (world.num_states, world.num_pairs):
            return values, 0, none
        kept = np.asarray(world.pairs.per_pair(self.path, values, InvalidCosts))
        return kept, rows - len(kept), none

    def _ordered(
        self, keys: dict[str, IntArray], values: FloatArray, world: World
    ) -> tuple[FloatArray, int, IntArray]:
        """Rows in the order of the world, how many of them it has no place for, and states that
        have none and cost nothing.
        """
        states, known = keys["state"], np.ones(len(values), dtype=bool)
        self._require_states(states, world)
        if "action" in keys:
            rows, known = self._pairs(states, keys["action"], world)
            homes, what = world.pairs.states, "pairs"
        else:
            rows, homes, what = states, np.arange(world.num_states), "states"
        size = homes.size
        counts = np.bincount(rows[known], minlength=size)
        free = np.setdiff1d(_without_costs(world), states[known])
        counts[np.isin(homes, free)] = 1
        if (row := first_true(counts != 1)) is not None:
            state = world.with_names(f"state {row}")
            where = world.describe_pair(row) if "action" in keys else state
            found = [self.lines[k] for k in np.flatnonzero(known & (rows == row))[:2]]
            there = f" ({self.unit}s {found[0]} and {found[1]})" if len(found) > 1 else ""
            missing = int((counts == 0).sum())
            also = f"; {missing} {what} have none" if missing > 1 else ""
            raise InvalidCosts(
                f"{self.path} has {counts[row]} rows for {where}{there}, and {rows.size} in "
                f"all{also}",
                f"Give one row for each of the {size} {what}",
            )
        ordered = np.zeros((size, values.shape[1]))
        ordered[rows[known]] = values[known]
        return ordered, int((~known).sum()), free

    def _require_states(self, states: IntArray, world: World) -> None:
        if (row := first_true(states >= world.num_states)) is not None:
            raise InvalidCosts(
                f"{self.at(row)}: state is {states[row]}, outside 0..{world.num_states - 1}",
                "Number states as the world does",
            )

    def _pairs(self, states: IntArray, actions: IntArray, world: World) -> tuple[IntArray, Any]:
        """The pair of every row, and whether there is one; only records may lack an action."""
        pairs = world.pairs
        known = pairs.offers(states, actions)
        possible = actions < pairs.width if not pairs.is_complete else known
        if (row := first_true(~known & ~possible & (world.observed_actions is None))) is not None:
            raise InvalidCosts(
                f"{self.at(row)}: action is {actions[row]}, but state "
                f"{states[row]} has {pairs.actions_in_words(int(states[row]))}",
                "Number actions as the world does",
            )
        rows = np.zeros(states.size, dtype=np.int64)
        rows[known] = pairs.index(states[known], actions[known], InvalidCosts)
        return rows, known


def _without_costs(world: World) -> IntArray:
    """The added end of episodes, and what an estimated world never enters nor leaves."""
    inert = np.zeros(world.num_states, dtype=bool)
    if world.transition_counts is not None:
        laws = (world.transition if world.support is None else world.support).tocoo()
        entered = laws.col[(world.pairs.states[laws.row] != laws.col) & (laws.data > 0)]
        inert = world.absorbing & (world.initial == 0)
        inert[entered] = False
        inert[world.pairs.states[world.transition_counts > 0]] = False
    if world.sink is not None:
        inert[world.sink] = True
    return np.flatnonzero(inert)


def _free_in_words(states: IntArray, world: World) -> str:
    known = [f"{world.sink}, the end that was added for terminated episodes"]
    names = world.state_names
    others = [str(x) if names is None else names[x] for x in states if x != world.sink]
    shown = others[:MOST_NAMED]
    if len(others) > len(shown):
        shown.append(f"... ({len(others)} in all)")
    unseen = [f"{', '.join(shown)}, which no recorded step enters or leaves"] if others else []
    ends = known if world.sink in states else []
    count = "state" if states.size == 1 else "states"
    return f"no row for {count} {' and for '.join([*unseen, *ends])}: costs there are taken as 0"


def read_npz_costs(path: str) -> tuple[FloatArray, Sequence[str] | None]:
    """The table of an NPZ file and its names, if it has any."""
    with open_npz(path, MEMORY_LIMIT) as arrays:
        others = sorted(arrays.members - {NAMES})
        found = [name for name in TABLES if name in others] or others
        if arrays.is_native or len(found) != 1:
            raise InvalidFile(
                f"{path} holds {', '.join(others) or 'no array'}, and not one table of costs",
                f"Name the table {TABLES[0]!r}",
            )
        return np.asarray(arrays.read(found[0])), _stored_names(path, arrays)


def _stored_names(path: str, arrays: NpzArrays) -> Sequence[str] | None:
    if NAMES not in arrays.members:
        return None
    found = arrays.announced(NAMES)
    if found.dtype.kind != "U" or found.size > NAME_LIMIT:
        raise InvalidFile(f"{path}: names holds {found.dtype}", "Give an array of texts")
    return [str(name) for name in arrays.read(NAMES).ravel()]


def _numbers(table: Table, line: int, row: list[str], keys: Mapping[str, Ids]) -> list[float]:
    """The cells of a row as numbers; names of states and actions as theirs."""
    header, where = table.header, table.at(line)
    if len(row) != len(header):
        raise InvalidFile(
            f"{where}: {len(row)} cells, the first line names {len(header)}",
            "Give one cell for each column",
        )
    numbers = []
    for place, (name, cell) in enumerate(zip(header, row, strict=True)):
        text = cell.strip()
        if name in keys:
            numbers.append(float(keys[name].number(text, line, name)))
            continue
        value = _number(cell)
        if numbers_rows(name, first=place == 0):
            value = math.nan if value is None else value
        elif value is None:
            found = repr(text[:40]) if text else "empty"
            raise InvalidFile(
                f"{where}: {name} is {found}, expected a number", "Give plain numbers"
            )
        elif not math.isfinite(value):
            raise InvalidCosts(
                f"{where}: {name} is {value}, which is not finite", "Give finite costs"
            )
        numbers.append(value)
    return numbers


def _require_columns(table: Table) -> None:
    for key in KEYS:
        if [plain_name(name) for name in table.header].count(key) > 1:
            raise InvalidFile(f"{table.name} has two columns {key!r}", "Give each its own name")
    if "action" in table.header and "state" not in table.header:
        raise InvalidFile(
            f"{table.name} has the column action, but not state", "Add the column state"
        )


def _require_names(path: str, header: list[str]) -> None:
    """A first line of numbers is a row of costs and not their names."""
    unnamed = next((name for name in header if _number(name or "0") is not None), None)
    if unnamed is not None:
        raise InvalidFile(
            f"{path}: a cost is named {unnamed!r}", "Name the columns in the first line"
        )


def _number(text: str) -> float | None:
    """What a cell says, or None if that is no number."""
    try:
        return float(text)
    except ValueError:
        return None


MOST_COSTS = 100_000
"""More indicators than this help nobody, and take gigabytes later on."""


def built_in_costs(source: str, world: World) -> CostBasis | None:
    """The set called `source`, or None when there is none of that name.

    state-indicator          one cost per state: how long the state is visited
    pair-indicator           one cost per state-action pair
    coordinates              the world's own coordinates, each brought to [0, 1]
    macro-cells:4            indicators of 4 x 4 (x 4 ...) boxes of its coordinates
    time                     1 everywhere but in absorbing states: how long an episode lasts
    """
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
