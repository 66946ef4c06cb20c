"""Networks of queues whose servers choose what to work on, as worlds by callables.

Time is uniformised: at most one event happens in a step,

    a job arrives at queue i                      with probability arrivals[i]
    server k ends a service at the queue i that
      the action assigns it                       with probability services[i]
    nothing                                       otherwise

A served job goes to queue routes[i] or leaves. Serving an empty queue does nothing. A job that
comes to a full queue is lost, whether it arrives from outside or from another queue. So every event
leads to a state of its own or leaves the state as it is.

Cost: a pair has 1 + arrivals + servers branches. A state has, for each action, at most one
predecessor per arrival, two per server, and itself.

Examples with heuristics as experts are worlds of a million states to 10^16. Four queues and two
servers, the network of Rybko and Stolyar. Jobs arrive at queues 1 and 3 and go

    queue 1 (server 1) -> queue 2 (server 2) -> out        arrivals .08, services .12, .12
    queue 3 (server 2) -> queue 4 (server 1) -> out        arrivals .08, services .28, .28

Buffers are 38, 25, 25 and 38: 39 * 26 * 26 * 39 = 1,028,196 states. Both servers have a load of
.95, so that it matters whom they serve.

Eight queues and three servers have 100^8 = 10^16 states. Two lines of four queues visit the servers

    queues 1, 2, 3, 4   at servers 1, 2, 3, 1   arrivals .05, services .12, .20, .12, .28
    queues 5, 6, 7, 8   at servers 2, 3, 1, 2   arrivals .05, services .12, .12, .20, .28

with loads .85, .85 and .83. The rates are our own. Queues are named from 1, and numbered from 0 in
the code.

Costs are the lengths, each as a share of its buffer, and the overflow: the probability that the
next event loses a job, as a share of the largest there is.

Reference: Abbasi-Yadkori, Bartlett, Malek, "Linear programming for large-scale Markov decision
problems", 2014, has the sizes and rates of the four queues.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    FloatArray,
    IntArray,
    assign,
    integer_array,
    read_only,
    require_in_range,
)
from journeyman.costs import CostBasis, CostFunctions
from journeyman.errors import InvalidWorld
from journeyman.policy import FunctionPolicy, RulePolicy
from journeyman.world import MixedRadix, Predecessors, Successors, World
from journeyman.world.laws import discount as checked_discount
from journeyman.world.laws import draw_outcomes, probability_vector, running_sums
from journeyman.world.world import enumerate_world, require_few_pairs

if TYPE_CHECKING:
    from journeyman.gallery.queue_kernels import Ways


ROUNDING = 1e-12
"""By this much the rates of all events may exceed one."""


class PlanArrays(NamedTuple):
    """A plan for vectorised code; a route of -1 leads out."""

    buffers: IntArray
    arrivals: FloatArray
    services: FloatArray
    routes: IntArray


@dataclass(frozen=True)
class QueuePlan:
    """A network of queues, numbered from 0.

    Args:
        buffers: how many jobs each queue can hold, the one in service included.
        arrivals: probability per step that a job arrives from outside, for each queue.
        services: probability per step that a service ends, for each queue while it is served.
        routes: the queue where a job goes next, None when it leaves; without cycles.
        servers: for each server the queues it chooses from. Every queue belongs to one server.

    >>> tandem = QueuePlan((3, 2), (0.1, 0.0), (0.5, 0.4), (1, None), ((0,), (1,)))
    >>> tandem.loads.tolist(), tandem.services_left.tolist()
    ([0.2, 0.25], [2, 1])
    """

    buffers: tuple[int, ...]
    arrivals: tuple[float, ...]
    services: tuple[float, ...]
    routes: tuple[int | None, ...]
    servers: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_rates()
        self._check_routes()
        if sorted(queue for server in self.servers for queue in server) != list(self.queues):
            raise InvalidWorld(
                f"servers = {self.servers} do not share the queues 0..{len(self.queues) - 1}",
                "Name every queue at exactly one server",
            )
        busiest = sum(max(self.services[queue] for queue in server) for server in self.servers)
        if sum(self.arrivals) + busiest > 1 + ROUNDING:
            raise InvalidWorld(
                f"the rates of a step sum to {sum(self.arrivals) + busiest:.6g}: arrivals "
                f"{sum(self.arrivals):.6g} and, with every server at its fastest, {busiest:.6g}",
                "Take shorter steps: divide all rates by their sum",
            )

    @property
    def queues(self) -> range:
        return range(len(self.buffers))

    @cached_property
    def arrays(self) -> PlanArrays:
        return PlanArrays(
            read_only(np.array(self.buffers, dtype=np.int64)),
            read_only(np.array(self.arrivals, dtype=np.float64)),
            read_only(np.array(self.services, dtype=np.float64)),
            read_only(np.array([-1 if route is None else route for route in self.routes])),
        )

    @cached_property
    def serving(self) -> IntArray:
        """(actions x servers): the queue that each server works on."""
        return read_only(np.array(list(product(*self.servers)), dtype=np.int64))

    @cached_property
    def entries(self) -> IntArray:
        """The queues at which jobs arrive from outside."""
        return read_only(np.flatnonzero(self.arrivals))

    @cached_property
    def services_left(self) -> IntArray:
        """How many services a job of each queue still needs, the one there included."""
        return read_only(np.array([len(self._way(queue)) for queue in self.queues]))

    @cached_property
    def loads(self) -> FloatArray:
        """Work that comes to each server per step; above 1 it cannot keep up."""
        work = np.zeros(len(self.servers))
        for entry in self.queues:
            for queue in self._way(entry):
                server = next(k for k, own in enumerate(self.servers) if queue in own)
                work[server] += self.arrivals[entry] / self.services[queue]
        return read_only(work)

    @cached_property
    def most_overflow(self) -> float:
        """The largest probability of losing a job in a step: all queues full, the worst action."""
        losing = np.where([route is None for route in self.routes], 0.0, self.services)
        return float(sum(self.arrivals) + losing[self.serving].sum(axis=1).max())

    def _way(self, queue: int) -> list[int]:
        """The queues on the way out, this one first."""
        way: list[int] = []
        ahead: int | None = queue
        while ahead is not None:
            if ahead in way:
                raise InvalidWorld(
                    f"routes lead from queue {queue} in a circle", "Let every job leave some time"
                )
            way.append(ahead)
            ahead = self.routes[ahead]
        return way

    def _check_sizes(self) -> None:
        count = len(self.buffers)
        named: dict[str, Sequence[object]] = {
            "arrivals": self.arrivals, "services": self.services, "routes": self.routes,
        }  # fmt: skip
        for name, values in named.items():
            if len(values) != count:
                raise InvalidWorld(
                    f"{name} has {len(values)} entries for {count} buffers", "Give one per queue"
                )
        for queue, room in enumerate(self.buffers):
            if not isinstance(room, int | np.integer) or room < 1:
                raise InvalidWorld(
                    f"buffers[{queue}] = {room!r}", "Give every queue room for a job or more"
                )

    def _check_rates(self) -> None:
        for queue in self.queues:
            arrival, service = self.arrivals[queue], self.services[queue]
            if not (arrival >= 0 and service > 0):
                raise InvalidWorld(
                    f"queue {queue} has arrivals {arrival!r} and services {service!r}",
                    "Give arrivals of at least 0 and services above 0",
                )

    def _check_routes(self) -> None:
        for queue, route in enumerate(self.routes):
            if route is not None and route not in self.queues:
                raise InvalidWorld(
                    f"routes[{queue}] = {route!r} is no queue",
                    f"Give a queue from 0 to {len(self.queues) - 1}, or None for jobs that leave",
                )
            self._way(queue)


class Start(Protocol):
    """How many jobs wait at the start, every queue by itself, so that the law is a product: the law
    of the first length of a queue that holds `buffer` jobs, buffer + 1 entries."""

    def law(self, buffer: int) -> FloatArray: ...


@dataclass(frozen=True)
class SmoothStart:
    """Prob[length = k] proportional to ratio^k, cut off at the buffer: every state is possible.

    >>> SmoothStart(ratio=0.5).law(2).round(3).tolist()
    [0.571, 0.286, 0.143]
    """

    ratio: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise InvalidWorld(
                f"ratio = {self.ratio!r}", "Give a ratio above 0 and at most 1 (all lengths alike)"
            )

    def law(self, buffer: int) -> FloatArray:
        weights = self.ratio ** np.arange(buffer + 1.0)
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class EmptyStart:
    """All queues are empty."""

    def law(self, buffer: int) -> FloatArray:
        return np.asarray(np.eye(buffer + 1)[0])


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
    """The ways into a state: all moves of a plan, its events read backwards, and one column for
    each of their actions in the order of the pairs that are left.

        arrival at i         y = x + e_i              when y_i >= 1
        service at i, out    y = x - e_i              when y_i < buffer_i
        service at i to j    y = x - e_i + e_j        when y_i < buffer_i and y_j >= 1
        the same, j full     y = x - e_i              when y_i < buffer_i and y_j = buffer_j
        no change            y = x
    """

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


@dataclass(frozen=True, eq=False, init=False, repr=False)
class QueueNetwork:
    """The `LargeWorld` of a `QueuePlan`; a state is the lengths of its queues.

    Actions are numbered as in `plan.serving`: row a holds the queue that each server works on.

    Args:
        plan: buffers, rates, routes and servers.
        discount: gamma.
        initial: the law of the first lengths; `SmoothStart()` by default, or `EmptyStart()`.

    >>> plan = QueuePlan((3, 2), (0.3, 0.0), (0.4, 0.3), (1, None), ((0,), (1,)))
    >>> world = QueueNetwork(plan, 0.9)
    >>> [part.round(2).tolist() for part in world.successors([10], [0])]
    [[[10, 8, 9, 10]], [[0.0, 0.4, 0.3, 0.3]]]
    """

    plan: QueuePlan
    discount: float
    initial: Start
    radix: MixedRadix
    """From state ids to lengths, the last queue fastest."""

    def __init__(self, plan: QueuePlan, discount: float, initial: Start | None = None) -> None:
        start = SmoothStart() if initial is None else initial
        assign(
            self, plan=plan, discount=checked_discount(discount), initial=start,
            radix=MixedRadix([buffer + 1 for buffer in plan.buffers]),
        )  # fmt: skip
        _ = self._start_laws

    @property
    def num_states(self) -> int:
        return self.radix.num_states

    @property
    def num_actions(self) -> int:
        return len(self.plan.serving)

    def draw_initial(self, rng: np.random.Generator, count: int) -> IntArray:
        """First states; one uniform number is spent on each queue."""
        uniforms = rng.random((count, len(self.plan.buffers)))
        columns = zip(self._start_sums, uniforms.T, strict=True)
        return self.radix.states(np.column_stack([draw_outcomes(*column) for column in columns]))

    def initial_probability(self, states: ArrayLike) -> FloatArray:
        """The product of the laws of the queues."""
        lengths = self.radix.digits(states)
        factors = [law[lengths[:, queue]] for queue, law in enumerate(self._start_laws)]
        return np.asarray(np.prod(factors, axis=0))

    def successors(self, states: ArrayLike, actions: ArrayLike) -> Successors:
        """Branches: an arrival at each entry, the end of each server's service, nothing."""
        here, lengths, served = self._read(states, actions)
        rates = np.hstack([self._arriving(lengths), self._serving(lengths, served)])
        arrived = np.tile(self.radix.strides[self.plan.entries], (len(here), 1))
        moved = here + np.hstack([arrived, self._passing_on(lengths, served)])
        reached = np.hstack([np.where(rates > 0, moved, here), here])
        return Successors(reached, np.hstack([rates, _rest(rates)[:, np.newaxis]]))

    def predecessors(self, states: ArrayLike) -> Predecessors:
        """In the order of pairs."""
        from journeyman.gallery.queue_kernels import rest_of_rates, ways_in

        y = integer_array("states", states, refusal=InvalidWorld)
        lengths, given = self.radix.digits(y), self.plan.arrays
        staying = rest_of_rates(
            lengths, given.buffers, given.arrivals, given.services, self.plan.serving, ROUNDING
        )
        return Predecessors(*ways_in(y, lengths, self._entrances.ways, staying))

    def overflow(self, states: ArrayLike, actions: ArrayLike) -> FloatArray:
        """The probability that the next event loses a job."""
        _, lengths, served = self._read(states, actions)
        given, full = self.plan.arrays, lengths == self.plan.arrays.buffers
        from_outside = (full * given.arrivals).sum(axis=1)
        targets = given.routes[served]
        blocked = (targets >= 0) & np.take_along_axis(full, np.maximum(targets, 0), axis=1)
        return np.asarray(from_outside + (blocked * self._serving(lengths, served)).sum(axis=1))

    def _read(self, states: ArrayLike, actions: ArrayLike) -> tuple[IntArray, IntArray, IntArray]:
        """The states as a column, their lengths, and the queue of each server."""
        x = integer_array("states", states, refusal=InvalidWorld)
        a = integer_array("actions", actions, refusal=InvalidWorld, size=x.size)
        require_in_range("actions", a, self.num_actions, InvalidWorld)
        return x[:, np.newaxis], self.radix.digits(x), self.plan.serving[a]

    def _arriving(self, lengths: IntArray) -> FloatArray:
        """(rows x entries): rates of arrivals that find room."""
        entries, given = self.plan.entries, self.plan.arrays
        return np.asarray((lengths[:, entries] < given.buffers[entries]) * given.arrivals[entries])

    def _serving(self, lengths: IntArray, served: IntArray) -> FloatArray:
        """(rows x servers): rates of services that find a job."""
        waiting = np.take_along_axis(lengths, served, axis=1) > 0
        return np.asarray(waiting * self.plan.arrays.services[served])

    def _passing_on(self, lengths: IntArray, served: IntArray) -> IntArray:
        """(rows x servers): by how much ids grow when a job is served."""
        given, strides = self.plan.arrays, self.radix.strides
        targets = np.maximum(given.routes[served], 0)
        room = np.take_along_axis(lengths < given.buffers, targets, axis=1)
        joins = room & (given.routes[served] >= 0)
        return np.asarray(joins * strides[targets] - strides[served])

    @cached_property
    def _start_laws(self) -> tuple[FloatArray, ...]:
        return tuple(
            probability_vector(f"the start of queue {k}", self.initial.law(room), room + 1)
            for k, room in enumerate(self.plan.buffers)
        )

    @cached_property
    def _start_sums(self) -> tuple[FloatArray, ...]:
        return tuple(running_sums(law) for law in self._start_laws)

    @cached_property
    def _entrances(self) -> Entrances:
        return Entrances(self.plan, self.radix.strides)

    def __repr__(self) -> str:
        return (
            f"QueueNetwork({len(self.plan.buffers)} queues, {len(self.plan.servers)} servers, "
            f"{self.num_states} states, discount {self.discount})"
        )


