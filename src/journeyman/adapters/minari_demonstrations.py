"""Demonstrations in a Minari data set, read without Minari.

Minari can make the environment that a data set names, which runs whatever the data set says. Here
only arrays are read, from HDF5, Arrow or Parquet files, and two facts of `metadata.json`: the
spaces of observations and actions. Actions have to be Discrete, observations Discrete or a Box;
numbers start at the space's own start, and are counted from 0 here.
"""

import json
import math
import os
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from journeyman.adapters.arrow_files import Batch, open_arrow
from journeyman.adapters.demonstration_reading import (
    Allowance,
    EpisodeList,
    member,
    read_facts,
    write_directory,
)
from journeyman.arrays import IntArray, first_true
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidFile, JourneymanError, MissingExtra
from journeyman.execution import environment

CHUNK_LIMIT = 16 << 20
"""Bytes of a chunk, which is always read as a whole."""
DEFLATE, KNOWN_FILTERS = 1, {1, 2, 3}
"""Numbers of the filters that are part of HDF5: deflate, shuffle and checksums."""
CHECKSUM_BYTES = 4
BYTES_OF_AN_ID = 24
"""What an id may take of the memory that is asked for a step."""
BYTES_OF_A_NUMBER = 8
LARGEST_OBSERVATION = 1 << 24
"""Numbers of a single one."""
Shape: TypeAlias = tuple[int, ...]


@contextmanager
def open_episodes(path: Path) -> Iterator["EpisodeFile"]:
    """The file; whatever h5py finds damaged becomes `InvalidFile`."""
    try:
        import h5py
    except ImportError:
        raise MissingExtra("h5py", "minari") from None
    try:
        with h5py.File(path, "r") as file:
            yield EpisodeFile(path, file)
    except JourneymanError:
        raise
    except Exception as fault:  # HDF5 has many ways to say "damaged"
        raise InvalidFile(
            f"{path} is not a whole HDF5 file: {str(fault)[:200]}", "Copy the data set again"
        ) from fault


