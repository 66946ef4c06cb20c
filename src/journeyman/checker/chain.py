"""Linear systems of a policy, and the worst laws within a distance.

    visits   nu = initial + discount M' nu          values   V = c + discount M V

M(x, y) is the probability of a step from x to y. Small systems are solved densely, larger ones by
GMRES, with a sparse factorisation as the last resort; what is missing is solved for again until
nothing improves.

The greatest mean of values v within 1-norm distance err of a law p moves err/2 of mass from where v
is least to the state where v is greatest among the possible ones; within a divergence it tilts the
law (`NearbyLaws`). An adversary who picks such a law
for every pair is improved step by step: the value of each of its choices is attained in an
admissible world, so it bounds the worst case from below; one sweep of the optimality equation over
it, with the largest excess over all states to come, bounds it from above. Upper bounds need not
fall at every step: a claim that stops at the first one that is no better than those before holds.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse

from journeyman.checker.archives import Floats, Ints, dense
from journeyman.checker.inputs import Distances, Knowledge, StoredWorld

EPSILON = 2.0**-52
DENSE_UP_TO = 1000
"""States."""
WANTED, ENOUGH = 1e-14, 1e-12
"""What may be missing, relative to the right-hand side: at best, and without a factorisation."""
ROUNDS, REPAIRS = 200, 12
"""Of policy iteration; of solving again for what is missing."""
EASIER = 1e-6
"""Relative to the largest total: by how much a claim may be above the worst case, or a target
beyond what is attainable."""
UNIMPROVED = 1e-13
"""Excess of a sweep, relative to the largest value, below which an adversary cannot improve."""
TIE = 1e-12
TILTS, SEARCHED = 60, 30.0
"""Halvings of the range in which the logarithm of t is sought, and its length."""


class Chain:
    """Solves for the values of one policy."""

    def __init__(self, world: StoredWorld, policy: Floats) -> None:
        entries = np.diff(world.kept.indptr)
        flow = world.kept.data * policy.repeat(entries)
        places = (world.state_of.repeat(entries), world.kept.indices)
        moved = sparse.coo_array((flow, places), shape=(world.num_states, world.num_states))
        self.system = (sparse.eye_array(world.num_states) - world.discount * moved).tocsc()
        self.world, self.policy = world, policy

    def values(self, matrix: Any) -> Floats:
        """(states x costs): expected discounted totals of the columns of a matrix over pairs."""
        columns = dense(matrix) if matrix.ndim > 1 else dense(matrix)[:, np.newaxis]
        now = (self.world.per_state(self.policy * one) for one in columns.T)
        return np.column_stack([self._solve(one) for one in now])

    def _solve(self, b: Floats) -> Floats:
        x, missing = np.zeros_like(b), b
        size = left = float(np.abs(b).sum())
        direct = self.world.num_states <= DENSE_UP_TO
        for _ in range(REPAIRS):
            if left <= WANTED * size:
                break
            step = self._factors(missing) if direct else self._iterated(missing)
            remaining = b - self.system @ (x + step)
            better, before = float(np.abs(remaining).sum()), left
            if better < left:
                x, missing, left = x + step, remaining, better
            if better > before / 2:
                if direct or left <= ENOUGH * size:
                    break
                direct = True
        return x

    def _iterated(self, b: Floats) -> Floats:
        from scipy.sparse.linalg import gmres

        size = float(np.linalg.norm(b))
        with np.errstate(all="ignore"):
            x, _ = gmres(self._rows, b / size, rtol=1e-8, atol=0.0, restart=60, maxiter=20)
        return np.asarray(np.nan_to_num(x * size, posinf=0.0, neginf=0.0))

    @cached_property
    def _rows(self) -> Any:
        return self.system.tocsr()

    @cached_property
    def _factors(self) -> Any:
        if self.world.num_states <= DENSE_UP_TO:
            factors = linalg.lu_factor(self.system.toarray())
            return lambda b: linalg.lu_solve(factors, b)
        from scipy.sparse.linalg import splu

        return splu(self.system).solve


@dataclass(frozen=True, eq=False)
class NearbyLaws:
    """For every row of a matrix of laws, all laws within a distance of it."""

    rows: Any
    distance: Floats
    support: Any = None
    information: Floats | None = None
    """The largest divergences from the rows, where known."""

    def greatest(self, values: Floats) -> Floats:
        """The greatest mean of `values` in every ball."""
        left, top = self._moved(values)
        found = np.asarray(left @ values) + (1 - _sums(left)) * values[top]
        if self.information is None:
            return found
        return np.minimum(found, self._tilted(values, top)[1])

    def least(self, values: Floats) -> Floats:
        return -self.greatest(-values)

    def extreme(self, values: Floats) -> tuple[Any, Ints]:
        """What the extreme laws leave of the rows, and the states that get the rest."""
        left, top = self._moved(values)
        if self.information is None:
            return left, top
        tilted, bound = self._tilted(values, top)
        smaller = bound < np.asarray(left @ values) + (1 - _sums(left)) * values[top]
        kept = sparse.diags_array((~smaller).astype(float)) @ left
        return (kept + sparse.diags_array(smaller.astype(float)) @ tilted).tocsr(), top

    def _tilted(self, values: Floats, top: Ints) -> tuple[Any, Floats]:
        """The same within the divergences, and the greatest means.

        With d = greatest value - value the law row/(t + d), in its proportions, has the greatest
        mean; t is where its divergence is the one allowed. If even t = 0 has less, what is left
        of one belongs to the state with the greatest value.
        """
        assert self.information is not None
        counts = np.diff(self.rows.indptr)
        row = np.arange(counts.size).repeat(counts)

        def per_row(entries: Floats) -> Floats:
            return np.asarray(np.add.reduceat(entries, self.rows.indptr[:-1]))

        p, info = self.rows.data, np.where(self.information < math.inf, self.information, 1.0)
        d = np.maximum(values[top][row] - values[self.rows.indices], 0.0)
        widest = np.maximum.reduceat(d, self.rows.indptr[:-1])
        unit = np.where(widest > 0, widest, 1.0)
        d = d / unit[row]
        far = np.log(1 / np.expm1(np.maximum(info, 1e-15)))
        near = far - SEARCHED
        for _ in range(TILTS):
            middle = (near + far) / 2
            x = d * np.exp(-middle)[row]
            enough = per_row(p * np.log1p(x)) + np.log(per_row(p / (1 + x))) <= info
            near, far = np.where(enough, near, middle), np.where(enough, middle, far)
        t = np.exp(far)
        x = d / t[row]
        grown = np.exp(per_row(p * np.log1p(x)) - info)
        inner = t * (1 - grown)
        with np.errstate(divide="ignore"):
            outer = np.exp(per_row(p * np.log(d)) - info)
        inside = inner <= -outer
        at_edge = np.divide(outer[row], d, out=np.ones_like(d), where=d > 0)
        left = p * np.where(inside[row], grown[row] / (1 + x), at_edge)
        left = left / np.maximum(per_row(left), 1.0)[row]
        bound = values[top] + unit * np.where(inside, inner, -outer)
        bound = np.where(self.information < math.inf, bound, math.inf)
        return sparse.csr_array((left, self.rows.indices, self.rows.indptr), self.rows.shape), bound

    def _moved(self, values: Floats) -> tuple[Any, Ints]:
        """The same within the distances."""
        row = np.arange(self.rows.shape[0]).repeat(np.diff(self.rows.indptr))
        order = np.lexsort((values[self.rows.indices], row))
        mass = self.rows.data[order]
        through, starts = np.cumsum(mass), self.rows.indptr[:-1]
        begun = np.where(starts > 0, through[starts - 1], 0.0)
        beyond = through - begun[row] - self.distance[row] / 2
        kept = np.minimum(mass, np.maximum(beyond, 0.0))
        kept = np.where(self.distance[row] > 0, kept, mass)
        parts = (kept, self.rows.indices[order], self.rows.indptr)
        top = np.full(self.rows.shape[0], int(np.argmax(values)))
        if self.support is not None:
            rows = np.arange(self.rows.shape[0]).repeat(np.diff(self.support.indptr))
            by_value = np.lexsort((values[self.support.indices], rows))
            top = np.asarray(self.support.indices[by_value[self.support.indptr[1:] - 1]])
        return sparse.csr_array(parts, shape=self.rows.shape), top


def balls(world: StoredWorld, distances: Distances) -> tuple[NearbyLaws, NearbyLaws]:
    """Of the steps, and of the start."""
    start = sparse.csr_array(world.initial[np.newaxis])
    steps = NearbyLaws(
        world.rows, distances.transition, world.knowledge.support, distances.information
    )
    first = np.array([distances.initial_information])
    return steps, NearbyLaws(start, np.array([distances.initial]), None, first)


def worst_total(
    world: StoredWorld, policy: Floats, cost: Floats, distances: Distances
) -> tuple[float, float]:
    """The worst expected total of `cost`, and the largest number that may stand for it."""
    ball, start = balls(world, distances)
    now, exact = world.per_state(cost * policy), replace(world, knowledge=Knowledge())
    low, here, largest = -np.inf, exact, float(np.abs(cost).max())
    above: list[float] = []
    for _ in range(ROUNDS):
        values = Chain(here, policy).values(cost)[:, 0]
        ahead = world.per_state(policy * ball.greatest(values))
        excess = float((now + world.discount * ahead - values).max())
        first = float(start.greatest(values)[0])
        low = max(low, first)
        above.append(first + max(excess, 0.0) * world.horizon)
        if excess <= UNIMPROVED * max(largest, float(np.abs(values).max())):
            break
        left, top = ball.extreme(values)
        moved = (1 - _sums(left), top, np.arange(left.shape[0] + 1))
        here = replace(exact, rows=(left + sparse.csr_array(moved, shape=left.shape)).tocsr())
    rising = np.flatnonzero(np.diff(above) >= 0)
    return low, above[rising[0]] if rising.size else above[-1]


def worst_ends(
    world: StoredWorld, policy: Floats, costs: Floats, distances: Distances
) -> tuple[Floats, Floats]:
    """For every column of `costs` where its greatest expected total lies: (low, high), with what a
    claim may be easier on itself added to the upper end."""
    found = [worst_total(world, policy, one, distances) for one in costs.T]
    low, high = np.array(found).reshape(-1, 2).T
    return low, high + EASIER * np.abs(costs).max(axis=0, initial=0.0) * world.horizon


def attainable(world: StoredWorld, cost: Floats, value: float) -> tuple[float, float]:
    """Where `value` comes to lie when it is moved into the range that policies attain: the end that
    it is beyond, up to `EASIER`; the value itself where it is inside."""
    slack = EASIER * world.horizon * float(np.ptp(cost))
    for sign in (1.0, -1.0):
        end = sign * _least(world, sign * cost)
        if sign * value < sign * end:
            return end - slack, end + slack
    return value, value


def _least(world: StoredWorld, cost: Floats) -> float:
    """The smallest expected total of a cost over all policies, by policy iteration."""
    chosen, size = world.first[:-1].copy(), world.horizon * float(np.abs(cost).max())
    for _ in range(ROUNDS):
        policy = np.zeros(world.num_pairs)
        policy[chosen] = 1.0
        values = Chain(world, policy).values(cost)[:, 0]
        ahead = cost + world.discount * (world.rows @ values)
        worse = ahead[chosen] > np.minimum.reduceat(ahead, world.first[:-1]) + TIE * size
        if not worse.any():
            break
        order = np.lexsort((ahead, world.state_of))
        chosen = np.where(worse, order[world.first[:-1]], chosen)
    return float(world.initial @ values)


def _sums(rows: Any) -> Floats:
    return np.asarray(rows.sum(axis=1)).ravel()
