"""Linear systems of a policy, and the worst laws within a distance.

    visits   nu = initial + discount M' nu          values   V = c + discount M V

M(x, y) is the probability of a step from x to y. Small systems are solved densely, larger ones by
GMRES, with a sparse factorisation as the last resort; what is missing is solved for again until
nothing improves.

The greatest mean of values v within 1-norm distance err of a law p moves err/2 of mass from where v
is least to the state where v is greatest among the possible ones; among the laws that bets on
counts allow it tilts the law (`NearbyLaws`). An adversary who picks such a law for every pair is
improved step by step: the value of each of its choices is attained in an admissible world, so it
bounds the worst case from below; one sweep of the optimality equation over it, with the largest
excess over all states to come, bounds it from above. Upper bounds need not fall at every step: a
claim that stops at the first one that is no better than those before holds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.special import gammaln, psi

from journeyman.checker.archives import Floats, Ints, dense
from journeyman.checker.inputs import Bets, Distances, Knowledge, StoredWorld

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
TILTS, SEARCHED = 45, 12.0
"""Halvings of the range in which the logarithm of a scale is sought, and half its length."""
PASSES, STILL = 40, 1e-13
"""Of Newton's method for the law of a scale, and the relative change that ends it."""


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
    bets: Bets | None = None
    """What was bet on the laws, where counted."""

    def greatest(self, values: Floats) -> Floats:
        """The greatest mean of `values` in every ball."""
        left, top = self._moved(values)
        found = np.asarray(left @ values) + (1 - _sums(left)) * values[top]
        if self.bets is None:
            return found
        return np.minimum(found, self._tilted(values, top)[1])

    def least(self, values: Floats) -> Floats:
        return -self.greatest(-values)

    def extreme(self, values: Floats) -> tuple[Any, Ints]:
        """What the extreme laws leave of the rows, and the states that get the rest."""
        left, top = self._moved(values)
        if self.bets is None:
            return left, top
        tilted, bound = self._tilted(values, top)
        smaller = bound < np.asarray(left @ values) + (1 - _sums(left)) * values[top]
        kept = sparse.diags_array((~smaller).astype(float)) @ left
        return (kept + sparse.diags_array(smaller.astype(float)) @ tilted).tocsr(), top

    def _tilted(self, values: Floats, top: Ints) -> tuple[Any, Floats]:
        """The same among the laws that bets allow, and the greatest means.

        With f the row, d = greatest value - value, psi = (log Gamma)', and
        D(p) = c/n (psi(n f + c p + a) - psi(c p + a)), the law p with

            f/p - D(p) = (t + d)/scale        sum p = 1, t >= 0; less than 1 where t = 0

        has the greatest mean; the scale is where its excess is the one allowed. What is left of one
        belongs to the state with the greatest value. What is allowed is convex, so the tangent at
        any p proves a bound.
        """
        assert self.bets is not None
        known = self.bets.allowed < math.inf
        allowed = np.where(known, np.maximum(self.bets.allowed, 1e-15), 1.0)
        row = np.arange(allowed.size).repeat(np.diff(self.rows.indptr))

        def per_row(entries: Floats) -> Floats:
            return np.asarray(np.add.reduceat(entries, self.rows.indptr[:-1]))

        f, d = self.rows.data, np.maximum(values[top][row] - values[self.rows.indices], 0.0)
        widest = np.maximum.reduceat(d, self.rows.indptr[:-1])
        unit = np.where(widest > 0, widest, 1.0)
        d = d / unit[row]
        tilt = Tilt(f, d, row, per_row, self.bets)
        square = per_row(f * d**2)
        spread = np.maximum(square - per_row(f * d) ** 2, np.maximum(allowed * square, 1e-18))
        middle = np.log((1 + tilt.ratio) * spread / allowed / 2) / 2
        near, far = middle - SEARCHED, middle + SEARCHED
        for _ in range(TILTS):
            enough = tilt.moved_to(np.exp(middle)).excess() <= allowed
            near, far = np.where(enough, near, middle), np.where(enough, middle, far)
            middle = (near + far) / 2
        scale = np.exp(far)
        slope = tilt.moved_to(scale).slope()
        t = np.maximum(np.maximum.reduceat(scale[row] * slope - d, self.rows.indptr[:-1]), 0.0)
        beyond = allowed - tilt.excess() - per_row(slope * tilt.law)
        bound = np.where(known, values[top] + unit * (t + scale * beyond), math.inf)
        left = tilt.law / np.maximum(per_row(tilt.law), 1.0)[row]
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


