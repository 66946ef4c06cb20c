"""Episodes that come one at a time, collected into demonstrations.

For formats that keep episodes apart: what each holds is checked when it is added, and its memory is
asked for before.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from journeyman.adapters.demonstration_files.demonstration_reading import Allowance
from journeyman.arrays import BoolArray, IntArray
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.files import Source
from journeyman.errors import InvalidFile


class EpisodeList:
    """Episodes of the data set at `path`."""

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
