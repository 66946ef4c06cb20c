"""From the name of a method to the solver: for a run with its settings, for a study as it is."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, cast

from journeyman import features, solvers
from journeyman.features import Features
from journeyman.policy import Policy
from journeyman.problem import Apprenticeship
from journeyman.runs.description import (
    ASKING,
    CLASSICS,
    METHODS,
    InvalidSettings,
    SolverDescription,
    wrong_setting,
)
from journeyman.solvers import (
    BandedProgram,
    ColumnGeneration,
    LinearProgram,
    SmoothedProgram,
    Solver,
)
from journeyman.solvers.solve import Choice, default_solver

EXACT: dict[str, type[LinearProgram | ColumnGeneration | SmoothedProgram | BandedProgram]] = {
    "linear-program": LinearProgram,
    "banded-program": BandedProgram,
    "column-generation": ColumnGeneration,
    "smoothed-program": SmoothedProgram,
}
BY_FEATURES: Mapping[str, str] = {
    "reduced-program": "ReducedProgram",
    "primal-dual": "StochasticPrimalDual",
    "sgd-al": "StochasticSubgradient",
}
"""The solvers over features, by name: the modules of some load the compiler."""


def chosen_solver(asked: SolverDescription, problem: Apprenticeship, seed: int) -> Choice:
    """The solver that a description asks for, with its settings; why it was chosen, where the
    description leaves that open.
    """
    if asked.name == "auto":
        chosen, reason = default_solver(problem, limited=asked.memory_gb is not None)
        limits = {"time_limit": _time_limit(asked), "tolerance": asked.tolerance}
        return Choice(_within_memory(asked, replace(chosen, **_set(limits))), reason)
    return Choice(_within_memory(asked, _named_solver(asked, problem, seed)), "")


def _within_memory(asked: SolverDescription, solver: Any) -> Solver:
    """The solver with its memory limit, where one is set; refused by one that cannot keep to it."""
    if asked.memory_gb is None:
        return cast(Solver, solver)
    if not asked.memory_gb > 0:
        raise wrong_setting("solver.memory_gb", asked.memory_gb, "Give gigabytes above 0")
    if not hasattr(solver, "memory_limit"):
        raise InvalidSettings(
            f"solver.memory_gb = {asked.memory_gb!r} (--memory-gb), and this solver, "
            f"{type(solver).__name__}, keeps to no limit of memory",
            "Leave it out, or choose column-generation, smoothed-program or banded-program",
        )
    return cast(Solver, replace(solver, memory_limit=asked.memory_gb * 1e9))


def _named_solver(asked: SolverDescription, problem: Apprenticeship, seed: int) -> Solver:
    given: dict[str, Any] = {"time_limit": _time_limit(asked)}
    if asked.name in CLASSICS:
        return _classic(asked, given | {"accuracy": asked.accuracy, "seed": seed})
    if asked.tolerance is not None:
        given["tolerance"] = asked.tolerance
    if asked.name in EXACT:
        return EXACT[asked.name](**given)
    if asked.name == "reduced-program":
        return solvers.ReducedProgram(_features(asked.cells, problem), **given)
    if asked.name == "primal-dual":
        return solvers.StochasticPrimalDual(
            _features(asked.cells, problem), accuracy=asked.accuracy, time_limit=asked.time_limit,
            seed=seed,
        )  # fmt: skip
    return solvers.StochasticSubgradient(
        _features(asked.cells, problem), batch=asked.batch, steps=asked.steps,
        accuracy=asked.accuracy, time_limit=asked.time_limit, seed=seed,
    )  # fmt: skip


def compared_solver(
    name: str, *, cells: int = 64, expert: Policy | None = None
) -> Solver | Callable[[Apprenticeship], Solver]:
    """A method by its name with its own defaults; over features, what makes it for a problem.

    >>> compared_solver("linear-program")
    LinearProgram(engine=None, threads=1, time_limit=None, tolerance=1e-07)
    """
    if name in EXACT:
        return EXACT[name]()
    if name in BY_FEATURES:
        return lambda problem: getattr(solvers, BY_FEATURES[name])(_features(cells, problem))
    if name in ASKING:
        return _asking(name, expert)
    if name not in CLASSICS:
        raise InvalidSettings(
            f"there is no method {name!r}", f"Give some of {', '.join((*METHODS, *ASKING))}"
        )
    solver: Solver = _class(name)()
    return solver


def _asking(name: str, expert: Policy | None) -> Solver:
    if expert is None:
        raise InvalidSettings(
            f"{name} asks the expert, and there is none who could be asked",
            f"Give --expert with a policy beside the files, or leave {name} out",
        )
    solver: Solver = _class(name)(expert)
    return solver


def _class(name: str) -> Any:
    """The class of a classic method."""
    return getattr(solvers, {**CLASSICS, **ASKING}[name])


def _classic(asked: SolverDescription, wanted: dict[str, Any]) -> Solver:
    """A classic method with those settings that it has; others are refused where they were set."""
    kind = _class(asked.name)
    known = {one.name for one in fields(kind)}
    for setting in ("accuracy", "tolerance"):
        if getattr(asked, setting) is not None and setting not in known:
            raise InvalidSettings(
                f"{asked.name} has no {setting}", f"Leave solver.{setting} out for this solver"
            )
    settings = wanted | {"tolerance": asked.tolerance}
    solver: Solver = kind(**_set({name: settings[name] for name in known & set(settings)}))
    return solver


def _features(cells: int, problem: Apprenticeship) -> Features:
    if cells < 1:
        raise InvalidSettings(f"cells = {cells}", "Give at least one cell")
    return features.partition(problem.world, problem.demonstrations, num_cells=cells)


def _time_limit(asked: SolverDescription) -> float | None:
    if asked.time_limit is not None and not asked.time_limit > 0:
        raise wrong_setting("solver.time_limit", asked.time_limit, "Give seconds above 0")
    return asked.time_limit


def _set(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
