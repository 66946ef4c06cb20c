"""Dense and sparse vector arithmetic for compiled loops, small enough for vector units."""

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import vector_kernel


@vector_kernel
def dot(a: FloatArray, b: FloatArray) -> float:
    """<a, b>."""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@vector_kernel
def add(factor: float, a: FloatArray, into: FloatArray) -> None:
    """into += factor * a."""
    for j in range(a.size):
        into[j] += factor * a[j]


@vector_kernel
def sparse_dot(data: FloatArray, indices: IntArray, b: FloatArray) -> float:
    """<a, b> for a sparse vector a."""
    total = 0.0
    for k in range(data.size):
        total += data[k] * b[indices[k]]
    return total


@vector_kernel
def sparse_add(factor: float, data: FloatArray, indices: IntArray, into: FloatArray) -> None:
    """into += factor * a for a sparse vector a."""
    for k in range(data.size):
        into[indices[k]] += factor * data[k]
