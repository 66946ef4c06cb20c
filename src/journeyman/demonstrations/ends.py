"""How episodes end: time limits that were recorded as if the episodes had terminated.

Some recorders mark an episode terminated whenever it stops, also when a time limit stopped it. Its
tail is then taken for known, which it is not. What gives it away is a length: many of the episodes
that are said to have terminated are as long as the longest, although what they end in is left
again elsewhere. Where most episodes of that length are not marked, the recorder tells limits apart.
"""

import warnings
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from journeyman.arrays import BoolArray, IntArray
from journeyman.errors import InvalidDemonstrations

if TYPE_CHECKING:
    from journeyman.demonstrations.demonstrations import Demonstrations

FEWEST = 5
"""Episodes of one length from which on it is suspicious by itself."""


KNOWN_TAILS = "as terminated episodes their tails are taken for known"
"""What follows for demonstrations from a mark that is wrong."""


class Episodes(Protocol):
    """What is asked of records whose ends are examined: of every episode, and of every step."""

    @property
    def lengths(self) -> IntArray: ...
    @property
    def terminated(self) -> BoolArray: ...
    @property
    def last_states(self) -> IntArray: ...
    @property
    def step_states(self) -> IntArray: ...
    @property
    def next_states(self) -> IntArray: ...


def at_limit(demos: "Demonstrations", truncated_at: Any) -> BoolArray:
    """The episodes that a time limit of so many steps has ended; longer ones contradict it."""
    limit = whole("truncated_at", truncated_at, least=1)
    longer = np.flatnonzero(demos.lengths > limit)
    if longer.size:
        episode = int(longer[0])
        raise InvalidDemonstrations(
            f"{demos.where(episode)} has {demos.lengths[episode]} steps, more than "
            f"truncated_at = {limit}",
            "Give the number of steps at which the time limit ends every episode",
        )
    return np.asarray(demos.lengths == limit)


def whole(name: str, value: Any, *, least: int = 0) -> int:
    """A whole number from `least`."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not least <= value < 1 << 63:
        raise InvalidDemonstrations(f"{name} = {value!r}", f"Give a whole number from {least}")
    return int(value)


def suspected_limit(demos: Episodes) -> tuple[int, str] | None:
    """The length at which a time limit seems to have ended episodes that are marked terminated, and
    what speaks for it.

    That is the greatest length, if two or more such episodes, and most of all that have it, end in
    a state that a step of the records leaves for another one; or if all of them have it and end in
    many places.
    """
    longest = int(demos.lengths.max())
    at = demos.terminated & (demos.lengths == longest)
    count, num_terminated = int(at.sum()), int(demos.terminated.sum())
    if longest < 2 or count < 2 or 2 * count <= int((demos.lengths == longest).sum()):
        return None
    which = f"{count} of {num_terminated} episodes marked terminated have {longest} steps, the most"
    ends, before, after = demos.last_states[at], demos.step_states, demos.next_states
    left_again = int(np.isin(ends, before[before != after]).sum())
    if left_again >= 2:
        return longest, f"{which}, and {left_again} of these end in states that are left elsewhere"
    places = np.unique(ends).size
    if num_terminated == count >= FEWEST and 2 * places > count:
        return longest, f"{which}, and end in {places} different states"
    return None


def warn_of_limit(
    demos: Episodes,
    source: object,
    *,
    stacklevel: int,
    option: str = "truncated_at={}",
    otherwise: str = KNOWN_TAILS,
) -> None:
    """Warn where terminated episodes look as if a time limit had ended them.

    `option` says what declares the limit, `otherwise` what happens if nothing does.
    """
    found = suspected_limit(demos)
    if found is not None:
        limit, signs = found
        warnings.warn(
            f"{source}: {signs}, as if a time limit had ended them. If so, give "
            f"{option.format(limit)}; {otherwise}.",
            stacklevel=stacklevel + 1,
        )
