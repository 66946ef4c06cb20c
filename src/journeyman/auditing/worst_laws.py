"""Expectations under the worst laws within the distances, once more.

The greatest mean of values v within 1-norm distance err of a law p moves err/2 of mass from where v
is least to the state where v is greatest among the possible ones. Seen from the mass: with v sorted
along p, the lowest err/2 of the mass is worth v_top instead.

An adversary who picks such a law for every pair is improved step by step. The value of each of its
choices is attained in an admissible world, so it bounds the worst case from below; one sweep of the
optimality equation over it, with the largest excess over all states to come, bounds it from above.
The upper bounds need not fall at every step. A certificate that stops at the first one that is no
better than those before holds too, so figures up to there are allowed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.auditing.chain import Chain
from journeyman.auditing.inputs import World
from journeyman.auditing.knowledge import Distances
from journeyman.auditing.tables import Floats, Ints

ROUNDS = 200
ENOUGH = 1e-13
"""Excess of a sweep, relative to the largest value, below which an adversary cannot improve."""
EASIER = 1e-6
"""Relative to the largest total: by how much a certified figure may be above the worst case."""


@dataclass(frozen=True, eq=False)
class Ball:
    """For every row of a matrix of laws, all laws within a distance of it."""

    rows: Any
    distance: Floats
    support: Any = None

    def greatest(self, values: Floats) -> Floats:
        """The greatest mean of `values` in every ball."""
        law, top = self.extreme(values)
        left = np.asarray(law @ values)
        return left + (1 - np.asarray(law.sum(axis=1)).ravel()) * values[top]

    def extreme(self, values: Floats) -> tuple[Any, Ints]:
        """What the extreme laws leave of the rows, and the states that get the rest."""
        row = np.arange(self.rows.shape[0]).repeat(np.diff(self.rows.indptr))
        order = np.lexsort((values[self.rows.indices], row))
        mass = self.rows.data[order]
        through = np.cumsum(mass)
        starts = self.rows.indptr[:-1]
        begun = np.where(starts > 0, through[starts - 1], 0.0)
        beyond = through - begun[row] - self.distance[row] / 2
        kept = np.minimum(mass, np.maximum(beyond, 0.0))
        kept = np.where(self.distance[row] > 0, kept, mass)
        parts = (kept, self.rows.indices[order], self.rows.indptr)
        return sparse.csr_array(parts, shape=self.rows.shape), self._top(values)

    def _top(self, values: Floats) -> Ints:
        """Where the moved mass goes."""
        if self.support is None:
            return np.full(self.rows.shape[0], int(np.argmax(values)))
        worth = values[self.support.indices]
        row = np.arange(self.rows.shape[0]).repeat(np.diff(self.support.indptr))
        order = np.lexsort((worth, row))
        last = self.support.indptr[1:] - 1
        return np.asarray(self.support.indices[order[last]])


def worst_total(
    world: World, policy: Floats, cost: Floats, distances: Distances
) -> tuple[float, float]:
    """The worst expected total of `cost`, and the largest figure that may stand for it."""
    ball = Ball(world.rows, distances.transition, world.knowledge.support)
    start = Ball(sparse.csr_array(world.initial[np.newaxis]), np.array([distances.initial]))
    now = np.bincount(world.state_of, cost * policy, minlength=world.num_states)
    low, rows, largest = -np.inf, world.rows, float(np.abs(cost).max())
    above: list[float] = []
    for _ in range(ROUNDS):
        values = Chain(_in(world, rows), policy).values(cost[:, np.newaxis])[:, 0]
        ahead = np.bincount(
            world.state_of, policy * ball.greatest(values), minlength=world.num_states
        )
        excess = float((now + world.discount * ahead - values).max())
        first = float(start.greatest(values)[0])
        low = max(low, first)
        above.append(first + max(excess, 0.0) * world.horizon)
        if excess <= ENOUGH * max(largest, float(np.abs(values).max())):
            break
        rows = _moved(*ball.extreme(values))
    rising = np.flatnonzero(np.diff(above) >= 0)
    return low, above[rising[0]] if rising.size else above[-1]


def worst_ends(
    world: World, policy: Floats, costs: Floats, distances: Distances
) -> tuple[Floats, Floats]:
    """For every column of `costs` where its greatest expected total lies: (low, high), with what a
    certificate may be easier on itself added to the upper end."""
    found = [worst_total(world, policy, one, distances) for one in costs.T]
    low, high = np.array(found).reshape(-1, 2).T
    return low, high + EASIER * np.abs(costs).max(axis=0, initial=0.0) * world.horizon


def _in(world: World, rows: Any) -> World:
    return World(rows, world.first, world.initial, world.discount)


def _moved(left: Any, top: Ints) -> Any:
    """Complete laws from what was left of them and where the rest goes."""
    count = left.shape[0]
    given = 1 - np.asarray(left.sum(axis=1)).ravel()
    more = sparse.csr_array((given, top, np.arange(count + 1)), shape=left.shape)
    return (left + more).tocsr()
