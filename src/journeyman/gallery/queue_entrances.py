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
from typing import NamedTuple

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.gallery.queue_plan import QueuePlan


class Move(NamedTuple):
    """An event under some actions: ids grow by `shift`, lengths are then between two bounds."""

    shift: int
    rate: float
    actions: IntArray
    least: dict[int, int]
    most: dict[int, int]

    def leads_to(self, lengths: IntArray) -> BoolArray:
        """Which rows of lengths it can have led to."""
        possible = np.ones(len(lengths), dtype=bool)
        for queue, bound in self.least.items():
            possible &= lengths[:, queue] >= bound
        for queue, bound in self.most.items():
            possible &= lengths[:, queue] <= bound
        return possible


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
    def move(self) -> IntArray:
        """The move of each column."""
        counts = [move.actions.size for move in self.moves]
        return np.repeat(np.arange(len(counts)), counts)[self._order]

    @cached_property
    def action(self) -> IntArray:
        return np.concatenate([move.actions for move in self.moves])[self._order]

    @cached_property
    def shift(self) -> IntArray:
        return np.array([move.shift for move in self.moves])[self.move]

    @cached_property
    def rate(self) -> FloatArray:
        return np.array([move.rate for move in self.moves])[self.move]

    @property
    def stays(self) -> BoolArray:
        return np.asarray(self.move == len(self.moves) - 1)

    def possible(self, lengths: IntArray) -> BoolArray:
        """(rows of lengths x columns)."""
        return np.column_stack([move.leads_to(lengths) for move in self.moves])[:, self.move]