def _rest(rates: FloatArray) -> FloatArray:
    """What the rates along the last axis leave of 1."""
    rest = 1.0 - rates.sum(axis=-1)
    return np.where(rest > ROUNDING, rest, 0.0)


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

    def explicit(self, *, idling: bool = True) -> tuple[World, CostBasis]:
        """The same world and costs as arrays; refused when they are too large.

        Without `idling` a server that is sent to an empty queue while jobs wait in another of its
        queues works on the longest of these instead. Then every policy empties the network again
        and again, and average costs do not depend on the start (`World.with_average_cost`).
        """
        require_few_pairs(self.world)
        lengths = self.radix.digits(np.arange(self.world.num_states))
        world = enumerate_world(self.world, coordinates=lengths)
        actions = world.pairs.actions
        if not idling:
            actions = self._working(lengths[world.pairs.states], world)
            rows = world.pairs.index(world.pairs.states, actions, InvalidWorld)
            world = World(
                world.transition[rows], world.initial, world.discount, coordinates=lengths,
                choice_offsets=world.pairs,
            )  # fmt: skip
        values = self.costs.at(world.pairs.states, actions)
        return world, CostBasis(values, self.costs.names)

    def _working(self, lengths: IntArray, world: World) -> IntArray:
        """The action of every pair, with servers at empty queues sent to their longest ones."""
        plan, table = self.world.plan, ServerTable(self.world)
        served = plan.serving[world.pairs.actions]
        longest = plan.serving[Longer(table)(world.pairs.states)]
        empty = np.take_along_axis(lengths, served, axis=1) == 0
        chosen = np.where(empty, longest, served)
        places = [list(own) for own in plan.servers]
        own = np.column_stack([
            np.searchsorted(np.sort(place), queue)
            for place, queue in zip(places, chosen.T, strict=True)
        ])  # fmt: skip
        order = np.column_stack([
            np.argsort(place)[queue] for place, queue in zip(places, own.T, strict=True)
        ])  # fmt: skip
        return np.asarray(order @ table.choices)


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
