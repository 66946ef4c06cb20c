"""What was agreed before any data was seen. A figure derived with other choices is not certified.

These are the choices of schema version 4; whoever changes one of them in the certificate changes
the version too. Version 1 shaped estimates by other choices and did not keep the features of
sampled rows; version 2 did not hold demonstrations against an estimated model, and let intervals
reach beyond what is possible; version 3 took bounded costs alone for the largest possible gap,
counted a part of the model's error as gap, drew from seeds of the caller's choice, split
demonstrations by their order, shaped estimates from 500 demonstrations on only, and had no premises
about copies, a support, or laws that nothing tests. Runs of these are refused.
"""

VERSION = 4
KIND = "journeyman certificate"

PLAIN_PARTS = (0.80, 0.20)
"""Of delta, for data-independent radii and the empirical Bernstein radius."""
PLAIN_UP_TO = 20
"""Demonstrations without a shaped estimate; with more of them it takes from the first part."""
LEAST_PART = 0.05
"""Of the data-independent radii."""

TRAINING_SHARE = (0.12, 1.0)
"""a + b/sqrt(count) of the demonstrations, those with the least digests."""
SMOOTHING = 0.1
MARGIN = (1.25, 2.2)
"""a + b/sqrt(number of training episodes)."""
LEAST_SPREAD = 1e-3
DEVIATION_PART, MOMENT_PART, INCOMPLETE_PART = 0.7, 0.15, 0.15

PREMISE_LEVEL = 1e-3
CONCENTRATIONS = (1.0, 10.0, 100.0, 1e3, 1e4)
WRONG_SHARES = (1.0, 1e-2, 1e-4)
COPY_SCALES = (1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12)
TEMPERS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0)
START_BLOCKS = (4, 32, 256)

MODEL_PART = 0.25
"""Of delta, for the counts of an estimated world; the rest is for expert and evaluation."""
STARTS_PART = 0.1
"""Of that, for the starts where steps were counted too."""
STREAMS = {"rollouts": 0x726F6C6C, "rows": 0x726F7773}
"""Which of a seed's streams is drawn from."""
CHUNK = 128
"""Steps of a rollout whose numbers are drawn at a time."""
SLACK = 1e-9
"""Relative, on the norms and ranges of sampled rows."""

LARGE_VERSION = 2
LARGE_KIND = "journeyman certificate of a large world"
LARGE_STREAMS = {
    "walks": 0x6C77616C,
    "rows": 0x6C726F77,
    "mixture": 0x6D697874,
    "batches": 0x73657061,
}
"""The same for worlds of callables, each followed by the first number of a shard."""
WALK_SHARD, ROW_SHARD = 1 << 10, 1 << 14
"""Walks and rows that are drawn from one stream."""
COMPARED_STARTS, STARTS_STREAM = 1 << 13, 0x6C737472
"""States that recorded starts are compared with, and the stream of seed 0 they come from."""
TESTED_STEPS = 1 << 16
"""Steps that are bet on: the first of the record."""
FOLLOWED, DRAWS_BET_ON = 1 << 12, 1 << 14
"""Rows of a shard whose steps are followed there and back; draws of the first shard whose
repetitions are counted."""
TILTS, LEAST = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), 1e-12
"""Of bets on means, with both signs; the least factor."""
BATCHES, BATCH_WALKS, BATCH_STEPS = 16, 8, 64
"""Of the test that walks are independent of one another; random orders that are tried, and how many
of them that reach the statistic are enough."""
ORDERS, ENOUGH = 9_999, 10
