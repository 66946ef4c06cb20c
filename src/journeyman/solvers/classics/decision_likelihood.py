"""How well a log-linear policy explains an expert's decisions, and the slope of that.

    loss(theta) = -sum_{x,a} weight(x, a) log pi_theta(a | x)  +  ridge/2 |theta|^2
    pi_theta(a | x) proportional to exp(<phi(x, a), theta>)

where weight(x, a) is proportional to count(x, a) + smoothing in the states where a decision was
seen, zero elsewhere, and sums to one: the loss is in nats per decision. Every column of phi is
brought to unit size first, so that one ridge suits all.

The loss is strongly convex, so |slope|^2/(2 ridge) bounds what is left to gain at any theta. At its
minimum the features that were seen are those the policy expects in the same states:

    E_seen phi - E_theta phi = ridge theta
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray, Matrix
from journeyman.policy.table import log_softmax
from journeyman.world import Pairs


@dataclass(frozen=True, eq=False)
class DecisionLikelihood:
    """The loss over the states that were visited; nothing here is longer than their pairs."""

    pairs: Pairs
    matrix: Matrix
    weights: FloatArray
    ridge: float

    @classmethod
    def of(
        cls, pairs: Pairs, matrix: Matrix, seen: IntArray, smoothing: float, ridge: float
    ) -> "DecisionLikelihood":
        """From columns of unit size over all pairs, and the pair of every decision seen."""
        counts = np.bincount(seen, minlength=len(pairs)).astype(np.float64)
        visited = pairs.total(counts) > 0
        rows = np.flatnonzero(visited[pairs.states])
        offsets = np.concatenate([[0], np.cumsum(pairs.actions_per_state[visited])])
        weights = counts[rows] + smoothing
        return cls(Pairs(offsets), matrix[rows], weights / weights.sum(), ridge)

    def value_and_slope(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """The loss at theta and its gradient."""
        logs = log_softmax(self.pairs, np.asarray(self.matrix @ theta))
        value = -float(self.weights @ logs) + 0.5 * self.ridge * float(theta @ theta)
        expected = self.pairs.spread(self.pairs.total(self.weights)) * np.exp(logs)
        slope = self.matrix.T @ (expected - self.weights) + self.ridge * theta
        return value, np.asarray(slope)

    def error(self, slope: FloatArray) -> float:
        """How far the loss is at most above its minimum, at a theta with this slope."""
        return float(slope @ slope) / (2 * self.ridge)


def unit_columns(matrix: Matrix) -> Matrix:
    """The columns, each divided by its largest absolute entry; columns of zeros stay."""
    sizes = abs(matrix).max(axis=0)
    largest = np.asarray(sizes.toarray() if sparse.issparse(sizes) else sizes).ravel()
    divisors = np.where(largest > 0, largest, 1.0)
    if sparse.issparse(matrix):
        return sparse.csr_array(matrix @ sparse.diags_array(1.0 / divisors))
    return np.asarray(matrix / divisors)
