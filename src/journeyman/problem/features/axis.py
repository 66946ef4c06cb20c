"""One factor of a factored world: tents over its values, and a measure on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.errors import InvalidCosts


@dataclass(frozen=True, eq=False)
class Axis:
    """One factor: its tents (values x knots) and its share of the base measure."""

    tents: FloatArray
    base: FloatArray

    @property
    def num_knots(self) -> int:
        return int(self.tents.shape[1])

    @cached_property
    def lower(self) -> IntArray:
        """The first knot whose tent covers each value."""
        return np.asarray(np.argmax(self.tents != 0, axis=1))

    @cached_property
    def neighbours(self) -> FloatArray:
        """(values x 2): the tents over each value, of its first knot and of the one after."""
        padded = np.pad(self.tents, ((0, 0), (0, 1)))
        rows = np.arange(len(padded))
        return np.column_stack([padded[rows, self.lower], padded[rows, self.lower + 1]])

    @cached_property
    def columns(self) -> FloatArray:
        """base times tents: (values x knots)."""
        return self.base[:, np.newaxis] * self.tents

    @cached_property
    def masses(self) -> FloatArray:
        return np.asarray(self.columns.sum(axis=0))

    @cached_property
    def cumulative(self) -> FloatArray:
        """Distribution functions of the columns, (knots x values)."""
        sums = np.cumsum(self.columns, axis=0) / self.masses
        last = self.columns.shape[0] - 1 - np.argmax(self.columns[::-1] > 0, axis=0)
        sums[np.arange(sums.shape[0])[:, np.newaxis] >= last] = 1.0
        return np.ascontiguousarray(sums.T)


def require_masses(axes: Sequence[Axis]) -> None:
    """Refuse a tent under which the base vanishes."""
    for factor, axis in enumerate(axes):
        if not (axis.masses > 0).all():
            raise InvalidCosts(
                f"the tent at knot {int(np.argmin(axis.masses))} of factor {factor} has no mass",
                "Leave the knot out, or give a positive flat_share",
            )
