"""The linear program of Ng and Russell: cost weights under which given rivals cost most.

    maximise over w      sum_g p(m_g) - penalty sum_i |w_i|/scale_i
    subject to           m_g <= <r, w>      for every row r of group g
                         0 <= <r, w>        for every row r that is required
                         |w_i| <= scale_i

where p(m) = m for m >= 0 and 2 m below, or minus infinity below when no violation is allowed. A row
is what a rival costs more than the expert, one figure per cost; a group's margin m_g is that of its
cheapest rival. With v = w/scale and n_g >= max(0, -m_g) this is linear: p(m_g) = m_g - n_g. Weights
of zero are feasible, so the optimum is never negative; where it is zero, no cost tells the expert
from its rivals.

Cost. (rows x costs) figures, dense; two columns per cost and two per group. The simplex method
solves it several times as fast as interior points do.

Reference: Ng and Russell, "Algorithms for inverse reinforcement learning", ICML 2000, sections 3-5.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, IntArray
from journeyman.solvers.exact.engines import Engine, Result, run_highs
from journeyman.solvers.exact.occupancy_program import INFINITY, LinearModel
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

VIOLATION_FACTOR = 2.0
"""A negative margin counts this many times, as in the paper."""


@dataclass(frozen=True, eq=False)
class Rivals:
    """Rows (rivals x costs), the group of each, and further rows that must not be negative."""

    rows: FloatArray
    group: IntArray
    num_groups: int
    required: FloatArray

    def each(self) -> "Rivals":
        """Every rival for itself, and nothing required."""
        count = self.rows.shape[0]
        return Rivals(self.rows, np.arange(count), count, self.required[:0])

    def violation(self, weights: FloatArray) -> float:
        """The most that a rival or a required row falls below zero."""
        least = [(part @ weights).min(initial=0.0) for part in (self.rows, self.required)]
        return -float(min(least))

    def margins(self, weights: FloatArray) -> FloatArray:
        """What the cheapest rival of each group costs more than the expert."""
        least = np.full(self.num_groups, np.inf)
        np.minimum.at(least, self.group, self.rows @ weights)
        return least


def penalised(margins: FloatArray) -> float:
    """sum_g p(m_g)."""
    return float(np.where(margins >= 0, margins, VIOLATION_FACTOR * margins).sum())


def widest_margins(
    rivals: Rivals, scale: FloatArray, penalty: float, watch: Watch, *, strict: bool
) -> tuple[FloatArray, Result]:
    """Weights of the program and what the engine says; `strict` allows no violation.

    Weights are zero when the engine has none to offer.
    """
    if not rivals.num_groups:
        nothing = np.zeros(0)
        return np.zeros(scale.size), Result(Status.OPTIMAL, nothing, nothing, "no rivals", "")
    unit = float(np.abs(rivals.rows * scale).max()) or 1.0
    model = _model(rivals, scale / unit, penalty / unit, strict)
    result = run_highs(model, Engine.SIMPLEX, watch, threads=1)
    found = result.columns[: scale.size]
    if found.size < scale.size or not np.isfinite(found).all():
        return np.zeros(scale.size), result
    return np.asarray(scale * np.clip(found, -1.0, 1.0)), result


def _model(rivals: Rivals, scale: FloatArray, penalty: float, strict: bool) -> LinearModel:
    """Columns: v, sizes s >= |v|, margins m, violations n; rows as in the docstring, all >= 0."""
    count, groups, num_rows = scale.size, rivals.num_groups, rivals.group.size
    of_group = sparse.csr_array(
        (np.ones(num_rows), (np.arange(num_rows), rivals.group)), shape=(num_rows, groups)
    )
    rows, required = (sparse.csr_array(part * scale) for part in (rivals.rows, rivals.required))
    cost, margin = sparse.eye_array(count), sparse.eye_array(groups)
    matrix = sparse.block_array(
        [
            [rows, None, -of_group, None],
            [required, None, None, None],
            [cost, cost, None, None],
            [-cost, cost, None, None],
            [None, None, margin, margin],
        ],
        format="csr",
    )
    sizes = (count, count, groups, groups)
    violation = 0.0 if strict else INFINITY
    return LinearModel(
        columns=matrix.T.tocsr(),
        cost=np.repeat([0.0, penalty, -1.0, VIOLATION_FACTOR - 1], sizes),
        lower=np.repeat([-1.0, 0.0, -INFINITY, 0.0], sizes),
        upper=np.repeat([1.0, 1.0, INFINITY, violation], sizes),
        row_lower=np.zeros(matrix.shape[0]),
        row_upper=np.full(matrix.shape[0], INFINITY),
    )
