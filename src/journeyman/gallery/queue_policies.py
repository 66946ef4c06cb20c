"""Rules of thumb for servers: functions of states, for `FunctionPolicy`.

All of them look at the lengths of a server's own queues only.
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.gallery.queue_network import QueueNetwork
from journeyman.world import MixedRadix


@dataclass(frozen=True, eq=False)
class Longer:
    """LONGER: every server works on its longest queue; of equal ones, on the first it names."""

    network: QueueNetwork

    def __call__(self, states: IntArray) -> FloatArray:
        lengths = self.network.radix.digits(states)
        chosen = [lengths[:, server].argmax(axis=1) for server in self.network.plan.servers]
        return _certain(self.network, chosen)


@dataclass(frozen=True, eq=False)
class LastBufferFirst:
    """LBFS: of its queues that are not empty, every server works on the one that is closest to
    the way out; of equally close ones, on the first it names, and with nothing to do on the last
    buffer."""

    network: QueueNetwork

    def __call__(self, states: IntArray) -> FloatArray:
        lengths, left = self.network.radix.digits(states), self.network.plan.services_left
        chosen = []
        for server in self.network.plan.servers:
            order = np.argsort(left[list(server)], kind="stable")
            first = (lengths[:, np.array(server)[order]] > 0).argmax(axis=1)
            chosen.append(order[first])
        return _certain(self.network, chosen)


@dataclass(frozen=True, eq=False)
class Uniform:
    """All actions alike."""

    network: QueueNetwork

    def __call__(self, states: IntArray) -> FloatArray:
        count = self.network.num_actions
        return np.full((len(states), count), 1.0 / count)


def _certain(network: QueueNetwork, chosen: list[IntArray]) -> FloatArray:
    """Laws that take one action, given as the position of each server's choice."""
    choices = MixedRadix([len(server) for server in network.plan.servers])
    actions = choices.states(np.column_stack(chosen))
    laws = np.zeros((actions.size, network.num_actions))
    laws[np.arange(actions.size), actions] = 1.0
    return laws
