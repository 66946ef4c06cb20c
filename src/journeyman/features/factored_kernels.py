"""Compiled loops over cells: which are around a state, and rows of Phi and D made of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.compiled import kernel


class Tables(NamedTuple):
    """The tents of all factors, one factor below the other.

    A value has `tents` over its knot `lower` and the next one; only `factors` have several knots.
    """

    factors: IntArray
    offsets: IntArray
    """Where the values of each factor begin."""
    knots: IntArray
    lower: IntArray
    tents: FloatArray
    base: FloatArray
    scales: FloatArray
    """Of the cells."""


def blended_rows(
    digits: IntArray, tables: Tables, shares: FloatArray, num_features: int
) -> SparseMatrix:
    """Rows with entry value * share in column (cell, heuristic)."""
    capacity = int(np.count_nonzero(shares)) << tables.factors.size
    data, columns = np.empty(capacity), np.empty(capacity, dtype=np.int32)
    ends = np.zeros(len(digits) + 1, dtype=np.int32)
    _blended_rows(digits, tables, shares, data, columns, ends)
    used, shape = ends[-1], (len(digits), num_features)
    return sparse.csr_array((data[:used], columns[:used], ends), shape=shape)


@kernel
def _blended_rows(
    digits: IntArray,
    tables: Tables,
    shares: FloatArray,
    data: FloatArray,
    columns: NDArray[np.int32],
    ends: NDArray[np.int32],
) -> None:
    cells = np.empty(1 << tables.factors.size, np.int64)
    values = np.empty(cells.size)
    used = 0
    for k in range(digits.shape[0]):
        count = _fill_cells(digits[k], tables, cells, values)
        for h in range(shares.shape[1]):
            if shares[k, h] != 0.0:
                for i in range(count):
                    columns[used] = cells[i] * shares.shape[1] + h
                    data[used] = values[i] * shares[k, h]
                    used += 1
        ends[k + 1] = used


def flow_rows(
    digits: IntArray,
    digits_before: IntArray,
    tables: Tables,
    moved: FloatArray,
    runs: IntArray,
    discount: float,
    num_features: int,
) -> tuple[SparseMatrix, FloatArray]:
    """Own cells less the discounted ones of the states before, and the mass of both together."""
    heuristics = moved.shape[1]
    capacity = (1 + np.diff(runs)) * (heuristics << tables.factors.size)
    starts = np.concatenate([[0], np.cumsum(np.minimum(capacity, num_features))])
    data, columns = np.empty(starts[-1]), np.empty(starts[-1], dtype=np.int32)
    ends, mass = np.empty(runs.size, dtype=np.int32), np.empty(runs.size - 1)
    _flow_rows(
        digits, digits_before, tables, moved, np.ones(heuristics), runs, discount,
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
def moved_by_rule(
    chosen: IntArray, actions: IntArray, probabilities: FloatArray, ends: IntArray
) -> FloatArray:
    """The same for a rule, which takes one action in the state of every stretch."""
    moved = np.zeros(ends.size - 1)
    for run in range(moved.size):
        for place in range(ends[run], ends[run + 1]):
            if actions[place] == chosen[run]:
                moved[run] += probabilities[place]
    return moved


@kernel
def _flow_rows(
    digits: IntArray,
    digits_before: IntArray,
    tables: Tables,
    moved: FloatArray,
    own: FloatArray,
    runs: IntArray,
    discount: float,
    sums: FloatArray,
    seen: IntArray,
    data: FloatArray,
    columns: NDArray[np.int32],
    ends: NDArray[np.int32],
    mass: FloatArray,
) -> None:
    """Entries of a row are added up in `sums`; `seen` has the row a column was last used in."""
    cells = np.empty(1 << tables.factors.size, np.int64)
    values = np.empty(cells.size)
    ends[0] = 0
    for k in range(digits.shape[0]):
        begin = ends[k]
        count = _fill_cells(digits[k], tables, cells, values)
        used = _include(k, cells[:count], values, 1.0, own, sums, seen, columns, begin)
        total = values[:count].sum() * own.size
        for run in range(runs[k], runs[k + 1]):
            count = _fill_cells(digits_before[run], tables, cells, values)
            used = _include(
                k, cells[:count], values, -discount, moved[run], sums, seen, columns, used
            )
            total += discount * values[:count].sum() * moved[run].sum()
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
    columns: NDArray[np.int32],
    used: int,
) -> int:
    """Add factor * value * share to row k; new columns are listed from place `used` on."""
    for h in range(shares.size):
        if shares[h] == 0.0:
            continue
        for i in range(cells.size):
            column = cells[i] * shares.size + h
            if seen[column] != k:
                seen[column], sums[column] = k, 0.0
                columns[used] = column
                used += 1
            sums[column] += factor * values[i] * shares[h]
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
def around(digits: IntArray, tables: Tables) -> tuple[IntArray, FloatArray]:
    """The cells around each state and scale * base * tents there, in a fixed number of places.

    Places that are not needed point to cell 0 with value zero.
    """
    count, neighbours = digits.shape[0], 1 << tables.factors.size
    cells = np.zeros((count, neighbours), np.int64)
    values = np.zeros((count, neighbours))
    for k in range(count):
        _fill_cells(digits[k], tables, cells[k], values[k])
    return cells, values


@kernel
def _fill_cells(digits: IntArray, tables: Tables, cells: IntArray, values: FloatArray) -> int:
    """The cells around one state, and how many they are."""
    weight = 1.0
    for i in range(digits.size):
        weight *= tables.base[tables.offsets[i] + digits[i]]
    cells[0], values[0] = 0, weight
    filled = 1
    for i in tables.factors:
        row = tables.offsets[i] + digits[i]
        first, second = tables.tents[row, 0], tables.tents[row, 1]
        for place in range(filled):
            cell, value = cells[place] * tables.knots[i] + tables.lower[row], values[place]
            cells[place], values[place] = cell, value * first
            if second != 0.0:
                cells[filled + place], values[filled + place] = cell + 1, value * second
        filled = 2 * filled if second != 0.0 else filled
    for place in range(filled):
        values[place] *= tables.scales[cells[place]]
    return filled
