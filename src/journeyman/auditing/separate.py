"""Whether walks of one batch are independent of one another, once more.

Batches of a few walks each, every batch from a stream of its own; the sum of squares of batch
sums, with totals at mean 0 and variance 1, against the same for random orders of all walks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from journeyman.auditing import protocol
from journeyman.auditing.ledger import AGREEMENT
from journeyman.auditing.tables import Floats

STREAM = protocol.LARGE_STREAMS["batches"]


def p_value(
    draw: Callable[[np.random.Generator, int], tuple[Floats, Floats]], seed: int, number: int
) -> float:
    """Of the policy with the given number among those that were walked."""
    parts = [
        draw(_stream(seed, number, batch), protocol.BATCH_WALKS)[0]
        for batch in range(protocol.BATCHES)
    ]
    totals = np.concatenate(parts)
    deviations = np.sqrt(((totals - totals.mean(axis=0)) ** 2).mean(axis=0))
    varies = deviations > AGREEMENT * np.maximum(np.abs(totals).max(axis=0), 1e-300)
    if not varies.any():
        return 1.0
    scores = (totals[:, varies] - totals[:, varies].mean(axis=0)) / deviations[varies]
    batch_of = np.arange(len(scores)) // protocol.BATCH_WALKS
    stored, rng = _squares(scores, batch_of), _stream(seed, number, protocol.BATCHES)
    hits = 0
    for order in range(1, protocol.ORDERS + 1):
        other = _squares(scores[rng.permutation(len(scores))], batch_of)
        hits += other >= stored * (1 - AGREEMENT)
        if hits == protocol.ENOUGH:
            return hits / order
    return (hits + 1) / (protocol.ORDERS + 1)


def _squares(scores: Floats, batch_of: Any) -> float:
    """Of the sums of all batches, over all costs."""
    return float(
        sum((np.bincount(batch_of, column) ** 2).sum() for column in scores.T)
    )  # fmt: skip


def _stream(seed: int, number: int, batch: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM, number, batch)))
