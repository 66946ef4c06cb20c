"""Clarabel: programs over occupancy measures in conic form.

    minimise <cost, x>   subject to   A x + s = right,  s in (zero, nonnegative, second-order) cones

A linear model is handed over in one of two forms. `conic_form` keeps its columns as x. `dual_form`
makes its rows the variables: for the exact program these are values V, cost weights w and budget
prices xi,

    maximise    <initial, V> - <w, target> - <xi, b>
    subject to  B V - discount P V <= Psi w + D xi,   w in W,   xi >= 0

and the occupancy measure is the multiplier of the rows. It has several times fewer variables and a
smaller system to factorise, its multipliers are positive by construction, and the ball of a
Euclidean class is a cone of its own: the weights have norm at most 1.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix
from journeyman.solvers.engine import Effort, Result
from journeyman.solvers.occupancy_program import LinearModel
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

TOLERANCE = 1e-10
"""Asked of Clarabel unless told otherwise; what it then reaches is measured, not believed."""
SHARE = 0.1
"""Of an effort's tolerance, asked of Clarabel in dual form: value and bound of the answer then
differ by less than the tolerance."""
LONG_HORIZON = 100.0
"""Beyond it objectives are so large that their difference may be larger in proportion."""
FEASIBILITY_SHARE = 0.3
"""Of that, for what the measure misses: it is added up over all states."""
FILLED = 230
"""Entries per variable from which a factor is better computed by blocks. Clarabel's own choice
takes blocks too early: on grids beyond 64 x 64 they cost it a factor of three."""


class Cone(Enum):
    """Where a row's slack has to lie."""

    ZERO = "ZeroConeT"
    NONNEGATIVE = "NonnegativeConeT"
    SECOND_ORDER = "SecondOrderConeT"


@dataclass(frozen=True, eq=False)
class ConeModel:
    """Rows in the order of their cones, each with its number of rows."""

    matrix: SparseMatrix
    right: FloatArray
    cost: FloatArray
    cones: tuple[tuple[Cone, int], ...]


def conic_form(
    model: LinearModel, norm_rows: SparseMatrix | None = None, norm_right: FloatArray | None = None
) -> ConeModel:
    """A linear model whose rows are equations or upper limits, with an optional norm cone.

    Equations come first, then upper limits and bounds of the columns.
    """
    rows = model.columns.T.tocsr()
    equations = model.row_lower == model.row_upper
    limited = ~equations & np.isfinite(model.row_upper)
    identity = sparse.eye_array(model.cost.size, format="csr")
    bounded, capped = np.isfinite(model.lower), np.isfinite(model.upper)
    parts = [rows[equations], rows[limited], -identity[bounded], identity[capped]]
    right = [
        model.row_upper[equations], model.row_upper[limited], -model.lower[bounded],
        model.upper[capped],
    ]  # fmt: skip
    num_equations = int(equations.sum())
    num_inequalities = sum(part.shape[0] for part in parts) - num_equations
    cones = [(Cone.ZERO, num_equations), (Cone.NONNEGATIVE, num_inequalities)]
    if norm_rows is not None and norm_right is not None:
        parts.append(norm_rows)
        right.append(norm_right)
        cones.append((Cone.SECOND_ORDER, norm_right.size))
    matrix = sparse.vstack(parts, format="csc")
    return ConeModel(matrix, np.concatenate(right), model.cost, tuple(cones))


def dual_form(model: LinearModel, normed: slice | None = None) -> ConeModel:
    """The prices of a linear model as variables: one row per column, then one per upper limit.

    Rows must be equations or upper limits, columns free or nonnegative. The prices of the rows in
    `normed` are held to a ball of radius 1: the objective then has the norm of what these rows
    miss, instead of having to meet them.
    """
    parts, right = [model.columns.tocsc()], [model.cost]
    cones = _runs(np.isfinite(model.lower))
    identity = sparse.eye_array(model.row_upper.size, format="csr")
    limited = np.flatnonzero(np.isneginf(model.row_lower))
    if limited.size:
        parts.append(identity[limited])
        right.append(np.zeros(limited.size))
        cones.append((Cone.NONNEGATIVE, limited.size))
    if normed is not None:
        size = normed.stop - normed.start
        parts += [sparse.csr_array((1, identity.shape[1])), -identity[normed]]
        right += [np.ones(1), np.zeros(size)]
        cones.append((Cone.SECOND_ORDER, size + 1))
    matrix = sparse.vstack(parts, format="csc") if len(parts) > 1 else parts[0]
    return ConeModel(matrix, np.concatenate(right), -model.row_upper, tuple(cones))


