"""What a network of queues consists of: buffers, rates, routes and servers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from journeyman.arrays import FloatArray, IntArray, read_only
from journeyman.errors import InvalidWorld

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
        buffers: how many jobs have room in each queue, the one in service included.
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
