"""Compiled loops over cells: which are around a state, and rows of Phi and D made of them."""

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.compiled import kernel


def blended_rows(
    cells: IntArray, values: FloatArray, shares: FloatArray, num_features: int
) -> SparseMatrix:
    """Rows with entry value * share in column (cell, heuristic)."""
    count, neighbours = cells.shape
    heuristics = shares.shape[1]
    columns = cells[:, :, np.newaxis] * heuristics + np.arange(heuristics)
    entries = values[:, :, np.newaxis] * shares[:, np.newaxis, :]
    ends = np.arange(count + 1) * (neighbours * heuristics)
    return sparse.csr_array((entries.ravel(), columns.ravel(), ends), shape=(count, num_features))


def flow_rows(
    cells: IntArray,
    values: FloatArray,
    cells_before: IntArray,
    values_before: FloatArray,
    moved: FloatArray,
    runs: IntArray,
    discount: float,
    num_features: int,
) -> tuple[SparseMatrix, FloatArray]:
    """Own cells less the discounted ones of the states before, and the mass of both together."""
    heuristics = moved.shape[1]
    room = (1 + np.diff(runs)) * cells.shape[1] * heuristics
    starts = np.concatenate([[0], np.cumsum(np.minimum(room, num_features))])
    data, columns = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.int64)
    ends, mass = np.empty(runs.size, dtype=np.int64), np.empty(runs.size - 1)
    _flow_rows(
        cells, values, cells_before, values_before, moved, np.ones(heuristics), runs, discount,
        np.zeros(num_features), np.full(num_features, -1), data, columns, ends, mass,
    )  # fmt: skip
    used = ends[-1]
    shape = (runs.size - 1, num_features)
    return sparse.csr_array((data[:used], columns[:used], ends), shape=shape), mass


@kernel
def moved_mass(
    law: FloatArray, actions: IntArray, probabilities: FloatArray, ends: IntArray
) -> FloatArray:
    """sum_a P(y | x, a) law(a | x) over every stretch of pairs that have their state in common."""
    moved = np.zeros(ends.size - 1)
    for run in range(moved.size):
        for place in range(ends[run], ends[run + 1]):
            moved[run] += probabilities[place] * law[run, actions[place]]
    return moved


@kernel
def _flow_rows(
    cells: IntArray,
    values: FloatArray,
    cells_before: IntArray,
    values_before: FloatArray,
    moved: FloatArray,
    own: FloatArray,
    runs: IntArray,
    discount: float,
    sums: FloatArray,
    seen: IntArray,
    data: FloatArray,
    columns: IntArray,
    ends: IntArray,
    mass: FloatArray,
) -> None:
    """Entries of a row are added up in `sums`; `seen` tells in which row a column was last used."""
    ends[0] = 0
    for k in range(cells.shape[0]):
        begin = ends[k]
        used = _include(k, cells[k], values[k], 1.0, own, sums, seen, columns, begin)
        total = values[k].sum() * own.size
        for run in range(runs[k], runs[k + 1]):
            used = _include(
                k, cells_before[run], values_before[run], -discount, moved[run], sums, seen,
                columns, used,
            )  # fmt: skip
            total += discount * values_before[run].sum() * moved[run].sum()
        for place in range(begin, used):
            data[place] = sums[columns[place]]
        ends[k + 1] = used
        mass[k] = total


@kernel
def _include(
    k: int,
    cells: IntArray,
    values: FloatArray,
    factor: float,
    shares: FloatArray,
    sums: FloatArray,
    seen: IntArray,
    columns: IntArray,
    used: int,
) -> int:
    """Add factor * value * share to row k; new columns are listed from place `used` on."""
    for i in range(cells.size):
        for h in range(shares.size):
            entry = factor * values[i] * shares[h]
            if entry == 0.0:
                continue
            column = cells[i] * shares.size + h
            if seen[column] != k:
                seen[column], sums[column] = k, 0.0
                columns[used] = column
                used += 1
            sums[column] += entry
    return used


@kernel
def blended_laws(cells: IntArray, shares: FloatArray, laws: FloatArray) -> FloatArray:
    """sum_j share_j law_j of the cells around each state."""
    blend = np.zeros((cells.shape[0], laws.shape[1]))
    for k in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            share = shares[k, j]
            if share != 0.0:
                for a in range(laws.shape[1]):
                    blend[k, a] += share * laws[cells[k, j], a]
    return blend


@kernel
def drawn_values(cumulative: FloatArray, knots: IntArray, uniforms: FloatArray) -> IntArray:
    """The first value at which the distribution function of a knot exceeds its uniform number."""
    drawn = np.empty(knots.size, np.int64)
    for k in range(knots.size):
        low, high = 0, cumulative.shape[1] - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[knots[k], middle] <= uniforms[k]:
                low = middle + 1
            else:
                high = middle
        drawn[k] = low
    return drawn


@kernel
def around(
    digits: IntArray,
    tents: FloatArray,
    base: FloatArray,
    offsets: IntArray,
    knots: IntArray,
    scales: FloatArray,
) -> tuple[IntArray, FloatArray]:
    """The cells around each state and scale * base * tents there, in a fixed number of places.

    Places that are not needed point to cell 0 with value zero.
    """
    factors = knots.size
    neighbours = 1
    for i in range(factors):
        neighbours *= min(2, knots[i])
    count = digits.shape[0]
    cells = np.zeros((count, neighbours), np.int64)
    values = np.zeros((count, neighbours))
    for k in range(count):
        filled, weight = 1, 1.0
        values[k, 0] = 1.0
        for i in range(factors):
            row = offsets[i] + digits[k, i]
            weight *= base[row]
            first, second = -1, -1
            for j in range(knots[i]):
                if tents[row, j] != 0.0:
                    if first < 0:
                        first = j
                    else:
                        second = j
            for place in range(filled):
                before, share = cells[k, place] * knots[i], values[k, place]
                if second >= 0:
                    cells[k, filled + place] = before + second
                    values[k, filled + place] = share * tents[row, second]
                cells[k, place] = before + first
                values[k, place] = share * tents[row, first]
            filled = 2 * filled if second >= 0 else filled
        for place in range(filled):
            values[k, place] *= weight * scales[cells[k, place]]
    return cells, values
