"""Clarabel: programs over occupancy measures in conic form.

    minimise <cost, x>   subject to   A x + s = right,  s in (zero, nonnegative, second-order) cones

Every `LinearModel` has such a form without the last cone. The exact program for the Euclidean ball
adds the rows (t, z) with z = scale * (Psi' mu - target)/N and t >= |z|_2, where N is the largest
cost of the class. The norm is kept as a cone and not squared, so its dual is a weight vector of the
ball.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix
from journeyman.problem import Program
from journeyman.solvers.occupancy_program import INFINITY, LinearModel, flow_program
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

TOLERANCE = 1e-10
"""Asked of Clarabel; what it then reaches is measured, not believed."""


@dataclass(frozen=True, eq=False)
class ConeModel:
    """Rows by cone: equations first, then inequalities, then one second-order cone."""

    matrix: SparseMatrix
    right: FloatArray
    cost: FloatArray
    num_equations: int
    num_inequalities: int
    norm_size: int


@dataclass(frozen=True, eq=False)
class ConeResult:
    """The last iterate, and the duals of the model's rows."""

    status: Status
    columns: FloatArray
    row_duals: FloatArray
    engine: str
    log: str


def conic_form(
    model: LinearModel, norm_rows: SparseMatrix | None = None, norm_right: FloatArray | None = None
) -> ConeModel:
    """A linear model whose rows are equations or upper limits, with an optional norm cone."""
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
    num_equations, num_linear = int(equations.sum()), sum(part.shape[0] for part in parts)
    if norm_rows is not None and norm_right is not None:
        parts.append(norm_rows)
        right.append(norm_right)
    return ConeModel(
        matrix=sparse.vstack(parts, format="csc"),
        right=np.concatenate(right),
        cost=model.cost,
        num_equations=num_equations,
        num_inequalities=num_linear - num_equations,
        norm_size=0 if norm_right is None else norm_right.size,
    )


def euclidean_program(problem: Program) -> ConeModel:
    """The exact program of a problem with the Euclidean ball; its last column is the norm t."""
    scale = problem.cost_class.scaling(problem.basis.num_costs) / problem.cost_unit
    norm_rows = sparse.block_array(
        [
            [None, -sparse.eye_array(1)],
            [-(sparse.csr_array(problem.cost_matrix) @ sparse.diags_array(scale)).T, None],
        ],
        format="csr",
    )
    linear = flow_program(problem)
    with_norm = LinearModel(
        columns=sparse.vstack(
            [linear.columns, sparse.csr_array((1, linear.row_upper.size))], "csr"
        ),
        cost=np.append(linear.cost, 1.0),
        lower=np.append(linear.lower, -INFINITY),
        upper=np.append(linear.upper, INFINITY),
        row_lower=linear.row_lower,
        row_upper=linear.row_upper,
    )
    return conic_form(with_norm, norm_rows, np.append(0.0, -scale * problem.target))


def run_cone(model: ConeModel, watch: Watch, threads: int) -> ConeResult:
    """Solve with Clarabel, reporting to `watch` and stopping when it says so."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.max_threads = threads
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    cones = [
        clarabel.ZeroConeT(model.num_equations),
        clarabel.NonnegativeConeT(model.num_inequalities),
    ]
    if model.norm_size:
        cones.append(clarabel.SecondOrderConeT(model.norm_size))
    size = model.cost.size
    solver = clarabel.DefaultSolver(
        sparse.csc_array((size, size)), model.cost, model.matrix, model.right, cones, settings
    )
    solver.print_to_buffer()
    solver.set_termination_callback(lambda info: watch.report(info.iterations, info.cost_primal))
    with watch.engine():
        found = solver.solve()
    return ConeResult(
        _status(str(found.status), watch),
        np.array(found.x),
        np.array(found.z),
        f"Clarabel {clarabel.__version__}",
        solver.get_print_buffer(),
    )


def _status(word: str, watch: Watch) -> Status:
    match word:
        case "Solved" | "AlmostSolved":
            return Status.OPTIMAL
        case "InsufficientProgress" | "MaxIterations" | "NumericalError":
            return Status.INACCURATE
        case "PrimalInfeasible" | "AlmostPrimalInfeasible":
            return Status.INFEASIBLE
        case "CallbackTerminated":
            return Status.INTERRUPTED if watch.interrupted else Status.TIME_LIMIT
        case _:
            return Status.FAILED
