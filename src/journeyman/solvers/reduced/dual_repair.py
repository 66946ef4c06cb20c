"""Sharper lower bounds on the surrogate: a nearly right dual point, moved until its slope vanishes.

`reduced_lower_bound` charges radius |slope|_2, where the slope is what the dual point leaves of the
gradient. A dual point gathered along a run has a small slope, but not a vanishing one. With v =
(y, z) and A their rows, weighted by the penalties, each round takes the affine step

    v <- v + step * S A (A' S A)^{-1} (-slope),      S = (distance of v to its bounds)^2

which cancels the slope to first order while entries near their bounds hardly move, and shortens it
so that v stays inside. It is the dual affine scaling step of linear programming. Whatever comes out
is a valid dual point; the better bound of before and after is kept. Points that start further from
their bounds have more room and lose a little of the bound, so they are tried only when nearer ones
did not get rid of their slope.

Cost: the products A' S A and one d x d factorisation per round, about `DualRepair.round_seconds`.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

from journeyman.arrays import FloatArray, Matrix
from journeyman.execution import sum_in_order
from journeyman.problem.surrogate import ReducedWitness, Surrogate, reduced_lower_bound
from journeyman.solvers.reduced.box_dual import BoxDual

MARGINS = (1e-6, 1e-5, 1e-4)
"""How far inside their bounds the entries start, as a share of the way to the middle."""
MAX_ROUNDS = 12
"""Of a point that starts so far inside."""
ALL_ROUNDS = 18
"""Of all points of a repair."""
CAUTION = 0.9
"""Share of the way to the nearest bound that a shortened step goes."""
WORK_LIMIT = 2e9
"""Products of row entries per round beyond which the point is left as it is."""
MOST_FEATURES = 5000
"""Likewise: beyond this a factor takes some seconds and 200 MB."""

Stop = Callable[[], bool]


@dataclass(frozen=True, eq=False)
class DualRepair:
    """Sharpens dual points of one surrogate, for coefficients within `radius`."""

    surrogate: Surrogate
    radius: float

    def sharpened(
        self,
        witness: ReducedWitness,
        stop: Stop = lambda: False,
        rounds: int = ALL_ROUNDS,
    ) -> tuple[ReducedWitness, float]:
        """The best dual point near `witness` that was found before `stop`, and its lower bound."""
        best, bound = witness, reduced_lower_bound(self.surrogate, witness, self.radius)
        if not self.is_affordable:
            return best, bound
        left = rounds
        for margin in MARGINS:
            if left <= 0 or stop():
                break
            moved, vanished, used = self._without_slope(
                witness, margin, stop, min(left, MAX_ROUNDS)
            )
            left -= used
            found = reduced_lower_bound(self.surrogate, moved, self.radius)
            if found > bound:
                best, bound = moved, found
            if vanished:
                break
        return best, bound

    @property
    def is_affordable(self) -> bool:
        """Whether dual points are moved at all."""
        reduced = self.surrogate.reduced
        few = reduced.num_features <= MOST_FEATURES
        return few and _products(reduced.flow_rows) + _products(reduced.pair_rows) <= WORK_LIMIT

    @cached_property
    def round_seconds(self) -> float:
        """About how long a round takes; nothing where dual points are not moved."""
        return seconds(self._rows) if self.is_affordable else 0.0

    @cached_property
    def _rows(self) -> Matrix:
        """Rows of y and z, weighted by the penalties."""
        reduced, penalties = self.surrogate.reduced, self.surrogate.penalties
        flow = penalties.flow * sparse.csr_array(reduced.flow_rows)
        pairs = -penalties.pairs * sparse.csr_array(reduced.pair_rows)
        return stored_rows(sparse.vstack([flow, pairs], format="csr"))

    def _without_slope(
        self, witness: ReducedWitness, margin: float, stop: Stop, rounds: int
    ) -> tuple[ReducedWitness, bool, int]:
        """A dual point whose slope vanishes to first order, or is smaller; which of both; and after
        how many rounds."""
        reduced, rows = self.surrogate.reduced, self._rows
        num_states = witness.flow_signs.size
        low = np.concatenate([-np.ones(num_states), np.zeros(witness.negative_pairs.size)])
        v = np.concatenate([witness.flow_signs, witness.negative_pairs])
        v = np.clip(v, low, 1.0)
        v += margin * ((low + 1.0) / 2 - v)
        weights = reduced.problem.cost_class.admit(witness.cost_weights)
        fixed = reduced.matching.T @ weights
        if witness.broken_budgets.size:
            fixed = fixed + self.surrogate.penalties.budgets * (
                reduced.budget_rows.T @ np.clip(witness.broken_budgets, 0.0, 1.0)
            )
        length, used = 0.0, 0
        while used < rounds:
            used += 1
            step, length = _affine_step(rows, fixed + rows.T @ v, v, low)
            v = v + length * step
            if length == 1.0 or stop():
                break
        parts = weights, v[:num_states], v[num_states:], witness.broken_budgets
        return ReducedWitness(*parts), length == 1.0, used


def _products(rows: Matrix) -> float:
    """Of the entries of every row with each other."""
    if sparse.issparse(rows):
        return float((np.diff(rows.indptr).astype(float) ** 2).sum())
    return float(rows.shape[0] * rows.shape[1] ** 2)


def _affine_step(
    rows: Matrix, slope: FloatArray, v: FloatArray, low: FloatArray
) -> tuple[FloatArray, float]:
    """A step that cancels the slope, and how much of it stays inside the bounds."""
    room = np.minimum(v - low, 1.0 - v) ** 2
    gram = np.zeros((slope.size, slope.size))
    add_gram(rows, room, gram)
    step = -room * (rows @ factored_gram(gram)(slope))
    if not np.isfinite(step).all():
        return np.zeros_like(v), 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ways = np.where(step > 0, (1.0 - v) / step, np.where(step < 0, (low - v) / step, np.inf))
    return step, min(1.0, CAUTION * float(ways.min()))


DAMPING = 1e-15
"""Added to the unit diagonal of the scaled matrix, ten times more until it has a factor."""
PIECE = 1 << 17
"""Entries of A that are weighted at a time: they stay in the cache."""
DENSE_SHARE = 0.06
"""Rows are stored densely when their products number more than this share of M d^2."""
FEW_PRODUCTS = 1 << 22
"""Or when M d^2 is at most this, some tenths of a millisecond, which need no compiler."""
SPARSE_RATE, DENSE_RATE, FACTOR_RATE, MOVE_RATE = 1e9, 1e10, 1e10, 1e8
"""Products a second of an ordinary core: one by one, by BLAS, and in a factorisation; and entries
of the matrix that are made, scaled and copied."""

Solve: TypeAlias = Callable[[FloatArray], FloatArray]


def stored_rows(block: Matrix) -> Matrix:
    """The same rows, stored the way their Gram matrix is quickest."""
    if not sparse.issparse(block):
        return np.ascontiguousarray(block)
    products = block.shape[0] * block.shape[1] ** 2
    if products <= FEW_PRODUCTS or _products(block) / 2 > DENSE_SHARE * products:
        return block.toarray()
    rows = sparse.csr_array(block)
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    return rows


def add_gram(block: Matrix, weights: FloatArray, total: FloatArray, first: int = 0) -> None:
    """total += block' diag(weights) block, of which only the lower triangle counts, over as many
    rows from `first` on as there are weights.

    Dense rows are weighted in pieces that stay in the cache and handed to BLAS, M d^2 products;
    sparse rows add their products one by one, which is quicker while they are few.
    """
    last = first + weights.size
    if isinstance(block, np.ndarray):
        _add_dense_gram(block[first:last], weights, total)
    else:
        from journeyman.solvers.reduced.gram_kernels import add_sparse_gram

        heads = block.indptr[first : last + 1]
        add_sparse_gram(heads, block.indices, block.data, weights, total)


def factored_gram(gram: FloatArray) -> Solve:
    """Solver of gram x = right; the lower triangle is read, and overwritten.

    The factor is LAPACK's, of the matrix scaled to a unit diagonal; a matrix that is not finite has
    none, and its solutions are not finite either. Where columns are dependent it is damped, so that
    a solve leaves the directions alone in which the matrix is singular. It costs d^3/3 products.
    """
    size = np.sqrt(np.diag(gram))
    scale = 1 / np.where(size > 0, size, 1.0)
    gram *= scale
    gram *= scale[:, np.newaxis]
    diagonal, damping = gram.diagonal().copy(), DAMPING
    while damping < 1:
        np.fill_diagonal(gram, diagonal + damping)
        try:
            factor = cho_factor(gram.T, lower=False, check_finite=False)
            return lambda right: scale * cho_solve(factor, scale * right, check_finite=False)
        except LinAlgError:
            damping *= 10
    return lambda right: np.full_like(right, np.nan)


def seconds(block: Matrix) -> float:
    """About how long one Gram matrix of stored rows and its factor take: the same on every
    machine, for whoever must plan with it."""
    num_rows, width = map(float, block.shape)
    factor = width**3 / 3 / FACTOR_RATE + width**2 / MOVE_RATE
    if isinstance(block, np.ndarray):
        return factor + num_rows * width**2 / DENSE_RATE
    return factor + _products(block) / 2 / SPARSE_RATE


def _add_dense_gram(block: FloatArray, weights: FloatArray, total: FloatArray) -> None:
    """By BLAS, which adds to the lower triangle in place: NumPy's product would mirror it, and make
    a second matrix of every piece."""
    if not total.flags.c_contiguous:
        own = np.zeros(total.shape)
        _add_dense_gram(block, weights, own)
        total += own
        return
    size, width = block.shape
    height = max(1, min(size, PIECE // max(1, width)))
    roots, buffer = np.sqrt(weights)[:, np.newaxis], np.empty((height, width))
    for start in range(0, size, height):
        piece = block[start : start + height]
        weighted = np.multiply(piece, roots[start : start + height], out=buffer[: len(piece)])
        dsyrk(1.0, weighted.T, beta=1.0, c=total.T, overwrite_c=True)


REPAIRS = 4
"""Affine steps towards the equations of a dual point that misses them."""
LEAST_ROOM = 1e-7
"""Share of its box that a row may move in such a step wherever it is."""


def factored(box: BoxDual, weights: FloatArray) -> Solve:
    """Solver of A' diag(weights) A x = right, damped where the matrix is singular."""
    return factored_gram(gram_of(box, weights))