class EpisodeFile:
    """Episodes in an HDF5 file:

        episode_0/observations (T + 1), actions, terminations, truncations (T each)

    A data set of HDF5 may announce 10^12 values in a kilobyte, lie in another file (external or
    virtual storage, links), or need a filter that is loaded from elsewhere. Only plain vectors of
    whole numbers that lie in the file itself are read, after their shape was looked at; what is
    compressed is first unpacked here, up to the size it should have.
    """

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self._file = path, file

    def size(self, episode: int, name: str, shape: Shape = ()) -> int:
        """The length of an array, found to be sound; of one with rows of a shape, how many ids take
        the same memory."""
        vector = self._vector(episode, name, shape)
        row = math.prod(shape) * int(vector.dtype.itemsize)
        return int(vector.shape[0]) * max(1, -(-row // BYTES_OF_AN_ID))

    def read(self, episode: int, name: str, shape: Shape = ()) -> IntArray:
        """An array whose size has been allowed."""
        vector = self._vector(episode, name, shape)
        self._refuse_bombs(vector)
        values = vector[...]
        if shape:
            return np.asarray(values)
        if values.dtype == np.uint64 and values.size and values.max() >= 2**63:
            raise self._refused(f"episode_{episode}/{name} holds {values.max()}, which is no id")
        return np.asarray(values, dtype=np.int64)

    def _vector(self, episode: int, name: str, shape: Shape) -> Any:
        import h5py

        group = self._own(self._file, f"episode_{episode}")
        if not isinstance(group, h5py.Group):
            raise self._refused(f"episode_{episode} is not a group")
        vector = self._own(group, name)
        what = f"episode_{episode}/{name}"
        if not isinstance(vector, h5py.Dataset):
            raise self._refused(f"{what} is not an array", "Record numbers as observations")
        kinds = "iubf" if shape else "iub"
        sound = vector.ndim and vector.shape[1:] == shape and vector.dtype.kind in kinds
        if not sound or vector.dtype.hasobject:
            raise self._refused(
                f"{what} has shape {vector.shape} and type {str(vector.dtype)[:40]}",
                f"Record observations of the shape {shape} that the space has"
                if shape
                else "Record an environment whose observations are Discrete or a Box, and whose "
                "actions are Discrete",
            )
        self._require_own_storage(what, vector)
        return vector

    def _own(self, group: Any, name: str) -> Any:
        """A member of the file itself, not of another one that a link leads to."""
        import h5py

        if name not in group.keys():  # noqa: SIM118 - `in group` follows links
            raise self._refused(f"{group.name} has no {name}")
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise self._refused(f"{name} is a link")
        return group[name]

    def _require_own_storage(self, what: str, vector: Any) -> None:
        import h5py

        plan = vector.id.get_create_plist()
        virtual = plan.get_layout() == h5py.h5d.VIRTUAL
        if virtual or plan.get_external_count():
            raise self._refused(f"{what} lies in another file")
        filters = {plan.get_filter(place)[0] for place in range(plan.get_nfilters())}
        if filters - KNOWN_FILTERS:
            raise self._refused(f"{what} needs the filter {max(filters - KNOWN_FILTERS)}")
        if vector.chunks and math.prod(vector.chunks) * vector.dtype.itemsize > CHUNK_LIMIT:
            raise self._refused(f"{what} comes in chunks of {vector.chunks[0]} values")

    def _refuse_bombs(self, vector: Any) -> None:
        """Unpack each compressed chunk as far as it should go; HDF5 itself sees no limit."""
        plan = vector.id.get_create_plist()
        filters = [plan.get_filter(place)[0] for place in range(plan.get_nfilters())]
        if DEFLATE not in filters:
            return
        expected = math.prod(vector.chunks) * vector.dtype.itemsize + CHECKSUM_BYTES * len(filters)
        for number in range(vector.id.get_num_chunks()):
            chunk = vector.id.get_chunk_info(number)
            if chunk.size > 2 * expected + 1024:
                raise self._refused(f"a chunk of {vector.name} has {chunk.size} bytes")
            _, packed = vector.id.read_direct_chunk(chunk.chunk_offset)
            rest = zlib.decompressobj()
            unpacked = rest.decompress(packed, expected + 1)
            if chunk.filter_mask == 0 and (len(unpacked) > expected or rest.unconsumed_tail):
                raise self._refused(f"a chunk of {vector.name} unpacks to more than it should")

    def _refused(self, what: str, remedy: str = "Copy the data set again") -> InvalidFile:
        return InvalidFile(f"{self.path}: {what}", remedy)


METADATA, DATA_FOLDER, HDF5_FILE = "metadata.json", "data", "main_data.hdf5"
SUFFIXES = {"arrow": ".arrow", "parquet": ".parquet"}
LARGEST_ID = 1 << 62


@dataclass(frozen=True)
class _Space:
    """A space Discrete(n, start)."""

    n: int
    start: int
    shape: ClassVar[Shape] = ()

    def ids(self, path: Path, what: str, values: IntArray) -> IntArray:
        outside = (values < self.start) | (values >= self.start + self.n)
        if (step := first_true(outside)) is not None:
            raise InvalidFile(
                f"{path}, {what} {step} is {values[step]}, outside {self.start}.."
                f"{self.start + self.n - 1}",
                "Copy the data set again; its spaces and its data do not agree",
            )
        return values - self.start


@dataclass(frozen=True)
class _Box:
    """A space of arrays of one shape."""

    shape: Shape

    def ids(self, path: Path, what: str, values: IntArray) -> IntArray:
        """Observations as they are."""
        wrong = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if wrong.any():
            raise InvalidFile(
                f"{path}, {what} {int(np.argmax(wrong))} is not finite", "Copy the data set again"
            )
        return values


def data_folder(path: Path) -> Path:
    """Where the files of a data set lie, for its directory, that of its data, or its HDF5 file."""
    folder = path if path.is_dir() else path.parent
    return folder / DATA_FOLDER if (folder / DATA_FOLDER / METADATA).is_file() else folder


def read_minari(path: Path, allowance: Allowance) -> Demonstrations:
    """The episodes of a data set."""
    folder = data_folder(path)
    facts = read_facts(member(folder, METADATA))
    actions = _space(folder, facts, "action_space")
    if not isinstance(actions, _Space):
        raise InvalidFile(
            f"{folder / METADATA}: the action_space is a Box, not Discrete",
            "Number the actions, and record the numbers: continuous actions never agree exactly",
        )
    spaces = _space(folder, facts, "observation_space"), actions
    episodes, form = EpisodeList(path, allowance), facts.get("data_format", "hdf5")
    count = facts.get("total_episodes")
    if not isinstance(count, int) or count < 0:
        raise InvalidFile(
            f"{folder / METADATA}: total_episodes is {count!r}"[:300], "Copy it again"
        )
    if form == "hdf5":
        with open_episodes(member(folder, HDF5_FILE)) as file:
            for episode in range(count):
                found = _from_hdf5(file, episode, episodes, spaces[0].shape)
                _add(path, episode, found, spaces, episodes)
    elif form in SUFFIXES:
        for episode in range(count):
            found = read_episode(folder, episode, SUFFIXES[form], episodes, spaces[0].shape)
            _add(path, episode, found, spaces, episodes)
    else:
        raise InvalidFile(
            f"{folder / METADATA}: data_format is {form!r}"[:300],
            f"Known are hdf5, {', '.join(SUFFIXES)}",
        )
    return episodes.joined(_place)


def _place(episode: int, step: int) -> str:
    return f"episode_{episode}, row {step}"


def _space(folder: Path, facts: dict[str, Any], name: str) -> _Space | _Box:
    try:
        space = json.loads(facts[name])
        kind, n, start = space["type"], space.get("n", 0), space.get("start", 0)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as fault:
        raise InvalidFile(
            f"{folder / METADATA} has no readable {name} ({fault})",
            "Write the data set with Minari 0.5, which records the spaces",
        ) from fault
    whole = all(isinstance(one, int) and abs(one) <= LARGEST_ID for one in (n, start))
    if kind == "Box":
        return _box(folder, name, space.get("shape"))
    if kind != "Discrete" or not whole or n < 1:
        raise InvalidFile(
            f"{folder / METADATA}: the {name} is {str(space)[:80]}, neither Discrete nor a Box",
            "Number the states and actions of your world, and record the numbers",
        )
    return _Space(n, start)


def _box(folder: Path, name: str, shape: Any) -> _Box:
    sound = isinstance(shape, list) and shape and all(type(one) is int for one in shape)
    if not sound or min(shape) < 1 or math.prod(shape) > LARGEST_OBSERVATION:
        raise InvalidFile(
            f"{folder / METADATA}: the {name} is a Box of shape {str(shape)[:80]}",
            "Record observations of a fixed shape",
        )
    return _Box(tuple(shape))


def _from_hdf5(
    file: EpisodeFile, episode: int, episodes: EpisodeList, shape: Shape
) -> dict[str, IntArray]:
    shapes = dict.fromkeys(NAMES, ()) | {NAMES[0]: shape}
    episodes.allow(max(file.size(episode, name, form) for name, form in shapes.items()), 0)
    return {name: file.read(episode, name, form) for name, form in shapes.items()}


def _add(
    path: Path,
    episode: int,
    found: dict[str, IntArray],
    spaces: tuple[_Space | _Box, _Space],
    episodes: EpisodeList,
) -> None:
    observations, actions, terminations, truncations = (found[name] for name in NAMES)
    where = f"episode_{episode}"
    length = actions.size
    if length < 1 or (len(observations), terminations.size, truncations.size) != (
        length + 1, length, length,
    ):  # fmt: skip
        raise InvalidFile(
            f"{path}, {where} has {len(observations)} observations, {length} actions, "
            f"{terminations.size} terminations and {truncations.size} truncations",
            "Record one observation more than actions, and at least one action",
        )
    if (terminations[:-1] != 0).any():
        step = int(np.argmax(terminations != 0))
        raise InvalidFile(f"{path}, {where} goes on after it terminated in step {step}", "Cut it")
    episodes.allow(0, 1)
    episodes.add(
        spaces[0].ids(path, f"{where}: observation", observations),
        spaces[1].ids(path, f"{where}: action", actions),
        np.array([length]),
        terminations[-1:] != 0,
    )


NAMES = ("observations", "actions", "terminations", "truncations")
MOST_PARTS = 1000


def read_episode(
    directory: Path, episode: int, suffix: str, episodes: EpisodeList, shape: Shape = ()
) -> dict[str, IntArray]:
    """The columns of an episode in Arrow or Parquet files, in a directory of its own.

    They have T + 1 rows: the last one has the last observation, and what it says of an action means
    nothing. Observations of a shape are lists of their numbers. The memory of the rows is asked of
    `episodes` first.
    """
    boxes = NAMES[:1] if shape else ()

    def allow(rows: int, numbers: int) -> None:
        episodes.allow(max(rows, numbers * BYTES_OF_A_NUMBER // BYTES_OF_AN_ID), 0)

    folder = directory / str(episode)
    files = sorted(folder.glob(f"part-*{suffix}"))[:MOST_PARTS]
    if not files:
        raise InvalidFile(f"{folder} has no part-0{suffix}", "Copy the whole directory")
    parts: list[dict[str, IntArray]] = []
    for found in files:
        file = member(directory, f"{episode}/{found.name}")
        kind = "Parquet" if suffix == ".parquet" else "Arrow"
        limit = episodes.allowance.limit
        with open_arrow(file, kind, memory=limit, lists=boxes, reals=boxes) as columns:
            for batch in columns.batches(NAMES, allow):
                part = {name: batch.filled(name) for name in NAMES}
                parts.append(part | {name: _shaped(batch, name, shape) for name in boxes})
    if not parts:
        raise InvalidFile(f"{folder} holds no rows", "Copy the data set again")
    whole = {name: np.concatenate([part[name] for part in parts]) for name in NAMES}
    return {name: one if name == NAMES[0] else one[:-1] for name, one in whole.items()}


def _shaped(batch: Batch, name: str, shape: Shape) -> Any:
    lengths = batch.columns[name].lengths
    assert lengths is not None
    if (row := first_true(lengths != math.prod(shape))) is not None:
        raise batch.file.refused(
            f"{name} holds {lengths[row]} numbers, and its space has the shape {shape}",
            "Copy the data set again; its spaces and its data do not agree",
            batch.first + row,
        )
    return batch.filled(name).reshape(batch.num_rows, *shape)


ROOT = "MINARI_DATASETS_PATH"
"""The variable of the environment in which Minari looks for its data sets."""


def write_minari(demonstrations: Demonstrations, path: Path) -> None:
    """Write a new data set at `path`, by Minari itself; rewards are not known, and are 0.

    Its id is the path below the root named by MINARI_DATASETS_PATH, if it lies there, and otherwise
    the last part of the path. Minari wants ids such as lake-v0 or lake/expert-v0.
    """
    root = _root_of(path)
    name = path.absolute().relative_to(root).as_posix()
    path.absolute().parent.mkdir(parents=True, exist_ok=True)

    def fill(directory: Path) -> Path:
        with environment({ROOT: str(directory)}), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about authors and permanent links
            _create(demonstrations, name)
        return directory / name

    write_directory(path.absolute(), fill)


def _root_of(path: Path) -> Path:
    root = Path(os.environ.get(ROOT) or path.absolute().parent).absolute()
    inside = path.absolute().is_relative_to(root)
    return root if inside else path.absolute().parent


def _create(demonstrations: Demonstrations, name: str) -> None:
    try:
        import gymnasium
        import minari
    except ImportError:
        raise MissingExtra("Minari", "minari") from None
    num_states, num_actions = _sizes(demonstrations)
    seen = demonstrations.states
    space = (
        gymnasium.spaces.Discrete(num_states)
        if demonstrations.has_ids
        else gymnasium.spaces.Box(-np.inf, np.inf, seen.shape[1:], dtype=np.float64)
    )
    try:
        minari.create_dataset_from_buffers(
            name,
            list(_buffers(demonstrations)),
            observation_space=space,
            action_space=gymnasium.spaces.Discrete(num_actions),
            algorithm_name="demonstrations",
        )
    except ImportError as fault:
        raise MissingExtra(f"a part of Minari ({fault})", "minari") from fault
    except (TypeError, ValueError) as fault:
        raise InvalidFile(
            f"Minari does not take {name!r}: {fault}", "End the path with a name such as lake-v0"
        ) from fault


def _sizes(demonstrations: Demonstrations) -> tuple[int, int]:
    if demonstrations.pairs is not None:
        return demonstrations.pairs.num_states, demonstrations.pairs.width
    states = demonstrations.states if demonstrations.has_ids else np.zeros(1, dtype=np.int64)
    return int(states.max()) + 1, int(demonstrations.actions.max()) + 1


def _buffers(demonstrations: Demonstrations) -> Iterator[Any]:
    from minari.data_collector import EpisodeBuffer

    for episode, terminated in enumerate(demonstrations.terminated):
        states, actions = demonstrations.episode(episode)
        ends = np.zeros(actions.size, dtype=bool)
        ends[-1] = True
        yield EpisodeBuffer(
            observations=states if states.ndim == 1 else states.astype(np.float64),
            actions=actions, rewards=np.zeros(actions.size),
            terminations=ends & terminated, truncations=ends & ~terminated,
        )  # fmt: skip
