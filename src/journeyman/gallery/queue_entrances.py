"""The ways into a state of a queue network: its events read backwards.

arrival at i         y = x + e_i              when y_i >= 1
service at i, out    y = x - e_i              when y_i < buffer_i
service at i to j    y = x - e_i + e_j        when y_i < buffer_i and y_j >= 1
the same, j full     y = x - e_i              when y_i < buffer_i and y_j = buffer_j
no change            y = x
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from journeyman.arrays import IntArray
from journeyman.gallery.queue_plan import QueuePlan

if TYPE_CHECKING:
    from journeyman.gallery.queue_kernels import Ways

MOST_BOUNDS = 2
"""A move bounds the queue that is left and the one that is joined."""


class Move(NamedTuple):
    """An event under some actions: ids grow by `shift`, lengths are then between two bounds."""

    shift: int
    rate: float
    actions: IntArray
    least: dict[int, int]
    most: dict[int, int]


@dataclass(frozen=True, eq=False)
class Entrances:
    """All moves of a plan, and one column for each of their actions in the order of the pairs
    that are left."""

    plan: QueuePlan
    strides: IntArray

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """The last one is no move: its rate depends on the state."""
        everything = np.arange(len(self.plan.serving))
        arrivals = (
            Move(int(self.strides[i]), self.plan.arrivals[i], everything, {i: 1}, {})
            for i in self.plan.entries.tolist()
        )
        return (*arrivals, *self._services(), Move(0, 0.0, everything, {}, {}))

    def _services(self) -> Iterator[Move]:
        for i, route in enumerate(self.plan.routes):
            rate, stride = self.plan.services[i], int(self.strides[i])
            actions = np.flatnonzero((self.plan.serving == i).any(axis=1))
            room = {i: self.plan.buffers[i] - 1}
            if route is None:
                yield Move(-stride, rate, actions, {}, room)
            else:
                joined = int(self.strides[route]) - stride
                yield Move(joined, rate, actions, {route: 1}, room)
                yield Move(-stride, rate, actions, {route: self.plan.buffers[route]}, room)

    @cached_property
    def _order(self) -> IntArray:
        """Of the columns: a larger shift leaves a smaller state."""
        shifts = np.concatenate([np.full(move.actions.size, move.shift) for move in self.moves])
        actions = np.concatenate([move.actions for move in self.moves])
        return np.asarray(np.lexsort((actions, -shifts)))

    @cached_property
    def ways(self) -> "Ways":
        from journeyman.gallery.queue_kernels import Ways

        counts = [move.actions.size for move in self.moves]
        move = np.repeat(np.arange(len(counts)), counts)[self._order]
        return Ways(
            move,
            np.concatenate([move.actions for move in self.moves])[self._order],
            np.array([move.shift for move in self.moves])[move],
            np.array([move.rate for move in self.moves])[move],
            *self._needs(),
        )

    def _needs(self) -> tuple[IntArray, IntArray, IntArray]:
        """(moves x bounds): the queues whose lengths are bounded, their least and most values."""
        shape = len(self.moves), MOST_BOUNDS
        queues, least = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        most = np.full(shape, max(self.plan.buffers))
        for k, move in enumerate(self.moves):
            for place, queue in enumerate({**move.least, **move.most}):
                queues[k, place] = queue
                least[k, place] = move.least.get(queue, 0)
                most[k, place] = move.most.get(queue, self.plan.buffers[queue])
        return queues, least, most
