"""Features Phi: a few measures over pairs whose combinations are searched instead of all measures.

    u_theta = base + Phi theta

where the columns of Phi are measures over the pairs of a world and `base` (often absent) is a fixed
measure. Sparse columns stay sparse. The paper's Assumption 2 (positive entries, column mass
1/(1 - discount)) is reported by `Features.assumption_2`, not required: no inequality needs it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    assign,
    freeze_rows,
    read_only,
    real_array,
    real_matrix,
)
from journeyman.errors import InvalidCosts
from journeyman.world import World

BLOCK = 1 << 16
"""Pairs evaluated at a time when features are given as a callable."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Features:
    """Columns of measures over pairs, dense or sparse, with an optional base measure.

    >>> features = Features([[1.0, 0.0], [0.0, 2.0]])
    >>> features.num_features, features.measure([1.0, 0.5]).tolist()
    (2, [1.0, 1.0])
    """

    matrix: Matrix
    base: FloatArray | None

    def __init__(self, matrix: Any, base: ArrayLike | None = None) -> None:
        checked = real_matrix("features", matrix, InvalidCosts)
        if 0 in checked.shape:
            raise InvalidCosts(f"features is empty (shape {checked.shape})", "Give columns")
        fixed = None
        if base is not None:
            fixed = real_array(
                "base measure", base, ndim=1, size=checked.shape[0], refusal=InvalidCosts
            )
        assign(self, matrix=checked, base=fixed)

    @classmethod
    def from_callable(
        cls, world: World, rows: Callable[[IntArray, IntArray], Any], base: ArrayLike | None = None
    ) -> Self:
        """From `rows(states, actions)`, which returns one row of features per pair, vectorised."""
        states, actions = world.pairs.states, world.pairs.actions
        cuts = range(0, world.num_pairs, BLOCK)
        parts = [rows(states[cut : cut + BLOCK], actions[cut : cut + BLOCK]) for cut in cuts]
        stacked = (
            sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)
        )
        return cls(stacked, base)

    @property
    def num_features(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def num_pairs(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def is_sparse(self) -> bool:
        return bool(sparse.issparse(self.matrix))

    @property
    def masses(self) -> FloatArray:
        """The 1-norm of every column."""
        return np.asarray(abs(self.matrix).sum(axis=0)).ravel()

    @property
    def is_nonnegative(self) -> bool:
        """Whether no entry (of base or columns) is negative."""
        based = self.base is None or bool((self.base >= 0).all())
        return based and bool(self.matrix.min() >= 0)

    def measure(self, coefficients: ArrayLike) -> FloatArray:
        """u_theta = base + Phi theta."""
        combined = np.asarray(self.matrix @ np.asarray(coefficients, dtype=float))
        return combined if self.base is None else combined + self.base

    def normalised(self, world: World) -> "Features":
        """The same columns scaled to mass 1/(1 - discount); columns of zeros are dropped."""
        masses = self.masses
        kept = masses > 0
        scale = world.effective_horizon / masses[kept]
        columns = self.matrix[:, kept]
        if sparse.issparse(columns):
            return Features(columns @ sparse.diags_array(scale), self.base)
        return Features(columns * scale, self.base)

    def mixture_radius(self, world: World) -> float:
        """A ball of coefficients that holds every mixture of the columns: the mass 1/(1 - discount)
        over the smallest column mass, so 1 for normalised columns."""
        masses = self.on(world).masses
        if not masses.any():
            raise InvalidCosts("every feature is zero", "Give columns with mass")
        return world.effective_horizon / float(masses[masses > 0].min())

    def with_base(self, base: ArrayLike) -> "Features":
        """The same columns around a base measure, such as the occupancy of a known policy."""
        return Features(self.matrix, base)

    def on(self, world: World) -> Self:
        """The features, checked to have one row per pair of `world`."""
        if self.num_pairs != world.num_pairs:
            raise InvalidCosts(
                f"the features have {self.num_pairs} rows, the world {world.num_pairs} pairs",
                "Give one row per state-action pair, state-major",
            )
        return self

    def assumption_2(self, world: World) -> str:
        """Which parts of the paper's Assumption 2 hold, in words."""
        horizon = world.effective_horizon
        smallest, masses = float(self.matrix.min()), self.masses
        positive = "all entries are positive" if smallest > 0 else f"least entry {smallest:.3g}"
        exact = bool(np.isclose(masses.max(), horizon))
        norm = f"|Phi|_1 = {masses.max():.6g}" + ("" if exact else f", not {horizon:.6g}")
        verdict = "holds" if smallest > 0 and exact else "does not hold (nothing here needs it)"
        return f"Assumption 2 {verdict}: {positive}; {norm}"

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        based = "" if self.base is None else ", with a base measure"
        return f"Features({self.num_features} {kind} columns over {self.num_pairs} pairs{based})"


def concatenate(parts: Sequence[Features]) -> Features:
    """All columns of several feature sets; at most one of them may have a base measure."""
    if not parts:
        raise InvalidCosts("there is nothing to concatenate", "Give at least one feature set")
    bases = [part.base for part in parts if part.base is not None]
    if len(bases) > 1:
        raise InvalidCosts("two feature sets have a base measure", "Keep one of them")
    columns = [part.matrix for part in parts]
    joined = (
        freeze_rows(sparse.hstack(columns, format="csr"))
        if all(part.is_sparse for part in parts)
        else read_only(np.hstack([_dense(column) for column in columns]))
    )
    return Features(joined, bases[0] if bases else None)


def _dense(matrix: Matrix) -> FloatArray:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
