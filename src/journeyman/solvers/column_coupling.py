"""The rows of a master problem that couple its columns, and solves with them."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from journeyman.arrays import FloatArray, SparseMatrix


class Coupling:
    """F, and solves with F D F': diagonal when every column is in one row, small otherwise."""

    def __init__(self, matrix: SparseMatrix) -> None:
        self.matrix, self.transposed = matrix, matrix.T.tocsr()
        self.is_diagonal = bool((np.diff(self.transposed.indptr) == 1).all())

    def total(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ values)

    def spread(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.transposed @ values)

    def below(self, prices: FloatArray, margin: float) -> FloatArray:
        """Values v with F'v < prices by about a margin."""
        num_rows = self.matrix.shape[0]
        if self.is_diagonal:
            least = np.full(num_rows, np.inf)
            np.minimum.at(least, self.transposed.indices, prices / self.transposed.data)
            return least - margin
        ones = self.spread(np.ones(num_rows))
        return np.full(num_rows, float(((prices - margin) / ones).min()))

    def weigh(self, weights: FloatArray) -> bool:
        """Take D; False when the arithmetic has given out."""
        if self.is_diagonal:
            self._diagonal = np.asarray((self.matrix * self.matrix) @ weights)
            return True
        self._scaled = (self.transposed * weights[:, None]).tocsr()
        try:
            self._factor = cho_factor((self.matrix @ self._scaled).toarray())
        except (LinAlgError, ValueError):
            return False
        return True

    def solve(self, right: FloatArray) -> FloatArray:
        """(F D F')^-1 right, corrected once: near a discount of one a core's flow needs it."""
        if self.is_diagonal:
            return np.asarray((right.T / self._diagonal).T)
        found = cho_solve(self._factor, right)
        missing = right - self.matrix @ (self._scaled @ found)
        return np.asarray(found + cho_solve(self._factor, missing))
