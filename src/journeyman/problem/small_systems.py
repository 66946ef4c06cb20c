"""Symmetric systems of a few hundred unknowns, solved on one core.

A threaded LAPACK is no faster at this size, and many times slower when other work holds a core.
"""

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.compiled import vector_kernel


@vector_kernel
def solve_definite(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """x with matrix x = right, for a symmetric positive definite matrix (overwritten).

    Pivots that rounding has made nonpositive are replaced by the largest diagonal entry, which
    keeps x small in their direction.
    """
    size = right.size
    largest = 0.0
    for i in range(size):
        largest = max(largest, matrix[i, i])
    for i in range(size):
        for j in range(i):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = total / matrix[j, j]
        total = matrix[i, i]
        for k in range(i):
            total -= matrix[i, k] * matrix[i, k]
        matrix[i, i] = np.sqrt(total) if total > 0.0 else np.sqrt(max(largest, 1e-300))
    x = right.copy()
    for i in range(size):
        total = x[i]
        for k in range(i):
            total -= matrix[i, k] * x[k]
        x[i] = total / matrix[i, i]
    for i in range(size - 1, -1, -1):
        x[i] /= matrix[i, i]
        for k in range(i):
            x[k] -= matrix[i, k] * x[i]
    return x
