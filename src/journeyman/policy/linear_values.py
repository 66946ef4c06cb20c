"""Policies that take the action of least value, with values linear in features of the observation.

    Q(o, a) = <phi(o), theta_a>,   pi(o) = the action of least Q(o, a), the first of several

Features and coefficients are arrays, so that such a policy can be saved as numbers. Values that
differ by less than `EQUAL` of the largest are equal: which action is taken must not depend on how
a processor rounds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import FloatArray, IntArray, Seed, assign, integer_array, real_array
from journeyman.errors import InvalidPolicy
from journeyman.policy.acting import Predicting

Features: TypeAlias = Callable[[NDArray[Any]], FloatArray]
"""From n observations to (n x features)."""
EQUAL = 1e-10
"""Part of the largest value."""
REACH = 5.0
"""Standard deviations: farther away quadratic features do not grow."""


@dataclass(frozen=True, eq=False)
class QuadraticFeatures:
    """1, z_i and z_i z_j of observations z in units of their spread, at most `REACH` of them."""

    mean: FloatArray
    scale: FloatArray

    def __post_init__(self) -> None:
        _check_units(self)

    @property
    def count(self) -> int:
        size = self.mean.size
        return 1 + size + size * (size + 1) // 2

    def __call__(self, observations: NDArray[Any]) -> FloatArray:
        z = np.clip(in_units(observations, self.mean, self.scale), -REACH, REACH)
        first, second = np.triu_indices(z.shape[1])
        return np.hstack([np.ones((len(z), 1)), z, z[:, first] * z[:, second]])


@dataclass(frozen=True, eq=False)
class RadialFeatures:
    """exp(-|z - centre|^2/(2 width^2)) of observations z in units of their spread, and 1."""

    mean: FloatArray
    scale: FloatArray
    centres: FloatArray
    width: float

    def __post_init__(self) -> None:
        _check_units(self)
        centres = real_array("centres", self.centres, ndim=2, refusal=InvalidPolicy)
        width = float(self.width)
        if centres.shape[1] != self.mean.size or not (0 < width < math.inf):
            raise InvalidPolicy(
                f"centres of shape {centres.shape} and width {width} for observations of "
                f"{self.mean.size} numbers",
                "Give a row of as many numbers for each centre, and a width above 0",
            )
        assign(self, centres=centres, width=width)

    @property
    def count(self) -> int:
        return len(self.centres) + 1

    def __call__(self, observations: NDArray[Any]) -> FloatArray:
        z = in_units(observations, self.mean, self.scale)
        squares = (z**2).sum(axis=1)[:, np.newaxis] + (self.centres**2).sum(axis=1)
        apart = np.maximum(squares - 2 * z @ self.centres.T, 0.0)
        found = np.empty((len(z), len(self.centres) + 1))
        np.exp(apart / (-2 * self.width**2), out=found[:, :-1])
        found[:, -1] = 1.0
        return found


@dataclass(frozen=True, eq=False)
class StateFeatures:
    """One feature for each of some states; none for others."""

    states: IntArray
    """In increasing order."""

    def __post_init__(self) -> None:
        states = integer_array("states", self.states, refusal=InvalidPolicy)
        if not states.size or (np.diff(states) <= 0).any():
            raise InvalidPolicy("states are not in increasing order", "Give each once, in order")
        assign(self, states=states)

    @property
    def count(self) -> int:
        return int(self.states.size)

    def __call__(self, observations: NDArray[Any]) -> FloatArray:
        place = np.minimum(np.searchsorted(self.states, observations), self.states.size - 1)
        found = np.zeros((len(observations), self.states.size))
        found[np.arange(len(observations)), place] = self.states[place] == observations
        return found


def _check_units(features: Any) -> None:
    """Means and scales of every number of an observation."""
    mean = real_array("mean", features.mean, ndim=1, refusal=InvalidPolicy)
    scale = real_array("scale", features.scale, ndim=1, size=mean.size, refusal=InvalidPolicy)
    if (scale <= 0).any():
        raise InvalidPolicy("a scale is not above 0", "Give 1 where all numbers are the same")
    assign(features, mean=mean, scale=scale)


def in_units(observations: NDArray[Any], mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Observations as rows, less their mean, in units of their scale."""
    return np.asarray((in_rows(observations) - mean) / scale)


def in_rows(observations: NDArray[Any]) -> NDArray[Any]:
    """Every observation as one row of numbers."""
    return observations.reshape(len(observations), math.prod(observations.shape[1:]))


@dataclass(frozen=True, eq=False)
class LinearValuePolicy(Predicting):
    """The action of least <phi(o), theta_a>, the first of several."""

    features: Features
    coefficients: FloatArray
    """(features x actions)"""
    first_action: int
    observation_axes: int

    def __post_init__(self) -> None:
        table = real_array("coefficients", self.coefficients, ndim=2, refusal=InvalidPolicy)
        count = getattr(self.features, "count", len(table))
        if not table.size or len(table) != count:
            raise InvalidPolicy(
                f"coefficients of shape {table.shape} for {count} features",
                "Give a row for every feature and a column for every action",
            )
        assign(self, coefficients=table)

    def values(self, observations: ArrayLike) -> FloatArray:
        """Q(o, a), (n x actions): what the planner takes the rest of an episode to cost."""
        return np.asarray(self.features(np.asarray(observations)) @ self.coefficients)

    def least(self, observations: ArrayLike) -> IntArray:
        """The column of the action that is taken."""
        values = self.values(observations)
        near = EQUAL * np.abs(values).max(axis=1, keepdims=True)
        return np.asarray((values <= values.min(axis=1, keepdims=True) + near).argmax(axis=1))

    def sample(self, states: ArrayLike, seed: Seed) -> IntArray:
        """The action that is taken; nothing is drawn."""
        return np.asarray(self.least(states) + self.first_action)

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """1 for the action that is taken."""
        best = self.sample(states, 0)
        found = np.zeros((best.size, self.first_action + self.coefficients.shape[1]))
        found[np.arange(best.size), best] = 1.0
        return found

    def __repr__(self) -> str:
        features, actions = self.coefficients.shape
        return f"LinearValuePolicy({features} features, {actions} actions)"
