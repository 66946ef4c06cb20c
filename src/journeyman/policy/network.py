"""A small network from observations to actions, as plain arrays: two hidden layers, tanh.

    logits(x) = W3' tanh(W2' tanh(W1' (x - mean)/scale + b1) + b2) + b3
    pi(. | x) = softmax(logits(x)), or the likeliest action alone

Written here, and not with a library of networks, because a clone has to be saved as numbers that
the checker can evaluate with code of its own, and the core packages hold none.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from journeyman.arrays import FloatArray, assign, real_array
from journeyman.errors import InvalidPolicy
from journeyman.policy.acting import Predicting

LAYERS = ("weights_1", "bias_1", "weights_2", "bias_2", "weights_3", "bias_3")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class NetworkPolicy(Predicting):
    """The network with its numbers.

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
