"""Policies of other packages at observations: how likely is each action, and draws of one.

| what it has                               | how it is asked                                     |
|-------------------------------------------|-----------------------------------------------------|
| `probabilities(observations)`             | ours: tables, functions, clones                     |
| `policy.get_distribution` (or its own)    | Stable-Baselines3, actors with Discrete actions     |
| `predict_proba(observations)`, `classes_` | scikit-learn                                        |
| `predict(observations, deterministic)`    | Stable-Baselines3 without a law, such as DQN: the   |
|                                           | policy that always takes the action so predicted    |
| `predict(observations)`                   | d3rlpy and others, alike                            |
| nothing but being called                  | a function of observations that returns laws        |
|                                           | (n x actions), or n actions                         |

Actions are whole numbers; the k-th column of a law is action number k. Laws are normalised, so that
what is asked for and what is drawn is the same policy; networks work in single precision, so sums
may be off by 1e-5.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import FloatArray, IntArray, Seed, assign, generator, real_array
from journeyman.errors import InvalidPolicy
from journeyman.policy.acting import Predicting
from journeyman.world.laws import draw_columns

SUM_TOLERANCE = 1e-5
BLOCK = 1 << 16
"""Observations that a policy is asked about at a time."""
FORMS = (
    "Give a policy with probabilities(observations) or predict_proba(observations), an algorithm "
    "of Stable-Baselines3, or a function of observations that returns (n x actions) probabilities "
    "or n actions"
)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ObservationPolicy(Predicting):
    """Anything in the table above, asked for laws at observations.

    >>> upright = ObservationPolicy(lambda x: (x[:, 0] > 0).astype(int))
    >>> upright.of_actions(np.array([[0.3], [-0.1], [0.2]]), np.array([1, 0, 0])).tolist()
    [1.0, 1.0, 0.0]
    """

    policy: Any
    observation_axes: int

    def __init__(self, policy: Any, observation_axes: int = 1) -> None:
        if isinstance(policy, ObservationPolicy):
            policy = policy.policy
        _asked(policy)
        assign(self, policy=policy, observation_axes=observation_axes)

    def of_actions(self, observations: NDArray[Any], actions: IntArray) -> FloatArray:
        """pi(a | x) at every observation, for the action beside it; 0 for actions that the policy
        does not know."""
        found = np.empty(len(actions))
        for first in range(0, len(actions), BLOCK):
            part = slice(first, first + BLOCK)
            laws, numbers = self._laws(observations[part])
            if laws is None:
                found[part] = numbers == actions[part]
                continue
            place = np.searchsorted(numbers, actions[part])
            known = numbers[np.minimum(place, numbers.size - 1)] == actions[part]
            column = np.where(known, place, 0)
            found[part] = np.where(known, laws[np.arange(len(laws)), column], 0.0)
        return found

    def probabilities(self, states: ArrayLike) -> FloatArray:
        """(n x actions) laws; the k-th column is action number k."""
        laws, numbers = self._laws(np.asarray(states))
        rows = len(numbers) if laws is None else len(laws)
        found = np.zeros((rows, int(numbers.max(initial=0)) + 1))
        if laws is None:
            found[np.arange(rows), numbers] = 1.0
        else:
            found[:, numbers] = laws
        return found

    def sample(self, observations: ArrayLike, seed: Seed) -> IntArray:
        """One action for each observation; one uniform number is spent on each."""
        seen = np.asarray(observations)
        uniforms = generator(seed).random(len(seen))
        laws, numbers = self._laws(seen)
        return numbers if laws is None else numbers[draw_columns(laws, uniforms)]

    def _laws(self, observations: NDArray[Any]) -> tuple[FloatArray | None, IntArray]:
        """Laws and the action of every column; or no law, and the actions that are taken."""
        given = np.asarray(_asked(self.policy)(observations))
        if given.ndim == 2 and given.shape[1] == 1 and not np.issubdtype(given.dtype, np.floating):
            given = given[:, 0]
        if given.ndim == 1 and len(given) == len(observations):
            return None, _whole_actions(given, self.policy)
        if given.ndim != 2 or len(given) != len(observations) or given.dtype.kind not in "biuf":
            raise InvalidPolicy(
                f"{_name(self.policy)} returns shape {given.shape} for {len(observations)} "
                "observations",
                FORMS,
            )
        return _normalised(given.astype(np.float64), self.policy), self._numbers(given.shape[1])

    def _numbers(self, columns: int) -> IntArray:
        """Which action a column belongs to, in order."""
        classes = getattr(self.policy, "classes_", None)
        if classes is None or not hasattr(self.policy, "predict_proba"):
            return np.arange(columns)
        numbers = _whole_actions(np.asarray(classes), self.policy)
        if numbers.size != columns or (np.diff(numbers) <= 0).any():
            raise InvalidPolicy(
                f"{_name(self.policy)} has {columns} columns for the classes {numbers.tolist()}",
                "Fit it to the action numbers themselves",
            )
        return numbers

    def __repr__(self) -> str:
        return f"ObservationPolicy({_name(self.policy)})"


def _asked(policy: Any) -> Any:
    """What to call with observations; it returns laws or actions."""
    inner = getattr(policy, "policy", None)
    if isinstance(policy, type):
        raise InvalidPolicy(f"{policy.__name__} is a class, not a policy", FORMS)
    if callable(getattr(policy, "probabilities", None)):
        return policy.probabilities
    for one in (policy, inner):
        if hasattr(one, "get_distribution") and hasattr(one, "obs_to_tensor"):
            return partial(_categorical, one)
    if callable(getattr(policy, "predict_proba", None)):
        return policy.predict_proba
    predict = getattr(policy, "predict", None)
    if callable(predict):
        if "deterministic" in inspect.signature(predict).parameters:
            return lambda seen: predict(seen, deterministic=True)[0]
        return predict
    if callable(policy):
        _require_one_argument(policy)
        return policy
    raise InvalidPolicy(f"a {type(policy).__name__} says nothing about actions", FORMS)


def _require_one_argument(function: Callable[..., Any]) -> None:
    """Refuse rules that draw with a generator: nothing says how likely their actions are."""
    try:
        inspect.signature(function).bind(None)
    except TypeError as fault:
        raise InvalidPolicy(
            f"{_name(function)} cannot be called with observations alone ({fault})", FORMS
        ) from None
    except ValueError:  # a function without a signature, of compiled code
        return


def _categorical(policy: Any, observations: NDArray[Any]) -> NDArray[Any]:
    """Probabilities of the discrete actions of Stable-Baselines3's actors."""
    tensor, _ = policy.obs_to_tensor(observations)
    law = getattr(policy.get_distribution(tensor), "distribution", None)
    found = getattr(law, "probs", None)
    if found is None or found.ndim != 2:
        raise InvalidPolicy(
            f"{_name(policy)} has no probabilities of single actions",
            "Give a policy with a Discrete space of actions",
        )
    return np.asarray(found.detach().cpu().numpy())


