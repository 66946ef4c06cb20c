"""The surrogate loss over the features of a world too large to enumerate.

    L(theta) = gap_W(G theta - target) + lambda_1 V1 + lambda_2 V2,       G = Psi' Phi

G is exact where features and costs say so, otherwise a mean over drawn pairs; the penalties are
means over drawn rows, taken as differences to theta = 0 (where V1 = 0 and V2 = 1), so that a state
in which all features vanish need not be drawn.

Guarantee. For a fixed theta `estimate` is unbiased in the penalties. Certificates do not rest on
it: they draw rows of their own.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.problem.large_apprenticeship import LargeApprenticeship
from journeyman.problem.large_features import LargeFeatures
from journeyman.problem.penalty import Penalties, Penalty
from journeyman.solvers.drawn_rows import MATCHING, DrawnRows, block_stream

MATCHING_BLOCKS, MATCHING_BLOCK = 32, 1 << 14
"""Pairs behind G where it is not exact."""


@dataclass(frozen=True, eq=False)
class LargeSurrogate:
    """L for a problem, features and a penalty; `seed` decides the pairs behind G."""

    problem: LargeApprenticeship
    features: LargeFeatures
    penalty: Penalty
    seed: int

    @property
    def num_features(self) -> int:
        return self.features.num_features

    @cached_property
    def penalties(self) -> Penalties:
        return self.penalty.of(self.problem)

    @cached_property
    def matching(self) -> FloatArray:
        """G: one row per cost."""
        known = self.features.exact_matching(self.problem.costs)
        missing = np.flatnonzero(np.isnan(known).any(axis=1))
        if missing.size:
            known[missing] = self._sampled_matching()[missing]
        return known

    def _sampled_matching(self) -> FloatArray:
        """mean of psi(s) Phi_s / q1(s) over pairs s ~ q1."""
        total = np.zeros((self.problem.costs.num_costs, self.features.num_features))
        for block in range(MATCHING_BLOCKS):
            rng = block_stream(self.seed, MATCHING, block)
            states, actions = self.features.draw(rng, MATCHING_BLOCK)
            rows = self.features.rows(states, actions)
            weighed = self.problem.costs.at(states, actions)
            weighed = weighed / self.features.pair_law(rows)[:, np.newaxis]
            total += (rows.T @ weighed).T / MATCHING_BLOCK
        return total / MATCHING_BLOCKS

    @cached_property
    def subgradient_bound(self) -> float:
        """K: no sampled subgradient is longer."""
        image = self.problem.cost_class.image_bound(self.matching.T)
        return (
            image
            + self.penalties.pairs * self.features.pair_ratio
            + (self.penalties.flow * self.features.flow_ratio)
        )

    def matching_error(self, theta: FloatArray) -> float:
        """gap_W(G theta - target): the loss without penalties."""
        return self.problem.cost_class.gap(self.matching @ theta - self.problem.target)

    def penalties_on(self, rows: DrawnRows, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What each drawn pair and state adds to lambda_1 V1 and to lambda_2 (V2 - 1)."""
        below = np.maximum(-(rows.pair_rows @ theta), 0.0)
        missed = np.abs(rows.flow_rows @ theta - rows.initial) - rows.initial
        return (
            np.asarray(self.penalties.pairs * below / rows.pair_law),
            np.asarray(self.penalties.flow * missed / rows.flow_law),
        )

    def estimate(self, rows: DrawnRows, theta: FloatArray) -> tuple[float, float]:
        """L on drawn rows, and the standard error of its penalties."""
        parts = self.penalties_on(rows, theta)
        mean = sum(float(part.mean()) for part in parts) + self.penalties.flow
        variance = sum(float(part.var(ddof=1)) / part.size for part in parts)
        return self.matching_error(theta) + mean, float(np.sqrt(variance))
