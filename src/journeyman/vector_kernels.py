"""Dense and sparse vector arithmetic for compiled loops, small enough for vector units."""

import math

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import kernel, vector_kernel

LARGEST_POWER = 1000
"""Of two, in `unit_of`: beyond it the inverse of a unit would not be a number."""


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


@kernel
def unit_of(size: float) -> float:
    """A power of two near a size that is not negative; 1 where there is none.

    Whatever is divided by it keeps its digits, and its squares neither vanish nor overflow.
    """
    if not (size > 0.0 and size < math.inf):
        return 1.0
    _, power = math.frexp(size)
    return math.ldexp(1.0, min(max(power, -LARGEST_POWER), LARGEST_POWER))


@kernel
def largest(a: FloatArray) -> float:
    """max |a_j|; not a number where one of them is not."""
    most = 0.0
    for j in range(a.size):
        size = abs(a[j])
        if not size <= most:
            most = size
    return most


@vector_kernel
def norm(a: FloatArray) -> float:
    """|a|_2, of any size that float64 can hold."""
    square = dot(a, a)
    if 1e-290 < square < 1e290:
        return math.sqrt(square)
    unit = unit_of(largest(a))
    total = 0.0
    for j in range(a.size):
        total += (a[j] / unit) ** 2
    return unit * math.sqrt(total)
