"""Networks of queues whose servers choose what to work on, as worlds by callables.

Time is uniformised: at most one event happens in a step,

    a job arrives at queue i                      with probability arrivals[i]
    server k ends a service at the queue i that
      the action tells it to work on              with probability services[i]
    nothing                                       otherwise

A served job goes to queue routes[i] or leaves. Serving an empty queue does nothing. A job that
comes to a full queue is lost, whether it arrives from outside or from another queue. So every event
leads to a state of its own or leaves the state as it is.

Cost: a pair has 1 + arrivals + servers branches. A state has, for each action, at most one
predecessor per arrival, two per server, and itself.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, IntArray, assign, integer_array, require_in_range
from journeyman.errors import InvalidWorld
from journeyman.gallery.queue_entrances import Entrances
from journeyman.gallery.queue_plan import ROUNDING, QueuePlan
from journeyman.gallery.queue_starts import SmoothStart, Start
from journeyman.world import MixedRadix, Predecessors, Successors
from journeyman.world.laws import discount as checked_discount
from journeyman.world.laws import draw_outcomes, probability_vector, running_sums


@dataclass(frozen=True, eq=False, init=False, repr=False)
class QueueNetwork:
    """The `LargeWorld` of a `QueuePlan`; a state is the lengths of its queues.

    Actions are numbered as in `plan.serving`: row a says which queue each server works on.

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
