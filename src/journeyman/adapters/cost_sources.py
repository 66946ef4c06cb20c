"""Cost features from every kind of source, by the form of its name.

    costs.csv, .parquet, .npz  a table: one row per state or per state-action pair
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
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.adapters.arrow_files import PARQUET, open_table
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
from journeyman.arrays import FloatArray
from journeyman.costs import CostBasis
from journeyman.costs.cost_tables import read_cost_table
from journeyman.errors import InvalidCosts, InvalidFile, JourneymanError
from journeyman.tables import is_csv, is_frame
from journeyman.world import World, expected_rewards

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
        f"Give a .csv, .parquet, .npz or .umb file, {', '.join(PLAIN)}, macro-cells:4, "
        "gallery:NAME, gym:NAME, or module:function",
    )


def _from_file(source: str, world: World) -> CostBasis | None:
    """The costs in a file, or None when the name is not that of one."""
    suffix = Path(source.removesuffix(".gz").removesuffix(".xz")).suffix.lower()
    if suffix == ".umb":
        return CostBasis(*read_umb_costs(source, world))
    if source.lower().endswith((".csv", *PARQUET)):
        return _from_table(source, world)
    return _from_npz(source, world) if source.lower().endswith(".npz") else None


def _from_table(source: Any, world: World) -> CostBasis:
    """The costs in a CSV or Parquet file, or a data frame."""
    if is_csv(source) and Path(source).is_file():
        require_memory(source, PER_BYTE * Path(source).stat().st_size, MEMORY_LIMIT)
    table = open_table(source, MEMORY_LIMIT, lambda _: True)
    found = read_cost_table(table, world)
    try:
        basis = CostBasis(found.values, found.names).noted(found.note)
        basis.on(world)
    except InvalidCosts as fault:
        raise InvalidCosts(f"{table.name}: {fault.what}", fault.remedy) from None
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
    with modules_here(), named_in(source):
        function = found_in_module(source)
        if not callable(function):
            module, _, name = source.partition(":")
            raise InvalidCosts(f"{module} has no function {name!r}", "Name a function")
        made = function(world)
    return _as_basis(made)


@contextmanager
def modules_here() -> Iterator[None]:
    """Modules in the current directory can be imported, before all others."""
    known = list(sys.path)
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path[:] = known


@contextmanager
def named_in(source: str) -> Iterator[None]:
    """Whatever the user's own code raises, as costs that are refused."""
    try:
        yield
    except JourneymanError:
        raise
    except ModuleNotFoundError as fault:
        raise InvalidCosts(
            f"there is no module {fault.name!r}", "Install it, or start where its file lies"
        ) from fault
    except Exception as fault:
        raise InvalidCosts(
            f"{source} failed: {type(fault).__name__}: {fault}", "Repair the function"
        ) from fault


def found_in_module(source: str) -> Any:
    """What `module:name` means."""
    module, _, name = source.partition(":")
    found = getattr(importlib.import_module(module), name, None)
    if found is None:
        raise InvalidCosts(f"{module} has no function {name!r}", "Check the spelling")
    return found


def _as_basis(made: Any) -> CostBasis:
    if isinstance(made, CostBasis):
        return made
    if isinstance(made, tuple) and len(made) == 2 and not np.isscalar(made[1]):
        return CostBasis(made[0], list(made[1]))
    return CostBasis(made)


TABLES = ("costs", "matrix", "features", "feature_matrix")
NAMES = "names"
NAME_LIMIT = 10_000
PER_BYTE = 16
"""Bytes of memory for each byte of text, at most: a digit and a comma become a float in a list."""


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
