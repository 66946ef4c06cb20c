"""Whether rollouts are independent of one another, by a test that is exact.

Before the rollouts of a certificate `BATCHES` batches of `WALKS` walks are drawn, each with a
stream of its own. If all walks are independent, any of them may stand in any batch. With their
totals brought to mean 0 and variance 1, cost by cost,

    S = sum over batches and costs of (sum of the totals in the batch)^2

is large when the walks of a batch share their luck: a rule that draws one number for all, a
simulator that is seeded once a batch, a memory that is shared. S is compared with what random
orders of the same walks give, until 10 of them reach it (p = 10/orders) or all were tried; p <=
level then has probability `level` at most (Besag and Clifford, 1991).

*Not seen*: dependence that no cost shows in the first steps, or that is weak. It is declared.
"""

from collections.abc import Sequence

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.premises import Premise, Verdict, failed
from journeyman.demonstrations.simulation import Simulator
from journeyman.policy.acting import AnyPolicy
from journeyman.problem.simulated_apprenticeship import require_possible

NAME = "rollouts are independent of one another"
STREAM = 0x73657061
"""Which of a seed's streams the batches are drawn from."""
BATCHES, WALKS = 16, 8
LONGEST = 64
"""Steps of such a walk at most."""
ORDERS, ENOUGH = 9_999, 10
EQUAL = 1e-9
"""Relative: figures that differ by less are equal but for rounding."""


def independence(
    simulator: Simulator,
    policies: Sequence[AnyPolicy],
    horizon: int,
    seed: int,
    level: float,
) -> Premise:
    """The test of all policies together, each at its part of the level."""
    values = [
        p_value(_totals(simulator, policy, min(horizon, LONGEST), seed, number), seed, number)
        for number, policy in enumerate(policies)
    ]
    p = min(1.0, min(values) * len(values))
    figure = f"p-value {p:.3g} from {BATCHES} batches of {WALKS} walks"
    if len(values) > 1:
        figure += f" of each of {len(values)} candidates"
    detail = f"{figure}, refuted up to {level:g}"
    if p <= level:
        return failed(NAME, f"{detail}: walks of a batch share their luck", level)
    taken = "what the test does not see is taken to be independent"
    return Premise(NAME, Verdict.TESTED, f"{detail}; {taken}", level)


def p_value(totals: FloatArray, seed: int, number: int) -> float:
    """Of walks in their batches, (walks x costs), against random orders of them."""
    spread = totals.std(axis=0)
    size = np.abs(totals).max(axis=0, initial=0.0)
    varying = spread > EQUAL * np.maximum(size, np.finfo(float).tiny)
    if not varying.any():
        return 1.0
    figures = ((totals - totals.mean(axis=0)) / np.where(varying, spread, 1.0))[:, varying]
    observed = _statistic(figures)
    rng = _stream(seed, number, BATCHES)
    reached = 0
    for tried in range(1, ORDERS + 1):
        reached += _statistic(figures[rng.permutation(len(figures))]) >= observed * (1 - EQUAL)
        if reached == ENOUGH:
            return reached / tried
    return (reached + 1) / (ORDERS + 1)


def _statistic(figures: FloatArray) -> float:
    sums = figures.reshape(BATCHES, WALKS, -1).sum(axis=1)
    return float((sums**2).sum())


def _totals(
    simulator: Simulator, policy: AnyPolicy, horizon: int, seed: int, number: int
) -> FloatArray:
    parts = []
    for batch in range(BATCHES):
        record = simulator.totals(policy, WALKS, horizon, _stream(seed, number, batch))
        require_possible(record, simulator)
        parts.append(record.totals)
    return np.vstack(parts)


def _stream(seed: int, number: int, batch: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(STREAM, number, batch)))
