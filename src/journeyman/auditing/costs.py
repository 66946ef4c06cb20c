"""Cost classes once more: support functions, members, and the largest cost of a class.

    InfinityBall   |w_i| <= k_i          gap(z) = sum_i k_i |z_i|      row size  sum_i k_i |x_i|
    EuclideanBall  |w/k|_2 <= 1          gap(z) = |k z|_2              row size  |k x|_2
    Simplex        w/k a mixture         gap(z) = max_i k_i z_i        row size  max_i k_i |x_i|
    KnownCost      w = k                 gap(z) = k z                  row size  k |x|

where k is the scale of the class.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from journeyman.auditing.reading import Refused

Floats = NDArray[np.float64]
INFINITY, EUCLIDEAN, SIMPLEX, KNOWN = "InfinityBall", "EuclideanBall", "Simplex", "KnownCost"


@dataclass(frozen=True, eq=False)
class Costs:
    """A cost class over a basis whose rows are pairs or states."""

    kind: str
    scale: Floats
    matrix: Any

    def __post_init__(self) -> None:
        if self.kind not in (INFINITY, EUCLIDEAN, SIMPLEX, KNOWN):
            raise Refused(f"the cost class {self.kind!r} cannot be audited")
        if self.kind == KNOWN and self.scale.size != 1:
            raise Refused("a known cost is one cost")

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The least and the greatest entry of every cost."""
        if not sparse.issparse(self.matrix):
            return self.matrix.min(axis=0), self.matrix.max(axis=0)
        columns = self.matrix.tocsc()
        found = []
        for start, stop in zip(columns.indptr[:-1], columns.indptr[1:], strict=True):
            entries = columns.data[start:stop]
            if stop - start < self.matrix.shape[0]:
                entries = np.append(entries, 0.0)
            found.append((entries.min(), entries.max()))
        low, high = np.array(found).T
        return low, high

    @property
    def ranges(self) -> Floats:
        return np.asarray(self.ends[1] - self.ends[0])

    @property
    def centre(self) -> Floats:
        return np.asarray((self.ends[0] + self.ends[1]) / 2)

    @property
    def norms(self) -> Floats:
        return np.maximum(-self.ends[0], self.ends[1])

    def gap(self, difference: Floats) -> float:
        """The largest <w, difference> over the class."""
        z = self.scale * difference
        if self.kind == INFINITY:
            return math.fsum(abs(z))
        return math.hypot(*z) if self.kind == EUCLIDEAN else float(z.max())

    def spread_gap(self, radius: Floats) -> float:
        """The largest gap of an error within +-radius in every coordinate."""
        if not np.isfinite(radius).all():
            return math.inf
        return self.gap(np.abs(radius))

    def member(self, weights: Floats) -> Floats:
        """The point of the class that stands for `weights`."""
        w = weights / self.scale
        if self.kind == INFINITY:
            w = np.minimum(np.maximum(w, -1.0), 1.0)
        elif self.kind == EUCLIDEAN:
            w = w / max(1.0, math.hypot(*w))
        elif self.kind == SIMPLEX:
            w = np.maximum(w, 0.0)
            w = w / w.sum() if w.any() else np.full(w.size, 1 / w.size)
        else:
            w = np.ones(1)
        return np.asarray(self.scale * w)

    @cached_property
    def plain(self) -> float:
        """N as given."""
        return self._largest(self.kind, np.zeros(self.scale.size))

    @cached_property
    def about_centre(self) -> float:
        """N with every cost moved to the middle of its range."""
        return self._largest(self.kind, self.centre)

    @property
    def smaller(self) -> float:
        return min(self.plain, self.about_centre)

    @cached_property
    def euclidean(self) -> float:
        """The same for the Euclidean ball, whatever the class is."""
        zero = np.zeros(self.scale.size)
        return min(self._largest(EUCLIDEAN, zero), self._largest(EUCLIDEAN, self.centre))

    def _largest(self, kind: str, centre: Floats) -> float:
        if kind == INFINITY:
            return float(self._row_totals(centre, 1).max())
        if kind == EUCLIDEAN:
            return math.sqrt(max(0.0, float(self._row_totals(centre, 2).max())))
        low, high = self.ends
        return float((self.scale * np.maximum(high - centre, centre - low)).max())

    def _row_totals(self, centre: Floats, power: int) -> Floats:
        """sum_i (k_i |x_i - centre_i|)^power of every row x; a sparse basis stays sparse."""
        if not sparse.issparse(self.matrix):
            return np.asarray((np.abs(self.matrix - centre) ** power) @ self.scale**power)
        hidden = (self.scale * np.abs(centre)) ** power
        columns = self.matrix.indices
        shown = (self.scale[columns] * np.abs(self.matrix.data - centre[columns])) ** power
        parts = (shown - hidden[columns], columns, self.matrix.indptr)
        more = sparse.csr_array(parts, shape=self.matrix.shape).sum(axis=1)
        return np.asarray(hidden.sum() + np.asarray(more).ravel())
