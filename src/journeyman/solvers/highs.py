"""HiGHS: linear programs passed as arrays, with the engine set explicitly and checked afterwards.

HiPO comes with the package highspy-extras. Two traps are avoided here: asked for "ipm", HiGHS
silently runs HiPO when it is installed; asked for "hipo" without it, it reports an error and then
solves with another engine. So an engine is always named, its acceptance is checked, and the log
is read for the engine that really ran.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from journeyman.errors import InvalidSolver, MissingExtra
from journeyman.solvers.engine import Engine, Result
from journeyman.solvers.occupancy_program import LinearModel
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

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
                return watch.verdict
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
