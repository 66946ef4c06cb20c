"""Families of policies by parameters, and the products that policy gradients are made of.

    pi_theta(a | x) = exp(z(x, a)) / sum_b exp(z(x, b))
    tabular:    z = theta                       one parameter per pair
    log-linear: z = base + Phi theta            one parameter per column of the features

With the score s(x, a) = grad log pi_theta(a | x) = phi(x, a) - sum_b pi(b | x) phi(x, b), every
method needs three maps only, none of which forms a matrix over parameters:

    scores' u          = Phi'(u - pi B B'u)                 a gradient, from one figure per pair
    scores v           = Phi v - B B'(pi Phi v)             how log pi changes along v
    Fisher v           = Phi'(m pi (scores v))              where m is the mass of a pair's state

Columns are brought to largest entry one, so that steps mean the same whatever the features' units.
Cost: one or two products with the features each; in the tabular family passes over the pairs.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign
from journeyman.errors import InvalidSolver
from journeyman.policy.table import log_softmax, softmax
from journeyman.problem.features import Features
from journeyman.world import Pairs, World

LEAST_LOGIT = -30.0
"""Of the tabular family, below the largest of the state: nothing becomes so rare (1e-13) that a
gradient could not bring it back."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class PolicyFamily:
    """Tabular policies of a world, or log-linear ones with the given features.

    A base measure of the features is a fixed part of the logits.

    >>> family = PolicyFamily(World([[1.0], [1.0]], [1.0], 0.5, choice_offsets=[0, 2]))
    >>> family.num_parameters, family.law(np.array([0.0, 0.0])).tolist()
    (2, [0.5, 0.5])
    """

    pairs: Pairs
    matrix: Matrix | None
    base: FloatArray | None

    def __init__(self, world: World, features: Features | None = None) -> None:
        if features is None:
            assign(self, pairs=world.pairs, matrix=None, base=None)
            return
        columns = features.on(world).matrix
        largest = np.asarray(_dense(abs(columns).max(axis=0))).ravel()
        if not largest.any():
            raise InvalidSolver("every policy feature is zero", "Give features that differ")
        units = 1.0 / np.where(largest > 0, largest, 1.0)
        scaled = (
            (columns @ sparse.diags_array(units)).tocsr()
            if sparse.issparse(columns)
            else columns * units
        )
        assign(self, pairs=world.pairs, matrix=scaled, base=features.base)

    @property
    def num_parameters(self) -> int:
        return len(self.pairs) if self.matrix is None else int(self.matrix.shape[1])

    @property
    def is_tabular(self) -> bool:
        return self.matrix is None

    def restrained(self, theta: FloatArray) -> FloatArray:
        """Parameters of nearly the same law: in the tabular family no logit is too far below."""
        if self.matrix is not None:
            return theta
        below = theta + self.pairs.spread(self.pairs.smallest(-theta))
        return np.maximum(below, LEAST_LOGIT)

    def law(self, theta: FloatArray) -> FloatArray:
        """The probability of every pair in its state."""
        return softmax(self.pairs, self._logits(theta))

    def log_law(self, theta: FloatArray) -> FloatArray:
        """The logarithm of `law`."""
        return log_softmax(self.pairs, self._logits(theta))

    def scores_times(self, law: FloatArray, direction: FloatArray) -> FloatArray:
        """How log pi of every pair changes along a direction of parameters."""
        change = direction if self.matrix is None else np.asarray(self.matrix @ direction)
        return np.asarray(change - self.pairs.spread(self.pairs.total(law * change)))

    def gradient(self, law: FloatArray, signal: FloatArray) -> FloatArray:
        """sum over pairs of signal(x, a) grad log pi(a | x)."""
        centred = signal - law * self.pairs.spread(self.pairs.total(signal))
        return centred if self.matrix is None else np.asarray(self.matrix.T @ centred)

    def fisher_times(self, law: FloatArray, mass: FloatArray, direction: FloatArray) -> FloatArray:
        """sum_x mass(x) sum_a pi(a | x) score score' direction."""
        weighted = self.pairs.spread(mass) * law * self.scores_times(law, direction)
        return weighted if self.matrix is None else np.asarray(self.matrix.T @ weighted)

    def fisher_scale(self, law: FloatArray, mass: FloatArray) -> FloatArray:
        """A diagonal above the Fisher matrix' own: sum over pairs of mass pi phi^2.

        In the tabular family the Fisher matrix divided by it is a projection, so a conjugate
        gradient method with this preconditioner ends after one step.
        """
        weights = self.pairs.spread(mass) * law
        if self.matrix is None:
            return np.asarray(weights)
        squares = self.matrix.multiply(self.matrix) if self._sparse else self.matrix**2
        return np.asarray(squares.T @ weights)

    @property
    def _sparse(self) -> bool:
        return bool(sparse.issparse(self.matrix))

    def _logits(self, theta: FloatArray) -> FloatArray:
        combined = theta if self.matrix is None else np.asarray(self.matrix @ theta)
        return combined if self.base is None else combined + self.base

    def __repr__(self) -> str:
        kind = "tabular" if self.is_tabular else "log-linear"
        return f"PolicyFamily({kind}, {self.num_parameters} parameters)"


def _dense(row: Matrix) -> FloatArray:
    return np.asarray(row.toarray() if sparse.issparse(row) else row)
