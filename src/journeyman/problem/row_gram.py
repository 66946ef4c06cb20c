"""A' diag(weights) A of a table of rows, and its factor: what repairs and interior points spend
their time on.

Dense rows are weighted in pieces that stay in the cache and handed to BLAS; sparse rows add their
products one by one, which is quicker while they are few. The factor is LAPACK's, of the matrix
scaled to a unit diagonal; a matrix that is not finite has none, and its solutions are not finite
either. Where columns are dependent it is damped, so that a solve leaves the directions alone in
which the matrix is singular.

Cost: M d^2 for dense rows, the squared lengths of sparse ones, and d^3/3 for the factor; `seconds`
says about how much time that is, the same on every machine, for whoever must plan with it.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from journeyman.arrays import FloatArray, IntArray, Matrix
from journeyman.compiled import kernel

DAMPING = 1e-15
"""Added to the unit diagonal of the scaled matrix, ten times more until it has a factor."""
PIECE = 1 << 17
"""Entries of A that are weighted at a time: they stay in the cache."""
DENSE_SHARE = 0.06
"""Rows are stored densely when their products number more than this share of M d^2."""
SPARSE_RATE, DENSE_RATE, FACTOR_RATE = 1e9, 1e10, 3e9
"""Products a second of an ordinary core: one by one, by BLAS, and in a factorisation."""

Solve: TypeAlias = Callable[[FloatArray], FloatArray]


def stored_rows(block: Matrix) -> Matrix:
    """The same rows, stored the way their Gram matrix is quickest."""
    if not sparse.issparse(block):
        return np.ascontiguousarray(block)
    if _products(block) > DENSE_SHARE * block.shape[0] * block.shape[1] ** 2:
        return block.toarray()
    rows = sparse.csr_array(block)
    if not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    return rows


def add_gram(block: Matrix, weights: FloatArray, total: FloatArray) -> None:
    """total += block' diag(weights) block, of which only the lower triangle counts."""
    if isinstance(block, np.ndarray):
        _add_dense_gram(block, weights, total)
    else:
        _add_sparse_gram(block.indptr, block.indices, block.data, weights, total)


def factored_gram(gram: FloatArray) -> Solve:
    """Solver of gram x = right (the lower triangle is read, and overwritten), damped where the
    matrix is singular."""
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
    """About how long one Gram matrix of stored rows and its factor take."""
    num_rows, width = map(float, block.shape)
    factor = width**3 / 3 / FACTOR_RATE
    if isinstance(block, np.ndarray):
        return factor + num_rows * width**2 / DENSE_RATE
    return factor + _products(block) / SPARSE_RATE


def _products(block: Matrix) -> float:
    return float((np.diff(block.indptr).astype(float) ** 2).sum() / 2)


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
