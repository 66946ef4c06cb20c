"""A cost that is a function of a basis's features, and no combination of them.

The columns of a `CostBasis` are the features: the same function is a cost in every world whose
basis has features of the same names. Two forms of functions are known, a kernel expansion
(`GaussianProcessCosts`) and a regression tree (`FeatureConstruction`).

What a certificate says of it. Certificates are about the costs of the declared class, which are
combinations of the features. A learned cost is covered as far as it is one: `outside` is the share
of it that is none.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, IntArray, dense, read_only, real_array
from journeyman.costs import CostBasis
from journeyman.errors import InvalidCosts
from journeyman.problem import Apprenticeship
from journeyman.world import World

BLOCK = 1 << 22
"""Entries of a table of kernel values that is made at a time."""


class FeatureFunction(Protocol):
    """From rows of features to costs."""

    def __call__(self, rows: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """f(z) = sum_j a_j exp( -1/2 sum_k relevance_k ((z_k - centres_jk) scale_k)^2 )"""

    centres: FloatArray
    """(centres x features), as they are."""
    relevances: FloatArray
    """Per feature, for features in units of their range."""
    scale: FloatArray
    """One over the range of each feature in the world of the expert; 0 where it does not vary."""
    coefficients: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        weights = np.sqrt(self.relevances) * self.scale
        centres, found = self.centres * weights, np.empty(len(rows))
        step = max(1, BLOCK // len(centres))
        for start in range(0, len(rows), step):
            far = squared_distances(rows[start : start + step] * weights, centres)
            found[start : start + step] = np.exp(-far / 2) @ self.coefficients
        return found


def squared_distances(one: FloatArray, other: FloatArray) -> FloatArray:
    """|x - y|^2 of all rows x of `one` and y of `other`."""
    sizes = (one**2).sum(axis=1)[:, np.newaxis] + (other**2).sum(axis=1)
    return np.maximum(sizes - 2 * one @ other.T, 0.0)


@dataclass(frozen=True, eq=False)
class RegressionTree:
    """Constant on the leaves of a binary tree, whose inner nodes test one feature each.

    Node 0 is the root; `feature` is -1 at leaves. A row goes left where its feature is at most
    `threshold`.
    """

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray

    def leaf_of(self, rows: FloatArray) -> IntArray:
        """The leaf that each row falls into."""
        node = np.zeros(len(rows), dtype=np.int64)
        while True:
            inner = np.flatnonzero(self.feature[node] >= 0)
            if not inner.size:
                return node
            at = node[inner]
            below = rows[inner, self.feature[at]] <= self.threshold[at]
            node[inner] = np.where(below, self.left[at], self.right[at])

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(self.value[self.leaf_of(rows)])

    @property
    def num_leaves(self) -> int:
        return int(np.count_nonzero(self.feature < 0))

    def in_words(self, names: tuple[str, ...]) -> str:
        """The tree as indented lines."""
        lines: list[str] = []

        def write(node: int, depth: int) -> None:
            indent, tested = "  " * depth, int(self.feature[node])
            if tested < 0:
                lines.append(f"{indent}{self.value[node]:.4g}")
                return
            for way, sign in ((self.left[node], "<="), (self.right[node], "> ")):
                lines.append(f"{indent}{names[tested]} {sign} {self.threshold[node]:.4g}")
                write(int(way), depth + 1)

        write(0, 0)
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """The different rows of features that the pairs of a world have."""

    rows: FloatArray
    of_pairs: IntArray
    """The row of each pair."""

    @classmethod
    def of(cls, world: World, basis: CostBasis) -> Self:
        table = np.asarray(dense(basis.on(world)), dtype=float) + 0.0
        rows, places = np.unique(table, axis=0, return_inverse=True)
        return cls(rows, places.ravel())

    @property
    def counts(self) -> FloatArray:
        """How many pairs have each row."""
        return np.bincount(self.of_pairs, minlength=len(self.rows)).astype(float)

    def total(self, per_pair: FloatArray) -> FloatArray:
        """Sums over the pairs of each row."""
        return np.bincount(self.of_pairs, per_pair, minlength=len(self.rows))


@dataclass(frozen=True, eq=False)
class NonlinearCost:
    """The cost that a method has learned: a function of features, and its value at every pair."""

    kind: ClassVar[str] = "nonlinear cost"
    names: tuple[str, ...]
    """Of the features, in the order in which the function takes them."""
    function: FeatureFunction
    per_pair: FloatArray
    """In the world of the expert."""
    outside: float
    """How far it is from every combination of the features and a constant: the root mean square
    distance of the nearest one, as a share of the cost's standard deviation over the pairs. At 0 it
    is a combination, at 1 no combination says anything about it."""

    @classmethod
    def of(cls, problem: Apprenticeship, table: FeatureRows, function: FeatureFunction) -> Self:
        values = function(table.rows)
        per_pair = read_only(values[table.of_pairs])
        return cls(problem.basis.names, function, per_pair, share_outside(table, values))

    def on(self, world: World, basis: CostBasis) -> FloatArray:
        """The cost of every pair of another world, from features of the same names."""
        if set(basis.names) != set(self.names):
            raise InvalidCosts(
                f"the learned cost is a function of {', '.join(self.names)}, and these costs are "
                f"{', '.join(basis.names)}",
                "Give the same features, by the same names, for the new world",
            )
        order = [basis.names.index(name) for name in self.names]
        table = FeatureRows.of(world, basis)
        return read_only(self.function(table.rows[:, order])[table.of_pairs])

    def at(self, rows: ArrayLike) -> FloatArray:
        """The costs of some rows of features, in the order of `names`."""
        given = real_array("rows", rows, ndim=2, refusal=InvalidCosts)
        if given.shape[1] != len(self.names):
            raise InvalidCosts(
                f"rows have {given.shape[1]} features, and the cost is a function of "
                f"{len(self.names)}",
                "Give one column per feature, in the order of names",
            )
        return read_only(self.function(given))

    @property
    def remark(self) -> str:
        """What a certificate says of it, in words."""
        if self.outside <= NEGLIGIBLE:
            return (
                "the learned cost is a combination of the features: certificates cover it as far "
                "as its weights lie in the declared class"
            )
        return (
            f"{self.outside:.0%} of the learned cost is no combination of the features: "
            "certificates are about costs of the declared class, and cover it only as far as it "
            "lies in this class"
        )


NEGLIGIBLE = 1e-6
"""Of the spread of a cost: what rounding leaves of a combination."""


def share_outside(table: FeatureRows, values: FloatArray) -> float:
    """See `NonlinearCost.outside`."""
    weights = np.sqrt(table.counts)
    spread = values - np.average(values, weights=table.counts)
    size = float(np.linalg.norm(weights * spread))
    if size <= NEGLIGIBLE * float(np.linalg.norm(weights * values)):
        return 0.0
    middle = (table.rows.max(axis=0) + table.rows.min(axis=0)) / 2
    width = (table.rows.max(axis=0) - table.rows.min(axis=0)) / 2
    centred = (table.rows - middle) / np.where(width > 0, width, 1.0)
    columns = np.column_stack([centred, np.ones(len(values))]) * weights[:, np.newaxis]
    nearest = columns @ np.linalg.lstsq(columns, weights * spread, rcond=None)[0]
    return float(min(np.linalg.norm(weights * spread - nearest) / size, 1.0))
