"""A few rows that are as large as any row of costs can be, for every class and in every way.

    Q = { psi : lowest <= psi <= highest, sum_i |psi_i| <= largest }

Guarantees ask for max |scale psi| and max |scale (psi - c)| over Q, c the middle of each range, in
the 1-, 2- and max-norm. The rows returned have at least these norms, and ranges as wide as those of
Q: where costs exclude each other (`largest` small) that is much less than the corners of the box.

*Why*. |psi_i| scale_i lies below size_i scale_i, and the sum of them below the optimum T of a
knapsack, filled by scale. Filled in the order of size_i scale_i instead, T gives a row that
majorises all of them, so no convex norm is larger (Hardy, Littlewood and Polya). Around c: a cost
whose range does not hold zero is half a range away from c where it is least; any other is
|c_i| + t_i away at most, where t_i <= |psi_i| and t_i <= min(-lowest_i, highest_i).

*Tightness*: 1-norms and max-norms are attained in Q, 2-norms where all scales are equal, if every
range begins or ends at zero, or every range is symmetric; otherwise they are upper bounds.
"""

import numpy as np

from journeyman.arrays import FloatArray


def extreme_rows(
    lowest: FloatArray, highest: FloatArray, largest: float, scale: FloatArray
) -> FloatArray:
    """Rows (rows x costs) whose scaled norms, plain and about their centre, bound those over Q."""
    if largest >= np.maximum(np.abs(lowest), np.abs(highest)).sum():
        return np.vstack([lowest, highest, _farther(lowest, highest)])
    least = least_costs(lowest, highest)
    room = max(0.0, largest - float(np.abs(least).sum()))
    reach = np.abs(least) + room
    low, high = np.maximum(lowest, -reach), np.minimum(highest, reach)
    single = np.vstack([_one_by_one(least, low), _one_by_one(least, high)])
    return np.unique(
        np.vstack([single, _largest_row(low, high, least, room, scale),
                   _farthest_row(low, high, least, room, scale)]), axis=0,
    )  # fmt: skip


def least_costs(lowest: FloatArray, highest: FloatArray) -> FloatArray:
    """Of every range the value that is closest to zero."""
    return np.asarray(np.clip(0.0, lowest, highest))


def _farther(low: FloatArray, high: FloatArray) -> FloatArray:
    """The end of every range that is farther from zero."""
    return np.where(np.abs(low) > np.abs(high), low, high)


def _one_by_one(least: FloatArray, ends: FloatArray) -> FloatArray:
    """Every cost by itself at its end, the others at their least."""
    rows = np.tile(least, (least.size, 1))
    np.fill_diagonal(rows, ends)
    return rows


def _largest_row(
    low: FloatArray, high: FloatArray, least: FloatArray, room: float, scale: FloatArray
) -> FloatArray:
    """With norms of at least max |scale psi|."""
    ends, rest = _farther(low, high), np.abs(least)
    added = filled(np.abs(ends) - rest, room, scale)
    total = float(scale @ (rest + added))
    sizes = scale * np.abs(ends)
    return np.asarray(np.sign(ends) * np.maximum(filled(sizes, total, sizes) / scale, rest))


def _farthest_row(
    low: FloatArray, high: FloatArray, least: FloatArray, room: float, scale: FloatArray
) -> FloatArray:
    """With norms of at least max |scale (psi - c)|."""
    centre, halves = (low + high) / 2, (high - low) / 2
    around_zero = (low < 0) & (high > 0)
    nearer = np.where(around_zero, np.minimum(-low, high), 0.0)
    added = filled(nearer, room, scale)
    total = float(scale @ np.where(around_zero, np.abs(centre) + added, 0.0))
    sizes = np.where(around_zero, scale * halves, 0.0)
    away = np.minimum(filled(sizes, total, sizes) / scale, halves)
    towards = np.where(centre < 0, 1.0, -1.0)
    return np.where(around_zero, centre + towards * away, least)


def filled(sizes: FloatArray, total: float, priority: FloatArray) -> FloatArray:
    """`total` poured into vessels of these sizes, those of high priority first.

    >>> filled(np.array([1.0, 2.0, 4.0]), 5.0, np.array([1.0, 3.0, 2.0])).tolist()
    [0.0, 2.0, 3.0]
    """
    order = np.argsort(-priority, kind="stable")
    sorted_sizes = sizes[order]
    before = np.cumsum(sorted_sizes) - sorted_sizes
    amounts = np.empty_like(sizes)
    amounts[order] = np.clip(total - before, 0.0, sorted_sizes)
    return amounts
