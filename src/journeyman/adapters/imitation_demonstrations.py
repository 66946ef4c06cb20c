"""Demonstrations in directories of the `imitation` package: one row per trajectory.

    obs: list of T + 1 numbers, or lists of as many numbers each, acts: list of T numbers,
    infos: list of T texts, terminal: flag

in Arrow stream files that `state.json` names, as `imitation.data.serialize.save` writes them by way
of HuggingFace's `datasets`. `infos` are instructions to build Python objects: they are never
decoded, here not even read. `terminal` is what `imitation` says: its own recorder sets it also when
a time limit has ended the episode: give a world to have it checked, `truncated_at` to correct it.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.arrow_files import Batch, open_arrow
from journeyman.adapters.demonstration_reading import (
    Allowance,
    EpisodeList,
    member,
    read_facts,
    write_directory,
)
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidFile, MissingExtra

STATE_FILE, INFO_FILE = "state.json", "dataset_info.json"
DATA_FILE = "data-00000-of-00001.arrow"
LISTS = ("obs", "acts")
OBSERVATIONS = LISTS[:1]
EMPTY_INFO = "{}"
"""What the package writes for a step about which there is nothing more to say."""
REMEDY = "Save trajectories of an environment whose observations and actions are numbers"


def read_imitation(path: Path, allowance: Allowance) -> Demonstrations:
    """The trajectories of a directory."""
    episodes = EpisodeList(path, allowance)
    for name in _data_files(path):
        found = member(path, name)
        with open_arrow(found, "Arrow", memory=allowance.limit) as file:
            observed = OBSERVATIONS if OBSERVATIONS[0] in file.nested else ()
            list(file.batches(()))
        with open_arrow(
            found, "Arrow", memory=allowance.limit, lists=LISTS, reals=observed
        ) as file:
            allow = partial(_allow, episodes, bool(observed))
            for batch in file.batches([*LISTS, "terminal"], allow):
                _take(batch, episodes, bool(observed))
    return episodes.joined(_place)


def _allow(episodes: EpisodeList, are_lists: bool, rows: int, numbers: int) -> None:
    """Allow for the observations of a batch, of which there are as many as of actions and rows; of
    those that are lists, for the memory of their numbers."""
    episodes.allow(numbers // 3 if are_lists else max(numbers - rows, 0), rows)


def _place(trajectory: int, step: int) -> str:
    return f"trajectory {trajectory}, step {step}"


def _data_files(path: Path) -> list[str]:
    state = read_facts(member(path, STATE_FILE))
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise InvalidFile(
            f"{path} is a selection of rows by an index", "Save dataset.flatten_indices()"
        )
    entries = state.get("_data_files")
    names = [
        one.get("filename") if isinstance(one, dict) else None
        for one in (entries if isinstance(entries, list) else [])
    ]
    if not names or not all(isinstance(one, str) and Path(one).name == one for one in names):
        raise InvalidFile(f"{path / STATE_FILE} names no data files", "Copy the whole directory")
    return [str(one) for one in names]


def _take(batch: Batch, episodes: EpisodeList, are_lists: bool) -> None:
    observed, taken = (np.asarray(batch.columns[name].lengths) for name in LISTS)
    ended, file = batch.filled("terminal"), batch.file.path
    first = sum(part.size for part in episodes.lengths)
    for wrong, what in (
        (taken < 1, "has no action"),
        (observed != taken + 1, "does not have one observation more than actions"),
        ((ended != 0) & (ended != 1), "has a flag that is neither true nor false"),
    ):
        if wrong.any():
            raise InvalidFile(f"{file}: trajectory {first + int(np.argmax(wrong))} {what}", REMEDY)
    states = batch.filled("obs")
    if are_lists:
        states = states.reshape(int(observed.sum()), -1)
    episodes.add(states, batch.filled("acts"), taken, ended.astype(bool))


def write_imitation(demonstrations: Demonstrations, path: Path) -> None:
    """Write a new directory that `imitation.data.serialize.load` reads."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    table = _table(demonstrations)

    def fill(directory: Path) -> Path:
        content = directory / "content"
        content.mkdir()
        with (
            pyarrow.OSFile(str(content / DATA_FILE), "wb") as sink,
            pyarrow.ipc.new_stream(sink, table.schema) as stream,
        ):
            stream.write_table(table)
        _describe(content)
        return content

    write_directory(path, fill)


def _table(demonstrations: Demonstrations) -> Any:
    import pyarrow

    demos = demonstrations
    demos.require_ids("the format of imitation")
    starts = demos.offsets + np.arange(len(demos) + 1)
    lists = pyarrow.LargeListArray if demos.num_steps >= 1 << 30 else pyarrow.ListArray
    infos = pyarrow.array([EMPTY_INFO]).take(pyarrow.array(np.zeros(demos.num_steps, np.int64)))
    return pyarrow.table({
        "obs": lists.from_arrays(starts, demos.states),
        "acts": lists.from_arrays(demos.offsets, demos.actions),
        "infos": lists.from_arrays(demos.offsets, infos),
        "terminal": demos.terminated,
    })  # fmt: skip


def _describe(directory: Path) -> None:
    """Write what `datasets` wants to know."""
    kinds = {"obs": "int64", "acts": "int64", "infos": "string"}
    features: dict[str, Any] = {
        name: {"feature": {"dtype": kind, "_type": "Value"}, "_type": "Sequence"}
        for name, kind in kinds.items()
    }
    features["terminal"] = {"dtype": "bool", "_type": "Value"}
    info = {"citation": "", "description": "", "features": features, "homepage": "", "license": ""}
    state: dict[str, Any] = {
        "_data_files": [{"filename": DATA_FILE}], "_fingerprint": "journeyman",
        "_format_columns": None, "_format_kwargs": {}, "_format_type": None,
        "_output_all_columns": False, "_split": None,
    }  # fmt: skip
    for name, content in ((INFO_FILE, info), (STATE_FILE, state)):
        (directory / name).write_text(json.dumps(content, indent=2), encoding="utf-8")
