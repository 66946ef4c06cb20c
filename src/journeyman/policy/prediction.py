"""Policies in front of an environment: `predict` in the form of Stable-Baselines3."""

import warnings
from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, IntArray, Seed, assign, generator
from journeyman.world.row_draws import draw_columns


class Predicting(ABC):
    """A policy that says in given states how likely every action is; the rest follows from that."""

    @abstractmethod
    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(len(states) x actions) laws; the k-th column is action number k."""

    def sample(self, states: ArrayLike, seed: Seed) -> IntArray:
        """One action for each state; one uniform number is spent on each."""
        laws = self.probabilities(states)
        return draw_columns(laws, generator(seed).random(len(laws)))

    def likeliest(self, states: ArrayLike) -> IntArray:
        """The action of greatest probability in each state, the first of several."""
        return np.asarray(np.argmax(self.probabilities(states), axis=1))

    def predict(
        self,
        observation: ArrayLike,
        state: tuple[Any, ...] | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, tuple[Any, ...] | None]:
        """Actions for observed state ids, and `state` as it was.

        Draws come from a stream of the policy's own; `policy.seeded(seed)` fixes it. With
        `deterministic=True` the likeliest action is returned: that is another policy, which may be
        much worse, and no certificate applies to it.
        """
        observed = np.asarray(observation)
        states = observed.ravel()
        if deterministic:
            warnings.warn(
                "deterministic=True takes the likeliest action; the certificate is for the "
                "stochastic policy",
                stacklevel=2,
            )
            actions = self.likeliest(states)
        else:
            actions = self.sample(states, self._stream)
        return actions.reshape(observed.shape)[()], state

    def seeded(self, seed: Seed) -> Self:
        """The same policy, with a reproducible stream behind `predict`."""
        twin = copy(self)
        assign(twin, _stream=generator(seed))
        return twin

    @cached_property
    def _stream(self) -> np.random.Generator:
        return np.random.default_rng()
