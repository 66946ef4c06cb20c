"""The surrogate loss over the features of a world too large to enumerate.

    L(theta) = gap_W(G theta - target) + lambda_1 V1 + lambda_2 V2,       G = Psi' Phi

G is exact where features and costs say so, entry by entry, otherwise a mean over drawn pairs; the
penalties are means over drawn rows, taken as differences to theta = 0 (where V1 = 0 and V2 = 1), so
that a state in which all features vanish need not be drawn.

Coefficients are fitted to the pairs behind `matching`, errors included, so the loss is estimated
with a G from other pairs. Its error at theta is seen from blocks that are independent of each
other: with s_i the standard error of (G theta)_i, the error of gap_W has root mean square at most

    sum_i scale_i s_i  (infinity ball),      sqrt(sum_i (scale_i s_i)^2)  (the other classes),

because |gap_W(z + e) - gap_W(z)| <= max_w |<w, e>|.

Guarantee. For a theta that is independent of the rows `estimate` is unbiased in the penalties, its
error the root mean square of both parts together. Certificates do not rest on it: they draw rows
of their own.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.features.base import LargeFeatures
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.problem.reduced import Penalties, Penalty
from journeyman.solvers.reduced.rows import MATCHING, DrawnRows, block_stream

MATCHING_BLOCKS, MATCHING_BLOCK = 32, 1 << 14
"""Pairs behind G where it is not exact."""
FRESH_BLOCKS = 16
"""As many blocks of other pairs judge the coefficients."""


@dataclass(frozen=True, eq=False)
class LargeSurrogate:
    """L for a problem, features and a penalty; `seed` decides the pairs behind G."""

    problem: Apprenticeship
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
    def known(self) -> FloatArray:
        """What is exact of G, NaN elsewhere."""
        return self.features.exact_matching(self.problem.cost_functions)

    @cached_property
    def matching(self) -> FloatArray:
        """G: one row per cost."""
        missing = np.isnan(self.known)
        if not missing.any():
            return self.known
        total = sum(self._sampled_matching(block) for block in range(MATCHING_BLOCKS))
        return np.where(missing, total / MATCHING_BLOCKS, self.known)

    @cached_property
    def fresh_matching(self) -> FloatArray:
        """G from pairs that `matching` has not seen, (blocks x costs x features)."""
        missing = np.isnan(self.known)
        if not missing.any():
            return self.known[np.newaxis]
        blocks = range(MATCHING_BLOCKS, MATCHING_BLOCKS + FRESH_BLOCKS)
        sampled = [self._sampled_matching(block) for block in blocks]
        return np.where(missing, sampled, self.known)

    def _sampled_matching(self, block: int) -> FloatArray:
        """mean of psi(s) Phi_s / q1(s) over pairs s ~ q1."""
        rng = block_stream(self.seed, MATCHING, block)
        states, actions = self.features.draw(rng, MATCHING_BLOCK)
        rows, costs = (
            self.features.rows(states, actions),
            self.problem.cost_functions.at(states, actions),
        )
        self.features.require_tables(self.problem.cost_functions, states, costs)
        weighed = costs / self.features.pair_law(rows)[:, np.newaxis]
        return np.asarray((rows.T @ weighed).T / MATCHING_BLOCK)

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
        """gap_W(G theta - target), G from fresh pairs: the loss without penalties."""
        expected = (self.fresh_matching @ theta).mean(axis=0)
        return self.problem.cost_class.gap(expected - self.problem.target)

    def matching_deviation(self, theta: FloatArray) -> float:
        """The root mean square of the error of `matching_error`, at most; zero if G is exact."""
        blocks = self.fresh_matching @ theta
        if blocks.shape[0] < 2:
            return 0.0
        errors = blocks.std(axis=0, ddof=1) / np.sqrt(blocks.shape[0])
        return self.problem.cost_class.deviation(errors)

    def penalties_on(self, rows: DrawnRows, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What each drawn pair and state adds to lambda_1 V1 and to lambda_2 (V2 - 1)."""
        below = np.maximum(-(rows.pair_rows @ theta), 0.0)
        missed = np.abs(rows.flow_rows @ theta - rows.initial) - rows.initial
        return (
            np.asarray(self.penalties.pairs * below / rows.pair_law),
            np.asarray(self.penalties.flow * missed / rows.flow_law),
        )

    def estimate(self, rows: DrawnRows, theta: FloatArray) -> tuple[float, float]:
        """L on drawn rows and fresh pairs, and its standard error."""
        parts = self.penalties_on(rows, theta)
        mean = sum(float(part.mean()) for part in parts) + self.penalties.flow
        variance = sum(float(part.var(ddof=1)) / part.size for part in parts)
        variance += self.matching_deviation(theta) ** 2
        return self.matching_error(theta) + mean, float(np.sqrt(variance))
