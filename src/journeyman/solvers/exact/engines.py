"""The general engines behind `LinearProgram`: their names, what they are given and what they leave.

Whatever an engine is made for, it is handed the same `LinearModel` and returns the same `Result`.

*HiGHS*: programs are passed as arrays, with the engine set explicitly and checked afterwards. HiPO
comes with the package highspy-extras. Two traps are avoided: asked for "ipm", HiGHS silently runs
HiPO when it is installed; asked for "hipo" without it, it reports an error and then solves with
another engine. So an engine is always named, its acceptance is checked, and the log is read for the
engine that really ran.

*Clarabel*: programs in conic form,

    minimise <cost, x>   subject to   A x + s = right,  s in (zero, nonnegative, second-order) cones

A linear model is handed over in one of two forms. `conic_form` keeps its columns as x. `dual_form`
makes its rows the variables: for the exact program these are values V, cost weights w and budget
prices xi,

    maximise    <initial, V> - <w, target> - <xi, b>
    subject to  B V - discount P V <= Psi w + D xi,   w in W,   xi >= 0

and the occupancy measure is the multiplier of the rows. It has several times fewer variables and a
smaller system to factorise, its multipliers are positive by construction, and a Euclidean ball is a
cone of its own: the weights have norm at most 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix
from journeyman.errors import InvalidSolver, MissingExtra
from journeyman.problem.cone_program import Cone, ConeModel, clarabel_settings, clarabel_solver
from journeyman.solvers.exact.occupancy_program import LinearModel
from journeyman.solvers.running import Status, Watch


class Engine(Enum):
    """Three engines of HiGHS, and Clarabel."""

    SIMPLEX = "simplex"
    IPX = "ipx"
    HIPO = "hipo"
    CLARABEL = "clarabel"


@dataclass(frozen=True)
class Effort:
    """How far value and lower bound of the answer may be apart, relative to 2N/(1 - discount), and
    how many threads an engine may use."""

    tolerance: float
    threads: int
    horizon: float = 1.0
    """1/(1 - discount): objectives can be of this size."""
    careful: bool = False
    """As exact as the engine can be, whatever the tolerance."""


@dataclass(frozen=True, eq=False)
class Result:
    """The last iterate: a value per column and a price per row of the model.

    The price of a row is the change of the objective when its right-hand side rises by one.
    """

    status: Status
    columns: FloatArray
    row_duals: FloatArray
    engine: str
    """The engine that really ran, with its version."""
    log: str


def run_engine(model: LinearModel, engine: Engine, effort: Effort, watch: Watch) -> Result:
    """Solve a linear model, reporting to `watch` and stopping when it says so."""

    if engine is Engine.CLARABEL:
        return run_dual(model, effort, watch)
    return run_highs(model, engine, watch, effort.threads)


FEASIBILITY_TOLERANCE = 1e-9
DEPENDENT_EQUATIONS = 1 << 10
"""The rule of the presolve that is switched off: flow equations are independent, and looking for
dependent ones takes most of the time when rows are long."""
SMALL_PROGRAM = 2000
"""Pairs up to which the simplex method is at least as fast as the interior points of HiGHS."""


TRACES = {
    Engine.SIMPLEX: "simplex solver",
    Engine.IPX: "Interior point solve",
    Engine.HIPO: "Hipo",
}
"""The engines of HiGHS, with the words that show in its log when they run."""


def run_highs(model: LinearModel, engine: Engine, watch: Watch, threads: int) -> Result:
    """Solve a model, reporting to `watch` and stopping when it says so."""
    return HighsModel(model, engine, threads).run(watch)


class HighsModel:
    """A model in HiGHS. IPX, less exact by itself, moves on to a vertex; HiPO does not need to."""

    _scheduler_threads: int | None = None

    def __init__(self, model: LinearModel, engine: Engine, threads: int) -> None:
        import highspy

        self._lines: list[str] = []
        self._highs: Any = highspy.Highs()
        self._set("log_to_console", False)
        self._use_threads(threads)
        self._set("run_crossover", "on" if engine is Engine.IPX else "off")
        self._set("primal_feasibility_tolerance", FEASIBILITY_TOLERANCE)
        self._set("dual_feasibility_tolerance", FEASIBILITY_TOLERANCE)
        self._set("presolve_rule_off", DEPENDENT_EQUATIONS)
        if self._highs.setOptionValue("solver", engine.value) != highspy.HighsStatus.kOk:
            raise MissingExtra("highspy-extras (the HiPO engine of HiGHS)", "hipo")
        self._pass(model)

    def _set(self, option: str, value: Any) -> None:
        import highspy

        if self._highs.setOptionValue(option, value) != highspy.HighsStatus.kOk:
            raise InvalidSolver(f"HiGHS refused {option} = {value!r}", "Choose another value")

    def _use_threads(self, threads: int) -> None:
        """HiGHS has one pool per process, which must be emptied before its size can change."""
        import highspy

        if HighsModel._scheduler_threads not in (None, threads):
            highspy.Highs.resetGlobalScheduler(True)
        HighsModel._scheduler_threads = threads
        self._set("threads", threads)

    def _pass(self, model: LinearModel) -> None:
        import highspy

        matrix = model.columns
        num_columns, num_rows = matrix.shape
        self._num_columns, self._num_rows = num_columns, num_rows
        accepted = self._highs.passModel(
            num_columns, num_rows, matrix.nnz, int(highspy.MatrixFormat.kColwise),
            int(highspy.ObjSense.kMinimize), 0.0,
            model.cost, model.lower, model.upper, model.row_lower, model.row_upper,
            matrix.indptr.astype(np.int32, copy=False), matrix.indices.astype(np.int32, copy=False),
            matrix.data, np.zeros(num_columns, dtype=np.int32),
        )  # fmt: skip
        self._accepted = accepted != highspy.HighsStatus.kError

    def run(self, watch: Watch) -> Result:
        """Solve under `watch`."""
        import highspy

        if not self._accepted:
            nothing = np.full(self._num_columns, np.nan), np.full(self._num_rows, np.nan)
            return Result(Status.FAILED, *nothing, self._label(), "HiGHS refused the model")
        kinds = highspy.cb.HighsCallbackType
        self._lines.clear()

        def callback(kind: Any, message: str, out: Any, into: Any, _: Any) -> None:
            if kind == kinds.kCallbackLogging:
                self._lines.append(message)
                return
            count = max(out.simplex_iteration_count, out.ipm_iteration_count)
            if watch.report(count, out.objective_function_value):
                into.user_interrupt = True

        self._highs.setCallback(callback, None)
        for kind in (
            kinds.kCallbackLogging, kinds.kCallbackIpmInterrupt, kinds.kCallbackSimplexInterrupt,
        ):  # fmt: skip
            self._highs.startCallback(kind)
        self._set("time_limit", self._highs.getRunTime() + watch.remaining)
        with watch.engine():
            self._highs.run()
        solution = self._highs.getSolution()
        return Result(
            self._status(watch),
            np.array(solution.col_value),
            np.array(solution.row_dual),
            self._label(),
            "".join(self._lines),
        )

    def _status(self, watch: Watch) -> Status:
        import highspy

        kinds = highspy.HighsModelStatus
        match self._highs.getModelStatus():
            case kinds.kOptimal:
                return Status.OPTIMAL
            case kinds.kInfeasible | kinds.kUnboundedOrInfeasible:
                return Status.INFEASIBLE  # measures have fixed mass, so nothing is unbounded
            case kinds.kTimeLimit:
                return Status.TIME_LIMIT
            case kinds.kInterrupt:
                return watch.stop_status
            case kinds.kUnknown:
                return Status.INACCURATE
            case _:
                return Status.FAILED

    def _label(self) -> str:
        log = "".join(self._lines)
        ran = [engine.value for engine, trace in TRACES.items() if trace in log]
        return f"HiGHS {self._highs.version()} {'+'.join(ran) or 'presolve alone'}"


def has_hipo() -> bool:
    """Whether HiPO is installed."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    return bool(highs.setOptionValue("solver", Engine.HIPO.value) == highspy.HighsStatus.kOk)