def repaired(box: BoxDual, v: FloatArray, radius: float) -> FloatArray:
    """The dual point that proves most after some weighted least squares towards A'v = -slope.

    Rows move as far as they have room to the ends of their boxes, or of the ball, and what has
    left V is moved back.
    """
    best, held, sharing = v, stored(box), slice(box.num_boxed, None)
    width = np.concatenate([(box.upper - box.lower)[: box.num_boxed], 2 * box.ball_scale])
    for _ in range(REPAIRS):
        inside = box.admitted(v)
        room = np.minimum(inside - box.lower, box.upper - inside)
        room[sharing] = box.ball_scale * (1 - np.linalg.norm(inside[sharing] / box.ball_scale))
        weights = (np.maximum(room, 0.0) + LEAST_ROOM * width) ** 2
        change = factored(held, weights)(-box.slope - box.adjoint(inside))
        v = inside + weights * held.apply(change)
        if not np.isfinite(v).all():
            break
        if box.lower_bound(v, radius) > box.lower_bound(best, radius):
            best = v
    return best


SHARES, SHARED_ROWS = 2, 20_000
"""A Gram matrix of that many rows is the sum of so many, of sparse rows on as many threads."""


def gram_of(box: BoxDual, weights: FloatArray) -> FloatArray:
    """A' diag(weights) A, of which only the lower triangle counts."""
    shares = SHARES if box.num_rows >= SHARED_ROWS else 1

    def part(share: int) -> FloatArray:
        total, start = np.zeros((box.slope.size, box.slope.size)), 0
        for block in box.blocks:
            size, width = block.shape
            first, last = size * share // shares, size * (share + 1) // shares
            held = weights[start + first : start + last]
            add_gram(block, held, total[:width, :width], first)
            start += size
        return total

    if box.threads == 1 or shares == 1:
        return sum_in_order(map(part, range(shares)))
    with ThreadPoolExecutor(min(box.threads, shares)) as threads:
        return sum_in_order(threads.map(part, range(shares)))


def stored(box: BoxDual) -> BoxDual:
    """The same program, each block stored the way its Gram matrix is quickest."""
    pairs, states, small = (stored_rows(block) for block in box.blocks)
    return replace(box, blocks=(pairs, states, np.asarray(small)))
