"""Policies of other packages at observations: how likely is each action, and draws of one.

| what it has                               | how it is asked                                     |
|-------------------------------------------|-----------------------------------------------------|
| `probabilities(observations)`             | ours: tables, functions, clones                     |
| `policy.get_distribution` (or its own)    | Stable-Baselines3, actors with Discrete actions:    |
|                                           | the policy of `predict(x, deterministic=False)`     |
| `predict_proba(observations)`, `classes_` | scikit-learn: actions drawn with these              |
|                                           | probabilities, not the actions of `predict`         |
| `predict(observations, deterministic)`    | Stable-Baselines3 without a law, such as DQN: the   |
|                                           | policy of `predict(x, deterministic=True)`          |
| `predict(observations)`                   | d3rlpy and others, alike                            |
| nothing but being called                  | a function of observations that returns laws        |
|                                           | (n x actions), or n actions                         |

In a world of numbered states an observation is the number of a state, or the row of it in
`observations`. Actions are whole numbers, the k-th column of a law is action number k; classes of a
classifier are numbers or, in a world with names, the names of actions. Laws are normalised, so that
what is asked for and what is drawn is the same policy; networks work in single precision, so sums
may be off by 1e-5.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import FloatArray, IntArray, Seed, assign, generator, real_array
from journeyman.errors import InvalidPolicy, JourneymanError
from journeyman.policy.acting import AnyPolicy, Predicting
from journeyman.policy.table import Policy
from journeyman.world.laws import draw_columns
from journeyman.world.world import World

SUM_TOLERANCE = 1e-5
BLOCK = 1 << 16
"""Observations that a policy is asked about at a time."""
FORMS = (
    "Give a policy with probabilities(observations) or predict_proba(observations), an algorithm "
    "of Stable-Baselines3, or a function of observations that returns (n x actions) probabilities "
    "or n actions"
)
SEEN = (
    "If the model sees something else than the number of a state, say what: "
    "jm.policy.ObservationPolicy(model, observations=table) with a row for each state"
)
REPEATED = 256
"""Observations at which a rule without a law is asked twice."""


class Classifier(Protocol):
    """A classifier in the form of scikit-learn."""

    def predict_proba(self, X: Any, /) -> Any: ...


Model: TypeAlias = AnyPolicy | Classifier | Callable[[Any], Any]
"""What the table above lists."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ObservationPolicy(Predicting):
    """Anything in the table above, asked for laws at observations.

    Args:
        policy: the model.
        observation_axes: of a single observation, as it is asked for.
        observations: where states are numbered and the model sees something else: a row for each
            state, or a function of an array of states. Then `observation_axes` is 0.
        action_names: in their order, where the model returns names; a world with names has its own.

    >>> upright = ObservationPolicy(lambda x: (x[:, 0] > 0).astype(int))
    >>> upright.of_actions(np.array([[0.3], [-0.1], [0.2]]), np.array([1, 0, 0])).tolist()
    [1.0, 1.0, 0.0]
    """

    policy: Any
    observation_axes: int
    observations: Any
    action_names: tuple[str, ...] | None

    def __init__(
        self, policy: Model, observation_axes: int = 1, *, observations: Any = None,
        action_names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        given: Any = policy
        if isinstance(given, ObservationPolicy):
            observations = given.observations if observations is None else observations
            action_names = given.action_names if action_names is None else action_names
            given = given.policy
        _asked(given)
        if observations is not None:
            observations = observations if callable(observations) else np.asarray(observations)
            observation_axes = 0
        assign(
            self, policy=given, observation_axes=observation_axes, observations=observations,
            action_names=None if action_names is None else tuple(action_names),
        )  # fmt: skip

    def of_actions(self, observations: NDArray[Any], actions: IntArray) -> FloatArray:
        """pi(a | x) at every observation, for the action beside it; 0 for actions that the policy
        does not know."""
        found = np.empty(len(actions))
        self._require_repeatable(observations)
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

    def in_world(self, world: World) -> Policy:
        """The same policy as a table over all states of a world, asked state by state.

        Where an episode has ended (`world.sink`) nobody acts and the model is not asked; every
        action has the same probability there. With a horizon it acts alike at every step.
        """
        if world.layers is not None:
            return self.in_world(world.layers.base).fitted(world)
        if self.action_names is None and world.action_names is not None:
            return ObservationPolicy(self, action_names=world.action_names).in_world(world)
        pairs = world.pairs
        found = pairs.uniform.copy()
        asked = np.delete(np.arange(world.num_states), [] if world.sink is None else [world.sink])
        self._require_repeatable(asked)
        for first in range(0, asked.size, BLOCK):
            states = asked[first : first + BLOCK]
            laws = self.probabilities(states)
            inside = np.isin(pairs.states, states)
            row = np.searchsorted(states, pairs.states[inside])
            action = pairs.actions[inside]
            known = action < laws.shape[1]
            found[inside] = np.where(known, laws[row, np.where(known, action, 0)], 0.0)
            self._require_offered(world, states, laws, found)
        return Policy(found, pairs)

    def _require_offered(
        self, world: World, states: IntArray, laws: FloatArray, found: FloatArray
    ) -> None:
        """Refuse actions that a state lacks, except where it is never left and has but one."""
        pairs = world.pairs
        resting = world.absorbing & (pairs.actions_per_state == 1)
        found[resting[pairs.states]] = 1.0
        row, action = np.nonzero(laws)
        lost = ~pairs.offers(states[row], action) & ~resting[states[row]]
        if lost.any():
            k = int(np.argmax(lost))
            state = int(states[row[k]])
            raise InvalidPolicy(
                f"{_name(self.policy)} takes action {action[k]} in state {state} with probability "
                f"{laws[row[k], action[k]]:.3g}, but the world has only "
                f"{pairs.actions_in_words(state)} there",
                "Give a policy whose actions are those of the world, numbered alike",
            )

    def _require_repeatable(self, observations: NDArray[Any]) -> None:
        """Refuse rules that return actions and draw them: nothing says how likely they are."""
        some = observations[:REPEATED]
        laws, actions = self._laws(some)
        if laws is None and not np.array_equal(actions, self._laws(some)[1]):
            raise InvalidPolicy(
                f"{_name(self.policy)} returns other actions when it is asked again, and nothing "
                "says how likely they are",
                FORMS,
            )

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
        given = self._given(observations)
        if given.ndim == 2 and given.shape[1] == 1 and not np.issubdtype(given.dtype, np.floating):
            given = given[:, 0]
        if given.ndim == 1 and len(given) == len(observations):
            return None, self._whole_actions(given)
        if given.ndim != 2 or len(given) != len(observations) or given.dtype.kind not in "biuf":
            raise InvalidPolicy(
                f"{_name(self.policy)} returns shape {given.shape} for {len(observations)} "
                "observations",
                FORMS,
            )
        laws, numbers = _normalised(given.astype(np.float64), self.policy), self._numbers(given)
        order = np.argsort(numbers)
        return laws[:, order], numbers[order]

    def _given(self, observations: NDArray[Any]) -> NDArray[Any]:
        """What the model returns, whatever that is."""
        try:
            seen = self._seen(observations)
            return np.asarray(_asked(self.policy)(seen))
        except JourneymanError:
            raise
        except Exception as fault:
            words = " ".join(str(fault).split())[:300]
            raise InvalidPolicy(
                f"{_name(self.policy)} fails when it is asked about {len(observations)} "
                f"observations of shape {observations.shape[1:]} ({type(fault).__name__}: {words})",
                SEEN if observations.ndim == 1 else FORMS,
            ) from fault

    def _seen(self, observations: NDArray[Any]) -> NDArray[Any]:
        """What the model sees: a classifier always rows, if only of the number of a state."""
        if self.observations is None:
            single = observations.ndim == 1 and hasattr(self.policy, "predict_proba")
            return observations[:, np.newaxis] if single else observations
        if callable(self.observations):
            return np.asarray(self.observations(observations))
        if observations.size and observations.max() >= len(self.observations):
            raise InvalidPolicy(
                f"observations has {len(self.observations)} rows, and state "
                f"{observations.max()} is asked for",
                "Give a row for every state but the one where episodes have ended",
            )
        return np.asarray(self.observations[observations])

    def _numbers(self, laws: NDArray[Any]) -> IntArray:
        """Which action a column belongs to."""
        columns, classes = laws.shape[1], getattr(self.policy, "classes_", None)
        if classes is None or not hasattr(self.policy, "predict_proba"):
            return np.arange(columns)
        numbers = self._whole_actions(np.asarray(classes))
        if numbers.size != columns or np.unique(numbers).size != columns:
            raise InvalidPolicy(
                f"{_name(self.policy)} has {columns} columns for the classes {numbers.tolist()}",
                "Fit it to the action numbers themselves",
            )
        return numbers

    def _whole_actions(self, given: NDArray[Any]) -> IntArray:
        """Numbers of actions, which may be given by their names."""
        if given.dtype.kind in "UO" and all(isinstance(one, str) for one in given.ravel()):
            return self._numbers_of(given)
        whole = given.dtype.kind in "biu" or (
            given.dtype.kind == "f" and bool((given == np.floor(given)).all())
        )
        if not whole or given.min(initial=0) < 0:
            why = ": continuous ones never agree exactly" if given.dtype.kind == "f" else ""
            one = given.min() if whole else given.ravel()[0]
            raise InvalidPolicy(
                f"{_name(self.policy)} returns actions such as {one}",
                f"Actions must be whole numbers from 0{why}",
            )
        return given.astype(np.int64)

    def _numbers_of(self, names: NDArray[Any]) -> IntArray:
        """Actions by their names."""
        known = {name: number for number, name in enumerate(self.action_names or ())}
        lost = sorted({str(name) for name in names} - set(known))
        if not lost:
            return np.array([known[str(name)] for name in names], dtype=np.int64)
        listed = ", ".join(repr(name) for name in list(known)[:8])
        raise InvalidPolicy(
            f"{_name(self.policy)} takes the action {lost[0]!r}, "
            + (f"and those of the world are {listed}" if known else "and the world has no names"),
            "Fit it to the names of the world's actions" if known else
            "Fit it to the numbers of actions, or name them in their order: "
            "jm.policy.ObservationPolicy(model, action_names=[...])",
        )  # fmt: skip

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
        if _has_law(one):
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


def _has_law(policy: Any) -> bool:
    return hasattr(policy, "get_distribution") and hasattr(policy, "obs_to_tensor")


def _is_network(policy: Any) -> bool:
    """A policy or an algorithm of Stable-Baselines3."""
    return any(hasattr(one, "obs_to_tensor") for one in (policy, getattr(policy, "policy", None)))


def acting_model(policy: Any) -> Any:
    """A policy as rollouts ask it, the same one that tables and agreement are about.

    Models that say how likely actions are, or which one they take, become an `ObservationPolicy`:
    rollouts then draw with their own numbers, and DQN does not explore. What draws for itself
    (continuous actions, networks with memory, rules of observations and a generator) stays.
    """
    if isinstance(policy, type) or hasattr(policy, "sample"):
        return policy
    if _is_network(policy):
        inner = policy if _has_law(policy) else getattr(policy, "policy", policy)
        remembers = _has_law(inner) and not _can_bind(inner.get_distribution, 1)
        return ObservationPolicy(policy) if _is_discrete(inner) and not remembers else policy
    if hasattr(policy, "predict_proba"):
        return ObservationPolicy(policy)
    predict = getattr(policy, "predict", None)
    if callable(predict):
        own_form = "deterministic" in inspect.signature(predict).parameters
        return policy if own_form else ObservationPolicy(policy)
    if callable(policy) and _takes_one_argument(policy):
        return ObservationPolicy(policy)
    return policy


def _takes_one_argument(function: Callable[..., Any]) -> bool:
    """Observations alone; a second argument, even an optional one, is the generator."""
    return _can_bind(function, 1) and (not _can_bind(function, 2) or inspect.ismethod(function))


def _can_bind(function: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except (TypeError, ValueError):  # a ValueError: compiled code without a signature
        return False
    return True


def _is_discrete(policy: Any, unless_it_says: bool = False) -> bool:
    space = getattr(policy, "action_space", None)
    return unless_it_says if space is None else type(space).__name__ == "Discrete"


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
    """Probabilities of the discrete actions of Stable-Baselines3's actors, as they are when it
    predicts: without what is random in training."""
    if not _can_bind(policy.get_distribution, 1):
        raise InvalidPolicy(
            f"{_name(policy)} remembers what it has seen, and has no law of single observations",
            "Certify it where it can act: in a world that can be walked in, without arrays, with "
            "evaluation=jm.Rollouts(...)",
        )
    if hasattr(policy, "set_training_mode"):
        policy.set_training_mode(False)
    tensor, _ = policy.obs_to_tensor(observations)
    law = getattr(policy.get_distribution(tensor), "distribution", None)
    found = getattr(law, "probs", None)
    if found is None or found.ndim != 2 or not _is_discrete(policy, True):
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
        units = real_array("scale", scale, ndim=1, size=widths[0], refusal=InvalidPolicy)
        if (units <= 0).any():
            raise InvalidPolicy("a scale is not above 0", "Give 1 where all numbers are the same")
        assign(
            self, layers=parts, greedy=bool(greedy), observation_axes=int(observation_axes),
            mean=middle, scale=units,
        )  # fmt: skip

    @property
    def num_actions(self) -> int:
        return int(self.layers[-1].size)

    @property
    def drawing(self) -> "NetworkPolicy":
        """The same network with actions drawn from softmax(logits)."""
        return NetworkPolicy(
            self.layers, self.mean, self.scale, greedy=False,
            observation_axes=self.observation_axes,
        )  # fmt: skip

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
