"""Every door through which a world comes in, by the form of its name.

    world.npz              a file of `World.save`, or arrays in the usual layouts
    model.umb              a Markov decision process of a model checker (also gzip, xz)
    steps.csv, .parquet    a log of steps; the world is estimated and keeps its counts
    gym:FrozenLake-v1      a Gymnasium environment with a table P; options are its arguments
    seals:CliffWorld7x4-v0 a tabular environment of seals
    gallery:grid           a world of the gallery; options are its arguments
    icu-sepsis             ICU-Sepsis, from the package of that name; not for clinical use

Options are texts, as on a command line. A source that has no discount needs `discount`; every
source takes `memory_gb`, the memory that may be used.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType

from journeyman.adapters.formats.memory_limit import memory_limit
from journeyman.adapters.world_files import gymnasium_worlds, seals_worlds
from journeyman.adapters.world_files.gallery_sources import PREFIX as GALLERY
from journeyman.adapters.world_files.gallery_sources import read_gallery_world
from journeyman.adapters.world_files.log_tables import read_csv_columns
from journeyman.adapters.world_files.logged_worlds import OPTIONAL, REQUIRED, logged_world
from journeyman.adapters.world_files.npz_worlds import read_npz_world
from journeyman.adapters.world_files.parquet_log import read_parquet_columns
from journeyman.adapters.world_files.source_options import Options
from journeyman.adapters.world_files.umb_worlds import read_umb_world
from journeyman.errors import InvalidInput, InvalidWorld
from journeyman.storage import PathLike
from journeyman.world import World

NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
ICU_SEPSIS = "icu-sepsis"


def read_world(source: PathLike, *, options: Mapping[str, str] = NO_OPTIONS) -> World:
    """The world that `source` names, a file or one of the names above.

    >>> world = read_world("gym:FrozenLake-v1", options={"discount": "0.95", "map_name": "8x8"})
    >>> world.num_states, world.sink
    (65, 64)
    >>> read_world("gallery:grid", options={"size": "4"}).num_pairs
    64
    """
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
        raise InvalidWorld(
            f"{source!r} is not a source of worlds",
            f"Give a file ({', '.join(SUFFIXES)}), {', '.join(f'{p}NAME' for p in PREFIXES)} or "
            f"{ICU_SEPSIS}",
        )
    try:
        return read_file(source, options)
    except InvalidInput as fault:
        if source in fault.what:
            raise
        raise type(fault)(f"{source}: {fault.what}", fault.remedy) from fault


def _csv_log(path: str, options: Options) -> World:
    limit = memory_limit(options)
    return logged_world(path, read_csv_columns(path, REQUIRED, OPTIONAL, limit), options, limit)


def _parquet_log(path: str, options: Options) -> World:
    limit = memory_limit(options)
    return logged_world(path, read_parquet_columns(path, REQUIRED, OPTIONAL, limit), options, limit)


Reader = Callable[[str, Options], World]
PREFIXES: Mapping[str, Reader] = {
    gymnasium_worlds.PREFIX: gymnasium_worlds.read_gymnasium_world,
    seals_worlds.PREFIX: seals_worlds.read_seals_world,
    GALLERY: read_gallery_world,
}
SUFFIXES: Mapping[str, Reader] = {
    ".npz": read_npz_world,
    ".umb": read_umb_world,
    ".csv": _csv_log,
    ".parquet": _parquet_log,
}
