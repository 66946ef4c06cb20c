"""Rows of a world too large to enumerate, drawn block by block.

A block is a function of the features and of its seed alone, whoever draws it and when: descents
consume blocks one after the other, the sampled program keeps one, and an executor may draw many at
once without changing a bit.
"""

from typing import NamedTuple

import numpy as np

from journeyman.arrays import FloatArray, IntArray, SparseMatrix
from journeyman.problem.large_features import LargeFeatures

LEARNING, FRESH, MATCHING = 1, 2, 3
"""Streams of a seed: rows to learn from, rows to estimate the loss on, pairs for Psi' Phi."""


class DrawnRows(NamedTuple):
    """Pairs from q1 and states from q2 with their rows and probabilities."""

    pair_rows: SparseMatrix
    pair_law: FloatArray
    flow_rows: SparseMatrix
    flow_law: FloatArray
    initial: FloatArray
    """Initial probabilities of the states."""


def block_stream(seed: int, stream: int, block: int) -> np.random.Generator:
    """The generator of one block, independent of all the others."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, block)))


def draw_rows(features: LargeFeatures, count: int, rng: np.random.Generator) -> DrawnRows:
    """`count` rows of Phi and as many of D."""
    pair_rows = features.rows(*features.draw(rng, count))
    states = features.draw_flow(rng, count)
    flow = features.flow(states)
    return DrawnRows(
        pair_rows, features.pair_law(pair_rows), flow.rows, flow.law,
        initial_at(features, states),
    )  # fmt: skip


def initial_at(features: LargeFeatures, states: IntArray) -> FloatArray:
    """Initial probabilities."""
    return np.asarray(features.world.initial_probability(states), dtype=float)
