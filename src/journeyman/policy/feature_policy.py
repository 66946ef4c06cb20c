"""The policy of coefficients over features, evaluated state by state.

    pi(a | x) = u+(x, a) / sum_b u+(x, b),      u = Phi theta,      uniform where that sum is zero

Nothing is tabulated: asking for a state costs the rows of its pairs.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, IntArray, Seed, SparseMatrix, generator, real_array
from journeyman.errors import InvalidPolicy
from journeyman.frozen import assign
from journeyman.world.large_world import LargeWorld
from journeyman.world.row_draws import draw_columns


class PairFeatures(Protocol):
    """Rows of Phi at any pairs of a world."""

    world: LargeWorld
    num_features: int

    def rows(self, states: IntArray, actions: IntArray) -> SparseMatrix: ...


@dataclass(frozen=True, eq=False, init=False, repr=False)
class FeaturePolicy:
    """What combined features say in every state.

    Args:
        features: rows at pairs, such as `features.factored(...)`.
        coefficients: theta.
    """

    features: PairFeatures
    coefficients: FloatArray
    _stream: np.random.Generator

    def __init__(self, features: PairFeatures, coefficients: ArrayLike) -> None:
        theta = real_array(
            "coefficients", coefficients, ndim=1, size=features.num_features,
            refusal=InvalidPolicy,
        )  # fmt: skip
        assign(self, features=features, coefficients=theta, _stream=np.random.default_rng())

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

    def sample(self, states: ArrayLike, seed: Seed) -> IntArray:
        """One action for each state."""
        laws = self.probabilities(states)
        return draw_columns(laws, generator(seed).random(len(laws)))

    def predict(
        self,
        observation: ArrayLike,
        state: tuple[Any, ...] | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, tuple[Any, ...] | None]:
        """Actions for observed state ids, in the form of Stable-Baselines3.

        With `deterministic=True` the likeliest action is returned: that is another policy.
        """
        observed = np.asarray(observation, dtype=np.int64)
        if deterministic:
            actions = np.argmax(self.probabilities(observed.ravel()), axis=1)
        else:
            actions = self.sample(observed.ravel(), self._stream)
        return actions.reshape(observed.shape)[()], state

    def seeded(self, seed: Seed) -> "FeaturePolicy":
        """The same policy, with a reproducible stream behind `predict`."""
        twin = FeaturePolicy(self.features, self.coefficients)
        assign(twin, _stream=generator(seed))
        return twin

    def __repr__(self) -> str:
        return f"FeaturePolicy({self.coefficients.size} coefficients over {self.features!r})"
