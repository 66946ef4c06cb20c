"""Rules of thumb for servers, as policies of a queue network.

All of them look at the lengths of a server's own queues only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.gallery.queue_network import QueueNetwork
from journeyman.world import MixedRadix


@dataclass(frozen=True, eq=False)
class ServerTable:
    """The queues of every server in rows filled up with -1, and how actions are numbered."""

    network: QueueNetwork

    @cached_property
    def queues(self) -> IntArray:
        return _filled_up(self.network.plan.servers)

    @cached_property
    def choices(self) -> IntArray:
        """By how much the number of an action grows with the position of each server's choice."""
        return MixedRadix([len(server) for server in self.network.plan.servers]).strides

    @cached_property
    def last_buffers_first(self) -> IntArray:
        """The places of a server's queues, those closest to the way out first."""
        left = self.network.plan.services_left
        return _filled_up(
            [
                np.argsort(left[list(own)], kind="stable").tolist()
                for own in self.network.plan.servers
            ]
        )


@dataclass(frozen=True, eq=False)
class Longer:
    """LONGER: every server works on its longest queue; of equal ones, on the first it names."""

    table: ServerTable

    def __call__(self, states: IntArray) -> IntArray:
        from journeyman.gallery.queue_kernels import longest_queues

        lengths = self.table.network.radix.digits(states)
        return longest_queues(lengths, self.table.queues, self.table.choices)


@dataclass(frozen=True, eq=False)
class LastBufferFirst:
    """LBFS: of its queues that are not empty, every server works on the one that is closest to
    the way out; of equally close ones, on the first it names, and with nothing to do on the last
    buffer."""

    table: ServerTable

    def __call__(self, states: IntArray) -> IntArray:
        from journeyman.gallery.queue_kernels import first_waiting

        table, lengths = self.table, self.table.network.radix.digits(states)
        return first_waiting(lengths, table.queues, table.last_buffers_first, table.choices)


@dataclass(frozen=True)
class Even:
    """All actions alike."""

    num_actions: int

    def __call__(self, states: IntArray) -> FloatArray:
        return np.broadcast_to(1.0 / self.num_actions, (len(states), self.num_actions))


def _filled_up(rows: Sequence[Sequence[int]]) -> IntArray:
    """Rows of different lengths as one array, -1 where they end."""
    table = np.full((len(rows), max(map(len, rows))), -1)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table
