"""The sampled program in a world too large to enumerate: one block of rows, solved exactly."""

import time
from dataclasses import dataclass

import numpy as np

from journeyman.arrays import FloatArray, SparseMatrix, read_only
from journeyman.features.base import LargeFeatures
from journeyman.problem.apprenticeship import Apprenticeship
from journeyman.problem.reduced import Penalty
from journeyman.solvers.exact.engines import Engine
from journeyman.solvers.large_answer import LargeAnswer
from journeyman.solvers.reduced.box_dual import SelectedRows, box_dual
from journeyman.solvers.reduced.large_descent import require_same_world
from journeyman.solvers.reduced.large_surrogate import LargeSurrogate
from journeyman.solvers.reduced.reduced_program import solve_box
from journeyman.solvers.reduced.rows import FRESH, LEARNING, DrawnRows, block_stream, draw_rows
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch


@dataclass(frozen=True, eq=False)
class DrawnReduced:
    """The reduced problem as it shows on drawn rows."""

    problem: Apprenticeship
    rows: DrawnRows
    matching: FloatArray

    @property
    def num_features(self) -> int:
        return int(self.matching.shape[1])

    @property
    def pair_rows(self) -> SparseMatrix:
        return self.rows.pair_rows

    @property
    def floor(self) -> FloatArray:
        return np.zeros(self.rows.pair_law.size)

    @property
    def flow_rows(self) -> SparseMatrix:
        return self.rows.flow_rows

    @property
    def flow_target(self) -> FloatArray:
        return self.rows.initial

    @property
    def matching_target(self) -> FloatArray:
        return self.problem.target

    @property
    def budget_rows(self) -> FloatArray:
        return np.zeros((0, self.num_features))

    @property
    def budget_limits(self) -> FloatArray:
        return np.zeros(0)


@dataclass(frozen=True, eq=False)
class LargeSample:
    """The settings of a solve; `SampledProgram` makes it."""

    features: LargeFeatures
    penalty: Penalty
    num_rows: int
    fresh_rows: int
    engine: Engine | None
    threads: int
    tolerance: float
    seed: int

    def run(self, problem: Apprenticeship, watch: Watch) -> LargeAnswer:
        """Draw, solve, and estimate the loss on fresh rows."""
        started = time.perf_counter()
        require_same_world(problem, self.features)
        surrogate = LargeSurrogate(problem, self.features, self.penalty, self.seed)
        rows = draw_rows(self.features, self.num_rows, block_stream(self.seed, LEARNING, 0))
        reduced = DrawnReduced(problem, rows, surrogate.matching)
        box = box_dual(reduced, surrogate.penalties, _weighted(rows))
        built = time.perf_counter()
        found = solve_box(box, watch, self.engine, self.threads, self.tolerance)
        theta = box.coefficients(found.x)
        fresh = draw_rows(self.features, self.fresh_rows, block_stream(self.seed, FRESH, 0))
        loss, error = surrogate.estimate(fresh, theta)
        status = Status.CONVERGED if found.status is Status.OPTIMAL else found.status
        return LargeAnswer(
            problem, status, found.engine, self.features, read_only(theta), loss, error,
            surrogate.matching_error(theta), build_seconds=built - started,
            solve_seconds=time.perf_counter() - built,
        )  # fmt: skip


def _weighted(rows: DrawnRows) -> SelectedRows:
    """Every row with its weight 1/(n q)."""
    pairs, states = rows.pair_law.size, rows.flow_law.size
    return SelectedRows(
        np.arange(pairs), 1 / (pairs * rows.pair_law),
        np.arange(states), 1 / (states * rows.flow_law),
    )  # fmt: skip
