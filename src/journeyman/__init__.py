"""journeyman: apprenticeship learning with guarantees.

    world (+ costs) -> demonstrations -> problem -> solver -> policy

The public names below are loaded on first use, so that `import journeyman` is quick; their types
stand in `__init__.pyi`.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_ROOMS = {
    "world": ("Flow", "Pairs", "World", "expected_rewards"),
    "costs": ("CostBasis", "CostClass", "EuclideanBall", "InfinityBall", "KnownCost", "Simplex"),
    "policy": ("Occupancy", "Plan", "Policy", "expected_cost", "extract", "occupancy", "plan"),
    "demonstrations": ("Demonstrations", "ExpertExpectation", "clone"),
    "demonstrations.recording": ("record",),
    "problem": (
        "Apprenticeship", "Budget", "Forward", "Program", "Witness", "lower_bound",
        "sharpest_witness",
    ),
    "solvers": (
        "Answer", "Engine", "LinearProgram", "Relaxation", "Solution", "Solver", "Status", "solve",
    ),
    "errors": (
        "InvalidCosts", "InvalidDemonstrations", "InvalidFile", "InvalidInput", "InvalidPolicy",
        "InvalidProblem", "InvalidSolver", "InvalidWorld", "JourneymanError", "MissingExtra",
        "NoSolution",
    ),
}  # fmt: skip
_SUBMODULES = ("gallery", "report", "testing")
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = sorted(["__version__", *_HOMES, *_SUBMODULES])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
