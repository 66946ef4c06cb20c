"""Worlds from every kind of source, by the form of its name.

    world.npz              a file of `World.save`, or arrays in the usual layouts
    model.umb              a Markov decision process of a model checker (also gzip, xz)
    laws.csv, .parquet     known laws: one row state,action,next_state,probability a possible step
    steps.csv, .parquet    a log of steps; the world is estimated and keeps its counts
    gym:FrozenLake-v1      a Gymnasium environment with a table P; options are its arguments
    seals:CliffWorld7x4-v0 a tabular environment of seals
    gallery:grid           a world of the gallery; options are its arguments
    icu-sepsis             ICU-Sepsis, from the package of that name; not for clinical use

Options are texts, as on a command line. A source that has no discount needs `discount`; every
source takes `memory_gb`, the memory that may be used.
"""

import inspect
import math
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import sparse

from journeyman import gallery
from journeyman.adapters.law_tables import read_table
from journeyman.adapters.npz_worlds import read_npz_world, remembering, repaired_law, repaired_rows
from journeyman.adapters.source_options import (
    EVERYWHERE,
    Options,
    arguments_for,
    discount_of,
    goal_of,
    memory_limit,
    require_memory,
    world_bytes,
)
from journeyman.adapters.umb_files import read_umb_world
from journeyman.costs import CostBasis
from journeyman.errors import InvalidInput, InvalidWorld, MissingExtra
from journeyman.gallery import Queues
from journeyman.storage import PathLike
from journeyman.tables import is_frame
from journeyman.world import World
from journeyman.world.conversions import state_major

GALLERY = "gallery:"
USUAL_BRANCHES = 5
"""Next states of a pair in a network of queues."""
GALLERY_NAMES = (
    "driving", "engine_replacement", "garnet", "grid", "highway", "icu_sepsis", "inventory",
    "objectworld", "parking", "queues", "road_network", "shop", "windy_grid",
)  # fmt: skip


def read_gallery_world(source: str, options: Options) -> World:
    """The world of an example."""
    return read_gallery(source, options)[0]


def gallery_example(source: str, options: Options) -> Any:
    """An example of the gallery, unless its sizes alone say that it is too large."""
    name = source.removeprefix(GALLERY).replace("-", "_")
    if name not in GALLERY_NAMES:
        raise InvalidWorld(
            f"the gallery has no {name!r}",
            f"It has {', '.join(GALLERY + known for known in GALLERY_NAMES)}",
        )
    function = getattr(gallery, name)
    given = {key: text for key, text in options.items() if key not in EVERYWHERE}
    arguments = arguments_for(source, function, given)
    _require_size(source, function, arguments, memory_limit(options))
    try:
        return function(**arguments)
    except TypeError as fault:
        raise InvalidWorld(
            f"{source} does not take {dict(given)} ({fault})", "Give arguments of its types"
        ) from fault


def read_gallery(source: str, options: Options) -> tuple[World, CostBasis]:
    """World and costs of an example; those of queues as arrays, if they are small."""
    example = gallery_example(source, options)
    if isinstance(example, Queues):
        pairs = math.prod((example.world.num_states, example.world.num_actions))
        need = world_bytes(example.world.num_states, pairs, USUAL_BRANCHES * pairs)
        require_memory(source, need, memory_limit(options))
        return example.explicit()
    return example.world, example.basis


def _require_size(source: str, function: Any, arguments: dict[str, Any], limit: int) -> None:
    """Refuse a world whose sizes alone say that it is too large."""
    if function.__name__ not in _SIZES:
        return
    defaults = {name: one.default for name, one in inspect.signature(function).parameters.items()}
    sizes = _SIZES[function.__name__](defaults | arguments)
    states, actions, branching, costs = (max(size, 0) for size in sizes)
    pairs = states * actions
    need = world_bytes(states, pairs, pairs * branching) + states * costs * np.dtype(float).itemsize
    require_memory(source, need, limit)


Sizes = tuple[int, int, int, int]
"""States, actions, next states of a pair, and costs in dense tables of states."""
_SIZES: Mapping[str, Callable[[dict[str, Any]], Sizes]] = MappingProxyType({
    "engine_replacement": lambda given: (given["bins"], 2, len(given["increments"]), 0),
    "garnet": lambda given: (given["num_states"], given["num_actions"], given["branching"], 0),
    "grid": lambda given: (given["size"] ** 2, 4, 4, 0),
    "highway": lambda given: (12 * given["length"], 5, 2, 32 * given["sight"]),
    "inventory": lambda given: 3 * (given["capacity"] + 1,) + (0,),
    "objectworld":
        lambda given: (given["size"] ** 2, 5, 5, 2 * given["colours"] * given["size"]),
    "parking": lambda given: (given["width"] * given["aisles"] * 26 * 32, 4, 1, 28),
    "road_network": lambda given: (given["num_links"], 4, 1, 0),
    "shop": lambda given: 3 * (given["capacity"] + 1,) + (0,),
    "windy_grid": lambda given: (given["size"] ** 2, 4, 5, 0),
})  # fmt: skip


GYMNASIUM = "gym:"
STEPS = "steps_at_most"
OWN = ("discount", STEPS, *EVERYWHERE)
"""Options that are not those of an environment."""


