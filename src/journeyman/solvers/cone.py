"""Clarabel: the exact program for the Euclidean ball, in conic form.

    minimise t   subject to   (B - discount P)' mu = initial,  mu >= 0,  <mu, d_j> <= b_j,
                              |scale * (Psi' mu - target)|_2 <= t

The norm is kept as a second-order cone and not squared, so its dual is a weight vector of the ball.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray
from journeyman.problem import Program
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

TOLERANCE = 1e-10
"""Asked of Clarabel; what it then reaches is measured, not believed."""


@dataclass(frozen=True, eq=False)
class ConeResult:
    """Last iterate: measure, weights of the ball, budget prices."""

    status: Status
    measure: FloatArray
    weights: FloatArray
    prices: FloatArray
    engine: str


@dataclass(frozen=True, eq=False)
class ConeModel:
    """Data of Clarabel's standard form: minimise <cost, x> with A x + s = b, s in the cones."""

    matrix: object
    right: FloatArray
    cost: FloatArray
    num_flow: int
    num_signs: int
    num_budgets: int
    scale: FloatArray


def cone_program(problem: Program) -> ConeModel:
    """The conic program of a problem with the Euclidean ball."""
    world, count = problem.world, problem.basis.num_costs
    scale = problem.cost_class.scaling(count)
    costs = sparse.csr_array(problem.cost_matrix) @ sparse.diags_array(scale)
    over_measure = sparse.hstack(
        [
            world.flow.matrix(),
            -sparse.eye_array(world.num_pairs),
            sparse.csr_array(problem.budget_matrix),
            sparse.csr_array((world.num_pairs, 1)),
            -costs,
        ],
        format="csr",
    )
    num_rows = over_measure.shape[1]
    norm_row = num_rows - count - 1
    over_norm = sparse.csr_array((-np.ones(1), ([0], [norm_row])), shape=(1, num_rows))
    return ConeModel(
        matrix=sparse.vstack([over_measure, over_norm], format="csr").T.tocsc(),
        right=np.concatenate(
            [
                world.initial, np.zeros(world.num_pairs), problem.limits, np.zeros(1),
                -scale * problem.target,
            ]
        ),
        cost=np.append(np.zeros(world.num_pairs), 1.0),
        num_flow=world.num_states,
        num_signs=world.num_pairs,
        num_budgets=len(problem.constraints),
        scale=scale,
    )  # fmt: skip


def run_cone(model: ConeModel, watch: Watch, threads: int) -> ConeResult:
    """Solve with Clarabel, reporting to `watch` and stopping when it says so."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = threads
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE
    cones = [
        clarabel.ZeroConeT(model.num_flow),
        clarabel.NonnegativeConeT(model.num_signs + model.num_budgets),
        clarabel.SecondOrderConeT(model.scale.size + 1),
    ]
    size = model.cost.size
    solver = clarabel.DefaultSolver(
        sparse.csc_array((size, size)), model.cost, model.matrix, model.right, cones, settings
    )
    solver.set_termination_callback(lambda info: watch.report(info.iterations, info.cost_primal))
    found = solver.solve()
    duals = np.array(found.z)
    budgets = model.num_flow + model.num_signs
    return ConeResult(
        _status(str(found.status), watch),
        np.array(found.x)[:-1],
        -model.scale * duals[duals.size - model.scale.size :],
        duals[budgets : budgets + model.num_budgets],
        f"Clarabel {clarabel.__version__}",
    )


def _status(word: str, watch: Watch) -> Status:
    match word:
        case "Solved" | "AlmostSolved" | "InsufficientProgress" | "MaxIterations":
            return Status.OPTIMAL  # provisional: the bounds decide
        case "PrimalInfeasible" | "AlmostPrimalInfeasible":
            return Status.INFEASIBLE
        case "CallbackTerminated":
            return Status.INTERRUPTED if watch.interrupted else Status.TIME_LIMIT
        case _:
            return Status.FAILED
