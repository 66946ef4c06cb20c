"""Cost classes: which weights w a cost c_w = Psi w may have, and all that others ask about them.

    gap(z) = max { <w, z> : w in W }        (the support function of W)

At z = Psi' mu_policy - Psi' mu_expert this is the largest amount by which the policy can cost more
than the expert for any cost of the class (Lemma 1 for the infinity ball).

| class           | paper      | W                         | gap(z)                      |
|-----------------|------------|---------------------------|-----------------------------|
| `InfinityBall`  | C_lin      | |w_i| <= 1                | sum_i |z_i|                 |
| `EuclideanBall` | C_lin,2    | |w|_2 <= 1                | |z|_2                       |
| `Simplex`       | C_convex   | w >= 0, sum_i w_i = 1     | max_i z_i                   |
| `L1Ball`        |            | sum_i |w_i| <= 1          | max_i |z_i|                 |
| `PriorBall`     |            | |w - prior| <= radius     | <prior, z> + radius |z|_*   |
| `Polytope`      |            | A w <= b                  | max over the vertices       |
| `KnownCost`     |            | {1}                       | z                           |

A class is one file. Solvers, certificates and compiled loops ask it for its members and bounds, for
its `WeightSet` (how it enters a program) and its `KernelForm`; none asks which class it is.

`scale` states unequal trust in the features: W becomes { scale * w : w in W }, so a feature with a
small scale can contribute little. A class without the zero cost is one-sided: its gap is negative
when the policy does better than the expert under every cost of the class.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import BoolArray, FloatArray, Matrix, assign, dense, first_index, real_array
from journeyman.costs.basis import CostBasis
from journeyman.costs.functions import extreme_rows
from journeyman.errors import InvalidCosts, InvalidProblem

BLOCK = 1 << 16
"""Rows of a cost basis that are looked at together."""
MOST_SORTED, MOST_PRODUCTS = 1 << 21, 1 << 29
"""Entries of a basis whose different rows are looked for; rows times points that are multiplied."""
TINY = 1e-300
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
    """A class as optimisers take it: the image of a set of v that is cut out by bounds, equations
    and at most one ball.

        W = { centre + generators v }  over  lower <= v <= upper,  equations v = right,
                                            |v / axes|_2 <= 1

    | set     | v                                       | classes                              |
    |---------|-----------------------------------------|--------------------------------------|
    | a box   | the weights themselves                  | `InfinityBall`, a prior with it      |
    | a ball  | the weights, within half-axes           | `EuclideanBall`, a prior with it     |
    | a hull  | shares of points, v >= 0, sum v = 1     | `Simplex`, `L1Ball`, a prior with it |
    | rows    | the weights and the slacks of A w <= b  | `Polytope`                           |
    | a point | nothing                                 | `KnownCost`                          |

    By the duality of linear programs, with z = Psi' mu - target,

        max over W of <w, z>  =  <centre, z> + min { <right, t> + <upper, p> - <lower, q> }
                                 over p, q >= 0 and t with  generators' z - equations' t = p - q

    which is how the exact program, the reduced program and mixtures hold a class (a ball stays a
    cone).
    """

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


@dataclass(frozen=True)
class Rate:
    """A radius that falls like scale/sqrt(count), whatever the data are:

        P( gap_W(+-(estimate - truth)) > s(m, delta) ) <= delta         s = scale(delta)/sqrt(m)

    for the mean of m independent trajectories.

    >>> rate = Rate("union", 3.0, "3/sqrt(m)")
    >>> rate.at(9), rate.smallest(1.0), rate.smallest(0.999)
    (1.0, 9, 10)
    """

    name: str
    scale: float
    formula: str

    def at(self, count: int) -> float:
        """The bound after `count` trajectories or steps."""
        return self.scale / math.sqrt(count)

    def smallest(self, target: float) -> int:
        """The least count with `at(count) <= target`."""
        guess = (self.scale / target) ** 2 if self.scale < 1e150 * target else math.inf
        if not math.isfinite(guess):
            raise InvalidProblem(
                f"no finite number brings the {self.name} bound to {target:.3g}",
                "Ask for a larger accuracy",
            )
        low, high = math.floor(guess * (1 - 1e-12)), math.ceil(guess * (1 + 1e-12)) + 1
        low = max(0, low - 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.at(middle) <= target else (middle, high)
        return high


@dataclass(frozen=True, eq=False)
class Totals:
    """What is known of one trajectory's discounted totals: costs, and h = 1/(1 - discount)."""

    basis: CostBasis
    horizon: float
    most_products: int = MOST_PRODUCTS
    """Rows times points that are multiplied."""

    @property
    def num_costs(self) -> int:
        return self.basis.num_costs

    def ranges(self, scale: FloatArray) -> FloatArray:
        """R_i = (max psi_i - min psi_i) h, times the scale of each cost."""
        return np.asarray(self.horizon * scale * (self.basis.highest - self.basis.lowest))

    def norm(self, cost_class: "CostClass") -> float:
        """N h, N after the best of two constants was subtracted from each cost."""
        return self.horizon * cost_class.centred_bound(self.basis)

    def ranges_of(self, points: FloatArray) -> FloatArray:
        """(max c_w - min c_w) h of every row w of `points`."""
        low, high = self.ends_of(points)
        return np.asarray(self.horizon * (high - low))

    def ends_of(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """min c_w and max c_w of every row w of `points`, or what lies beyond them.

        Where rows times points are too many: <w, row> is between the sums of the least and the
        greatest w_i row_i, and within |w|_inf |row - c|_1 and |w|_2 |row - c|_2 of <w, c>, for c
        zero and the middle of all ranges.
        """
        rows = self._different_rows
        count, together = rows.shape[0], max(1, BLOCK**2 // (1024 * len(points)))
        if count * len(points) <= self.most_products:
            low, high = np.full(len(points), np.inf), np.full(len(points), -np.inf)
            for at in range(0, count, together):
                costs = dense(rows[at : at + together]) @ points.T
                low, high = np.minimum(low, costs.min(axis=0)), np.maximum(high, costs.max(axis=0))
            return low, high
        up, down = np.maximum(points, 0.0), np.minimum(points, 0.0)
        least, greatest = self.basis.lowest, self.basis.highest
        low, high = up @ least + down @ greatest, up @ greatest + down @ least
        for centre in (np.zeros(self.num_costs), self.basis.centre):
            blocks = (dense(rows[at : at + BLOCK]) - centre for at in range(0, count, BLOCK))
            sizes = np.array([
                (np.abs(block).sum(axis=1).max(), np.linalg.norm(block, axis=1).max())
                for block in blocks
            ]).max(axis=0)  # fmt: skip
            largest = np.abs(points).max(axis=1), np.linalg.norm(points, axis=1)
            reach = np.minimum(largest[0] * sizes[0], largest[1] * sizes[1])
            low = np.maximum(low, points @ centre - reach)
            high = np.minimum(high, points @ centre + reach)
        return low, high

    @cached_property
    def _different_rows(self) -> Matrix:
        """The rows of the basis, each once, where they are few enough to sort."""
        matrix = self.basis.matrix
        if matrix.shape[0] * matrix.shape[1] > MOST_SORTED:
            return matrix
        return np.unique(dense(matrix), axis=0)


def union_over_points(totals: Totals, points: FloatArray, delta: float, *, two_sided: bool) -> Rate:
    """max_k R_k sqrt(log(K/delta)/(2m)): Hoeffding's inequality for each of K weights, at once.

    The gap of a polytope is attained at one of its K vertices w_k, and R_k is the range of the
    total cost <w_k, .>; both signs need 2K.
    """
    events, name = (2, "2K") if two_sided else (1, "K")
    widest = float(totals.ranges_of(points).max())
    scale = widest * math.sqrt(math.log(events * len(points) / delta) / 2)
    return Rate("vertices", scale, f"max_k R_k sqrt(log({name}/delta)/(2m))")


def union_over_costs(totals: Totals, cost_class: "CostClass", delta: float) -> Rate:
    """sup_w sum_i |w_i| R_i sqrt(log(2n/delta)/(2m)): every cost within its own radius, at once."""
    ranges = totals.ranges(np.ones(totals.num_costs))
    scale = cost_class.largest_gap(-ranges, ranges)
    scale *= math.sqrt(math.log(2 * totals.num_costs / delta) / 2)
    return Rate("union", scale, "max_w sum_i |w_i| R_i sqrt(log(2n/delta)/(2m))")


@dataclass(frozen=True, eq=False, init=False)
class CostClass(ABC):
    """A compact convex set W of cost weights."""

    name: ClassVar[str]
    """On the command line and in saved runs."""
    has_surplus: ClassVar[bool] = False
    """Whether, of policies with the same gap, one that costs less in total is preferred."""
    is_known: ClassVar[bool] = False
    """Whether there is one cost only."""
    is_round: ClassVar[bool] = False
    """Whether no finite set of directions has all of the class."""
    is_symmetric: ClassVar[bool] = False
    """Whether -w belongs to the class with every w: no gap has a sign."""
    bears_clipping: ClassVar[bool] = True
    """Whether moving an estimate of the expert into the attainable ranges, cost by cost, cannot
    take it farther from the truth."""

    @property
    @abstractmethod
    def contains_zero(self) -> bool:
        """Whether the zero cost belongs to the class; no gap is negative then."""

    @abstractmethod
    def scaling(self, num_costs: int) -> FloatArray:
        """The largest weight of each cost in absolute value; refuses a wrong number of costs."""

    @abstractmethod
    def gap(self, difference: ArrayLike) -> float:
        """max over W of <w, difference>."""

    @abstractmethod
    def row_gaps(self, matrix: Matrix) -> FloatArray:
        """The gap of every row: the largest cost of the class in every pair of a cost basis."""

    @abstractmethod
    def worst_case(self, difference: ArrayLike) -> FloatArray:
        """Weights in W that attain `gap(difference)`."""

    @abstractmethod
    def admit(self, weights: ArrayLike) -> FloatArray:
        """A point of W close to `weights`, and `weights` itself when it lies in W."""

    @abstractmethod
    def largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        """No difference between `low` and `high` in every coordinate has a larger gap.

        With low = -high this is the largest gap of an error that is within +-high_i.
        """

    @abstractmethod
    def least_gap(self, low: FloatArray, high: FloatArray) -> float:
        """No difference between `low` and `high` in every coordinate has a smaller gap."""

    def easiest(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The difference between `low` and `high` that counts least in every coordinate, where the
        class has one; it decides about the order of work only."""
        return np.asarray(np.clip(0.0, low, high))

    @abstractmethod
    def pointwise_bound(self, matrix: Matrix) -> float:
        """N = max |c_w(row)| over the class and the rows of a cost basis."""

    def centred_bound(self, basis: CostBasis) -> float:
        """N of the basis, or after each cost was moved to the middle of its range: the smaller."""
        return min(self.pointwise_bound(basis.matrix), self.bound_about_middle(basis))

    def bound_about_middle(self, basis: CostBasis) -> float:
        """N of the basis with every cost moved to the middle of its range."""
        largest = 0.0
        for start in range(0, basis.matrix.shape[0], BLOCK):
            rows = dense(basis.matrix[start : start + BLOCK])
            largest = max(largest, self.pointwise_bound(rows - basis.centre))
        return largest

    @abstractmethod
    def image_bound(self, matrix: Matrix) -> float:
        """K_psi: no |matrix w|_2 over the class is larger."""

    @abstractmethod
    def extreme_rows(self, lowest: FloatArray, highest: FloatArray, largest: float) -> FloatArray:
        """Rows with the same ranges, and at least the same N as given and about the middle of each
        range, as any rows between `lowest` and `highest` with absolute sums up to `largest`."""

    @abstractmethod
    def quadratic_bound(self, spread: FloatArray) -> tuple[FloatArray, float]:
        """Weights s and a factor f with max_w |<w, x>| <= f sqrt(sum_i x_i^2/s_i) for all x, good
        for x with the given spread."""

    def deviation(self, errors: FloatArray) -> float:
        """The root mean square of max_w |<w, e>| is at most this, for e with these root mean
        squares: |gap(z + e) - gap(z)| <= max_w |<w, e>|."""
        weights, factor = self.quadratic_bound(np.maximum(errors, TINY))
        return factor * float(np.linalg.norm(errors / np.sqrt(weights)))

    @abstractmethod
    def probes(self, num_costs: int) -> tuple[FloatArray, ...]:
        """Groups of finitely many directions that say enough about gaps: if no <d, z> over the rows
        d of group g is above t_g, then gap(z) <= combined(t) + |axes z|_2, with `axes` where the
        class is round, else without."""

    def combined(self, tops: FloatArray) -> float:
        """See `probes`; does not fall with any t_g. One group: the vertices of W."""
        return float(tops[0])

    def axes(self, num_costs: int) -> FloatArray | None:
        """Half-axes of the ellipsoid that no finite set of directions has all of; see `probes`."""
        return None

    @abstractmethod
    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        """Radii s(m, delta) of estimated expectations, none of which looks at the data."""

    @abstractmethod
    def smoothed(self, difference: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """max { <w, z> - t r(w) : w in W } for a strongly convex r, and the weights that attain it:
        the gap with its corners rounded off, and its gradient."""

    @abstractmethod
    def smoothing_error(self, num_costs: int) -> float:
        """How far `smoothed` can be from the gap, per unit of temperature."""

    def extreme_weights(self, num_costs: int, most: int) -> FloatArray | None:
        """Points (weights x costs) whose hull is W, for classes with at most `most` of them."""
        groups = self.probes(num_costs)
        if self.is_round or len(groups) != 1 or len(groups[0]) > most:
            return None
        return groups[0]

    @abstractmethod
    def weight_set(self, num_costs: int) -> WeightSet:
        """The class as programs take it."""

    @abstractmethod
    def kernel_form(self, num_costs: int) -> KernelForm:
        """The class as compiled loops take it."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What the constructor was given, as plain lists and numbers (JSON)."""

    def same_as(self, other: "CostClass", num_costs: int) -> bool:
        """Whether both are the same set of weights."""
        return self.describe() == other.describe()

    def describe(self) -> dict[str, Any]:
        """Name and parameters; `cost_class_from` is the way back."""
        return {"name": self.name, **self.parameters()}


@dataclass(frozen=True, eq=False, init=False)
class ScaledClass(CostClass):
    """{ scale * w : w in a unit set }: the scale is handled here, once."""

    code: ClassVar[int]
    """Of `KernelForm`."""
    scale: FloatArray | None

    def __init__(self, scale: ArrayLike | None = None) -> None:
        checked = None
        if scale is not None:
            checked = real_array("scale", scale, ndim=1, refusal=InvalidCosts)
            if (checked <= 0).any():
                where = first_index(checked <= 0)
                raise InvalidCosts(
                    f"scale[{where}] = {checked[where]} is not positive",
                    "Give positive scales; leave a cost out of the basis to ignore it",
                )
        assign(self, scale=checked)

    def scaling(self, num_costs: int) -> FloatArray:
        if self.scale is None:
            return np.ones(num_costs)
        if self.scale.size != num_costs:
            raise InvalidCosts(
                f"the cost class has {self.scale.size} scales, the basis {num_costs} costs",
                "Give one scale per cost",
            )
        return self.scale

    def same_as(self, other: CostClass, num_costs: int) -> bool:
        equal = np.array_equal(self.scaling(num_costs), other.scaling(num_costs))
        return self.name == other.name and bool(equal)

    def gap(self, difference: ArrayLike) -> float:
        z = np.asarray(difference, dtype=float)
        return self._gap(self.scaling(z.size) * z)

    def row_gaps(self, matrix: Matrix) -> FloatArray:
        return self._row_gaps(_scaled(matrix, self.scaling(matrix.shape[1])))

    def worst_case(self, difference: ArrayLike) -> FloatArray:
        z = np.asarray(difference, dtype=float)
        scale = self.scaling(z.size)
        return np.asarray(scale * self._worst_case(scale * z))

    def admit(self, weights: ArrayLike) -> FloatArray:
        w = np.asarray(weights, dtype=float)
        scale = self.scaling(w.size)
        return np.asarray(scale * self._admit(w / scale))

    def largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        scale = self.scaling(low.size)
        return self._largest_gap(scale * low, scale * high)

    def least_gap(self, low: FloatArray, high: FloatArray) -> float:
        scale = self.scaling(low.size)
        return self._least_gap(scale * low, scale * high)

    def pointwise_bound(self, matrix: Matrix) -> float:
        return self._pointwise_bound(_scaled(matrix, self.scaling(matrix.shape[1])))

    def image_bound(self, matrix: Matrix) -> float:
        return self._image_bound(dense(_scaled(matrix, self.scaling(matrix.shape[1]))))

    def extreme_rows(self, lowest: FloatArray, highest: FloatArray, largest: float) -> FloatArray:
        return extreme_rows(lowest, highest, largest, self.scaling(lowest.size))

    def quadratic_bound(self, spread: FloatArray) -> tuple[FloatArray, float]:
        """Unit sets within the Euclidean ball: max_w |<w, x>| <= |scale x|_2."""
        return 1 / self.scaling(spread.size) ** 2, 1.0

    def smoothed(self, difference: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        scale = self.scaling(difference.size)
        value, weights = self._smoothed(scale * difference, temperature)
        return value, np.asarray(scale * weights)

    def kernel_form(self, num_costs: int) -> KernelForm:
        points = self._points(self.scaling(num_costs))
        return KernelForm(self.code, self.scaling(num_costs), np.zeros(num_costs), points)

    def parameters(self) -> dict[str, Any]:
        return {} if self.scale is None else {"scale": self.scale.tolist()}

    def _points(self, scale: FloatArray) -> FloatArray:
        """Of a hull, one row each; other classes have none."""
        return np.zeros((0, scale.size))

    @abstractmethod
    def _gap(self, z: FloatArray) -> float: ...

    @abstractmethod
    def _row_gaps(self, matrix: Matrix) -> FloatArray: ...

    @abstractmethod
    def _worst_case(self, z: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _admit(self, w: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float: ...

    @abstractmethod
    def _least_gap(self, low: FloatArray, high: FloatArray) -> float: ...

    @abstractmethod
    def _pointwise_bound(self, matrix: Matrix) -> float: ...

    @abstractmethod
    def _image_bound(self, matrix: FloatArray) -> float: ...

    @abstractmethod
    def _smoothed(self, z: FloatArray, temperature: float) -> tuple[float, FloatArray]: ...


@dataclass(frozen=True, eq=False, init=False)
class Ball(ScaledClass):
    """A unit ball of a norm that only looks at sizes: gap and bounds depend on |z_i| alone."""

    is_symmetric = True

    @property
    def contains_zero(self) -> bool:
        return True

    def norm(self, weights: FloatArray) -> float:
        """How far the ball must be stretched to hold the weights."""
        return self._norm(weights / self.scaling(weights.size))

    @abstractmethod
    def _norm(self, w: FloatArray) -> float: ...

    def _pointwise_bound(self, matrix: Matrix) -> float:
        return float(self._row_gaps(matrix).max())

    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(np.maximum(np.abs(low), np.abs(high)))

    def _least_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(np.clip(0.0, low, high))


@dataclass(frozen=True, eq=False, init=False)
class OneSided(ScaledClass):
    """Weights that are not negative, each unit cost among them: less is always better."""

    @property
    def contains_zero(self) -> bool:
        return False

    def easiest(self, low: FloatArray, high: FloatArray) -> FloatArray:
        return low

    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(high)

    def _least_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(low)

    def _pointwise_bound(self, matrix: Matrix) -> float:
        return float(abs(matrix).max())


def quadratic_smoothing(
    z: FloatArray, weights: FloatArray, temperature: float
) -> tuple[float, FloatArray]:
    """<w, z> - t |w|^2/2 at the weights that maximise it."""
    value = float(weights @ z) - temperature / 2 * float(weights @ weights)
    return value, weights


def times(weights: FloatArray, ends: FloatArray) -> FloatArray:
    """weights * ends, where a weight of zero leaves nothing of an end that is infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(weights == 0, 0.0, weights * ends)


def soft_maximum(scores: FloatArray, temperature: float) -> tuple[float, FloatArray]:
    """t log sum exp(scores/t), above the maximum by at most t log n, and the shares behind it."""
    largest = float(scores.max())
    shares = np.exp((scores - largest) / temperature)
    total = float(shares.sum())
    return largest + temperature * float(np.log(total)), shares / total


def _scaled(matrix: Matrix, scale: FloatArray) -> Matrix:
    return matrix @ sparse.diags_array(scale) if sparse.issparse(matrix) else matrix * scale
