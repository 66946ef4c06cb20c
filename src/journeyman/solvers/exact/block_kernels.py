"""Compiled: what a block of states does with a system by itself, before others are asked."""

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import kernel


@kernel
def settle(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    discount: float,
    right: FloatArray,
    sweeps: int,
    x: FloatArray,
) -> None:
    """Sweeps of Gauss-Seidel, forward and backward from zero, for (I - discount P) x = right."""
    size, count = x.shape
    x[:, :] = 0.0
    for sweep in range(2 * sweeps):
        for step in range(size):
            i = step if sweep % 2 == 0 else size - 1 - step
            own = 0.0
            for k in range(count):
                x[i, k] = right[i, k]
            for entry in range(indptr[i], indptr[i + 1]):
                j = indices[entry]
                share = discount * data[entry]
                if j == i:
                    own += share
                else:
                    for k in range(count):
                        x[i, k] += share * x[j, k]
            for k in range(count):
                x[i, k] /= 1.0 - own
