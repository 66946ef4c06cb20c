"""How policies are asked for actions: one interface for whatever can choose some.

| what it has                  | how it is asked                                                  |
|------------------------------|------------------------------------------------------------------|
| `sample(observations, seed)` | with the generator of the rollout                                |
| `predict(observation, ...)`  | as in Stable-Baselines3, never `deterministic`; the state it     |
|                              | returns is passed on                                             |
| nothing but being called     | `rule(observations, rng)` returns the actions                    |

A policy with `predict` and `seeded` is given the generator of the rollout too. One that draws from
a stream of its own, such as a network, cannot be made to repeat itself.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import FloatArray, IntArray, Seed, assign, generator
from journeyman.errors import InvalidPolicy
from journeyman.world.laws import draw_columns


class Predicting(ABC):
    """A policy that says in given states how likely every action is; the rest follows from that:
    draws, the likeliest action, and `predict` in the form of Stable-Baselines3."""

    observation_axes: int = 0
    """Of a single observation: 0 for state ids, 1 for vectors."""

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
        """Actions for observed states, and `state` as it was.

        Draws come from a stream of the policy's own; `policy.seeded(seed)` fixes it. With
        `deterministic=True` the likeliest action is returned: that is another policy, which may be
        much worse, and no certificate applies to it.
        """
        observed = np.asarray(observation)
        shape = observed.shape[: observed.ndim - self.observation_axes]
        states = observed.reshape(-1, *observed.shape[len(shape) :])
        if deterministic:
            warnings.warn(
                "deterministic=True takes the likeliest action; the certificate is for the "
                "stochastic policy",
                stacklevel=2,
            )
            actions = self.likeliest(states)
        else:
            actions = self.sample(states, self._stream)
        return actions.reshape(shape)[()], state

    def seeded(self, seed: Seed) -> Self:
        """The same policy, with a reproducible stream behind `predict`."""
        twin = copy(self)
        assign(twin, _stream=generator(seed))
        return twin

    @cached_property
    def _stream(self) -> np.random.Generator:
        return np.random.default_rng()


class StatePolicy(Protocol):
    """Anything that says in given states how likely every action is, and draws one.

    `Policy` is one, and so are heuristics by a function and policies over features. `sample` has no
    randomness but that of its seed.
    """

    def probabilities(self, states: ArrayLike) -> FloatArray: ...

    def sample(self, states: ArrayLike, seed: Seed) -> IntArray: ...


Observations: TypeAlias = NDArray[Any]
"""One row for each episode."""
Actions: TypeAlias = NDArray[Any]
ActionRule: TypeAlias = Callable[[Observations, np.random.Generator], Any]
"""A rule of thumb: called with n observations and a generator, returns n actions."""


class Predictor(Protocol):
    """A policy in the form of Stable-Baselines3."""

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Any, Any]: ...


AnyPolicy: TypeAlias = StatePolicy | Predictor | ActionRule


class Actor:
    """A policy that accompanies a batch of episodes, all of which start with the first call.

    >>> lefty = Actor(lambda observations, rng: np.zeros(len(observations), dtype=int), seed=0)
    >>> lefty.sample([[0.1, 2.0], [0.3, -1.0]]).tolist()
    [0, 0]
    """

    def __init__(self, policy: AnyPolicy, seed: Seed) -> None:
        self._rng = generator(seed)
        self._policy: Any = require_policy(policy)
        if asked_by_predict(policy) and hasattr(policy, "seeded"):
            self._policy = policy.seeded(self._rng)
        self._state: Any = None
        self._started = False

    def probabilities(self, states: ArrayLike) -> NDArray[np.float64]:
        """Those of the policy, if it has any."""
        return np.asarray(self._policy.probabilities(states))

    def sample(self, observations: ArrayLike, seed: Seed | None = None) -> Actions:
        """One action for each episode, in the order of the first call."""
        rng = self._rng if seed is None else generator(seed)
        seen = np.asarray(observations)
        if hasattr(self._policy, "sample"):
            chosen = self._policy.sample(seen, rng)
        elif asked_by_predict(self._policy):
            starting = np.full(len(seen), not self._started)
            chosen, self._state = self._policy.predict(
                seen, state=self._state, episode_start=starting, deterministic=False
            )
        else:
            chosen = self._policy(seen, rng)
        self._started = True
        return one_each(chosen, len(seen), self._policy)


def asked_by_predict(policy: Any) -> bool:
    """Whether it has `predict` and no `sample`, which goes first."""
    return hasattr(policy, "predict") and not hasattr(policy, "sample")


def require_policy(policy: Any) -> Any:
    """`policy` itself when it can choose actions."""
    has_way = any(callable(getattr(policy, name, None)) for name in ("sample", "predict"))
    if isinstance(policy, type) or not (has_way or callable(policy)):
        raise InvalidPolicy(
            f"a {type(policy).__name__} cannot choose actions",
            "Give something with sample(observations, seed) or predict(observation, ...), or a "
            "function of (observations, generator)",
        )
    return policy


def one_each(chosen: Any, count: int, policy: Any) -> Actions:
    """What a policy chose, refused unless there is one action for each observation."""
    actions = np.asarray(chosen)
    if actions.ndim == 0 or len(actions) != count:
        raise InvalidPolicy(
            f"{policy!r} chose actions of shape {actions.shape} for {count} observations",
            "Return one action for each observation",
        )
    return actions
