"""The reduced problem: program (6) of the paper, over combinations of features.

    minimise   gap_W(G theta - target)      G = Psi' Phi
    subject to D theta = initial            D = (B - discount P)' Phi,  one row per state
               Phi theta >= 0               one row per pair
               C theta <= limits            C = one row Phi' d_j per budget

With a base measure, u = base + Phi theta, the right-hand sides move: target - Psi' base,
initial - (B - discount P)' base, -base, limits - <base, d_j>.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, Matrix, SparseMatrix, assign
from journeyman.problem.cost_problem import CostProblem
from journeyman.problem.features.features import Features
from journeyman.problem.program import Program


class ReducedMatrices(Protocol):
    """The reduced problem as solvers see it: all of its rows, or a sample of them."""

    @property
    def problem(self) -> CostProblem: ...

    @property
    def num_features(self) -> int: ...

    @property
    def pair_rows(self) -> Matrix: ...

    @property
    def floor(self) -> FloatArray: ...

    @property
    def flow_rows(self) -> Matrix: ...

    @property
    def flow_target(self) -> FloatArray: ...

    @property
    def matching(self) -> FloatArray: ...

    @property
    def matching_target(self) -> FloatArray: ...

    @property
    def budget_rows(self) -> FloatArray: ...

    @property
    def budget_limits(self) -> FloatArray: ...


@dataclass(frozen=True, eq=False, init=False)
class Reduced:
    """The matrices of the reduced problem, sparse where the features are."""

    problem: Program
    features: Features

    def __init__(self, problem: Program, features: Features) -> None:
        assign(self, problem=problem, features=features.on(problem.world))

    @property
    def num_features(self) -> int:
        return self.features.num_features

    @property
    def pair_rows(self) -> Matrix:
        """Phi: one row per pair."""
        return self.features.matrix

    @cached_property
    def floor(self) -> FloatArray:
        """-base: what Phi theta must not go below."""
        base = self.features.base
        return np.zeros(self.features.num_pairs) if base is None else -base

    @cached_property
    def flow_rows(self) -> Matrix:
        """D: one row per state."""
        world, Phi = self.problem.world, self.features.matrix
        if not self.features.is_sparse:
            return world.flow.apply(Phi)
        return sparse.csr_array(world.flow.matrix().T @ Phi)

    @cached_property
    def flow_target(self) -> FloatArray:
        """initial, less the flow of the base measure."""
        world, base = self.problem.world, self.features.base
        return world.initial if base is None else world.flow.residual(base)

    @cached_property
    def matching(self) -> FloatArray:
        """G: one row per cost."""
        return _dense(self.features.matrix.T @ self.problem.cost_matrix).T

    @cached_property
    def matching_target(self) -> FloatArray:
        base = self.features.base
        return self.problem.target if base is None else -self.problem.difference(base)

    @cached_property
    def budget_rows(self) -> FloatArray:
        """C: one row per budget."""
        return _dense(self.features.matrix.T @ self.problem.budget_matrix).T

    @cached_property
    def budget_limits(self) -> FloatArray:
        base = self.features.base
        return self.problem.limits if base is None else -self.problem.overspending(base)


def _dense(matrix: Matrix | SparseMatrix) -> FloatArray:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)
