"""The directory of a run: begun once, continued by the same run only, ended with its result."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Self

from journeyman.errors import InvalidFile, JourneymanError
from journeyman.progress import Event, Observer
from journeyman.runs.description import (
    OPTIONS,
    PROVENANCE,
    SOURCES,
    RunDescription,
    SolverDescription,
    read_toml,
)
from journeyman.storage import naming, read_json, write_text

LOCK = ".lock"


class DirectoryInUse(JourneymanError):
    """Another process works in the run directory."""


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, or raise `DirectoryInUse` with the number of its process.

    The system holds the lock for as long as the process lives, so that what a killed process leaves
    is no obstacle. The file stays: if it were removed, two processes could hold locks on two files
    of the same name.
    """
    from filelock import FileLock, Timeout

    path = directory / LOCK
    lock = FileLock(path, blocking=False)
    try:
        lock.acquire()
    except Timeout:
        raise DirectoryInUse(
            f"{directory} is in use by process {_owner(path)}. Wait until it has ended, or give "
            "another directory."
        ) from None
    try:
        with suppress(OSError):  # Windows lets nobody write to a locked file
            path.write_text(f"{os.getpid()}\n", encoding="ascii")
        yield
    finally:
        lock.release()


def _owner(path: Path) -> str:
    try:
        return path.read_bytes()[:32].decode("ascii", "replace").strip() or "unknown"
    except OSError:
        return "unknown"


DESCRIPTION, METRICS, RESULT = "run.toml", "metrics.jsonl", "result.json"
CHECKPOINTS, CERTIFIED, UNFINISHED = "checkpoints", "certified", ".certified"
REPORT, CERTIFICATE = "report.html", "certificate.json"
OWN = (DESCRIPTION, METRICS, RESULT, CHECKPOINTS, CERTIFIED, UNFINISHED, REPORT, LOCK)
MAY_CHANGE = ("time_limit", "memory_gb", "steps", "accuracy")
"""Settings of a solver that say when to stop, and nothing about the way."""
LARGEST_RESULT = 64 << 20


