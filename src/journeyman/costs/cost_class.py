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

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign, dense, first_index, real_array
from journeyman.costs.basis import CostBasis
from journeyman.costs.functions import extreme_rows
from journeyman.costs.rates import Rate, Totals
from journeyman.costs.weight_set import KernelForm, WeightSet
from journeyman.errors import InvalidCosts

BLOCK = 1 << 16
"""Rows of a sparse cost basis that are centred at a time."""
TINY = 1e-300


@dataclass(frozen=True, eq=False, init=False)
class CostClass(ABC):
    """A compact convex set W of cost weights."""

    name: ClassVar[str]
    """On the command line and in saved runs."""
    has_surplus: ClassVar[bool] = False
    """Whether, of policies with the same gap, one that costs less in total is preferred."""
    is_known: ClassVar[bool] = False
    """Whether there is one cost only."""
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
    def rates(self, totals: Totals, delta: float, *, two_sided: bool) -> tuple[Rate, ...]:
        """Radii s(m, delta) of estimated expectations, none of which looks at the data."""

    @abstractmethod
    def smoothed(self, difference: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """max { <w, z> - t r(w) : w in W } for a strongly convex r, and the weights that attain it:
        the gap with its corners rounded off, and its gradient."""

    @abstractmethod
    def smoothing_error(self, num_costs: int) -> float:
        """How far `smoothed` can be from the gap, per unit of temperature."""

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

    def parameters(self) -> dict[str, Any]:
        return {} if self.scale is None else {"scale": self.scale.tolist()}

    @abstractmethod
    def _gap(self, z: FloatArray) -> float: ...

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

    @property
    def contains_zero(self) -> bool:
        return True

    def norm(self, weights: FloatArray) -> float:
        """How far the ball must be stretched to hold the weights."""
        return self._norm(weights / self.scaling(weights.size))

    def row_gaps(self, matrix: Matrix) -> FloatArray:
        """The gap of every row."""
        return self._row_gaps(_scaled(matrix, self.scaling(matrix.shape[1])))

    @abstractmethod
    def _norm(self, w: FloatArray) -> float: ...

    @abstractmethod
    def _row_gaps(self, matrix: Matrix) -> FloatArray: ...

    def _pointwise_bound(self, matrix: Matrix) -> float:
        return float(self._row_gaps(matrix).max())

    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(np.maximum(np.abs(low), np.abs(high)))

    def _least_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(np.clip(0.0, low, high))


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
