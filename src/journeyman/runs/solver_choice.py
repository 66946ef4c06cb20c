"""From the name of a solver in a description to the solver."""

from typing import Any

from journeyman.apprentice import default_solver
from journeyman.errors import InvalidSolver
from journeyman.problem import Apprenticeship, features
from journeyman.problem.features import Features
from journeyman.runs.description import SolverDescription
from journeyman.solvers import ColumnGeneration, LinearProgram, Solver
from journeyman.solvers.reduced_program import ReducedProgram
from journeyman.solvers.stochastic_subgradient import StochasticSubgradient


def chosen_solver(asked: SolverDescription, problem: Apprenticeship, seed: int) -> Solver:
    """The solver that a description asks for, with its settings."""
    if asked.time_limit is not None and not asked.time_limit > 0:
        raise InvalidSolver(f"time_limit = {asked.time_limit}", "Give seconds above 0")
    given: dict[str, Any] = {"time_limit": asked.time_limit}
    if asked.tolerance is not None:
        given["tolerance"] = asked.tolerance
    if asked.name == "auto":
        return _with(default_solver(problem), asked)
    if asked.name == "linear-program":
        return LinearProgram(**given)
    if asked.name == "column-generation":
        return ColumnGeneration(**given)
    if asked.name == "reduced-program":
        return ReducedProgram(_features(asked, problem), **given)
    return StochasticSubgradient(
        _features(asked, problem), batch=asked.batch, steps=asked.steps, accuracy=asked.accuracy,
        time_limit=asked.time_limit, seed=seed,
    )  # fmt: skip


def _features(asked: SolverDescription, problem: Apprenticeship) -> Features:
    if asked.cells < 1:
        raise InvalidSolver(f"cells = {asked.cells}", "Give at least one cell")
    return features.partition(problem.world, problem.demonstrations, num_cells=asked.cells)


def _with(solver: Any, asked: SolverDescription) -> Solver:
    """The default solver with the limits that were asked for."""
    from dataclasses import replace

    limits = {"time_limit": asked.time_limit, "tolerance": asked.tolerance}
    changed: Solver = replace(solver, **{k: v for k, v in limits.items() if v is not None})
    return changed
