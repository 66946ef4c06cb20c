"""The policy of coefficients over features, evaluated state by state.

    pi(a | x) = u+(x, a) / sum_b u+(x, b),      u = Phi theta,      uniform where that sum is zero

Nothing is tabulated: asking for a state costs the rows of its pairs.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, IntArray, SparseMatrix, assign, real_array
from journeyman.errors import InvalidPolicy
from journeyman.policy.acting import Predicting
from journeyman.world.large_world import LargeWorld


class PairFeatures(Protocol):
    """Rows of Phi at any pairs of a world."""

    world: LargeWorld
    num_features: int

    def rows(self, states: IntArray, actions: IntArray) -> SparseMatrix: ...


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FeaturePolicy(Predicting):
    """What combined features say in every state.

    Args:
        features: rows at pairs, such as `features.factored(...)`.
        coefficients: theta.
    """

    features: PairFeatures
    coefficients: FloatArray

    def __init__(self, features: PairFeatures, coefficients: ArrayLike) -> None:
        theta = real_array(
            "coefficients", coefficients, ndim=1, size=features.num_features,
            refusal=InvalidPolicy,
        )  # fmt: skip
        assign(self, features=features, coefficients=theta)

    @property
    def num_actions(self) -> int:
        return self.features.world.num_actions

    def measure(self, states: IntArray, actions: IntArray) -> FloatArray:
        """u at given pairs."""
        return np.asarray(self.features.rows(states, actions) @ self.coefficients)

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws."""
        asked = np.asarray(states, dtype=np.int64).ravel()
        count = self.num_actions
        pairs = np.repeat(asked, count), np.tile(np.arange(count), asked.size)
        positive = np.maximum(self.measure(*pairs), 0.0).reshape(-1, count)
        total = positive.sum(axis=1, keepdims=True)
        uniform = np.full(positive.shape, 1 / count)
        return np.asarray(np.divide(positive, total, out=uniform, where=total > 0))

    def __repr__(self) -> str:
        return f"FeaturePolicy({self.coefficients.size} coefficients over {self.features!r})"
