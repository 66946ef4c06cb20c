"""Policies that are nothing but numbers: words and arrays, from which they are made again.

    form              words                       arrays
    visited states                                states, laws
    network           greedy, observation_axes    mean, scale, weights_1, bias_1, ... bias_3
    linear values     features, first_action,     coefficients; mean and scale (quadratic), centres
                      observation_axes            and width too (radial), or states (states)
    observations      observation_axes, policy    those of the policy inside

They are what `clone_visited_states`, `clone_observations` and `LeastSquaresPlanner` make. A run
that holds them needs no code for its policy, and the digest that decides which rollouts are drawn
(`draw_seeds`) is one of every number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.demonstrations.expectation import ClonedPolicy
from journeyman.errors import InvalidFile, InvalidPolicy
from journeyman.policy.linear_values import (
    LinearValuePolicy,
    QuadraticFeatures,
    RadialFeatures,
    StateFeatures,
)
from journeyman.policy.observation_policy import LAYERS, NetworkPolicy, ObservationPolicy

VISITED, NETWORK, LINEAR, WRAPPED = "visited states", "network", "linear values", "observations"
MIXTURE = "mixture"
"""What is written of mixtures in a simulator (`certificate.saving`)."""
FEATURES: dict[str, tuple[type, tuple[str, ...]]] = {
    "quadratic": (QuadraticFeatures, ("mean", "scale")),
    "radial": (RadialFeatures, ("mean", "scale", "centres", "width")),
    "states": (StateFeatures, ("states",)),
}
"""Features of linear values, and what they are made of."""


@dataclass(frozen=True, eq=False)
class PolicyForm:
    """What is written of a policy: words for JSON, among them its form, and arrays."""

    words: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def form_of(policy: Any) -> PolicyForm | None:
    """The form of a policy that is numbers; None of any other."""
    kind = type(policy)
    if kind is ClonedPolicy:
        return PolicyForm({"form": VISITED}, {"states": policy.states, "laws": policy.laws})
    if kind is NetworkPolicy:
        words = {"form": NETWORK, "greedy": policy.greedy, **_axes(policy)}
        layers = dict(zip(LAYERS, policy.layers, strict=True))
        return PolicyForm(words, {"mean": policy.mean, "scale": policy.scale, **layers})
    if kind is LinearValuePolicy:
        return _linear(policy)
    if kind is ObservationPolicy and policy.observations is None and policy.action_names is None:
        inner = form_of(policy.policy)
        if inner is not None:
            return PolicyForm(
                {"form": WRAPPED, "policy": inner.words, **_axes(policy)}, inner.arrays
            )
    return None


def policy_of(words: dict[str, Any], part: Callable[[str], NDArray[Any]]) -> Any:
    """The policy again, from its words and its arrays by name; None where the form is another."""
    try:
        return _made(words, part)
    except (KeyError, TypeError, ValueError, OverflowError) as fault:
        raise InvalidPolicy(
            f"a policy of the form {words.get('form')!r} is not whole ({fault!r})", "Save it again"
        ) from fault


def require_words(path: Path, stated: Any) -> None:
    """Refuse what a file states in place of a policy, or of one inside a mixture."""
    words = stated if isinstance(stated, dict) else {}
    form, inner = words.get("form"), words.get("candidates", [])
    axes = words.get("observation_axes", 0)
    if not isinstance(form, str) or not isinstance(inner, list) or type(axes) is not int:
        raise InvalidFile(f"{path} holds {stated!r:.200} in place of a policy", "Save it again")
    if form == MIXTURE and not {"candidates", "observation_axes"} <= set(words):
        raise InvalidFile(f"{path} holds a mixture that is not whole", "Save it again")
    for one in inner:
        require_words(path, one)


def _made(words: dict[str, Any], part: Callable[[str], NDArray[Any]]) -> Any:
    form = words["form"]
    if form == VISITED:
        return ClonedPolicy(part("states"), part("laws"))
    if form == NETWORK:
        return NetworkPolicy(
            tuple(part(name) for name in LAYERS), part("mean"), part("scale"),
            greedy=_flag(words["greedy"]), observation_axes=_whole(words["observation_axes"]),
        )  # fmt: skip
    if form == LINEAR:
        made, parts = FEATURES[words["features"]]
        features = made(*(part(name) for name in parts))
        return LinearValuePolicy(
            features, part("coefficients"), _whole(words["first_action"]),
            _whole(words["observation_axes"]),
        )  # fmt: skip
    if form == WRAPPED:
        return ObservationPolicy(_made(words["policy"], part), _whole(words["observation_axes"]))
    return None


def _flag(word: Any) -> bool:
    if not isinstance(word, bool):
        raise TypeError(f"{word!r} is neither true nor false")
    return word


def _whole(word: Any) -> int:
    if type(word) is not int:
        raise TypeError(f"{word!r} is no whole number")
    return word


def _linear(policy: LinearValuePolicy) -> PolicyForm | None:
    for name, (made, parts) in FEATURES.items():
        if type(policy.features) is made:
            words = {
                "form": LINEAR, "features": name, "first_action": int(policy.first_action),
                **_axes(policy),
            }  # fmt: skip
            arrays = {part: np.asarray(getattr(policy.features, part)) for part in parts}
            return PolicyForm(words, {"coefficients": policy.coefficients, **arrays})
    return None


def _axes(policy: Any) -> dict[str, int]:
    return {"observation_axes": int(policy.observation_axes)}
