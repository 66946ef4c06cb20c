"""In which order the episodes of a record are read, and which of them a potential is learned from.

The order is that of digests, so nobody can choose it, and the record's own order decides nothing.
The first of it train: potentials of the shaped estimate of certificates, and of the default target
of large worlds, are values of a policy cloned from these; the others are measured with them.
"""

import hashlib
import math
from collections import Counter

import numpy as np

from journeyman.arrays import IntArray
from journeyman.demonstrations.demonstrations import Demonstrations
from journeyman.world import World


def training_share(count: int) -> float:
    """Of the trajectories: a potential needs a few dozen of them, however many there are."""
    return 0.12 + 1 / math.sqrt(count)


def split(demos: Demonstrations, world: World) -> tuple[IntArray, IntArray]:
    """Which episodes train, and which are measured, in the order in which they are read."""
    order = reading_order(contents(demos, world))
    cut = round(training_share(len(demos)) * len(demos))
    return np.sort(order[:cut]), order[cut:]


def contents(demos: Demonstrations, world: World) -> list[bytes]:
    """Every episode as bytes."""
    pairs, ends = demos.pairs_in(world).astype("<i8"), demos.last_states.astype("<i8")
    found = []
    for episode in range(len(demos)):
        steps = pairs[demos.offsets[episode] : demos.offsets[episode + 1]].tobytes()
        found.append(steps + ends[episode].tobytes() + bytes([int(demos.terminated[episode])]))
    return found


def reading_order(episodes: list[bytes]) -> IntArray:
    """The order in which episodes are read: that of digests. Those that come first train.

    A digest is that of all episodes, of the episode's own content, and of how many equal ones came
    before it. So the order of the record decides nothing, and nobody can look for one with a small
    bound; equal episodes are kept apart, or rare ones would all fall into one part; and other
    records are read anew, so that no kind of episode always comes first.
    """
    digests = [hashlib.sha256(content).digest() for content in episodes]
    everything = hashlib.sha256(b"".join(sorted(digests))).digest()
    copies: Counter[bytes] = Counter()
    keys = []
    for digest in digests:
        place = copies[digest].to_bytes(8, "little")
        keys.append(hashlib.sha256(everything + digest + place).digest())
        copies[digest] += 1
    return np.array(sorted(range(len(episodes)), key=keys.__getitem__), dtype=np.intp)
