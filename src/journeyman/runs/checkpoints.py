"""The last three states of a solver that can be continued, and which of them to go on from.

A solver writes `latest.npz`; whenever that file is a new one it is kept under the number of its
step as well. A file that cannot be read, for instance because the disk lost a bit, is passed over
for the one before.
"""

import os
from pathlib import Path
from typing import BinaryIO

from journeyman.errors import InvalidFile
from journeyman.solvers.reduced.descent import SCHEMA_VERSION
from journeyman.storage import load_arrays, write_atomically

KIND = "subgradient-state"
KEPT = 3
"""States under numbers."""
LATEST = "latest.npz"


class Checkpoints:
    """The states of one solve, in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.latest = directory / LATEST
        self._seen: tuple[int, int] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    def numbered(self) -> list[Path]:
        """Kept states, the newest first."""
        return sorted(self.directory.glob("step-*.npz"), reverse=True)

    def keep(self) -> None:
        """Keep the latest state under its number, if it is a new one, and drop the oldest."""
        if not self.latest.exists():
            return
        status = self.latest.stat()
        if (status.st_ino, status.st_mtime_ns) == self._seen:
            return
        self._seen = (status.st_ino, status.st_mtime_ns)
        step = step_of(self.latest)
        if step is not None:
            _double(self.latest, self.directory / f"step-{step:012d}.npz")
        for old in self.numbered()[KEPT:]:
            old.unlink()

    def mend(self) -> int | None:
        """Make `latest` the newest state that is whole; its step, or None when there is none."""
        for path in [self.latest, *self.numbered()]:
            step = step_of(path)
            if step is not None:
                if path != self.latest:
                    _double(path, self.latest)
                return step
        self.latest.unlink(missing_ok=True)
        return None


def step_of(path: Path) -> int | None:
    """The step that a state was saved at; None when the file is missing or damaged."""
    try:
        facts, _ = load_arrays(path, KIND, SCHEMA_VERSION)
        return int(facts["step"])
    except (InvalidFile, KeyError, TypeError, ValueError):
        return None


def _double(source: Path, target: Path) -> None:
    """The same content under a second name, without copying where the file system can."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:

        def copy(stream: BinaryIO) -> None:
            stream.write(source.read_bytes())

        write_atomically(target, copy)
