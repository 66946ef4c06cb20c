"""Solvers: one algorithm per file, each a value that holds hyperparameters only."""

from journeyman.solvers.answer import Answer, Relaxation, Solution
from journeyman.solvers.exact.column_generation import ColumnGeneration
from journeyman.solvers.exact.engines import Engine
from journeyman.solvers.exact.linear_program import LinearProgram
from journeyman.solvers.solve import Solver, solve
from journeyman.solvers.status import Status

__all__ = [
    "Answer",
    "ColumnGeneration",
    "Engine",
    "LinearProgram",
    "Relaxation",
    "Solution",
    "Solver",
    "Status",
    "solve",
]
