"""Linear systems of policy evaluation, with the residual that was reached.

    (I - discount M) x = b      or      (I - discount M') x = b

where M is the (states x states) transition matrix of a policy. A small system is factorised (sparse
LU); a larger one is solved by BiCGSTAB, which needs far less memory and time unless the discount is
very near one, and falls back on the factorisation when BiCGSTAB breaks down or stalls. Corrections
are repeated until the residual no longer improves, so the answer is as exact as float64 allows,
and what is left of the residual is reported because bounds rest on it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix

DIRECT_LIMIT = 400
"""Up to this many states a factorisation is fastest whatever the structure."""
KRYLOV_TOLERANCE = 1e-10
KRYLOV_ITERATIONS = 400
TARGET = 1e-13
"""Wanted |residual|_1 relative to |b|_1."""
MAX_CORRECTIONS = 4


@dataclass(frozen=True, eq=False)
class Solution:
    """`x`, the 1-norm of its residual, and how it was found."""

    x: FloatArray
    residual: float
    method: str


class DiscountedSystem:
    """Solves for several right-hand sides with one policy; a factorisation is made at most once."""

    def __init__(self, transition: SparseMatrix, discount: float) -> None:
        identity = sparse.eye_array(transition.shape[0], format="csr")
        self.matrix = (identity - discount * transition).tocsr()
        self.discount = discount
        self._factor: Any = None

    def solve(
        self, b: FloatArray, *, transposed: bool = False, guess: FloatArray | None = None
    ) -> Solution:
        """The solution for `b` (a vector), of the transposed system on request."""
        matrix = self.matrix.T if transposed else self.matrix
        x = np.zeros_like(b) if guess is None else guess
        wanted = TARGET * max(float(np.abs(b).sum()), np.finfo(float).tiny)
        direct = self.matrix.shape[0] <= DIRECT_LIMIT or self._factor is not None
        residual = b - matrix @ x
        for _ in range(MAX_CORRECTIONS):
            correction = None if direct else _krylov(matrix, residual)
            if correction is None:
                direct = True
                correction = self._factorised(residual, transposed)
            improved = x + correction
            left = b - matrix @ improved
            if not np.abs(left).sum() < np.abs(residual).sum():
                break
            x, residual = improved, left
            if np.abs(residual).sum() <= wanted:
                break
        return Solution(x, float(np.abs(residual).sum()), "LU" if direct else "BiCGSTAB")

    def _factorised(self, b: FloatArray, transposed: bool) -> FloatArray:
        if self._factor is None:
            from scipy.sparse.linalg import splu

            self._factor = splu(
                self.matrix.tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                options={"SymmetricMode": True},
            )
        return np.asarray(self._factor.solve(b, trans="T" if transposed else "N"))


def _krylov(matrix: SparseMatrix, b: FloatArray) -> FloatArray | None:
    """BiCGSTAB, or None when it breaks down or does not get there."""
    from scipy.sparse.linalg import bicgstab

    with np.errstate(all="ignore"):
        x, fault = bicgstab(matrix, b, rtol=KRYLOV_TOLERANCE, atol=0.0, maxiter=KRYLOV_ITERATIONS)
    return np.asarray(x) if fault == 0 and np.isfinite(x).all() else None
