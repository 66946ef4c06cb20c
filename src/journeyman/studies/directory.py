"""The directory of a study: one file per finished trial, whole or not there."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from journeyman.errors import InvalidFile
from journeyman.runs.run_directory import LOCK, locked
from journeyman.storage import write_text
from journeyman.studies.trial import Trial

MARK, TRIALS = "study.json", "trials"
PAGE, TABLE = "report.html", "trials.csv"
OWN = (MARK, TRIALS, PAGE, TABLE, LOCK)
KIND, VERSION = "study", 1
LARGEST = 1 << 20
"""Bytes of the file of a trial; more is some other file."""


class StudyDirectory:
    """Where the trials of a study are kept."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trials = path / TRIALS

    @property
    def was_begun(self) -> bool:
        return (self.path / MARK).exists()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the lock of the directory, which is made if need be; refuse foreign ones."""
        if self.path.exists() and not self.path.is_dir():
            raise InvalidFile(f"{self.path} is a file", "Give a directory for the study")
        self.path.mkdir(parents=True, exist_ok=True)
        self._refuse_foreign()
        with locked(self.path):
            if not self.was_begun:
                facts = {
                    "kind": KIND, "version": VERSION, "journeyman": metadata.version("journeyman"),
                }  # fmt: skip
                write_text(self.path / MARK, json.dumps(facts))
            self.trials.mkdir(exist_ok=True)
            yield

    def _refuse_foreign(self) -> None:
        for one in sorted(self.path.iterdir()):
            own = one.name in OWN or any(one.name.startswith(f".{name}.") for name in OWN)
            if one.is_symlink() or not own:
                raise InvalidFile(
                    f"{self.path} holds {one.name!r}, which belongs to no study",
                    "Give a new or an empty directory",
                )

    def stored(self, key: str) -> Trial | None:
        """The outcome of a trial that was made before; a damaged file counts as none."""
        path = self._place(key)
        try:
            if path.stat().st_size > LARGEST:
                return None
            return Trial.of(json.loads(path.read_bytes()))
        except (FileNotFoundError, ValueError, RecursionError):
            return None

    def store(self, key: str, trial: Trial) -> None:
        """Keep an outcome, in one step."""
        text = json.dumps(trial.facts(), indent=1, sort_keys=True, allow_nan=False)
        write_text(self._place(key), text + "\n")

    def _place(self, key: str) -> Path:
        return self.trials / f"{key}.json"


def keep(directory: Any, key: str, trial: Trial) -> None:
    """Store from a worker, if it sees the directory: on another machine it may not."""
    place = StudyDirectory(Path(directory))
    if place.was_begun and place.trials.is_dir():
        place.store(key, trial)
