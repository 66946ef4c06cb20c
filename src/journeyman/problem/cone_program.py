"""Programs over cones, and Clarabel, which solves them.

minimise <cost, x>   subject to   A x + s = right,  s in (zero, nonnegative, second-order) cones
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from scipy import sparse

from journeyman.arrays import FloatArray, SparseMatrix


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


def clarabel_settings(threads: int, tolerance: float) -> Any:
    """Clarabel's settings with one tolerance for everything."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.max_threads = threads
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    return settings


def clarabel_solver(model: ConeModel, settings: Any) -> Any:
    """Clarabel with a model in it."""
    import clarabel

    size = model.cost.size
    cones = [getattr(clarabel, cone.value)(rows) for cone, rows in model.cones]
    nothing = sparse.csc_array((size, size))
    return clarabel.DefaultSolver(nothing, model.cost, model.matrix, model.right, cones, settings)
