"""Networks of queues: worlds from a million states to 10^16, with heuristics as experts.

Four queues and two servers, the network of Rybko and Stolyar. Jobs arrive at queues 1 and 3 and go

    queue 1 (server 1) -> queue 2 (server 2) -> out        arrivals .08, services .12, .12
    queue 3 (server 2) -> queue 4 (server 1) -> out        arrivals .08, services .28, .28

Buffers are 38, 25, 25 and 38: 39 * 26 * 26 * 39 = 1,028,196 states. Both servers have a load of
.95, so that it matters whom they serve.

Eight queues and three servers have 100^8 = 10^16 states. Two lines of four queues visit the servers

    queues 1, 2, 3, 4   at servers 1, 2, 3, 1   arrivals .05, services .12, .20, .12, .28
    queues 5, 6, 7, 8   at servers 2, 3, 1, 2   arrivals .05, services .12, .12, .20, .28

with loads .85, .85 and .83. The rates are our own. Queues are named from 1, and numbered from 0 in
the code. `queue_network` describes what happens in a step.

Costs are the lengths, each as a share of its buffer, and the overflow: the probability that the
next event loses a job, as a share of the largest there is.

Reference: Abbasi-Yadkori, Bartlett, Malek, "Linear programming for large-scale Markov decision
problems", 2014, has the sizes and rates of the four queues.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.costs import CostBasis, CostFunctions
from journeyman.errors import InvalidWorld
from journeyman.gallery.queue_network import QueueNetwork, QueuePlan, Start
from journeyman.policy import FunctionPolicy, RulePolicy
from journeyman.world import MixedRadix, World
from journeyman.world.world import enumerate_world, require_few_pairs

FOUR_QUEUES = QueuePlan(
    buffers=(38, 25, 25, 38),
    arrivals=(0.08, 0.0, 0.08, 0.0),
    services=(0.12, 0.12, 0.28, 0.28),
    routes=(1, None, 3, None),
    servers=((0, 3), (1, 2)),
)
EIGHT_QUEUES = QueuePlan(
    buffers=(99,) * 8,
    arrivals=(0.05, 0.0, 0.0, 0.0, 0.05, 0.0, 0.0, 0.0),
    services=(0.12, 0.20, 0.12, 0.28, 0.12, 0.12, 0.20, 0.28),
    routes=(1, 2, 3, None, 5, 6, 7, None),
    servers=((0, 3, 6), (1, 4, 7), (2, 5)),
)
PLANS = {4: FOUR_QUEUES, 8: EIGHT_QUEUES}


@dataclass(frozen=True, eq=False)
class Queues:
    """A queue network with its costs and heuristics."""

    world: QueueNetwork
    costs: CostFunctions
    longer: RulePolicy
    """Every server works on its longest queue."""
    lbfs: RulePolicy
    """Last buffer first served: the queue closest to the way out that is not empty."""
    uniform: FunctionPolicy

    @property
    def radix(self) -> MixedRadix:
        """From state ids to lengths."""
        return self.world.radix

    def explicit(self) -> tuple[World, CostBasis]:
        """The same world and costs as arrays, for checks; refused when they are too large."""
        require_few_pairs(self.world)
        lengths = self.radix.digits(np.arange(self.world.num_states))
        world = enumerate_world(self.world, coordinates=lengths)
        values = self.costs.at(world.pairs.states, world.pairs.actions)
        return world, CostBasis(values, self.costs.names)


@dataclass(frozen=True, eq=False)
class QueueCosts:
    """Lengths and overflow of a network, as a function of states and actions."""

    network: QueueNetwork

    def __call__(self, states: IntArray, actions: IntArray) -> FloatArray:
        plan = self.network.plan
        shares = self.network.radix.digits(states) / plan.arrays.buffers
        overflow = self.network.overflow(states, actions) / (plan.most_overflow or 1.0)
        return np.column_stack([shares, overflow])


def queues(
    queues: int | QueuePlan = 4,
    *,
    buffers: Sequence[int] | None = None,
    discount: float = 0.95,
    initial: Start | None = None,
) -> Queues:
    """Four queues, eight, or a network of your own.

    Args:
        queues: 4, 8 or a `QueuePlan`.
        buffers: other buffers than the plan's, for example small ones.
        initial: `SmoothStart()` by default, or `EmptyStart()`.

    >>> network = queues(4)
    >>> network.world.num_states, network.world.num_actions, network.costs.names
    (1028196, 4, ('queue 1', 'queue 2', 'queue 3', 'queue 4', 'overflow'))
    >>> queues(8).world
    QueueNetwork(8 queues, 3 servers, 10000000000000000 states, discount 0.95)
    """
    plan = PLANS.get(queues) if isinstance(queues, int) else queues
    if plan is None:
        raise InvalidWorld(f"queues = {queues!r}", "Give 4, 8, or a QueuePlan of your own")
    if buffers is not None:
        plan = replace(plan, buffers=tuple(int(room) for room in buffers))
    world = QueueNetwork(plan, discount, initial)
    count, table = world.num_actions, ServerTable(world)
    return Queues(
        world,
        costs_of(world),
        RulePolicy(Longer(table), count),
        RulePolicy(LastBufferFirst(table), count),
        FunctionPolicy(Even(count), count),
    )


def costs_of(network: QueueNetwork) -> CostFunctions:
    """Every length as a share of its buffer, and the overflow."""
    buffers = network.plan.buffers
    return CostFunctions(
        QueueCosts(network),
        [*(f"queue {number}" for number, _ in enumerate(buffers, 1)), "overflow"],
        lowest=0.0,
        highest=1.0,
        by_factor={k: (k, np.arange(most + 1) / most) for k, most in enumerate(buffers)},
    )


@dataclass(frozen=True, eq=False)
class ServerTable:
    """The queues of every server in rows filled up with -1, and how actions are numbered: what
    rules of thumb for servers look up, which see the lengths of a server's own queues only."""

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
