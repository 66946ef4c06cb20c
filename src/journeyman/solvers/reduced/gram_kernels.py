"""The Gram matrix of sparse rows, compiled."""

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import kernel


@kernel
def add_sparse_gram(
    indptr: IntArray, indices: IntArray, data: FloatArray, weights: FloatArray, total: FloatArray
) -> None:
    """The lower triangle of the Gram matrix of rows whose indices are sorted."""
    for row in range(weights.size):
        for one in range(indptr[row], indptr[row + 1]):
            share = weights[row] * data[one]
            for other in range(indptr[row], one + 1):
                total[indices[one], indices[other]] += share * data[other]
