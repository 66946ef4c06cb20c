"""A cost that is a function of a basis's features, and no combination of them.

The columns of a `CostBasis` are the features (those given as rewards with their signs changed, as
everywhere): the same function is a cost in every world whose basis has features of the same names.
Two forms of functions are known, a kernel expansion
(`GaussianProcessCosts`) and a regression tree (`FeatureConstruction`).

What a certificate says of it. Certificates are about the costs of the declared class, which are
combinations of the features. A learned cost is covered as far as it is one: `outside` is the share
of it that is none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, IntArray, dense, read_only, real_array
from journeyman.costs import CostBasis
from journeyman.errors import InvalidCosts
from journeyman.problem import Apprenticeship
from journeyman.world import World

MOST_LISTED = 8
"""Features of a kernel that are listed."""
FURTHEST = 1e100
"""In lengths of a kernel: rows of another world may be so far away, and squares are finite."""
BLOCK = 1 << 22
"""Entries of a table of kernel values that is made at a time."""


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
        weights, origin = np.sqrt(self.relevances) * self.scale, self.centres[0]
        centres, found = (self.centres - origin) * weights, np.empty(len(rows))
        step = max(1, BLOCK // len(centres))
        for start in range(0, len(rows), step):
            there = (rows[start : start + step] - origin) * weights
            far = squared_distances(np.clip(there, -FURTHEST, FURTHEST), centres)
            found[start : start + step] = np.exp(-far / 2) @ self.coefficients
        return found

    def in_words(self, names: tuple[str, ...]) -> str:
        """The features with the largest relevances, one a line."""
        order = np.argsort(-self.relevances * (self.scale > 0), kind="stable")[:MOST_LISTED]
        width = max(len(names[k]) for k in order)
        return "\n".join(f"{names[k]:<{width}}  relevance {self.relevances[k]:.3g}" for k in order)

    def require(self, num_features: int) -> None:
        """Refuse arrays that do not fit together."""
        shapes = (self.centres.shape, self.relevances.shape, self.scale.shape)
        wanted = ((self.coefficients.size, num_features), (num_features,), (num_features,))
        if shapes != wanted or self.coefficients.ndim != 1:
            raise _unusable("a kernel expansion", num_features)


def _unusable(what: str, num_features: int) -> InvalidCosts:
    return InvalidCosts(
        f"the arrays of {what} over {num_features} features do not fit together",
        "Learn and save it again",
    )


def squared_distances(one: FloatArray, other: FloatArray) -> FloatArray:
    """|x - y|^2 of all rows x of `one` and y of `other`."""
    sizes = (one**2).sum(axis=1)[:, np.newaxis] + (other**2).sum(axis=1)
    return np.asarray(np.maximum(sizes - 2 * one @ other.T, 0.0))


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

    def require(self, num_features: int) -> None:
        """Refuse arrays that are no tree: children stand behind their parent."""
        parts = (self.feature, self.threshold, self.left, self.right, self.value)
        count = self.feature.size
        inner = self.feature >= 0
        here = np.flatnonzero(inner) if self.feature.ndim == 1 else np.zeros(0, dtype=np.int64)
        if (
            count == 0
            or any(one.shape != (count,) for one in parts)
            or any(one.dtype.kind != "i" for one in (self.feature, self.left, self.right))
            or not (self.feature < num_features).all()
            or any(
                not ((one[here] > here) & (one[here] < count)).all()
                for one in (self.left, self.right)
            )
        ):
            raise _unusable("a regression tree", num_features)

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


FORMS = (KernelExpansion, RegressionTree)


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
        return np.bincount(self.of_pairs, per_pair, minlength=len(self.rows)).astype(float)


@dataclass(frozen=True, eq=False)
class NonlinearCost:
    """The cost that a method has learned: a function of features, and its value at every pair."""

    names: tuple[str, ...]
    """Of the features, in the order in which the function takes them."""
    function: KernelExpansion | RegressionTree
    per_pair: FloatArray
    """In the world of the expert."""
    outside: float
    """How far it is from every combination of the features and a constant: the root mean square
    distance of the nearest one, as a share of the cost's standard deviation over the pairs. At 0 it
    is a combination, at 1 no combination says anything about it."""

    @classmethod
    def of(
        cls,
        problem: Apprenticeship,
        table: FeatureRows,
        function: KernelExpansion | RegressionTree,
    ) -> Self:
        values = function(table.rows)
        per_pair = read_only(values[table.of_pairs])
        return cls(problem.basis.names, function, per_pair, share_outside(table, values))

    def on(self, world: World, basis: CostBasis) -> FloatArray:
        """The cost of every pair of another world, from features of the same names; in a world that
        was made of another, such as one with a horizon, that of a pair there, and nothing at its
        end."""
        if world.reduction is not None:
            there = CostBasis(self.on(world.reduction.base, basis))
            return read_only(np.asarray(dense(there.on(world))).ravel())
        if set(basis.names) != set(self.names):
            raise InvalidCosts(
                f"the learned cost is a function of {', '.join(self.names)}, and these costs are "
                f"{', '.join(basis.names)}",
                "Give the same features, by the same names, for the new world",
            )
        order = [basis.names.index(name) for name in self.names]
        table = FeatureRows.of(world, basis)
        rows = np.ascontiguousarray(table.rows[:, order])  # equal bits need an equal layout
        return read_only(self.function(rows)[table.of_pairs])

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

    def arrays(self) -> dict[str, FloatArray | IntArray]:
        """All of it but the names, as arrays for a file."""
        parts = {one.name: getattr(self.function, one.name) for one in fields(self.function)}
        return {"per_pair": self.per_pair, "outside": np.array([self.outside]), **parts}

    @classmethod
    def of_arrays(cls, names: tuple[str, ...], given: Mapping[str, Any]) -> Self:
        """What `arrays` has made; features are named by the basis of the run."""
        parts = {name: read_only(np.asarray(one)) for name, one in given.items()}
        per_pair, outside = parts.pop("per_pair", None), parts.pop("outside", None)
        for form in FORMS:
            if (
                per_pair is not None
                and outside is not None
                and set(parts) == {one.name for one in fields(form)}
            ):
                function = form(**parts)
                function.require(len(names))
                return cls(names, function, per_pair, float(outside[0]))
        raise InvalidCosts(
            f"arrays {', '.join(given)} are no function of features", "Learn and save it again"
        )

    def in_words(self) -> str:
        """The function: the tree, or the features that matter most to a kernel."""
        return self.function.in_words(self.names)

    @property
    def remark(self) -> str:
        """What a certificate says of it, in words."""
        if self.outside <= NEGLIGIBLE:
            return (
                "the learned cost is a combination of the features: certificates cover it as far "
                "as its weights lie in the declared class"
            )
        return (
            f"{100 * self.outside:.2g} % of the learned cost is no combination of the features: "
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
    return min(float(np.linalg.norm(weights * spread - nearest)) / size, 1.0)
