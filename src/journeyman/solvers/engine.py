"""The general engines behind `LinearProgram`: their names, what they are given and what they leave.

Whatever an engine is made for, it is handed the same `LinearModel` and returns the same `Result`.
"""

from dataclasses import dataclass
from enum import Enum

from journeyman.arrays import FloatArray
from journeyman.solvers.occupancy_program import LinearModel
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch


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
    from journeyman.solvers.cone import run_dual
    from journeyman.solvers.highs import run_highs

    if engine is Engine.CLARABEL:
        return run_dual(model, effort, watch)
    return run_highs(model, engine, watch, effort.threads)
