"""A mixture of policies: one is drawn where an episode starts, and followed to its end.

    k ~ weights at time 0, then a_t ~ pi_k(. | x_t);      mu = sum_k weights_k mu_k

so expectations of costs mix with the same weights, exactly. The mixture is *not stationary*: what
it does in a state depends on who was drawn, so it has no probabilities per state, and whoever asks
it step by step has to pass on the `state` it returns.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import BoolArray, FloatArray, IntArray, Seed, assign, generator, real_array
from journeyman.errors import InvalidPolicy
from journeyman.policy.acting import (
    Actions,
    AnyPolicy,
    Observations,
    asked_by_predict,
    one_each,
    require_policy,
)
from journeyman.policy.table import SUM_TOLERANCE

Carried = tuple[IntArray, tuple[Any, ...]]
"""Who was drawn in each environment, and what the candidates carry themselves."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class MixturePolicy:
    """Draw one candidate at the start of an episode, follow it.

    Args:
        candidates: policies with `sample` or `predict`, or functions of (observations, generator).
        weights: how likely each of them is drawn.
        observation_axes: of a single observation: 0 for state ids, 1 for vectors, 3 for images.

    >>> always = [lambda x, rng, a=a: np.full(len(x), a) for a in (0, 1)]
    >>> mixture = MixturePolicy(always, [0.5, 0.5]).seeded(0)
    >>> first, carried = mixture.predict([3, 7, 7, 4], episode_start=[True] * 4)
    >>> again, _ = mixture.predict([1, 1, 1, 1], carried, episode_start=[False] * 4)
    >>> first.tolist(), again.tolist()
    ([1, 0, 0, 0], [1, 0, 0, 0])
    """

    candidates: tuple[AnyPolicy, ...]
    weights: FloatArray
    observation_axes: int
    _stream: np.random.Generator
    _was_asked_alone: bool

    def __init__(
        self, candidates: Sequence[AnyPolicy], weights: ArrayLike, observation_axes: int = 0
    ) -> None:
        members = tuple(require_policy(candidate) for candidate in candidates)
        given = real_array("weights", weights, ndim=1, size=len(members), refusal=InvalidPolicy)
        if not members:
            raise InvalidPolicy("there is no candidate", "Give at least one policy")
        if (given < 0).any() or abs(float(given.sum()) - 1) > SUM_TOLERANCE:
            raise InvalidPolicy(
                f"weights = {given.tolist()}", "They must be at least 0 and sum to 1 within 1e-8"
            )
        assign(
            self, candidates=members, observation_axes=int(observation_axes),
            weights=real_array("weights", given / given.sum(), ndim=1, refusal=InvalidPolicy),
            _stream=np.random.default_rng(), _was_asked_alone=False,
        )  # fmt: skip

    def draw(self, count: int, seed: Seed) -> IntArray:
        """Candidates of `count` episodes; one uniform number is spent on each."""
        sums = np.cumsum(self.weights)
        sums[int(np.flatnonzero(self.weights)[-1]) :] = 1.0
        drawn = np.searchsorted(sums, generator(seed).random(count), side="right")
        return np.asarray(drawn, dtype=np.int64)

    def predict(
        self,
        observation: ArrayLike,
        state: tuple[Any, ...] | None = None,
        episode_start: ArrayLike | None = None,
        deterministic: bool = False,
    ) -> tuple[Any, Carried]:
        """Actions in the form of Stable-Baselines3, and the state to give to the next call.

        A candidate is drawn where `episode_start` is true, and everywhere when there is no `state`
        yet. With `deterministic=True` the heaviest candidate is followed, and its likeliest action
        taken: that is another policy, to which no certificate of the mixture applies.
        """
        batch = np.asarray(observation)
        single = batch.ndim == self.observation_axes
        rows = batch[np.newaxis] if single else batch
        starting = self._starts(len(rows), state, episode_start)
        drawn = np.zeros(len(rows), np.int64) if state is None else np.array(state[0], np.int64)
        if deterministic:
            warnings.warn(
                "deterministic=True follows one candidate only; the certificate is for the "
                "stochastic mixture",
                stacklevel=2,
            )
            drawn[starting] = int(np.argmax(self.weights))
        else:
            drawn[starting] = self.draw(int(starting.sum()), self._stream)
        carried = (None,) * len(self.candidates) if state is None else state[1]
        actions, following = self._follow(rows, drawn, carried, starting, deterministic)
        return (actions[0] if single else actions), (drawn, following)

    def probabilities(self, states: ArrayLike) -> NoReturn:
        """There are none, and the refusal says why."""
        raise InvalidPolicy(
            "a mixture has no action probabilities per state: what it does there depends on the "
            "candidate that was drawn when the episode started",
            "Use predict and pass its state on, or ask the candidates: mixture.candidates",
        )

    def seeded(self, seed: Seed) -> "MixturePolicy":
        """The same mixture, with a reproducible stream behind `predict`."""
        stream = generator(seed)
        members = [
            member.seeded(stream)
            if asked_by_predict(member) and hasattr(member, "seeded")
            else member
            for member in self.candidates
        ]
        twin = MixturePolicy(members, self.weights, self.observation_axes)
        assign(twin, weights=self.weights, _stream=stream)
        return twin

    def _starts(
        self, count: int, state: tuple[Any, ...] | None, episode_start: ArrayLike | None
    ) -> BoolArray:
        """Where episodes start; a state that was lost on the way is noticed where that can be."""
        alone = state is None and episode_start is None
        if alone and self._was_asked_alone:
            warnings.warn(
                "predict was called twice in a row without a state, so a candidate was drawn anew "
                "instead of followed; pass on the state that predict returns",
                stacklevel=3,
            )
        assign(self, _was_asked_alone=alone)
        if episode_start is None:
            return np.full(count, state is None)
        starting = np.atleast_1d(np.asarray(episode_start)).astype(bool)
        if starting.size != count or (state is not None and len(state[0]) != count):
            raise InvalidPolicy(
                f"{count} observations, {starting.size} episode starts and "
                f"{count if state is None else len(state[0])} drawn candidates",
                "Give as many observations as there are environments; observation_axes says how "
                "many axes a single one has",
            )
        if state is None and not starting.all():
            raise InvalidPolicy(
                f"environment {int(np.argmin(starting))} is within an episode, but there is no "
                "state that says which candidate it follows",
                "Pass on the state that predict returned",
            )
        return starting

    def _follow(
        self,
        rows: Observations,
        drawn: IntArray,
        carried: tuple[Any, ...],
        starting: BoolArray,
        deterministic: bool,
    ) -> tuple[Actions, tuple[Any, ...]]:
        """What the drawn candidates do, and what each of them carries.

        Candidates with a state of their own see every environment, so that theirs stays whole.
        """
        following, parts = list(carried), []
        for k in np.unique(drawn):
            mine, candidate = drawn == k, self.candidates[k]
            if asked_by_predict(candidate):
                fresh = np.ones(len(rows), dtype=bool) if carried[k] is None else starting
                chosen, following[k] = candidate.predict(
                    rows, state=carried[k], episode_start=fresh, deterministic=deterministic
                )
                parts.append((mine, one_each(chosen, len(rows), candidate)[mine]))
            else:
                chosen = _choose(candidate, rows[mine], deterministic, self._stream)
                parts.append((mine, one_each(chosen, int(mine.sum()), candidate)))
        kind = np.result_type(*(chosen for _, chosen in parts))
        actions = np.empty((len(rows), *parts[0][1].shape[1:]), dtype=kind)
        for mine, chosen in parts:
            actions[mine] = chosen
        return actions, tuple(following)

    def __repr__(self) -> str:
        shares = ", ".join(f"{weight:.3g}" for weight in self.weights)
        return f"MixturePolicy({len(self.candidates)} candidates, weights {shares})"


def _choose(
    candidate: Any, rows: Observations, deterministic: bool, stream: np.random.Generator
) -> Any:
    """Actions of a candidate without a state."""
    if not hasattr(candidate, "sample"):
        return candidate(rows, stream)
    if deterministic:
        return np.argmax(candidate.probabilities(rows), axis=1)
    return candidate.sample(rows, stream)
