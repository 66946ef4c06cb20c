"""Laws over the actions of each state from one number per pair.

    pi(a | x) = exp(z(x, a)) / sum_b exp(z(x, b))

where z are the logits. The largest logit of each state is taken off first, so any finite logits
will do: what is too small to be seen beside it becomes 0, and nothing overflows.
"""

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.world import Pairs


def softmax(pairs: Pairs, logits: FloatArray) -> FloatArray:
    """The probability of every pair in its state.

    >>> softmax(Pairs([0, 2, 3]), np.array([1e300, 1e300, -7.0])).tolist()
    [0.5, 0.5, 1.0]
    """
    shares = np.exp(_below_largest(pairs, logits))
    return np.asarray(shares / pairs.spread(pairs.total(shares)))


def log_softmax(pairs: Pairs, logits: FloatArray) -> FloatArray:
    """The logarithm of `softmax`, exact where the probability itself is too small for a float."""
    below = _below_largest(pairs, logits)
    return np.asarray(below - pairs.spread(np.log(pairs.total(np.exp(below)))))


def _below_largest(pairs: Pairs, logits: FloatArray) -> FloatArray:
    """The logits less the largest of their state; -inf when they are further apart than floats."""
    with np.errstate(over="ignore"):
        return np.asarray(logits + pairs.spread(pairs.smallest(-logits)))
