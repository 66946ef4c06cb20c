"""Compiled loops of `MixedRadix`."""

import numpy as np

from journeyman.arrays import IntArray
from journeyman.compiled import kernel


@kernel
def digits_of(states: IntArray, sizes: IntArray) -> IntArray:
    """The values of the factors, (states x factors)."""
    digits = np.empty((states.size, sizes.size), np.int64)
    for k in range(states.size):
        rest = np.uint64(states[k])
        for factor in range(sizes.size - 1, 0, -1):
            size = np.uint64(sizes[factor])
            quotient = rest // size
            digits[k, factor] = rest - quotient * size
            rest = quotient
        digits[k, 0] = rest
    return digits


@kernel
def states_of(digits: IntArray, sizes: IntArray) -> IntArray:
    """The ids of rows of digits, -1 where a digit is outside its size."""
    states = np.zeros(digits.shape[0], np.int64)
    for k in range(digits.shape[0]):
        for factor in range(sizes.size):
            digit = digits[k, factor]
            if digit < 0 or digit >= sizes[factor]:
                states[k] = -1
                break
            states[k] = states[k] * sizes[factor] + digit
    return states
