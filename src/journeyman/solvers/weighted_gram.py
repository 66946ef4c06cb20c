"""A' diag(weights) A of a box program, and its factor: what an interior point spends its time on.

Dense rows are weighted in pieces that stay in the cache and handed to BLAS; sparse rows add their
products one by one, which is quicker while they are few. The factor is that of the matrix scaled to
a unit diagonal; a matrix that is not finite has none, and its solutions are not finite either.
Where features are dependent it is damped, so that a solve leaves the directions
alone in which the matrix is singular. The same least squares repair dual points of any origin.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from journeyman.arrays import FloatArray, IntArray, Matrix
from journeyman.compiled import kernel
from journeyman.solvers.box_dual import BoxDual

DAMPING = 1e-15
"""Added to the unit diagonal of the scaled matrix, ten times more until it has a factor."""
PIECE = 1 << 17
"""Entries of A that are weighted at a time: they stay in the cache."""
REPAIRS = 4
"""Affine steps towards the equations of a dual point that misses them."""
LEAST_ROOM = 1e-7
"""Share of its box that a row may move in such a step wherever it is."""
DENSE_SHARE = 0.06
"""Rows are stored densely when their products number more than this share of M d^2."""

Solve: TypeAlias = Callable[[FloatArray], FloatArray]


def factored(box: BoxDual, weights: FloatArray) -> Solve:
    """Solver of A' diag(weights) A x = right, damped where the matrix is singular."""
    gram = gram_of(box, weights)
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


def gram_of(box: BoxDual, weights: FloatArray) -> FloatArray:
    """A' diag(weights) A, of which only the lower triangle counts."""
    total, start = np.zeros((box.slope.size, box.slope.size)), 0
    for block in box.blocks:
        size, width = block.shape
        part = total[:width, :width]
        own = weights[start : start + size]
        if isinstance(block, np.ndarray):
            _add_dense_gram(block, own, part)
        else:
            _add_sparse_gram(block.indptr, block.indices, block.data, own, part)
        start += size
    return total


def _add_dense_gram(block: FloatArray, weights: FloatArray, total: FloatArray) -> None:
    size, width = block.shape
    height = max(1, min(size, PIECE // max(1, width)))
    roots, buffer = np.sqrt(weights)[:, np.newaxis], np.empty((height, width))
    for start in range(0, size, height):
        piece = block[start : start + height]
        weighted = np.multiply(piece, roots[start : start + height], out=buffer[: len(piece)])
        total += weighted.T @ weighted


@kernel
def _add_sparse_gram(
    indptr: IntArray, indices: IntArray, data: FloatArray, weights: FloatArray, total: FloatArray
) -> None:
    """The lower triangle of the Gram matrix of rows whose indices are sorted."""
    for row in range(weights.size):
        for one in range(indptr[row], indptr[row + 1]):
            share = weights[row] * data[one]
            for other in range(indptr[row], one + 1):
                total[indices[one], indices[other]] += share * data[other]


def stored(box: BoxDual) -> BoxDual:
    """The same program, each block stored the way its Gram matrix is quickest."""
    pairs, states, small = (_stored_block(block) for block in box.blocks)
    return replace(box, blocks=(pairs, states, np.asarray(small)))


def _stored_block(block: Matrix) -> Matrix:
    if not sparse.issparse(block):
        return np.ascontiguousarray(block)
    lengths = np.diff(block.indptr).astype(float)
    if (lengths**2).sum() / 2 > DENSE_SHARE * block.shape[0] * block.shape[1] ** 2:
        return block.toarray()
    rows = sparse.csr_array(block)
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    return rows