class Tilt:
    """The law p of every row for a scale, by Newton's method for f/p and t; see `NearbyLaws`."""

    def __init__(
        self, f: Floats, d: Floats, row: Ints, per_row: Callable[[Floats], Floats], bets: Bets
    ) -> None:
        self.f, self.d, self.row, self.per_row = f, d, row, per_row
        self.first = np.searchsorted(row, np.arange(bets.counts.size))
        n = np.where(bets.counts > 0, bets.counts, 1.0)
        self.ratio = bets.centring / n
        self.n, self.c, self.a = n[row], bets.centring[row], bets.smoothing[row]
        self.law, self.t = f, np.zeros(n.size)

    def moved_to(self, scale: Floats) -> "Tilt":
        weight = self.f / self.law
        floor = scale[self.row] * (self.f - self._pull(np.ones_like(self.f))) - self.d
        floor = np.maximum(np.maximum.reduceat(floor, self.first), 0.0)
        self.t = np.maximum(self.t, floor)
        for _ in range(PASSES):
            near = self.c * self.law
            stiff = 1 - near / (self.n * self.f + near + self.a)
            aim = (self.t / scale)[self.row] + self.d / scale[self.row] + self._pull(self.law)
            new = np.maximum(weight + (aim - weight) / stiff, np.maximum(weight / 4, self.f))
            self.law = self.f / new
            total = self.per_row(self.law)
            change = total * (total - 1) * scale / self.per_row(self.law / (new * stiff))
            change = np.maximum(change, floor - self.t)
            self.t = self.t + change
            still = np.abs(new - weight) <= STILL * new
            weight = new
            if still.all() and (np.abs(change) <= STILL * (self.t + STILL)).all():
                break
        return self

    def excess(self) -> Floats:
        here, there = self.c * self.law + self.a, self.c * self.f + self.a
        seen = self.n * self.f
        bet = gammaln(seen + here) - gammaln(here) - gammaln(seen + there) + gammaln(there)
        return self.per_row(self.f * np.log(self.f / self.law) + bet / self.n)

    def slope(self) -> Floats:
        """Of the excess, downwards."""
        return np.asarray(self.f / self.law - self._pull(self.law))

    def _pull(self, law: Floats) -> Floats:
        begun = self.c * law + self.a
        return np.asarray(self.c / self.n * (psi(self.n * self.f + begun) - psi(begun)))


def balls(world: StoredWorld, distances: Distances) -> tuple[NearbyLaws, NearbyLaws]:
    """Of the steps, and of the start."""
    start = sparse.csr_array(world.initial[np.newaxis])
    steps = NearbyLaws(world.rows, distances.transition, world.knowledge.support, distances.bets)
    return steps, NearbyLaws(start, np.array([distances.initial]), None, distances.initial_bets)


def worst_total(
    world: StoredWorld, policy: Floats, cost: Floats, distances: Distances
) -> tuple[float, float]:
    """The worst expected total of `cost`, and the largest number that may stand for it."""
    ball, start = balls(world, distances)
    now, exact = world.per_state(cost * policy), replace(world, knowledge=Knowledge())
    low, here, largest = -np.inf, exact, float(np.abs(cost).max())
    above: list[float] = []
    before = np.full(world.num_states, -np.inf)
    for _ in range(ROUNDS):
        values = Chain(here, policy).values(cost)[:, 0]
        ahead = world.per_state(policy * ball.greatest(values))
        excess = float((now + world.discount * ahead - values).max())
        first = float(start.greatest(values)[0])
        low = max(low, first)
        above.append(first + max(excess, 0.0) * world.horizon)
        improved = min(excess, float((values - before).max()))
        if improved <= UNIMPROVED * max(largest, float(np.abs(values).max())):
            break
        before = values
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
