"""Which random numbers an evaluation draws: what is certified decides it, and nobody else.

    seed = the first 60 bits of SHA-256(world, policy)

of the content of both. Whoever certifies a policy twice gets the same bound twice, and the best of
many seeds cannot be chosen. What does not change the law of the draws is left out: names, the costs
of an explicit world, demonstrations, the number of draws.

*Explicit worlds*: transition law, initial law, discount; the probabilities of the policy. *Large
worlds*: discount and ranges of the costs; of the policy the coefficients, weights or probabilities
it has, and all words and arrays of one that is numbers (`policy_forms`). What is code is not
digested: its draws come from the stream of the rest.

*What is left*: whoever changes the policy, be it by 1e-12, gets other draws. The best of J policies
needs a failure probability divided by J, also when they hardly differ; number and length of
rollouts are to be chosen before they are seen.
"""

import hashlib
import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from journeyman.policy import Policy
from journeyman.policy.function_policy import FeaturePolicy, SoftFeaturePolicy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem.policy_forms import form_of
from journeyman.world import World

if TYPE_CHECKING:
    from journeyman.problem.apprenticeship import Apprenticeship

DIGITS = 15
"""Of the digest in hexadecimal."""


def explicit_seed(world: World, policy: Policy) -> int:
    """For rollouts and sampled rows of a policy in an explicit world."""
    content, rows = _Content("explicit"), world.transition
    content.whole(world.pairs.offsets, rows.indptr, rows.indices)
    content.real(rows.data, world.initial, [world.discount], policy.on(world))
    return content.seed


def large_seed(problem: "Apprenticeship", policy: Any) -> int:
    """For walks and rows of a policy in a world of callables, or in a simulator."""
    content, simulator = _Content("large"), problem.simulator
    content.real([simulator.discount], simulator.lowest, simulator.highest)
    _policy(content, policy)
    return content.seed


def ignored_seed(seed: Any, name: str) -> None:
    """Say that a seed was given which has no influence."""
    if seed is not None:
        warnings.warn(
            f"the seed of {name} has no influence any more: world and policy decide which numbers "
            "are drawn. Leave it out",
            DeprecationWarning,
            stacklevel=4,
        )


class _Content:
    """A digest of arrays, each with its length."""

    def __init__(self, label: str) -> None:
        self._digest = hashlib.sha256(b"journeyman draws\n")
        self.word(label)

    def word(self, word: str) -> None:
        self._digest.update(word.encode() + b"\n")

    def whole(self, *arrays: Any) -> None:
        for array in arrays:
            self._add(np.asarray(array, dtype="<i8"))

    def real(self, *arrays: Any) -> None:
        """Zeros without a sign."""
        for array in arrays:
            self._add(np.asarray(array, dtype="<f8") + 0.0)

    def _add(self, array: Any) -> None:
        self._digest.update(array.size.to_bytes(8, "little") + array.tobytes())

    @property
    def seed(self) -> int:
        return int(self._digest.hexdigest()[:DIGITS], 16)


def _policy(content: _Content, policy: Any) -> None:
    if isinstance(policy, FeaturePolicy | SoftFeaturePolicy):
        content.word("features" if isinstance(policy, FeaturePolicy) else "soft features")
        content.real(policy.coefficients)
    elif isinstance(policy, Policy):
        content.word("table")
        content.real(policy.per_pair)
        content.whole(policy.pairs.offsets)
    elif isinstance(policy, MixturePolicy):
        content.word("mixture")
        used = np.flatnonzero(policy.weights)
        content.real(policy.weights[used])
        for k in used:
            _policy(content, policy.candidates[k])
    else:
        found = form_of(policy)
        if found is None:
            content.word("code")
            return
        content.word(json.dumps(found.words, sort_keys=True))
        for name, array in sorted(found.arrays.items()):
            content.word(name)
            content.whole(array.shape)
            (content.whole if array.dtype.kind in "iu" else content.real)(array)
