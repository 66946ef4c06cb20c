"""Where demonstrations came from: the file, and the place in it, of every episode and step.

Kept beside demonstrations that were read from a file, so that whatever is wrong with a step, and
whenever that is found, can be named by file and line. Lines are looked up only then.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from journeyman.arrays import IntArray
from journeyman.storage import PathLike


@dataclass(frozen=True, eq=False)
class Source:
    """A file or data set, and `place(episode, step)`: where it has a step, in its own words.

    `place` is a function of a module or a partial of one, so that demonstrations can be sent to
    other processes.
    """

    path: PathLike
    place: Callable[[int, int], str]


@dataclass(frozen=True, eq=False)
class Origin:
    """For every episode its source, -1 for none, and its number there."""

    sources: tuple[Source, ...]
    which: IntArray
    episodes: IntArray

    @classmethod
    def of(cls, source: Source, num_episodes: int) -> Self:
        """All episodes of one source."""
        return cls((source,), np.zeros(num_episodes, dtype=np.int64), np.arange(num_episodes))

    @classmethod
    def joined(cls, parts: Sequence["tuple[Origin | None, int]"]) -> Self | None:
        """The origins of several sets one after the other, each with its number of episodes."""
        sources: list[Source] = []
        which, episodes = [], []
        for origin, count in parts:
            known = cls((), np.full(count, -1), np.arange(count)) if origin is None else origin
            which.append(np.where(known.which < 0, -1, known.which + len(sources)))
            episodes.append(known.episodes)
            sources += known.sources
        joined = cls(tuple(sources), np.concatenate(which), np.concatenate(episodes))
        return joined if sources else None

    def subset(self, chosen: IntArray) -> Self:
        """The origin of some of the episodes."""
        return type(self)(self.sources, self.which[chosen], self.episodes[chosen])

    def where(self, episode: int, step: int) -> str:
        """'file, line 7: ', or nothing where the source is not known."""
        which = int(self.which[episode])
        if which < 0:
            return ""
        source = self.sources[which]
        return f"{source.path}, {source.place(int(self.episodes[episode]), step)}: "
