"""Sampling laws for rows: q1 over pairs and q2 over states, and the ratios they lead to.

    C_1 = max over pairs of |Phi_s|_2/q1(s),      C_2 = max over states of |D_y|_2/q2(y)

A row that is zero need not be drawn. The laws proportional to the row norms are optimal: they make
C_1 the sum of the norms, which no law undercuts.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, assign, first_index, read_only
from journeyman.errors import InvalidSolver
from journeyman.problem.reduced import Reduced
from journeyman.world.laws import probability_vector


@dataclass(frozen=True, eq=False)
class SamplingLaws:
    """q1, q2 and their ratios C_1, C_2."""

    pair_sampling: FloatArray
    state_sampling: FloatArray
    pair_ratio: float
    flow_ratio: float

    @classmethod
    def of(cls, reduced: Reduced, pairs: FloatArray, states: FloatArray) -> "SamplingLaws":
        """Laws proportional to given weights, checked to reach every row that matters."""
        laws = [_law(weights) for weights in (pairs, states)]
        ratios = [
            _ratio(row_norms(rows), law, name)
            for rows, law, name in (
                (reduced.pair_rows, laws[0], "pair"),
                (reduced.flow_rows, laws[1], "state"),
            )
        ]
        return cls(laws[0], laws[1], ratios[0], ratios[1])


class RowSampling(ABC):
    """A rule that sets the sampling laws of a reduced problem."""

    @abstractmethod
    def laws(self, reduced: Reduced) -> SamplingLaws:
        """q1 and q2."""


@dataclass(frozen=True)
class RowNorms(RowSampling):
    """Proportional to the 2-norms of the rows: optimal."""

    def laws(self, reduced: Reduced) -> SamplingLaws:
        pairs, states = row_norms(reduced.pair_rows), row_norms(reduced.flow_rows)
        return SamplingLaws.of(reduced, pairs, states)


@dataclass(frozen=True)
class FeatureMass(RowSampling):
    """Proportional to the features' mass, which a simulator can draw from:

    q1 ~ sum_j |phi_j|,   q2 ~ sum_j (B + discount P)' |phi_j|: pick a column by its mass, a pair by
    the column, then its state with probability 1/(1 + discount), else its successor.
    """

    def laws(self, reduced: Reduced) -> SamplingLaws:
        world = reduced.problem.world
        mass = np.asarray(abs(reduced.pair_rows).sum(axis=1)).ravel()
        states = world.pairs.total(mass) + world.discount * (world.transition.T @ mass)
        return SamplingLaws.of(reduced, mass, states)


@dataclass(frozen=True)
class UniformRows(RowSampling):
    """Every row equally likely."""

    def laws(self, reduced: Reduced) -> SamplingLaws:
        world = reduced.problem.world
        return SamplingLaws.of(reduced, np.ones(world.num_pairs), np.ones(world.num_states))


@dataclass(frozen=True, eq=False, init=False)
class GivenRows(RowSampling):
    """Laws of your own over pairs and states."""

    pair_sampling: ArrayLike
    state_sampling: ArrayLike

    def __init__(self, pair_sampling: ArrayLike, state_sampling: ArrayLike) -> None:
        assign(self, pair_sampling=pair_sampling, state_sampling=state_sampling)

    def laws(self, reduced: Reduced) -> SamplingLaws:
        world = reduced.problem.world
        pairs = probability_vector("pair_sampling", self.pair_sampling, world.num_pairs)
        states = probability_vector("state_sampling", self.state_sampling, world.num_states)
        return SamplingLaws.of(reduced, pairs, states)


def row_norms(matrix: Matrix) -> FloatArray:
    """The 2-norm of every row."""
    if sparse.issparse(matrix):
        return np.asarray(np.sqrt((matrix * matrix).sum(axis=1))).ravel()
    return np.asarray(np.linalg.norm(matrix, axis=1))


def _law(weights: FloatArray) -> FloatArray:
    """The law proportional to weights; uniform when every row is zero and none matters."""
    total = weights.sum()
    return read_only(weights / total if total > 0 else np.full(weights.size, 1 / weights.size))


def _ratio(norms: FloatArray, law: FloatArray, name: str) -> float:
    needed = norms > 0
    missed = needed & (law <= 0)
    if missed.any():
        raise InvalidSolver(
            f"the {name} sampling never draws {name} {first_index(missed)}, whose row is not zero",
            "Give every row that is not zero a positive probability",
        )
    return float((norms[needed] / law[needed]).max(initial=0.0))
