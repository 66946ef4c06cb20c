"""Demonstrations in and out, in the formats people have them in.

| format | what it is |
|---|---|
| npz | the native file, small and quick |
| csv | comma-separated text, with one row per visited state or one per step |
| parquet | the same columns as a Parquet file, for large ones |
| minari | a data set of Minari, a directory |
| imitation | trajectories saved by the `imitation` package, a directory |

Reading executes nothing, reads nothing outside the file, and asks for memory only after it has
estimated how much a file will take.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from journeyman.adapters.demonstration_reading import (
    MEMORY_LIMIT,
    Allowance,
    fitted,
    require_ids,
)
from journeyman.adapters.imitation_demonstrations import (
    read_imitation,
    write_imitation,
)
from journeyman.adapters.minari_demonstrations import read_minari, write_minari
from journeyman.adapters.npz_arrays import open_npz
from journeyman.adapters.parquet_demonstrations import (
    read_parquet,
    write_parquet,
)
from journeyman.adapters.source_options import one_state
from journeyman.demonstrations import Demonstrations, files
from journeyman.demonstrations.demonstrations import warn_of_limit
from journeyman.errors import InvalidFile, InvalidInput
from journeyman.storage import PathLike
from journeyman.tables import FRAME, NO_WORLD, WorldNames, frame_table, is_frame
from journeyman.world import World

BYTES_PER_ITEM = 24
"""What an id takes beside its stored form: as int64, and temporaries of the checks."""


def read_npz(path: Path, allowance: Allowance) -> Demonstrations:
    """The demonstrations in a native file, a ZIP of arrays whose headers are looked at first."""
    with open_npz(path, allowance.limit) as arrays:
        announced = [arrays.announced(name) for name in arrays.members]
        allowance.require(sum(2 * one.num_bytes + BYTES_PER_ITEM * one.size for one in announced))
    return Demonstrations.load(path, memory_limit=allowance.limit)


def write_npz(demonstrations: Demonstrations, path: Path) -> None:
    """Write the native format."""
    demonstrations.save(path)


def read_csv(path: Path, allowance: Allowance) -> Demonstrations:
    """The demonstrations in a CSV file of either layout."""
    *parts, logged, source = files.read_csv(path, allowance.require, allowance.names)
    return Demonstrations(*parts, probabilities=logged).read_from(source)


def read_frame(frame: Any, allowance: Allowance) -> Demonstrations:
    """The demonstrations in a data frame with the columns of a CSV file."""
    *parts, logged, source = files.read_table(
        frame_table(frame), allowance.require, allowance.names
    )
    return Demonstrations(*parts, probabilities=logged).read_from(source)


def write_csv(demonstrations: Demonstrations, path: Path) -> None:
    """Write one row per visited state."""
    demos = demonstrations
    files.write_csv(
        path, demos.states, demos.actions, demos.offsets, demos.terminated, demos.probabilities
    )


SUFFIXES = {
    ".npz": "npz", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".hdf5": "minari",
}  # fmt: skip
SINGLE_FILES = ("npz", "csv", "parquet")
SIGNS = {"metadata.json": "minari", "data/metadata.json": "minari", "state.json": "imitation"}
"""Files by which a directory is known."""


def read_demonstrations(
    path: PathLike | Any,
    *,
    format: str | None = None,  # noqa: A002
    world: World | None = None,
    truncated_at: int | None = None,
    terminal_state: int | str | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Demonstrations:
    """Read demonstrations in any format journeyman knows.

    Args:
        path: a file, the directory of a data set, or a data frame (pandas, polars, pyarrow) with
            the columns of a CSV file.
        format: npz, csv, parquet, minari or imitation; None goes by the suffix of a file and by
            what lies in a directory.
        world: every step is checked to be possible in it, and the first that is not is named by its
            place in the file. Terminated episodes whose last step it does not have are given its
            sink as their last state, if it has one (records of Gymnasium name the state before).
            Tables may use the names that it has for its states and actions.
        truncated_at: the time limit under which the episodes were recorded. Those of this length
            are truncated, whatever they are marked, except where `world` shows that they have come
            to rest; a longer one is refused. For recorders that mark every end as terminated.
        terminal_state: where terminated episodes end, instead of their last state; a name if
            `world` has it.
        memory_limit: bytes that reading may take. A file that would take more is refused first.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("episode,t,state,action,next_state\\n0,0,5,2,6\\n0,1,6,0,7\\n")
    >>> read_demonstrations(path)
    Demonstrations(1 episodes, 2 steps, 0 terminated)
    """
    _require_kinds(world, memory_limit)
    names = NO_WORLD if world is None else WorldNames.of(world)
    if is_frame(path):
        path, demos = FRAME, read_frame(path, Allowance(FRAME, memory_limit, names))
    else:
        source = _path(path)
        chosen = _known(format) if format is not None else _recognised(source)
        read, _ = FORMATS[chosen]
        demos = read(source, Allowance(path, memory_limit, names))
    require_ids(demos)
    if world is not None:
        ended = fitted(demos, world, truncated_at, terminal_state)
        shown_by_world = terminal_state is None
    else:
        if isinstance(terminal_state, str):
            terminal_state = one_state("terminal_state", terminal_state, None)
        ended = demos.with_ends(truncated_at=truncated_at, terminal_state=terminal_state)
        shown_by_world = False
    if truncated_at is None and not shown_by_world:
        warn_of_limit(demos, path, stacklevel=2)
    return ended


def write_demonstrations(
    demonstrations: Demonstrations,
    path: PathLike,
    *,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write demonstrations to a file, or to a new directory for minari and imitation.

    `format` None goes by the suffix: .npz, .csv or .parquet. Action sets are kept by npz only. A
    Minari data set is named after its path, below MINARI_DATASETS_PATH if it lies there.

    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "demos.csv"
    >>> write_demonstrations(Demonstrations([0, 1], [0], [0, 1]), path)
    >>> path.read_text().splitlines()
    ['episode,t,state,action,terminated', '0,0,0,0,', '0,1,1,,0']
    """
    if not isinstance(demonstrations, Demonstrations):
        raise InvalidInput(
            f"a {type(demonstrations).__name__} cannot be written as demonstrations",
            "Give jm.Demonstrations, for example by Demonstrations.from_arrays(...)",
        )
    target = _path(path)
    chosen = SUFFIXES.get(target.suffix.lower()) if format is None else _known(format)
    if chosen is None or (format is None and chosen == "minari"):
        raise InvalidFile(
            f"{path} has no suffix of a known format",
            _choice("Name the format it is written in with format=:"),
        )
    if target.is_dir() and chosen in SINGLE_FILES:
        raise InvalidFile(f"{path} is a directory", "Give the name of a file")
    _, write = FORMATS[chosen]
    write(demonstrations, target)


