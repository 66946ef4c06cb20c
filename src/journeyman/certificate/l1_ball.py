"""Laws within a distance of given ones, and what a policy costs under the worst of them.

    highest(s) = max { <p, V> : p a law, |p - row_s|_1 <= error_s, p = 0 outside the support }

The worst law takes error/2 of mass from the successors of lowest value and gives it to the state of
highest value. As a linear program it has the dual

    <row, V> + min over tau >= 0 of  tau error/2 + sum_y row(y) max(0, V_top - V(y) - tau)

and any tau gives an upper bound: rounding while the worst law is sought cannot make it too small.

Robust policy evaluation is policy iteration of an adversary who chooses one law per pair. For any
values V, with T the adversary's Bellman operator under the policy,

    T V <= V + excess   implies   worst value <= V + excess/(1 - discount)

so every iteration ends with a bound, and the best one is kept.

*Cost*: a sort of the stored transitions and a sparse solve per iteration, of which there are few.

*Reference*: Strehl and Littman (2008) for the worst law; Iyengar (2005) and Nilim and El Ghaoui
(2005) for robust dynamic programming.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.policy import Policy
from journeyman.policy.linear_systems import DiscountedSystem
from journeyman.world import World

EPSILON = float(np.finfo(float).eps)
MAX_ITERATIONS = 100
WORTHWHILE = 1e-12
"""An iteration that lowers the bound by less than this share of the largest value is the last."""


@dataclass(frozen=True, eq=False)
class L1Ball:
    """For every row a ball of laws around it.

    >>> rows = sparse.csr_array([[0.5, 0.5, 0.0]])
    >>> ball = L1Ball(rows, np.array([0.4]))
    >>> float(ball.highest(np.array([1.0, 2.0, 3.0]))[0].round(12))
    1.9
    """

    rows: SparseMatrix
    error: FloatArray
    support: SparseMatrix | None = None

    def highest(self, values: FloatArray) -> FloatArray:
        """max <p, values> over each ball, with a little added for rounding."""
        move = _Move.towards(self, values)
        gap = np.maximum(move.top_values[self._row] - values[self.rows.indices], 0.0)
        beyond = np.maximum(gap - move.price[self._row], 0.0)
        gain = move.price * self.error / 2 + self._per_row(self.rows.data * beyond)
        mean = np.asarray(self.rows @ values)
        return np.asarray(mean + np.where(self.error > 0, gain, 0.0) + self._rounding(values))

    def lowest(self, values: FloatArray) -> FloatArray:
        """min <p, values> over each ball, with a little subtracted for rounding."""
        return -self.highest(-values)

    def worst_rows(self, values: FloatArray) -> SparseMatrix:
        """Laws that attain `highest(values)`."""
        move = _Move.towards(self, values)
        num_rows = self.rows.shape[0]
        gained = (self._per_row(move.taken), (np.arange(num_rows), move.top_states))
        left = (self.rows.data - move.taken, self.rows.indices, self.rows.indptr)
        kept = sparse.csr_array(left, shape=self.rows.shape)
        return (kept + sparse.coo_array(gained, shape=self.rows.shape)).tocsr()

    @cached_property
    def _row(self) -> IntArray:
        """The row of each stored entry."""
        return np.repeat(np.arange(self.rows.shape[0]), np.diff(self.rows.indptr))

    def _per_row(self, entries: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(entries, self.rows.indptr[:-1]))

    def _rounding(self, values: FloatArray) -> float:
        branches = int(np.diff(self.rows.indptr).max())
        return EPSILON * (3 * branches + 12) * float(np.abs(values).max())


@dataclass(frozen=True, eq=False)
class _Move:
    """How the worst laws differ from the rows of a ball."""

    taken: FloatArray
    """Mass taken from each stored entry."""
    price: FloatArray
    """tau: what the last bit of mass moved in each row gained."""
    top_states: IntArray
    top_values: FloatArray

    @classmethod
    def towards(cls, ball: L1Ball, values: FloatArray) -> "_Move":
        rows, num_states = ball.rows, values.size
        by_value = np.argsort(values, kind="stable")
        rank = np.empty(num_states, dtype=np.int64)
        rank[by_value] = np.arange(num_states)
        top = np.full(rows.shape[0], by_value[-1])
        if ball.support is not None:
            reachable = rank[ball.support.indices]
            top = by_value[np.maximum.reduceat(reachable, ball.support.indptr[:-1])]
        order = np.argsort(ball._row * num_states + rank[rows.indices], kind="stable")
        mass = rows.data[order]
        running = np.concatenate([[0.0], np.cumsum(mass)])
        before = running[:-1] - running[rows.indptr[:-1]][ball._row]
        budget = (ball.error / 2)[ball._row]
        moved = np.clip(budget - before, 0.0, mass)
        taken = np.empty_like(moved)
        taken[order] = moved
        last = np.maximum(np.add.reduceat((moved > 0).astype(np.int64), rows.indptr[:-1]), 1) - 1
        marginal = values[rows.indices[order[rows.indptr[:-1] + last]]]
        price = np.maximum(values[top] - marginal, 0.0)
        return cls(taken, price, top, values[top])


def worst_total(
    world: World,
    policy: Policy,
    cost: FloatArray,
    transition_error: FloatArray,
    initial_error: float,
) -> float:
    """An upper bound on the expected discounted total of `cost` (per pair) under `policy`, for all
    worlds whose laws are within the given distances of this one's; nearly attained by one."""
    used = np.flatnonzero(policy.on(world))
    weights, discount = policy.on(world)[used], world.discount
    support = None if world.support is None else world.support[used]
    ball = L1Ball(world.transition[used], transition_error[used], support)
    starts = L1Ball(sparse.csr_array(world.initial[np.newaxis]), np.array([initial_error]))
    homes = np.searchsorted(used, world.pairs.offsets)
    averaging = sparse.csr_array(
        (weights, np.arange(used.size), homes), shape=(world.num_states, used.size)
    )
    running_cost, largest = averaging @ cost[used], float(np.abs(cost[used]).max())
    terms = int(np.diff(homes).max()) + 4
    rows, values, best = ball.rows, np.zeros(world.num_states), np.inf
    for _ in range(MAX_ITERATIONS):
        system = DiscountedSystem(averaging @ rows, discount)
        reached = system.solve(running_cost, guess=values).x
        gain = np.inf if best == np.inf else float((reached - values).max())
        values = reached
        size = float(np.abs(values).max())
        backup = running_cost + discount * (averaging @ ball.highest(values))
        excess = float((backup - values).max()) + EPSILON * terms * (largest + 2 * size)
        beyond = excess * world.effective_horizon
        bound = float(starts.highest(values)[0]) + beyond + 4 * EPSILON * (abs(beyond) + size)
        best = min(best, bound)
        worthwhile = WORTHWHILE * max(size, largest)
        if beyond <= worthwhile or gain <= worthwhile:
            break
        rows = ball.worst_rows(values)
    return best