def _runs(nonnegative: np.ndarray) -> list[tuple[Cone, int]]:
    """The cones of a sequence of columns: the row of a free one is an equation."""
    starts = np.flatnonzero(np.diff(nonnegative, prepend=~nonnegative[:1]))
    sizes = np.diff(np.append(starts, nonnegative.size))
    return [
        (Cone.NONNEGATIVE if nonnegative[start] else Cone.ZERO, int(size))
        for start, size in zip(starts, sizes, strict=True)
    ]


def run_dual(
    model: LinearModel, effort: Effort, watch: Watch, normed: slice | None = None
) -> Result:
    """Solve a linear model with Clarabel in dual form; `normed` is as in `dual_form`.

    One step of refinement is enough there, and refining is a third of Clarabel's time. A ball is
    not held to the share of feasibility, which it often cannot reach.
    """
    wanted = TOLERANCE if effort.careful else max(SHARE * effort.tolerance, TOLERANCE)
    settings = _settings(effort.threads, wanted)
    if not effort.careful:
        settings.tol_gap_abs *= max(1.0, effort.horizon / LONG_HORIZON)
    if normed is None:
        settings.tol_feas *= FEASIBILITY_SHARE
    settings.iterative_refinement_max_iter = 1
    settings.direct_solve_method = "qdldl"
    found = _run(dual_form(model, normed), settings, watch, is_dual=True)
    measure = found.row_duals[: model.cost.size]
    return replace(found, columns=measure, row_duals=found.columns)


def run_cone(model: ConeModel, watch: Watch, threads: int) -> Result:
    """Solve with Clarabel, reporting to `watch` and stopping when it says so."""
    return _run(model, _settings(threads, TOLERANCE), watch, is_dual=False)


def _settings(threads: int, tolerance: float) -> Any:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.max_threads = threads
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    return settings


def _run(model: ConeModel, settings: Any, watch: Watch, *, is_dual: bool) -> Result:
    import clarabel

    sign = -1 if is_dual else 1
    solver = _solver(model, settings)
    if is_dual and solver.get_info().linsolver.nnzL > FILLED * model.cost.size:
        settings.direct_solve_method = "faer"
        solver = _solver(model, settings)
    solver.print_to_buffer()
    solver.set_termination_callback(
        lambda info: watch.report(info.iterations, sign * info.cost_primal)
    )
    with watch.engine():
        found = solver.solve()
    return Result(
        _status(str(found.status), watch, "Dual" if is_dual else "Primal"),
        np.array(found.x),
        np.array(found.z),
        f"Clarabel {clarabel.__version__}",
        solver.get_print_buffer(),
    )


def _solver(model: ConeModel, settings: Any) -> Any:
    import clarabel

    size = model.cost.size
    cones = [getattr(clarabel, cone.value)(rows) for cone, rows in model.cones]
    nothing = sparse.csc_array((size, size))
    return clarabel.DefaultSolver(nothing, model.cost, model.matrix, model.right, cones, settings)


def _status(word: str, watch: Watch, side: str) -> Status:
    """Clarabel's word as ours; the model is infeasible when the form's own side is."""
    match word.removeprefix("Almost"):
        case "Solved":
            return Status.OPTIMAL
        case "InsufficientProgress" | "MaxIterations" | "NumericalError":
            return Status.INACCURATE
        case infeasible if infeasible == f"{side}Infeasible":
            return Status.INFEASIBLE
        case "CallbackTerminated":
            return watch.verdict
        case _:
            return Status.FAILED
