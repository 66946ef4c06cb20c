"""How many jobs wait at the start: every queue by itself, so that the law is a product."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.errors import InvalidWorld


class Start(Protocol):
    """The law of the first length of a queue with room for `buffer` jobs: buffer + 1 entries."""

    def law(self, buffer: int) -> FloatArray: ...


@dataclass(frozen=True)
class SmoothStart:
    """Prob[length = k] proportional to ratio^k, cut off at the buffer: every state is possible.

    >>> SmoothStart(ratio=0.5).law(2).round(3).tolist()
    [0.571, 0.286, 0.143]
    """

    ratio: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.ratio <= 1:
            raise InvalidWorld(
                f"ratio = {self.ratio!r}", "Give a ratio above 0 and at most 1 (all lengths alike)"
            )

    def law(self, buffer: int) -> FloatArray:
        weights = self.ratio ** np.arange(buffer + 1.0)
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class EmptyStart:
    """All queues are empty."""

    def law(self, buffer: int) -> FloatArray:
        return np.asarray(np.eye(buffer + 1)[0])
