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
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix, read_only
from journeyman.costs import CostBasis
from journeyman.policy import Policy
from journeyman.policy.planning import PRECISION, widest_ranges
from journeyman.policy.policy_evaluation import DiscountedSystem
from journeyman.world import World

if TYPE_CHECKING:
    from journeyman.certificate.model_error import ModelError


EPSILON = float(np.finfo(float).eps)
MAX_ITERATIONS = 100
WORTHWHILE = 1e-12
"""An iteration that lowers the bound by less than this share of the largest value is the last."""


@dataclass(frozen=True, eq=False)
class LawBall:
    """For every row a ball of laws around it.

    >>> rows = sparse.csr_array([[0.5, 0.5, 0.0]])
    >>> ball = LawBall(rows, np.array([0.4]))
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
    def towards(cls, ball: LawBall, values: FloatArray) -> "_Move":
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
    ball = LawBall(world.transition[used], transition_error[used], support)
    starts = LawBall(sparse.csr_array(world.initial[np.newaxis]), np.array([initial_error]))
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


MOST_STEPS = 30
"""Of policy iteration; it seldom takes ten."""
SEARCH = 8
"""A step of it sorts the transitions: so many times the work of a plan in an exact world."""


class WidenedRanges:
    """No policy over the offered actions has an expectation outside of [lowest, highest] in any
    world whose laws are within the distances of the model's.

    In an exact world it is `problem.trivial_bound`. In an estimated one the attainable ranges of
    the model are widened by the model's error, on the event on which the bound itself rests: for
    any V no policy over the offered actions totals in the true world less than

        least(initial, V) + h min over pairs (c + discount least(row, V) - B V)

    where least(row, V) >= <row, V> - err/2 (max V - min V) is the least mean of V over the laws
    within the distance. V is sought by policy iteration of a player who also chooses the law of
    every pair; whatever it finds is a bound.

    A certificate whose premises failed has the plain bound 2 N h: ranges of a world that is wrong
    prove nothing. That the expert is a policy over the offered actions is one of the premises.
    """

    def __init__(self, world: World, basis: CostBasis, error: "ModelError") -> None:
        self.world = world
        self.widest = widest_ranges(world, basis)
        self._matrix = basis.on(world)
        self._ball = LawBall(world.transition, error.transition, world.support)
        initial = sparse.csr_array(world.initial[np.newaxis])
        self._starts = LawBall(initial, np.array([error.initial]))
        self._found: dict[int, tuple[float, float, FloatArray, FloatArray]] = {}

    def of(self, cost: int) -> tuple[float, float]:
        return self._plans(cost)[:2]

    def potentials(self, cost: int) -> tuple[FloatArray, FloatArray]:
        return self._plans(cost)[2:]

    def _plans(self, k: int) -> tuple[float, float, FloatArray, FloatArray]:
        if k not in self._found:
            column = self._matrix[:, [k]]
            dense = column.toarray() if sparse.issparse(column) else column
            cost = np.asarray(dense).ravel().copy()
            low, low_values = self._least(cost)
            high, high_values = self._least(-cost)
            ends = max(low, self.widest[0][k]), min(-high, self.widest[1][k])
            proofs = read_only(low_values), read_only(high_values)
            self._found[k] = float(ends[0]), float(ends[1]), *proofs
        return self._found[k]

    def _least(self, cost: FloatArray) -> tuple[float, FloatArray]:
        """What no policy totals less than under any of the laws, and the V that proves it."""
        world, h = self.world, self.world.effective_horizon
        allowed = PRECISION * float(cost.max() - cost.min())
        values = np.full(world.num_states, h * float(cost.max() + cost.min()) / 2)
        best, proof = -np.inf, values
        for _ in range(MOST_STEPS):
            backup = cost + world.discount * self._ball.lowest(values)
            ahead = world.pairs.smallest(backup)
            change = ahead - values
            total = float(self._starts.lowest(values)[0]) + h * float(change.min())
            total -= self._rounding(cost, values)
            if total > best:
                best, proof = total, values
            if change.max() - change.min() <= allowed:
                break
            choice = self._greedy(backup, ahead)
            support = None if world.support is None else world.support[choice]
            ball = LawBall(world.transition[choice], self._ball.error[choice], support)
            system = DiscountedSystem(ball.worst_rows(-values), world.discount)
            values = system.solve(cost[choice], guess=ahead).x
        return best, proof

    def _greedy(self, backup: FloatArray, best: FloatArray) -> FloatArray:
        """The first pair of every state that attains the best."""
        world = self.world
        first = np.where(backup == world.pairs.spread(best), np.arange(world.num_pairs), np.inf)
        return np.asarray(world.pairs.smallest(first).astype(np.int64))

    def _rounding(self, cost: FloatArray, values: FloatArray) -> float:
        """What float64 can have hidden beyond what the least means allow for themselves."""
        size = float(np.abs(cost).max() + 2 * np.abs(values).max())
        steps = 8 * size * self.world.effective_horizon
        return EPSILON * (steps + (self.world.num_states + 4) * float(np.abs(values).max()))
