"""What every reader of demonstrations is given and gives back: an allowance, and a reading.

A reading is the demonstrations together with where in their file a step stands, so that whatever a
world does not allow can be named by its place.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidDemonstrations, InvalidFile, TooLarge
from journeyman.storage import PathLike
from journeyman.world import World

MEMORY_LIMIT = 300_000_000
"""Bytes that demonstrations may take while they are read, unless their reader is told otherwise."""
BYTES_PER_STEP, BYTES_PER_EPISODE = 72, 64
"""What arrays of ids take at the peak: as they are stored, joined, and in the value."""
JSON_LIMIT = 4 << 20
"""Bytes of a file that describes a data set."""
PLACE = re.compile(r"episode (\d+)(?:, step (\d+))?")
"""How the room of demonstrations begins its complaints about a step or an episode."""


@dataclass(frozen=True)
class Allowance:
    """Memory that the file at `path` may take."""

    path: PathLike
    limit: int = MEMORY_LIMIT

    def require(self, num_bytes: int) -> None:
        """Refuse to take more than the limit, before it is taken."""
        if num_bytes > self.limit:
            raise TooLarge(
                f"{self.path} would take about {num_bytes / 1e6:,.0f} MB of memory, more than the "
                f"{self.limit / 1e6:,.0f} MB it is allowed",
                "If it comes from where you think and is as large as you expect, give "
                f"memory_limit={1 << num_bytes.bit_length()}",
            )

    def require_steps(self, num_steps: int, num_episodes: int = 0) -> None:
        """Refuse more steps than the limit has room for."""
        self.require(BYTES_PER_STEP * num_steps + BYTES_PER_EPISODE * num_episodes)


@dataclass(frozen=True)
class Reading:
    """Demonstrations, and `place(episode, step)`: where their file has a step."""

    demonstrations: Demonstrations
    place: Callable[[int, int], str]

    def require_ids(self, path: PathLike) -> None:
        """Refuse ids below 0, which no state and no action can have."""
        demos = self.demonstrations
        below = np.flatnonzero(demos.states < 0)
        if below.size:
            at = int(below[0])
            raise self._refused(path, "state", int(demos.states[at]), *self._visit(at))
        below = np.flatnonzero(demos.actions < 0)
        if below.size:
            at = int(below[0])
            episode, step = int(demos.step_episodes[at]), int(demos.step_times[at])
            raise self._refused(path, "action", int(demos.actions[at]), episode, step)

    def _visit(self, at: int) -> tuple[int, int]:
        """Episode and step of an entry of the states."""
        offsets = self.demonstrations.offsets
        episode = int(np.searchsorted(offsets + np.arange(offsets.size), at, "right"))
        return episode - 1, at - int(offsets[episode - 1]) - episode + 1

    def _require_known(self, path: PathLike, world: World) -> None:
        """Refuse states beyond the last one of `world`."""
        states = self.demonstrations.states
        beyond = np.flatnonzero(states >= world.num_states)
        if beyond.size:
            episode, step = self._visit(int(beyond[0]))
            raise InvalidDemonstrations(
                f"{path}, {self.place(episode, step)}: episode {episode}, step {step}: state "
                f"{states[beyond[0]]} is too large, the world has states 0..{world.num_states - 1}",
                "Check that demonstrations and world number states and actions alike",
            )

    def _refused(
        self, path: PathLike, what: str, value: int, episode: int, step: int
    ) -> InvalidFile:
        return InvalidFile(
            f"{path}, {self.place(episode, step)}: {what} is {value}, expected an id from 0",
            "Number states and actions from 0",
        )

    def fitted(self, path: PathLike, world: World) -> Demonstrations:
        """The demonstrations as steps of `world`, or an error that names the first that is none.

        Terminated episodes whose last step the world does not have end in the world's sink, if it
        has one: records of an environment have no state for "the episode is over".
        """
        self._require_known(path, world)
        demos = _brought_to_rest(self.demonstrations, world)
        try:
            demos.pairs_in(world)
        except InvalidDemonstrations as fault:
            found = PLACE.match(fault.what)
            if found is None:
                raise InvalidDemonstrations(f"{path}: {fault.what}", fault.remedy) from None
            episode = int(found[1])
            step = int(found[2] or demos.lengths[episode])
            raise InvalidDemonstrations(
                f"{path}, {self.place(episode, step)}: {fault.what}", fault.remedy
            ) from None
        return demos


def _brought_to_rest(demos: Demonstrations, world: World) -> Demonstrations:
    """The last state of terminated episodes, where the world has no such step, becomes the sink.

    If the world has the step, the episode is not over by it: then it stays, to be refused.
    """
    if world.sink is None or world.observed_actions is not None:
        return demos
    ends = demos.offsets[1:] - 1
    before, chosen, last = demos.step_states[ends], demos.actions[ends], demos.last_states
    known = (np.minimum(before, last) >= 0) & (np.maximum(before, last) < world.num_states)
    ending = np.flatnonzero(demos.terminated & known & world.pairs.offers(before, chosen))
    if not ending.size:
        return demos
    pairs = world.pairs.index(before[ending], chosen[ending], InvalidDemonstrations)
    impossible = np.asarray(world.transition[pairs, last[ending]]).ravel() <= 0
    states = demos.states.copy()
    states[(ends + np.arange(len(demos)) + 1)[ending[impossible]]] = world.sink
    return Demonstrations(
        states, demos.actions, demos.offsets, demos.terminated,
        choice_offsets=demos.pairs,
    )  # fmt: skip


def member(directory: Path, name: str) -> Path:
    """A file of a data set, which must lie in the data set's own directory."""
    path = directory / name
    if not path.resolve().is_relative_to(directory.resolve()):
        raise InvalidFile(
            f"{path} leads out of {directory}", "Copy the files themselves into the directory"
        )
    if not path.is_file():
        raise InvalidFile(f"{path} does not exist", "Copy the whole directory")
    return path


def read_json(path: Path) -> dict[str, Any]:
    """A small file of JSON that holds one object."""
    try:
        with path.open("rb") as stream:
            text = stream.read(JSON_LIMIT + 1)
        if len(text) > JSON_LIMIT:
            raise ValueError(f"it has more than {JSON_LIMIT} bytes")
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError("it holds no object")
    except (OSError, ValueError, RecursionError) as fault:
        raise InvalidFile(f"{path} is not readable JSON: {fault}", "Write it again") from fault
    return content
