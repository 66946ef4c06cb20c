"""The cost classes of the paper: which weights w a cost c_w = Psi w may have.

    gap(z) = max { <w, z> : w in W }        (the support function of W)

At z = Psi' mu_policy - Psi' mu_expert this is the largest amount by which the policy can cost more
than the expert for any cost of the class (Lemma 1 for the infinity ball).

| class           | paper      | W                         | gap(z)        |
|-----------------|------------|---------------------------|---------------|
| `InfinityBall`  | C_lin      | |w_i| <= 1                | sum_i |z_i|   |
| `EuclideanBall` | C_lin,2    | |w|_2 <= 1                | |z|_2         |
| `Simplex`       | C_convex   | w >= 0, sum_i w_i = 1     | max_i z_i     |

`scale` states unequal trust in the features: W becomes { scale * w : w in W }, so a feature with a
small scale can contribute little. `Simplex` is one-sided: its gap is negative when the policy
surpasses the expert in every cost.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign, first_index, real_array
from journeyman.errors import InvalidCosts

ENUMERATION_LIMIT = 20
"""Up to this many costs the constant K_psi of the infinity ball is computed exactly."""


@dataclass(frozen=True, eq=False, init=False)
class CostClass(ABC):
    """A compact convex set W of cost weights, optionally scaled per cost."""

    scale: FloatArray | None
    contains_zero: ClassVar[bool]

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
        """The scale of each of `num_costs` costs."""
        if self.scale is None:
            return np.ones(num_costs)
        if self.scale.size != num_costs:
            raise InvalidCosts(
                f"the cost class has {self.scale.size} scales, the basis {num_costs} costs",
                "Give one scale per cost",
            )
        return self.scale

    def gap(self, difference: ArrayLike) -> float:
        """max over W of <w, difference>."""
        z = np.asarray(difference, dtype=float)
        return self._gap(self.scaling(z.size) * z)

    def worst_case(self, difference: ArrayLike) -> FloatArray:
        """Weights in W that attain `gap(difference)`."""
        z = np.asarray(difference, dtype=float)
        scale = self.scaling(z.size)
        return np.asarray(scale * self._worst_case(scale * z))

    def admit(self, weights: ArrayLike) -> FloatArray:
        """A point of W close to `weights`, and `weights` itself when it lies in W."""
        w = np.asarray(weights, dtype=float)
        scale = self.scaling(w.size)
        return np.asarray(scale * self._admit(w / scale))

    def largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        """The largest gap of a difference between `low` and `high` in every coordinate; infinite
        for a class of which that is not known."""
        scale = self.scaling(low.size)
        return self._largest_gap(scale * low, scale * high)

    def easiest(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The difference between `low` and `high` that counts least in every coordinate: nearest
        to zero or, where less is always better, the lowest."""
        return np.clip(0.0, low, high) if self.contains_zero else low

    def pointwise_bound(self, matrix: Matrix) -> float:
        """N = max |c_w(row)| over the class and the rows of a cost basis."""
        return self._pointwise_bound(_scaled(matrix, self.scaling(matrix.shape[1])))

    def image_bound(self, matrix: Matrix) -> float:
        """K_psi = max |matrix w|_2 over the class (for the infinity ball an upper bound beyond
        20 costs: the sum of the column norms)."""
        return self._image_bound(np.asarray(_dense(_scaled(matrix, self.scaling(matrix.shape[1])))))

    @abstractmethod
    def _gap(self, z: FloatArray) -> float: ...

    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        return float("inf")

    @abstractmethod
    def _worst_case(self, z: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _admit(self, w: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _pointwise_bound(self, matrix: Matrix) -> float: ...

    @abstractmethod
    def _image_bound(self, matrix: FloatArray) -> float: ...


class InfinityBall(CostClass):
    """|w_i| <= scale_i: match the expert in every cost, in both directions.

    >>> InfinityBall().gap([1.0, -2.0])
    3.0
    """

    contains_zero = True

    def _gap(self, z: FloatArray) -> float:
        return float(np.abs(z).sum())

    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(np.maximum(np.abs(low), np.abs(high)))

    def _worst_case(self, z: FloatArray) -> FloatArray:
        return np.sign(z)

    def _admit(self, w: FloatArray) -> FloatArray:
        return np.clip(w, -1.0, 1.0)

    def _pointwise_bound(self, matrix: Matrix) -> float:
        return float(abs(matrix).sum(axis=1).max())

    def _image_bound(self, matrix: FloatArray) -> float:
        num_costs = matrix.shape[1]
        if num_costs > ENUMERATION_LIMIT:
            return float(np.linalg.norm(matrix, axis=0).sum())
        gram = matrix.T @ matrix
        half = min(num_costs, 12)
        inner = np.array(list(product((-1.0, 1.0), repeat=half)))
        largest = 0.0
        for outer in product((-1.0, 1.0), repeat=num_costs - half):
            signs = np.hstack([inner, np.tile(outer, (len(inner), 1))])
            largest = max(largest, float(np.einsum("ki,ij,kj->k", signs, gram, signs).max()))
        return float(np.sqrt(largest))


class EuclideanBall(CostClass):
    """|w / scale|_2 <= 1.

    >>> EuclideanBall().gap([3.0, -4.0])
    5.0
    """

    contains_zero = True

    def _gap(self, z: FloatArray) -> float:
        return float(np.linalg.norm(z))

    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(np.maximum(np.abs(low), np.abs(high)))

    def _worst_case(self, z: FloatArray) -> FloatArray:
        norm = float(np.linalg.norm(z))
        return z / norm if norm > 0 else np.zeros_like(z)

    def _admit(self, w: FloatArray) -> FloatArray:
        return np.asarray(w / max(1.0, float(np.linalg.norm(w))))

    def _pointwise_bound(self, matrix: Matrix) -> float:
        return float(np.sqrt((matrix * matrix).sum(axis=1).max()))

    def _image_bound(self, matrix: FloatArray) -> float:
        return float(np.linalg.norm(matrix, ord=2))


class Simplex(CostClass):
    """w / scale >= 0 with sum 1: be at least as good as the expert in every cost, or better.

    >>> Simplex().gap([-1.0, -2.0])
    -1.0
    """

    contains_zero = False

    def _gap(self, z: FloatArray) -> float:
        return float(z.max())

    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(high)

    def _worst_case(self, z: FloatArray) -> FloatArray:
        weights = np.zeros_like(z)
        weights[np.argmax(z)] = 1.0
        return weights

    def _admit(self, w: FloatArray) -> FloatArray:
        positive = np.maximum(w, 0.0)
        total = positive.sum()
        return np.asarray(positive / total if total > 0 else np.full_like(w, 1.0 / w.size))

    def _pointwise_bound(self, matrix: Matrix) -> float:
        return float(abs(matrix).max())

    def _image_bound(self, matrix: FloatArray) -> float:
        return float(np.linalg.norm(matrix, axis=0).max())


class KnownCost(CostClass):
    """W = {1}: one cost, known. The class behind `Forward` problems.

    >>> KnownCost().gap([2.5])
    2.5
    """

    contains_zero = False

    def scaling(self, num_costs: int) -> FloatArray:
        if num_costs != 1:
            raise InvalidCosts(
                f"a known cost is one cost, not {num_costs}",
                "Combine the columns with known weights first",
            )
        return super().scaling(num_costs)

    def _gap(self, z: FloatArray) -> float:
        return float(z[0])

    def _largest_gap(self, low: FloatArray, high: FloatArray) -> float:
        return self._gap(high)

    def _worst_case(self, z: FloatArray) -> FloatArray:
        return np.ones(1)

    def _admit(self, w: FloatArray) -> FloatArray:
        return np.ones(1)

    def _pointwise_bound(self, matrix: Matrix) -> float:
        return float(abs(matrix).max())

    def _image_bound(self, matrix: FloatArray) -> float:
        return float(np.linalg.norm(matrix))


def _scaled(matrix: Matrix, scale: FloatArray) -> Matrix:
    return matrix @ sparse.diags_array(scale) if sparse.issparse(matrix) else matrix * scale


def _dense(matrix: Matrix) -> FloatArray:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
