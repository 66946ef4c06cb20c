"""Factored states: a state id is a number whose digits are the values of the factors.

    state = ((d_1 * sizes[1] + d_2) * sizes[2] + d_3) ...,      0 <= d_i < sizes[i]

The last factor is the fastest, as in an array of shape `sizes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import (
    IntArray,
    assign,
    first_index,
    integer_array,
    plain_array,
    read_only,
    require_in_range,
    require_shape,
)
from journeyman.errors import InvalidWorld
from journeyman.world.large_world import MOST_STATES


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MixedRadix:
    """Ids of all combinations of factors with `sizes[i]` values each.

    >>> radix = MixedRadix([2, 3, 5])
    >>> radix.num_states, radix.digits([29, 7]).tolist()
    (30, [[1, 2, 4], [0, 1, 2]])
    >>> radix.states([[1, 2, 4]]).tolist()
    [29]
    """

    sizes: IntArray
    strides: IntArray
    """By how much an id grows when a digit grows by one."""

    def __init__(self, sizes: Sequence[int] | IntArray) -> None:
        checked = integer_array("sizes", sizes, refusal=InvalidWorld)
        if checked.size == 0 or (checked < 1).any():
            raise InvalidWorld(
                f"sizes = {checked.tolist()}", "Give at least one factor, each with a value or more"
            )
        whole = checked.tolist()
        if prod(whole) > MOST_STATES:
            raise InvalidWorld(
                f"sizes = {whole} have {prod(whole):.3g} combinations, more than int64 can count",
                "Keep the product of the sizes below 2**63",
            )
        strides = [prod(whole[k + 1 :]) for k in range(len(whole))]
        assign(self, sizes=checked, strides=read_only(np.array(strides, dtype=np.int64)))

    @property
    def num_states(self) -> int:
        return prod(self.sizes.tolist())

    @property
    def num_factors(self) -> int:
        return int(self.sizes.size)

    def digits(self, states: ArrayLike) -> IntArray:
        """The values of the factors, (states x factors)."""
        from journeyman.compiled import digits_of

        x = integer_array("states", states, refusal=InvalidWorld)
        require_in_range("states", x, self.num_states, InvalidWorld)
        return digits_of(x, self.sizes)

    def states(self, digits: ArrayLike) -> IntArray:
        """The ids of rows of digits."""
        from journeyman.compiled import states_of

        rows = plain_array("digits", digits, InvalidWorld)
        require_shape("digits", rows.shape, ndim=2, size=None, refusal=InvalidWorld)
        if rows.dtype.kind not in "iu" and rows.size:
            flat = integer_array("digits", rows.ravel(), refusal=InvalidWorld)
            rows = flat.reshape(rows.shape)
        if rows.shape[1] != self.num_factors:
            raise InvalidWorld(
                f"digits has {rows.shape[1]} columns for {self.num_factors} factors",
                "Give one column per factor",
            )
        states = states_of(rows.astype(np.int64), self.sizes)
        if (states < 0).any():
            where = first_index((rows < 0) | (rows >= self.sizes))
            factor = where[1] if isinstance(where, tuple) else where
            raise InvalidWorld(
                f"digits[{where}] = {rows[where]} is outside 0..{self.sizes[factor] - 1}",
                "Number the values of each factor from 0",
            )
        return states

    def __repr__(self) -> str:
        return f"MixedRadix({self.sizes.tolist()})"
