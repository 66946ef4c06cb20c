"""A cost class in the forms that optimisers take: a lifted set for programs, codes for kernels.

    W = { centre + generators v  :  lower <= v <= upper,  equations v = right,  |v / axes|_2 <= 1 }

| set      | v                                              | classes                              |
|----------|------------------------------------------------|--------------------------------------|
| a box    | the weights themselves                         | `InfinityBall`, a prior with it      |
| a ball   | the weights themselves, within half-axes       | `EuclideanBall`, a prior with it     |
| a hull   | shares of points, v >= 0, sum v = 1            | `Simplex`, `L1Ball`, a prior with it |
| rows     | the weights and the slacks of A w <= b         | `Polytope`                           |
| a point  | nothing                                        | `KnownCost`                          |

By the duality of linear programs, with z = Psi' mu - target,

    max over W of <w, z>  =  <centre, z> + min { <right, t> + <upper, p> - <lower, q> }
                             over p, q >= 0 and t with  generators' z - equations' t = p - q

which is how the exact program, the reduced program and mixtures hold a class (a ball stays a cone).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from journeyman.arrays import BoolArray, FloatArray

BOX, BALL, LARGEST, HULL = range(4)
"""What compiled loops know: centre + scale sign(z); centre + scale (scale z)/|scale z|_2; the cost
with the largest scale z alone; the point p of `points` with the largest <p, z>."""


class KernelForm(NamedTuple):
    """A class as arrays for compiled loops; which of them count is decided by `code`."""

    code: int
    scale: FloatArray
    centre: FloatArray
    points: FloatArray


@dataclass(frozen=True, eq=False)
class WeightSet:
    """W as the image of a set of v that is cut out by bounds, equations and at most one ball."""

    centre: FloatArray
    generators: FloatArray | None
    """(costs x v), or one-dimensional for a diagonal; None when v are the weights themselves."""
    lower: FloatArray
    upper: FloatArray
    """Finite everywhere."""
    implied_lower: BoolArray
    implied_upper: BoolArray
    """Which bounds follow from the equations or the ball, so that they may be left out."""
    equations: FloatArray
    right: FloatArray
    axes: FloatArray | None = None
    rows: "RowOracle | None" = None

    @classmethod
    def box(cls, half: FloatArray, centre: FloatArray | None = None) -> "WeightSet":
        """|w_i - centre_i| <= half_i."""
        kept = np.zeros(half.size, dtype=bool)
        middle = np.zeros(half.size) if centre is None else centre
        return cls(middle, None, -half, half, kept, kept, *_no_equations(half.size))

    @classmethod
    def ball(cls, axes: FloatArray, centre: FloatArray | None = None) -> "WeightSet":
        """|(w - centre)/axes|_2 <= 1."""
        return replace(
            cls.box(axes, centre), axes=axes,
            implied_lower=np.ones(axes.size, dtype=bool),
            implied_upper=np.ones(axes.size, dtype=bool),
        )  # fmt: skip

    @classmethod
    def hull(cls, generators: FloatArray, centre: FloatArray | None = None) -> "WeightSet":
        """The mixtures of the columns of `generators`, or of a diagonal."""
        count = generators.shape[-1]
        return cls(
            np.zeros(generators.shape[0]) if centre is None else centre, generators,
            np.zeros(count), np.ones(count), np.zeros(count, dtype=bool),
            np.ones(count, dtype=bool), np.ones((1, count)), np.ones(1),
        )  # fmt: skip

    @classmethod
    def point(cls, weights: FloatArray) -> "WeightSet":
        """The weights alone."""
        none, nothing = np.zeros(0), np.zeros(0, dtype=bool)
        generators = np.zeros((weights.size, 0))
        return cls(weights, generators, none, none, nothing, nothing, *_no_equations(0))

    @property
    def size(self) -> int:
        """How many v there are."""
        return self.lower.size

    @property
    def num_costs(self) -> int:
        return self.centre.size

    @property
    def is_centred(self) -> bool:
        return not self.centre.any()

    @property
    def is_box(self) -> bool:
        """Whether every weight has its own bounds and nothing else."""
        return self.generators is None and self.axes is None and not self.right.size

    @property
    def is_diagonal(self) -> bool:
        """Whether every v belongs to one cost."""
        return self.generators is None or self.generators.ndim == 1

    def weights(self, v: FloatArray) -> FloatArray:
        """centre + generators v."""
        moved = v
        if self.generators is not None:
            moved = self.generators * v if self.generators.ndim == 1 else self.generators @ v
        return moved if self.is_centred else self.centre + moved

    def pulled(self, z: FloatArray) -> FloatArray:
        """generators' z, for one difference or (costs x anything)."""
        if self.generators is None:
            return z
        if self.generators.ndim == 1:
            return np.asarray((self.generators * z.T).T)
        return np.asarray(self.generators.T @ z)

    def support(self, pulled: FloatArray) -> float:
        """The largest <v, pulled>."""
        if self.rows is not None:
            return self.rows.support(pulled)
        if self.axes is not None:
            return float(np.linalg.norm(self.axes * pulled))
        if self.right.size:
            return float(pulled.max())
        return float(self.upper @ np.abs(pulled))

    def admit(self, v: FloatArray) -> FloatArray:
        """A feasible v close to a given one."""
        if self.rows is not None:
            return self.rows.admit(v)
        if self.axes is not None:
            unit = v / self.axes
            return np.asarray(self.axes * (unit / max(1.0, float(np.linalg.norm(unit)))))
        if self.right.size:
            return in_simplex(v)
        return np.clip(v, self.lower, self.upper)

    def middle(self) -> FloatArray:
        """A v well inside."""
        if self.rows is not None:
            return self.rows.middle()
        return np.full(self.size, 1 / self.size) if self.right.size else np.zeros(self.size)

    def in_units(self, units: FloatArray) -> "WeightSet":
        """The set of w/units; that of a ball has axes of length one."""
        centre = self.centre / units
        if self.axes is not None:
            ones, generators = np.ones(self.size), self.axes / units
            unit = replace(self, centre=centre, axes=ones, lower=-ones, upper=ones)
            return unit if (generators == 1).all() else replace(unit, generators=generators)
        if self.generators is None:
            return replace(self, centre=centre, lower=self.lower / units, upper=self.upper / units)
        generators = (self.generators.T / units).T
        if np.array_equal(generators, np.ones(self.size)) or np.array_equal(generators, [[1.0]]):
            return replace(self, centre=centre, generators=None)
        return replace(self, centre=centre, generators=generators)

    def moved(self, centre: FloatArray, factor: float) -> "WeightSet":
        """The set of centre + factor w, for one that is centred."""
        if self.generators is not None:
            return replace(self, centre=centre, generators=factor * self.generators)
        axes = None if self.axes is None else factor * self.axes
        return replace(
            self, centre=centre, axes=axes, lower=factor * self.lower, upper=factor * self.upper
        )


class RowOracle(Protocol):
    """What bounds and equations do not say by themselves: the set { A w <= b } with its slacks."""

    def support(self, pulled: FloatArray) -> float: ...

    def admit(self, v: FloatArray) -> FloatArray: ...

    def middle(self) -> FloatArray: ...


def in_simplex(v: FloatArray) -> FloatArray:
    """Nonnegative, with sum one; equal shares where nothing is positive."""
    positive = np.maximum(v, 0.0)
    total = positive.sum()
    return np.asarray(positive / total if total > 0 else np.full_like(v, 1.0 / v.size))


def _no_equations(count: int) -> tuple[FloatArray, FloatArray]:
    return np.zeros((0, count)), np.zeros(0)
