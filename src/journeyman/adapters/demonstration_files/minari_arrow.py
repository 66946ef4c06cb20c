"""Episodes in the Arrow or Parquet files of a Minari data set, one directory for each.

    0/part-0.arrow: observations, actions, terminations, truncations, with T + 1 rows

The last row has the last observation; what it says of an action means nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.demonstration_files.demonstration_reading import member
from journeyman.adapters.demonstration_files.episode_lists import EpisodeList
from journeyman.adapters.formats.arrow_messages import column, open_arrow
from journeyman.adapters.formats.arrow_numbers import filled
from journeyman.adapters.formats.parquet_columns import open_parquet
from journeyman.arrays import IntArray
from journeyman.errors import InvalidFile

NAMES = ("observations", "actions", "terminations", "truncations")
MOST_PARTS = 1000


def read_episode(
    directory: Path, episode: int, suffix: str, episodes: EpisodeList
) -> dict[str, IntArray]:
    """The columns of an episode; the memory of its rows is asked of `episodes` first."""
    folder = directory / str(episode)
    files = sorted(folder.glob(f"part-*{suffix}"))[:MOST_PARTS]
    if not files:
        raise InvalidFile(f"{folder} has no part-0{suffix}", "Copy the whole directory")
    parts: list[dict[str, IntArray]] = []
    for found in files:
        file = member(directory, f"{episode}/{found.name}")
        with _open(file, suffix, episodes) as batches:
            for batch in batches:
                columns = {name: column(file, batch, name) for name in NAMES}
                parts.append({name: filled(file, name, one) for name, one in columns.items()})
    if not parts:
        raise InvalidFile(f"{folder} holds no rows", "Copy the data set again")
    whole = {name: np.concatenate([part[name] for part in parts]) for name in NAMES}
    return {name: one if name == NAMES[0] else one[:-1] for name, one in whole.items()}


@contextmanager
def _open(file: Path, suffix: str, episodes: EpisodeList) -> Iterator[Any]:
    if suffix == ".parquet":
        with open_parquet(file, NAMES, lambda rows: episodes.allow(rows, 0)) as columns:
            yield columns.batches(NAMES)
    else:
        with open_arrow(file) as batches:
            yield _allowed(batches, episodes)


def _allowed(batches: Iterator[Any], episodes: EpisodeList) -> Iterator[Any]:
    for batch in batches:
        episodes.allow(batch.num_rows, 0)
        yield batch