def _normalised(laws: FloatArray, policy: Any) -> FloatArray:
    sums = laws.sum(axis=1)
    sound = (laws >= 0).all(axis=1) & (np.abs(sums - 1) <= SUM_TOLERANCE)
    if not sound.all():
        row = int(np.argmin(sound))
        raise InvalidPolicy(
            f"{_name(policy)} returns {laws[row][:8].tolist()} as probabilities (row {row})",
            "They must be at least 0 and sum to 1 within 1e-5",
        )
    return np.asarray(laws / sums[:, np.newaxis])


def _whole_actions(given: NDArray[Any], policy: Any) -> IntArray:
    whole = given.dtype.kind in "biu" or (
        given.dtype.kind == "f" and bool((given == np.floor(given)).all())
    )
    if not whole or given.min(initial=0) < 0:
        raise InvalidPolicy(
            f"{_name(policy)} returns actions such as {given.ravel()[:1].tolist()}",
            "Actions must be whole numbers from 0: continuous ones never agree exactly",
        )
    return given.astype(np.int64)


def _name(policy: Any) -> str:
    return getattr(policy, "__name__", None) or type(policy).__name__


LAYERS = ("weights_1", "bias_1", "weights_2", "bias_2", "weights_3", "bias_3")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class NetworkPolicy(Predicting):
    """A small network from observations to actions, as plain arrays: two hidden layers, tanh.

        logits(x) = W3' tanh(W2' tanh(W1' (x - mean)/scale + b1) + b2) + b3
        pi(. | x) = softmax(logits(x)), or the likeliest action alone

    Written here, and not with a library of networks, because a clone has to be saved as numbers
    that the checker can evaluate with code of its own, and the core packages hold none.

    Args:
        layers: W1, b1, W2, b2, W3, b3.
        mean, scale: of every number of an observation.
        greedy: take the likeliest action, and nothing else.
        observation_axes: of a single observation.
    """

    layers: tuple[FloatArray, ...]
    mean: FloatArray
    scale: FloatArray
    greedy: bool
    observation_axes: int

    def __init__(
        self,
        layers: tuple[ArrayLike, ...],
        mean: ArrayLike,
        scale: ArrayLike,
        *,
        greedy: bool = True,
        observation_axes: int = 1,
    ) -> None:
        parts = tuple(
            real_array(name, part, ndim=2 - k % 2, refusal=InvalidPolicy)
            for k, (name, part) in enumerate(zip(LAYERS, layers, strict=True))
        )
        middle = real_array("mean", mean, ndim=1, refusal=InvalidPolicy)
        widths = [middle.size, *(bias.size for bias in parts[1::2])]
        shapes = list(pairwise(widths))
        if [part.shape for part in parts[::2]] != shapes:
            raise InvalidPolicy(
                f"the layers have shapes {[part.shape for part in parts]}",
                f"Give weights of shapes {shapes}, and a bias for every column",
            )
        assign(
            self, layers=parts, greedy=bool(greedy), observation_axes=int(observation_axes),
            mean=middle,
            scale=real_array("scale", scale, ndim=1, size=widths[0], refusal=InvalidPolicy),
        )  # fmt: skip

    @property
    def num_actions(self) -> int:
        return int(self.layers[-1].size)

    def logits(self, observations: ArrayLike) -> FloatArray:
        seen = np.asarray(observations, dtype=np.float64)
        rows = seen.reshape(len(seen), -1)
        if rows.shape[1] != self.mean.size:
            raise InvalidPolicy(
                f"observations have {rows.shape[1]} numbers, the network takes {self.mean.size}",
                "Give observations of the shape it was fitted to",
            )
        return forward(self.layers, (rows - self.mean) / self.scale)[-1]

    def probabilities(self, observations: ArrayLike) -> FloatArray:
        """(n x actions) laws."""
        logits = self.logits(observations)
        return one_hot(logits) if self.greedy else softmax(logits)

    def __repr__(self) -> str:
        hidden = " x ".join(str(part.size) for part in self.layers[1::2])
        return f"NetworkPolicy({self.mean.size} numbers, layers of {hidden})"


def forward(layers: tuple[FloatArray, ...], rows: FloatArray) -> list[NDArray[np.float64]]:
    """What every layer returns, the last one without tanh."""
    first = np.tanh(rows @ layers[0] + layers[1])
    second = np.tanh(first @ layers[2] + layers[3])
    return [first, second, second @ layers[4] + layers[5]]


def softmax(logits: FloatArray) -> FloatArray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def one_hot(logits: FloatArray) -> FloatArray:
    """All mass on the greatest, the first of several."""
    laws = np.zeros_like(logits)
    laws[np.arange(len(logits)), logits.argmax(axis=1)] = 1.0
    return laws
