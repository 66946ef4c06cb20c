"""Demonstrations in a Minari data set, read without Minari.

Minari can make the environment that a data set names, which runs whatever the data set says. Here
only arrays are read, from HDF5, Arrow or Parquet files, and two facts of `metadata.json`: the
spaces of observations and actions. Both have to be Discrete; numbers start at the space's own
start, and are counted from 0 here.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.demonstration_files.demonstration_reading import (
    Allowance,
    member,
    read_json,
)
from journeyman.adapters.demonstration_files.episode_lists import EpisodeList
from journeyman.adapters.demonstration_files.minari_arrow import NAMES, read_episode
from journeyman.adapters.demonstration_files.minari_hdf5 import EpisodeFile, open_episodes
from journeyman.arrays import IntArray
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidFile

METADATA, DATA_FOLDER, HDF5_FILE = "metadata.json", "data", "main_data.hdf5"
SUFFIXES = {"arrow": ".arrow", "parquet": ".parquet"}
LARGEST_ID = 1 << 62


@dataclass(frozen=True)
class _Space:
    """A space Discrete(n, start)."""

    n: int
    start: int

    def ids(self, path: Path, what: str, values: IntArray) -> IntArray:
        outside = (values < self.start) | (values >= self.start + self.n)
        if outside.any():
            step = int(np.argmax(outside))
            raise InvalidFile(
                f"{path}, {what} {step} is {values[step]}, outside {self.start}.."
                f"{self.start + self.n - 1}",
                "Copy the data set again; its spaces and its data do not agree",
            )
        return values - self.start


def data_folder(path: Path) -> Path:
    """Where the files of a data set lie, for its directory, that of its data, or its HDF5 file."""
    folder = path if path.is_dir() else path.parent
    return folder / DATA_FOLDER if (folder / DATA_FOLDER / METADATA).is_file() else folder


def read(path: Path, allowance: Allowance) -> Demonstrations:
    """The episodes of a data set."""
    folder = data_folder(path)
    facts = read_json(member(folder, METADATA))
    spaces = _space(folder, facts, "observation_space"), _space(folder, facts, "action_space")
    episodes, form = EpisodeList(path, allowance), facts.get("data_format", "hdf5")
    count = facts.get("total_episodes")
    if not isinstance(count, int) or count < 0:
        raise InvalidFile(
            f"{folder / METADATA}: total_episodes is {count!r}"[:300], "Copy it again"
        )
    if form == "hdf5":
        with open_episodes(member(folder, HDF5_FILE)) as file:
            for episode in range(count):
                _add(path, episode, _from_hdf5(file, episode, episodes), spaces, episodes)
    elif form in SUFFIXES:
        for episode in range(count):
            found = read_episode(folder, episode, SUFFIXES[form], episodes)
            _add(path, episode, found, spaces, episodes)
    else:
        raise InvalidFile(
            f"{folder / METADATA}: data_format is {form!r}"[:300],
            f"Known are hdf5, {', '.join(SUFFIXES)}",
        )
    return episodes.joined(_place)


def _place(episode: int, step: int) -> str:
    return f"episode_{episode}, row {step}"


def _space(folder: Path, facts: dict[str, Any], name: str) -> _Space:
    try:
        space = json.loads(facts[name])
        kind, n, start = space["type"], space.get("n", 0), space.get("start", 0)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as fault:
        raise InvalidFile(
            f"{folder / METADATA} has no readable {name} ({fault})",
            "Write the data set with Minari 0.5, which records the spaces",
        ) from fault
    whole = all(isinstance(one, int) and abs(one) <= LARGEST_ID for one in (n, start))
    if kind != "Discrete" or not whole or n < 1:
        raise InvalidFile(
            f"{folder / METADATA}: the {name} is {str(space)[:80]}, not Discrete",
            "Number the states and actions of your world, and record the numbers",
        )
    return _Space(n, start)


def _from_hdf5(file: EpisodeFile, episode: int, episodes: EpisodeList) -> dict[str, IntArray]:
    sizes = [file.size(episode, name) for name in NAMES]
    episodes.allow(max(sizes), 0)
    return {name: file.read(episode, name) for name in NAMES}


def _add(
    path: Path,
    episode: int,
    found: dict[str, IntArray],
    spaces: tuple[_Space, _Space],
    episodes: EpisodeList,
) -> None:
    observations, actions, terminations, truncations = (found[name] for name in NAMES)
    where = f"episode_{episode}"
    length = actions.size
    if length < 1 or (observations.size, terminations.size, truncations.size) != (
        length + 1, length, length,
    ):  # fmt: skip
        raise InvalidFile(
            f"{path}, {where} has {observations.size} observations, {length} actions, "
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