def read_gymnasium_world(source: str, options: Options) -> World:
    """The world behind the table `P` of an environment; its options are the arguments."""
    discount = discount_of(source, options)
    steps = {name: text for name, text in options.items() if name == STEPS}
    environment = make_environment(source.removeprefix(GYMNASIUM), options)
    try:
        return World.from_gymnasium(environment, discount, **goal_of(steps))
    finally:
        environment.close()


def make_environment(name: str, options: Options, **settings: Any) -> Any:
    """`gymnasium.make(name, ...)` with arguments of the types its environment expects, and further
    `settings` of `gymnasium.make` itself.

    That runs the code of the environment's package, which the user has named; a name `module:Id-v0`
    has Gymnasium import that module first.
    """
    given = {
        key: text for key, text in options.items() if key not in ("discount", STEPS, *EVERYWHERE)
    }
    try:
        import gymnasium
    except ImportError:
        raise MissingExtra("Gymnasium", "gymnasium") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gymnasium warns of what is refused below
        arguments = arguments_for(name, _creator(gymnasium, name), given) if given else {}
        return _made(lambda: gymnasium.make(name, **arguments, **settings), name, given)


def _creator(gymnasium: Any, name: str) -> Callable[..., Any]:
    """What makes the environment: the arguments of its class are the options."""
    entry = _made(lambda: gymnasium.spec(name.rpartition(":")[2]), name, {}).entry_point
    if isinstance(entry, str):
        entry = gymnasium.envs.registration.load_env_creator(entry)
    made: Callable[..., Any] = entry
    return made


def _made(make: Callable[[], Any], name: str, given: Options) -> Any:
    """What `make` returns, or why Gymnasium, or the environment itself, would not."""
    shown = ", ".join(f"{key}={text}" for key, text in given.items())
    try:
        return make()
    except Exception as fault:  # whatever an environment of somebody else's raises
        known = type(fault).__module__.startswith("gymnasium")
        cause = str(fault) if known else f"{type(fault).__name__}: {fault}"
        raise InvalidWorld(
            f"gymnasium cannot make {name!r}{f' with {shown}' * bool(shown)}: {cause.rstrip('. ')}",
            "Give the id of an installed environment, for example gym:FrozenLake-v1, with "
            "arguments it takes",
        ) from fault


SEALS = "seals:"


def read_seals_world(source: str, options: Options) -> World:
    """The world of a tabular environment; its options are the arguments.

    Its episodes end at a fixed horizon, which is a time limit and not part of the world. Matrices
    in single precision are divided by their sums, as the environment does when it draws.
    """
    discount = discount_of(source, options)
    environment = make_seals(source.removeprefix(SEALS), options)
    try:
        model = environment.unwrapped
        if not hasattr(model, "transition_matrix"):
            raise InvalidWorld(
                f"{source} has no transition matrix",
                "Give a tabular environment of seals, for example seals:CliffWorld7x4-v0",
            )
        rows = sparse.csr_array(state_major(model.transition_matrix, "sax"))
        repaired, error = repaired_rows(rows, rows.dtype)
        return remembering(World(repaired, repaired_law(model.initial_state_dist), discount), error)
    finally:
        environment.close()


def make_seals(name: str, options: Options) -> Any:
    """An environment of seals, whose names stand in a namespace of their own."""
    from importlib.util import find_spec

    if find_spec("seals") is None:
        raise MissingExtra("seals", "seals")
    return make_environment(f"seals:seals/{name.removeprefix('seals/')}", options)


NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
ICU_SEPSIS = "icu-sepsis"


def read_world(source: PathLike | Any, *, options: Mapping[str, str] = NO_OPTIONS) -> World:
    """The world that `source` names, a file or one of the names above; or a data frame (pandas,
    polars, pyarrow) with the columns of a table of laws or of a log.

    >>> world = read_world("gym:FrozenLake-v1", options={"discount": "0.95", "map_name": "8x8"})
    >>> world.num_states, world.sink
    (65, 64)
    >>> read_world("gallery:grid", options={"size": "4"}).num_pairs
    64
    """
    if is_frame(source):
        return read_table(source, options)
    source = os.fspath(source)
    if source == ICU_SEPSIS:
        return read_gallery_world(f"{GALLERY}icu_sepsis", options)
    for prefix, read in PREFIXES.items():
        if source.startswith(prefix):
            return read(source, options)
    read_file = SUFFIXES.get(
        PurePath(source.removesuffix(".gz").removesuffix(".xz")).suffix.lower()
    )
    if read_file is None:
        sheet = source.lower().endswith((".xlsx", ".xls", ".ods"))
        raise InvalidWorld(
            f"{source!r} is not a source of worlds",
            f"{'Export the sheet as CSV. ' if sheet else ''}Give a file ({', '.join(SUFFIXES)}), "
            f"{', '.join(f'{p}NAME' for p in PREFIXES)} or {ICU_SEPSIS}",
        )
    try:
        return read_file(source, options)
    except InvalidInput as fault:
        if source in fault.what:
            raise
        raise type(fault)(f"{source}: {fault.what}", fault.remedy) from fault


Reader = Callable[[str, Options], World]
PREFIXES: Mapping[str, Reader] = {
    GYMNASIUM: read_gymnasium_world,
    SEALS: read_seals_world,
    GALLERY: read_gallery_world,
}
SUFFIXES: Mapping[str, Reader] = {
    ".npz": read_npz_world,
    ".umb": read_umb_world,
    ".csv": read_table,
    ".parquet": read_table,
    ".pq": read_table,
}
