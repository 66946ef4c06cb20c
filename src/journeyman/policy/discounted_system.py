"""Linear systems of policy evaluation, with the residual that was reached.

    (I - discount M) x = b      or      (I - discount M') x = b

where M is the (states x states) transition matrix of a policy. A small system is factorised (sparse
LU); a larger one is solved by BiCGSTAB, which needs far less memory and time unless the discount is
very near one, and falls back on the factorisation when BiCGSTAB breaks down or stalls. Corrections
are repeated until the residual no longer improves, so the answer is as exact as float64 allows,
and what is left of the residual is reported because bounds rest on it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix, norms

DIRECT_LIMIT = 400
"""Up to this many states a factorisation is fastest whatever the structure."""
KRYLOV_TOLERANCE = 1e-10
KRYLOV_ITERATIONS = 400
TARGET = 1e-13
"""Wanted |residual|_1 relative to |b|_1."""
MAX_CORRECTIONS = 6
WORTHWHILE = 0.1
"""A correction that leaves more than this share of the residual is not worth repeating."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """`x`, the 1-norm of its residual, and how it was found."""

    x: FloatArray
    residual: float
    method: str


class DiscountedSystem:
    """Solves for several right-hand sides with one policy; a factorisation is made at most once."""

    def __init__(self, transition: SparseMatrix, discount: float) -> None:
        identity = sparse.eye_array(transition.shape[0], format="csr")
        self.matrix = (identity - discount * transition).tocsr()
        self.transition = transition
        self.discount = discount
        self._factor: Any = None

    def solve(
        self,
        b: FloatArray,
        *,
        transposed: bool = False,
        guess: FloatArray | None = None,
        reduction: float = 0.0,
    ) -> Evaluation:
        """The solution for `b` (a vector), of the transposed system on request.

        As exact as float64 allows, unless a `reduction` of the guess's residual suffices.
        """
        matrix = self.matrix.T if transposed else self.matrix
        x = np.zeros_like(b) if guess is None else guess
        residual = b - matrix @ x
        left = float(np.abs(residual).sum())
        wanted = max(TARGET * float(np.abs(b).sum()), reduction * left)
        direct = self.matrix.shape[0] <= DIRECT_LIMIT or self._factor is not None
        for _ in range(MAX_CORRECTIONS):
            if left <= wanted:
                break
            step = (
                self._factorised(residual, transposed)
                if direct
                else self._krylov(residual, transposed, max(KRYLOV_TOLERANCE, reduction / 10))
            )
            corrected = b - matrix @ (x + step)
            remaining = float(np.abs(corrected).sum())
            if remaining < left:
                progress, x, residual, left = remaining / left, x + step, corrected, remaining
            else:
                progress = 1.0
            if progress > WORTHWHILE and left > wanted:
                if direct:
                    break
                direct = True
        return Evaluation(x, left, "LU" if direct else "BiCGSTAB")

    def _krylov(self, b: FloatArray, transposed: bool, tolerance: float) -> FloatArray:
        """What BiCGSTAB makes of `b`; its caller judges by the residual, not by its word."""
        from journeyman.policy.system_kernels import bicgstab

        rows, x = (self._columns if transposed else self._rows), np.zeros_like(b)
        wanted = tolerance * float(norms(b))
        bicgstab(*rows, self.discount, b, x, wanted, KRYLOV_ITERATIONS)
        return np.where(np.isfinite(x), x, 0.0)

    @cached_property
    def _rows(self) -> tuple[FloatArray, Any, Any]:
        return compiled_rows(sparse.csr_array(self.transition))

    @cached_property
    def _columns(self) -> tuple[FloatArray, Any, Any]:
        return compiled_rows(sparse.csr_array(self.transition.T))

    def _factorised(self, b: FloatArray, transposed: bool) -> FloatArray:
        if self._factor is None:
            self._factor = factorise(self.matrix)
        return np.asarray(self._factor.solve(b, trans="T" if transposed else "N"))


def factorise(matrix: SparseMatrix) -> Any:
    """The sparse LU factors of I - discount M, in an order that suits its nearly symmetric pattern.

    Rows are strictly diagonally dominant, so elimination is stable without pivoting; pivots off the
    diagonal would spoil the order and can cost forty times the work. Supernodes are too small here
    to be worth their overhead.
    """
    from scipy.sparse.linalg import splu

    return splu(
        matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, relax=1, panel_size=1,
        options={"SymmetricMode": True},
    )  # fmt: skip


def compiled_rows(matrix: SparseMatrix) -> tuple[FloatArray, Any, Any]:
    """The arrays of a CSR matrix, with unsigned indices for the compiled loops."""
    unsigned = np.uint32 if matrix.indices.itemsize == 4 else np.uint64
    return matrix.data, matrix.indices.view(unsigned), matrix.indptr.astype(np.uint64)
