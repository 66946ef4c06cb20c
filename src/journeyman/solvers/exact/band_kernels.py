"""Compiled loops of `band`: E' diag(w) E by columns of a band, E' diag(w) C, and step lengths."""

from journeyman.arrays import FloatArray, IntArray
from journeyman.compiled import kernel, vector_kernel


@kernel
def weigh(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    weights: FloatArray,
    band: FloatArray,
    arms: FloatArray,
    corner: FloatArray,
) -> None:
    """E' diag(weights) E: band[j, i - j] for the entries (i, j) on and below the diagonal of what
    is banded, arms[j, h] between it and hubs, corner between hubs."""
    size = band.shape[0]
    band[:] = 0.0
    arms[:] = 0.0
    corner[:] = 0.0
    for row in range(weights.size):
        for first in range(indptr[row], indptr[row + 1]):
            i, weight = indices[first], weights[row] * data[first]
            for second in range(indptr[row], indptr[row + 1]):
                j, entry = indices[second], weight * data[second]
                if j < size:
                    if i >= size:
                        arms[j, i - size] += entry
                    elif i >= j:
                        band[j, i - j] += entry
                elif i >= size:
                    corner[i - size, j - size] += entry


@vector_kernel
def weigh_dense(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    weights: FloatArray,
    costs: FloatArray,
    out: FloatArray,
) -> None:
    """out = E' diag(weights) costs."""
    out[:] = 0.0
    for row in range(weights.size):
        for entry in range(indptr[row], indptr[row + 1]):
            i, weight = indices[entry], weights[row] * data[entry]
            for k in range(costs.shape[1]):
                out[i, k] += weight * costs[row, k]


@kernel
def weigh_sparse(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    weights: FloatArray,
    cost_data: FloatArray,
    cost_indices: IntArray,
    cost_indptr: IntArray,
    out: FloatArray,
) -> None:
    """out = E' diag(weights) costs."""
    out[:] = 0.0
    for row in range(weights.size):
        for place in range(cost_indptr[row], cost_indptr[row + 1]):
            k, cost = cost_indices[place], weights[row] * cost_data[place]
            for entry in range(indptr[row], indptr[row + 1]):
                out[indices[entry], k] += data[entry] * cost


@vector_kernel
def subtract_and_weigh(
    data: FloatArray,
    indices: IntArray,
    indptr: IntArray,
    first: int,
    roots: FloatArray,
    table: FloatArray,
    rows: FloatArray,
) -> None:
    """rows = roots * (rows - E table), for rows of E from `first` on."""
    count = rows.shape[1]
    for place in range(rows.shape[0]):
        row = first + place
        for entry in range(indptr[row], indptr[row + 1]):
            i, weight = indices[entry], data[entry]
            for k in range(count):
                rows[place, k] -= weight * table[i, k]
        for k in range(count):
            rows[place, k] *= roots[row]


@kernel
def columns_of(band: FloatArray, first: int, out: FloatArray) -> None:
    """Some columns of a lower band as rows of `out`, from their first diagonal entry on."""
    count, height = out.shape
    out[:] = 0.0
    for k in range(count):
        for i in range(min(band.shape[1], height - k)):
            out[k, k + i] = band[first + k, i]


@kernel
def reaches(
    values: FloatArray, step: FloatArray, other: FloatArray, shares: FloatArray, out: FloatArray
) -> None:
    """How far, up to out[k], values stay nonnegative along step + shares[k] other."""
    for k in range(shares.size):
        most, share = out[k], shares[k]
        for i in range(values.size):
            change = step[i] + share * other[i]
            if values[i] + most * change < 0.0:
                most = -values[i] / change
        out[k] = most
