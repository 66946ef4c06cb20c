"""Demonstrations as a Minari data set, written by Minari itself.

An episode has T + 1 observations and T actions, terminations, truncations and rewards;
demonstrations know no rewards, so these are 0.
"""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.formats.directory_writing import write_directory
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidFile, MissingExtra
from journeyman.execution import environment

ROOT = "MINARI_DATASETS_PATH"
"""The variable of the environment in which Minari looks for its data sets."""


def write(demonstrations: Demonstrations, path: Path) -> None:
    """Write a new data set at `path`.

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
    try:
        minari.create_dataset_from_buffers(
            name,
            list(_buffers(demonstrations)),
            observation_space=gymnasium.spaces.Discrete(num_states),
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
    return int(demonstrations.states.max()) + 1, int(demonstrations.actions.max()) + 1


def _buffers(demonstrations: Demonstrations) -> Iterator[Any]:
    from minari.data_collector import EpisodeBuffer

    for episode, terminated in enumerate(demonstrations.terminated):
        states, actions = demonstrations.episode(episode)
        ends = np.zeros(actions.size, dtype=bool)
        ends[-1] = True
        yield EpisodeBuffer(
            observations=states, actions=actions, rewards=np.zeros(actions.size),
            terminations=ends & terminated, truncations=ends & ~terminated,
        )  # fmt: skip
