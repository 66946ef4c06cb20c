"""Laws that were kept in single precision (float32): divided by their sums, as doubles.

The n entries of such a law, and the sum they were divided by, are rounded, so that the law adds up
to 1 within (n + 1) eps, eps = 2^-23; in long laws errors cancel. What lies further off is no
rounding, and is refused like everywhere else. How much was mended is the world's
`normalisation_error`.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix, assign, compressed_rows
from journeyman.errors import InvalidWorld
from journeyman.world import World
from journeyman.world.laws import ROW_SUM_TOLERANCE

EPSILON = float(np.finfo(np.float32).eps)
MOST_ROUNDINGS = 16
"""Beyond so many, errors cancel: a law is never allowed to be further off than 2e-6."""


def allowed_error(dtype: Any, entries: Any) -> Any:
    """How far from 1 a law of so many entries other than 0 may add up, kept as `dtype`."""
    if not _is_single(dtype):
        return np.full(np.shape(entries), ROW_SUM_TOLERANCE)
    return EPSILON * np.minimum(np.asarray(entries) + 1, MOST_ROUNDINGS)


def mended_rows(rows: SparseMatrix, dtype: Any) -> tuple[SparseMatrix, float]:
    """Rows kept as `dtype`, those that single precision explains divided by their sums, and how far
    off the furthest of them was. Their structure need not be sound."""
    if not _is_single(dtype):
        return rows, 0.0
    sound = compressed_rows("transition", rows, InvalidWorld)
    sums, entries = np.asarray(sound.sum(axis=1)).ravel(), np.diff(sound.indptr)
    error = np.abs(sums - 1.0)
    explained = error <= allowed_error(dtype, entries)
    data = sound.data / np.repeat(np.where(explained, sums, 1.0), entries)
    matrix = sparse.csr_array((data, sound.indices, sound.indptr), shape=sound.shape)
    return matrix, float(np.max(error[explained], initial=0.0))


def mended_law(law: ArrayLike) -> FloatArray:
    """An initial law, divided by its sum if single precision explains what that is off."""
    given = np.asarray(law)
    if not _is_single(given.dtype):
        return given
    exact = given.astype(np.float64)
    explained = abs(exact.sum() - 1.0) <= allowed_error(given.dtype, np.count_nonzero(given))
    return exact / exact.sum() if explained else exact


def _is_single(dtype: Any) -> bool:
    kind = np.dtype(dtype)
    return bool(kind.kind == "f" and kind.itemsize == 4)


def remembering(world: World, error: float) -> World:
    """The world, whose laws had been off by `error` before they were given to it."""
    assign(world, normalisation_error=max(world.normalisation_error, error))
    return world


def was_single(world: World) -> bool:
    """Whether more was mended than double precision needs."""
    return world.normalisation_error > ROW_SUM_TOLERANCE