def _path(given: object) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise InvalidInput(
            f"path is a {type(given).__name__}", "Give the name of a file, or a data frame"
        )
    return Path(given)


def _require_kinds(world: object, memory_limit: object) -> None:
    if world is not None and not isinstance(world, World):
        raise InvalidInput(
            f"world is a {type(world).__name__}", "Give a jm.World, such as jm.read_world(source)"
        )
    if not isinstance(memory_limit, int) or memory_limit <= 0:
        raise InvalidInput(f"memory_limit = {memory_limit!r}", "Give a number of bytes")


def _known(name: str) -> str:
    if name not in FORMATS:
        raise InvalidInput(f"the format {name!r} is not known", _choice("Give"))
    return name


def _recognised(path: Path) -> str:
    if path.is_dir():
        for sign, name in SIGNS.items():
            if (path / sign).is_file():
                return name
        raise InvalidFile(
            f"{path} is neither a data set of Minari (metadata.json) nor of imitation (state.json)",
            "Give the directory that holds one of these files",
        )
    if path.suffix.lower() not in SUFFIXES:
        if not path.exists():
            raise InvalidFile(f"{path} does not exist", "Check the path")
        raise InvalidFile(
            f"{path} has the suffix {path.suffix!r}, which is of no known format",
            f"Give a file that ends in {', '.join(SUFFIXES)}, or name the format with format=: "
            f"{_formats()}",
        )
    return SUFFIXES[path.suffix.lower()]


def _choice(verb: str) -> str:
    return f"{verb} {_formats()}; known suffixes are {' '.join(SUFFIXES)}"


def _formats() -> str:
    *others, last = FORMATS
    return f"{', '.join(others)} or {last}"


FORMATS: Mapping[
    str, tuple[Callable[[Path, Allowance], Demonstrations], Callable[[Demonstrations, Path], None]]
] = {
    "npz": (read_npz, write_npz),
    "csv": (read_csv, write_csv),
    "parquet": (read_parquet, write_parquet),
    "minari": (read_minari, write_minari),
    "imitation": (read_imitation, write_imitation),
}
"""Reader and writer of each format."""