def engines_for(num_pairs: int, asked: Engine | None) -> Sequence[Engine]:
    """The engine of HiGHS to use, and one behind it unless one was asked for."""
    if asked is not None:
        return (asked,)
    if num_pairs > SMALL_PROGRAM and has_hipo():
        return (Engine.HIPO, Engine.SIMPLEX)
    return (Engine.SIMPLEX, Engine.IPX)


CLARABEL_TOLERANCE = 1e-10
"""Asked of Clarabel by default; what it then reaches is measured, not believed."""
CLARABEL_SHARE = 0.1
"""Of an effort's tolerance, asked of Clarabel in dual form: value and bound of the answer then
differ by less than the tolerance."""
LONG_HORIZON = 100.0
"""Beyond it objectives are so large that their difference may be larger in proportion."""
FEASIBILITY_SHARE = 0.3
"""Of that, for what the measure misses: it is added up over all states."""
FILLED = 230
"""Entries per variable from which a factor is better computed by blocks. Clarabel's own choice
takes blocks too early: on grids beyond 64 x 64 they cost it a factor of three."""


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
    wanted = (
        CLARABEL_TOLERANCE
        if effort.careful
        else max(CLARABEL_SHARE * effort.tolerance, CLARABEL_TOLERANCE)
    )
    settings = clarabel_settings(effort.threads, wanted)
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
    return _run(model, clarabel_settings(threads, CLARABEL_TOLERANCE), watch, is_dual=False)


def _run(model: ConeModel, settings: Any, watch: Watch, *, is_dual: bool) -> Result:
    import clarabel

    sign = -1 if is_dual else 1
    solver = clarabel_solver(model, settings)
    if is_dual and solver.get_info().linsolver.nnzL > FILLED * model.cost.size:
        settings.direct_solve_method = "faer"
        solver = clarabel_solver(model, settings)
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
            return watch.stop_status
        case _:
            return Status.FAILED