class RunDirectory:
    """Where a run lives. Files are read and written by its methods only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / METRICS
        self.checkpoints = path / CHECKPOINTS
        self.certified = path / CERTIFIED
        self.report = path / REPORT

    @property
    def was_begun(self) -> bool:
        return (self.path / DESCRIPTION).exists()

    @property
    def has_ended(self) -> bool:
        return (self.path / RESULT).exists()

    @contextmanager
    def opened(self, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Hold the lock; refuse foreign files, and an earlier run that is neither resumed nor
        overwritten."""
        self.require_free(resume=True, overwrite=overwrite)
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path):
            if overwrite:
                self.clear()
            self.require_free(resume=resume, overwrite=overwrite)
            yield

    def require_free(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse foreign files, and an earlier run that is neither resumed nor overwritten."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise InvalidFile(f"{self.path} is a file", "Give a directory for the run")
        foreign = sorted(
            one.name for one in self.path.iterdir() if one.is_symlink() or not _is_own(one.name)
        )
        if foreign:
            raise InvalidFile(
                f"{self.path} holds {foreign[0]!r}, which belongs to no run",
                "Give a new or an empty directory",
            )
        if (self.was_begun or self.has_ended) and not (resume or overwrite):
            state = "a run that has ended" if self.has_ended else "an unfinished run"
            more = "Say --resume to go on with it, --overwrite"
            more = more if self.was_begun else "Say --overwrite"
            raise InvalidFile(
                f"{self.path} holds {state}", f"{more} to replace it, or give another directory"
            )

    def clear(self) -> None:
        """Remove all that belongs to a run."""
        for name in OWN:
            place = self.path / name
            if place.is_dir():
                shutil.rmtree(place)
            elif name != LOCK:
                place.unlink(missing_ok=True)

    def stored(self) -> dict[str, Any]:
        """The tables of the stored description."""
        if not self.was_begun:
            raise InvalidFile(
                f"{self.path} holds no {DESCRIPTION}: no run was begun there",
                "Give the directory of a run, or describe one with --world, --costs and "
                "--demonstrations",
            )
        return read_toml(self.path / DESCRIPTION)

    def begin(self, description: RunDescription, provenance: Mapping[str, str]) -> bool:
        """Store the description, or compare it with the stored one and refuse another run.

        Whether it says otherwise than before when to stop.
        """
        changed = self.was_begun and self._compare(description, provenance) != description.solver
        import tomli_w

        text = tomli_w.dumps({**description.table(), PROVENANCE: dict(provenance)})
        write_text(self.path / DESCRIPTION, text)
        return changed

    def _compare(
        self, description: RunDescription, provenance: Mapping[str, str]
    ) -> SolverDescription:
        """The solver that was asked for earlier, if all that decides its way is the same."""
        earlier = RunDescription.of(self.stored(), str(self.path / DESCRIPTION))
        self.require_same(provenance)
        for name, was, now in _differences(earlier, description):
            raise InvalidFile(
                f"{self.path} was begun with {name} = {was!r}, and {now!r} is asked for now",
                "Leave the setting as it was, or begin another run in a new directory",
            )
        return earlier.solver

    def require_same(self, provenance: Mapping[str, str]) -> None:
        """Refuse inputs other than those that the run was begun with."""
        known = self.stored().get(PROVENANCE, {})
        for part, word in provenance.items():
            if known.get(part) != word:
                what = "version" if part == "journeyman" else "content"
                raise InvalidFile(
                    f"{self.path} was begun with another {part}: the {what} was "
                    f"{str(known.get(part))[:12]} and is {word[:12]} now",
                    "Give what it was begun with, or begin another run in a new directory",
                )

    def end(self, save: Any, result: Mapping[str, Any]) -> None:
        """Let `save` write the evidence into a directory, move it into place, write the result."""
        unfinished = self.path / UNFINISHED
        for earlier in (self.path / RESULT, self.report):
            earlier.unlink(missing_ok=True)
        if unfinished.exists():
            shutil.rmtree(unfinished)
        save(unfinished)
        if self.certified.exists():
            shutil.rmtree(self.certified)
        unfinished.rename(self.certified)
        text = json.dumps(result, indent=1, sort_keys=True, allow_nan=False)
        write_text(self.path / RESULT, text + "\n")

    def result(self) -> dict[str, Any]:
        """The stored outcome of a run that has ended."""
        return read_json(
            self.path / RESULT, LARGEST_RESULT, "Run journeyman learn --overwrite again"
        )


def evidence_in(path: Path) -> Path:
    """Where certificate and inputs lie: in a run's `certified`, or in a directory of
    `apprentice.save`."""
    if not path.is_dir():
        raise InvalidFile(f"{path} is not a directory", "Give the directory of a run")
    for place in (path / CERTIFIED, path):
        if (place / CERTIFICATE).exists():
            return place
    begun = (path / DESCRIPTION).exists()
    raise InvalidFile(
        f"{path} holds no certificate: " + ("the run has not ended" if begun else "it is no run"),
        f"Run journeyman learn --resume {path}" if begun else "Give the directory of a run",
    )


def _is_own(name: str) -> bool:
    """Whether a run has such a file, or leaves it when it is killed while writing."""
    return name in OWN or any(name.startswith(f".{own}.") for own in OWN)


READING = ("demonstrations_format", "truncated_at", "terminal_state")
"""How demonstrations are read; what comes of it is known by its content."""


def _differences(was: RunDescription, now: RunDescription) -> Iterator[tuple[str, Any, Any]]:
    """What decides the outcome and differs; inputs are known by their content."""
    apart = {*SOURCES, *OPTIONS, "budgets", "gap", "regret", "rewards", *READING}
    pairs = [
        (was, now, apart | {"solver"}, ""),
        (was.solver, now.solver, set(MAY_CHANGE), "solver."),
    ]
    for one, other, ignored, prefix in pairs:
        for name, value in vars(one).items():
            if name not in ignored and vars(other)[name] != value:
                yield prefix + name, value, vars(other)[name]


INTERVAL = 1.0
"""Seconds between two lines."""
LONGEST_LINE = 4096


class Metrics:
    """An observer that writes what solvers report to a file and passes all on to another one."""

    def __init__(self, path: Path, onward: Observer, *, interval: float = INTERVAL) -> None:
        self.path, self.onward, self.interval = path, onward, interval
        self._last: float | None = None
        self._held: Event | None = None
        self._stream: TextIOWrapper | None = None

    def __enter__(self) -> Self:
        _cut_half_line(self.path)
        self._stream = self.path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            with naming(self.path), self._stream as stream:
                if self._held is not None:
                    stream.write(_line(self._held))

    def __call__(self, event: Event, /) -> None:
        self.onward(event)
        if event.is_stage:
            return
        now = time.monotonic()
        if self._stream is None or (self._last is not None and now - self._last < self.interval):
            self._held = event
            return
        self._last, self._held = now, None
        with naming(self.path):
            self._stream.write(_line(event))
            self._stream.flush()


def last_elapsed(path: Path) -> float | None:
    """Seconds that the last solve took, as far as it has reported; None when it has not."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(path.stat().st_size - LONGEST_LINE, 0))
            elapsed = json.loads(stream.read().splitlines()[-1])["elapsed"]
        return float(elapsed)
    except (OSError, LookupError, TypeError, ValueError, RecursionError):
        return None


OF_STAGES = ("is_stage", "left")
"""Of an event, what its line does not have."""


def _line(event: Event) -> str:
    shown = {name: value for name, value in vars(event).items() if name not in OF_STAGES}
    return json.dumps(shown, sort_keys=True, default=float) + "\n"


def _cut_half_line(path: Path) -> None:
    if not path.exists():
        return
    whole = path.read_bytes().rpartition(b"\n")
    if whole[2]:
        with path.open("r+b") as stream:
            stream.truncate(len(whole[0]) + len(whole[1]))
