"""What every reader of demonstrations is given, and what is checked of all that they give back.

Readers return demonstrations that know their source, so that whatever is wrong with a step, here or
later, is named by its place in the file.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.adapters.source_options import one_state
from journeyman.arrays import BoolArray, IntArray
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.demonstrations import at_limit, whole
from journeyman.demonstrations.files import Source
from journeyman.errors import InvalidDemonstrations, InvalidFile, TooLarge
from journeyman.storage import PathLike, read_json
from journeyman.tables import NO_WORLD, WorldNames
from journeyman.world import World

MEMORY_LIMIT = 300_000_000
"""Bytes that demonstrations may take while they are read, unless `memory_limit` says otherwise."""
BYTES_PER_STEP, BYTES_PER_EPISODE = 72, 64
"""What arrays of ids take at the peak: as they are stored, joined, and in the value."""
JSON_LIMIT = 4 << 20
"""Bytes of a file that describes a data set."""


@dataclass(frozen=True)
class Allowance:
    """Memory that the file at `path` may take, and the names that its steps may be given by."""

    path: PathLike
    limit: int = MEMORY_LIMIT
    names: WorldNames = NO_WORLD

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
        """Refuse more steps than the limit allows."""
        self.require(BYTES_PER_STEP * num_steps + BYTES_PER_EPISODE * num_episodes)


def require_ids(demos: Demonstrations) -> None:
    """Refuse ids below 0, which no state and no action can have."""
    below = np.flatnonzero(demos.states < 0) if demos.has_ids else np.zeros(0)
    if below.size:
        at = int(below[0])
        raise _no_id(demos, "state", int(demos.states[at]), *_visit(demos, at))
    below = np.flatnonzero(demos.actions < 0)
    if below.size:
        at = int(below[0])
        episode, step = int(demos.step_episodes[at]), int(demos.step_times[at])
        raise _no_id(demos, "action", int(demos.actions[at]), episode, step)


def _no_id(demos: Demonstrations, what: str, value: int, episode: int, step: int) -> InvalidFile:
    return InvalidFile(
        f"{demos.where(episode, step)}: {what} is {value}, expected an id from 0",
        "Number states and actions from 0",
    )


def _visit(demos: Demonstrations, at: int) -> tuple[int, int]:
    """Episode and step of an entry of the states."""
    offsets = demos.offsets
    episode = int(np.searchsorted(offsets + np.arange(offsets.size), at, "right"))
    return episode - 1, at - int(offsets[episode - 1]) - episode + 1


def fitted(
    demos: Demonstrations, world: World, truncated_at: int | None, terminal_state: int | str | None
) -> Demonstrations:
    """The demonstrations as steps of `world`, or an error that names the first that is none.

    Terminated episodes whose last step the world does not have end in the world's sink, if it has
    one: records of an environment have no state for "the episode is over". Of the episodes that a
    time limit may have ended, those are terminated for which the world shows it.
    """
    demos.require_ids("a world")
    _require_known(demos, world)
    resting = _resting_place(world, terminal_state)
    over = demos.terminated
    impossible = _impossible_ends(demos, world, resting)
    if truncated_at is not None:
        shown = world.absorbing[demos.last_states] | impossible
        over = over & (shown | ~at_limit(demos, truncated_at))
    moved = over if terminal_state is not None else over & impossible
    last = demos.last_states.copy()
    if resting is not None:
        last[moved] = resting
    ended = demos.ended_as(over, last)
    ended.pairs_in(world)
    return ended


def _resting_place(world: World, terminal_state: int | str | None) -> int | None:
    """Where terminated episodes end if their own last state is none for that."""
    if terminal_state is None:
        return world.sink if world.observed_actions is None else None
    if isinstance(terminal_state, str):
        terminal_state = one_state("terminal_state", terminal_state, world.state_names)
    state = whole("terminal_state", terminal_state)
    if state >= world.num_states or not world.absorbing[state]:
        ends = np.flatnonzero(world.absorbing)[:5].tolist()
        some = ", ".join(world.with_names(f"state {end}").removeprefix("state ") for end in ends)
        raise InvalidDemonstrations(
            f"terminal_state = {world.with_names(f'state {state}').removeprefix('state ')} is not "
            "an absorbing state of the world",
            f"Its absorbing states are {some}, for example"
            if some
            else "It has none: leave it out",
        )
    return state


def _impossible_ends(demos: Demonstrations, world: World, resting: int | None) -> BoolArray:
    """Terminated episodes whose last step the world does not have, unless it leads to `resting`.

    If the world has the step, the episode is not over by it: then it stays, to be refused.
    """
    found = np.zeros(len(demos), dtype=bool)
    if resting is None or world.observed_actions is not None:
        return found
    ends = demos.offsets[1:] - 1
    before, chosen, last = demos.step_states[ends], demos.actions[ends], demos.last_states
    ending = np.flatnonzero(demos.terminated & world.pairs.offers(before, chosen))
    if ending.size:
        pairs = world.pairs.index(before[ending], chosen[ending], InvalidDemonstrations)
        there = np.asarray(world.transition[pairs, last[ending]]).ravel()
        to_rest = np.asarray(world.transition[pairs, np.full(ending.size, resting)]).ravel()
        found[ending] = (there <= 0) & (to_rest > 0)
    return found


def _require_known(demos: Demonstrations, world: World) -> None:
    """Refuse states beyond the last one of `world`."""
    beyond = np.flatnonzero(demos.states >= world.num_states)
    if beyond.size:
        raise InvalidDemonstrations(
            f"{demos.where(*_visit(demos, int(beyond[0])))}: state {demos.states[beyond[0]]} is "
            f"too large, the world has states 0..{world.num_states - 1}",
            "Check that demonstrations and world number states and actions alike",
        )


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


def read_facts(path: Path) -> dict[str, Any]:
    """What a small file of JSON says about a data set."""
    return read_json(path, JSON_LIMIT, "Write it again")


class EpisodeList:
    """Episodes of the data set at `path`, which come one at a time; memory is asked for before."""

    def __init__(self, path: Path, allowance: Allowance) -> None:
        self.path, self.allowance = path, allowance
        self.states: list[IntArray] = []
        self.actions: list[IntArray] = []
        self.lengths: list[IntArray] = []
        self.terminated: list[BoolArray] = []
        self.num_steps = self.num_episodes = 0

    def allow(self, num_steps: int, num_episodes: int) -> None:
        """Ask for the memory of further episodes."""
        self.num_steps += num_steps
        self.num_episodes += num_episodes
        self.allowance.require_steps(self.num_steps, self.num_episodes)

    def add(
        self, states: IntArray, actions: IntArray, lengths: IntArray, terminated: BoolArray
    ) -> None:
        """Add some episodes as flat arrays."""
        self.states.append(states)
        self.actions.append(actions)
        self.lengths.append(lengths)
        self.terminated.append(terminated)

    def joined(self, place: Callable[[int, int], str]) -> Demonstrations:
        """All episodes as one value; `place` says where the data set has a step."""
        if not self.num_episodes:
            raise InvalidFile(f"{self.path} holds no episode", "Give at least one")
        lengths = np.concatenate(self.lengths)
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        terminated = np.concatenate(self.terminated)
        states, actions = np.concatenate(self.states), np.concatenate(self.actions)
        self.states.clear()
        self.actions.clear()
        demos = Demonstrations(states, actions, offsets, terminated)
        return demos.read_from(Source(self.path, place))


def write_directory(path: Path, fill: Callable[[Path], Path]) -> None:
    """A directory that is there as a whole or not at all: a neighbour of `path` is filled, and what
    `fill` returns is moved into place in one step."""
    if path.exists():
        raise InvalidFile(f"{path} exists already", "Remove it, or write elsewhere")
    if not path.parent.is_dir():
        raise InvalidFile(f"{path.parent} is not a directory", "Create it before saving there")
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        fill(temporary).replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
