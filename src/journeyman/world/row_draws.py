"""Outcomes from uniform numbers: by one law, or by a law for each number."""

import numpy as np

from journeyman.arrays import FloatArray, IntArray, read_only


def running_sums(law: FloatArray) -> FloatArray:
    """For `draw_outcomes`: 1 from the last possible outcome on, so that none beyond is drawn."""
    sums = np.cumsum(law)
    sums[int(np.flatnonzero(law)[-1]) :] = 1.0
    return read_only(sums)


def draw_outcomes(sums: FloatArray, uniforms: FloatArray) -> IntArray:
    """The outcome at which the running sum exceeds each uniform number.

    >>> draw_outcomes(running_sums(np.array([0.0, 0.5, 0.5])), np.array([0.0, 0.5])).tolist()
    [1, 2]
    """
    return np.asarray(np.searchsorted(sums, uniforms, side="right"), dtype=np.int64)


def draw_columns(laws: FloatArray, uniforms: FloatArray) -> IntArray:
    """The column at which the running sum of each row exceeds its uniform number.

    Rows sum to one up to rounding; a column of probability zero is never drawn.

    >>> draw_columns(np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]), np.array([0.5, 0.999])).tolist()
    [2, 1]
    """
    sums = np.cumsum(laws, axis=1)
    last = laws.shape[1] - 1 - np.argmax(laws[:, ::-1] > 0, axis=1)
    drawn = (sums <= uniforms[:, np.newaxis]).sum(axis=1)
    return np.asarray(np.minimum(drawn, last))
