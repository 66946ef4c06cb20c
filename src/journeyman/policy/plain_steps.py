"""The loops of planning by NumPy and SciPy: what `system_kernels` compiles, for small worlds.

Every function does what its namesake there does, up to the order of sums. A system is
I - discount P as it is there, with P as a sparse matrix.
"""

from typing import Any, NamedTuple

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.world import Pairs


class PlainSystem(NamedTuple):
    """A = I - discount P, with the zeros of P where that is chosen (`full_rows`)."""

    matrix: Any
    discount: float


def greedy_step(
    system: PlainSystem, pairs: Pairs, cost: FloatArray, values: FloatArray
) -> tuple[FloatArray, IntArray]:
    """T values, the least of cost + discount P values, and the first pair that attains it; P has a
    row for each pair."""
    ahead = cost + system.discount * (system.matrix @ values)
    if pairs.is_rectangular:
        table = ahead.reshape(pairs.num_states, pairs.max_actions)
        choice = pairs.offsets[:-1] + table.argmin(axis=1)
        return ahead[choice], choice
    best = np.minimum.reduceat(ahead, pairs.offsets[:-1])
    hits = np.flatnonzero(ahead == best[pairs.states])
    choice = hits[np.searchsorted(hits, pairs.offsets[:-1])]
    return best, choice


def choose_rows(system: PlainSystem, choice: IntArray) -> PlainSystem:
    """The rows of the chosen pairs, one for each state."""
    return PlainSystem(system.matrix[choice], system.discount)


def full_rows(system: PlainSystem, choice: IntArray) -> PlainSystem:
    """The same with their zeros."""
    laws = system.matrix
    starts, ends = laws.indptr[choice], laws.indptr[choice + 1]
    counts = ends - starts
    row = np.repeat(np.arange(choice.size), counts)
    at = np.arange(row.size) + (ends - np.cumsum(counts))[row]
    rows = np.zeros((choice.size, laws.shape[1]))
    rows[row, laws.indices[at]] = laws.data[at]
    return PlainSystem(rows, system.discount)


def sweep(system: PlainSystem, right: FloatArray, x: FloatArray, out: FloatArray) -> float:
    """out = right + discount P x, and the span of out - x, the residual of x."""
    np.multiply(system.matrix @ x, system.discount, out=out)
    out += right
    change = out - x
    return float(change.max() - change.min())


FULL = 90
"""Unknowns up to which BLAS takes one thread for a solution: several take a hundred times as long
on a busy machine. A matrix of more is eliminated by halves."""


def solved(system: PlainSystem, right: FloatArray) -> FloatArray:
    """A^{-1} right by elimination in a full matrix, whose diagonal dominates its rows; of a system
    with `full_rows`."""
    matrix, half = -system.discount * system.matrix, right.size // 2
    matrix.ravel()[:: right.size + 1] += 1.0
    if right.size <= FULL:
        return np.asarray(np.linalg.solve(matrix, right))
    upper, lower = matrix[:half], matrix[half:]
    inner = np.linalg.solve(upper[:, :half], np.column_stack([upper[:, half:], right[:half]]))
    left, known = inner[:, :-1], inner[:, -1]
    rest = right[half:] - lower[:, :half] @ known
    second = np.linalg.solve(lower[:, half:] - lower[:, :half] @ left, rest)
    return np.concatenate([known - left @ second, second])


def bicgstab(
    system: PlainSystem, right: FloatArray, x: FloatArray, wanted: float, most: int
) -> int:
    """Improve `x` in place by SciPy's BiCGSTAB until |right - A x|_2 <= wanted; at most `most`
    iterations. It breaks down as the compiled one does, without another beginning: SciPy divides by
    a residual that is exactly zero where `wanted` is zero, and says so in a warning."""
    from scipy.sparse.linalg import LinearOperator, bicgstab

    def product(v: FloatArray) -> FloatArray:
        return np.asarray(v - system.discount * (system.matrix @ v))

    taken = 0

    def count(_: Any) -> None:
        nonlocal taken
        taken += 1

    residual = right - product(x)
    largest = float(np.abs(residual).max())
    if not 0 < largest < np.inf:
        return 0
    power = int(np.frexp(largest)[1])
    operator = LinearOperator((x.size, x.size), matvec=product, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        step, _ = bicgstab(
            operator, np.ldexp(residual, -power), rtol=0.0, atol=float(np.ldexp(wanted, -power)),
            maxiter=most, callback=count,
        )  # fmt: skip
    if np.isfinite(step).all():
        x += np.ldexp(step, power)
    return taken
