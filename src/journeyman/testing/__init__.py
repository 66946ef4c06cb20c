"""Public helpers for testing worlds and solvers, ours and yours.

`random_world`, `random_problem`, `check_solver` and `check_world` need nothing beyond journeyman;
the Hypothesis strategies live in `journeyman.testing.strategies` (`pip install
'journeyman[testing]'`).
"""

from journeyman.testing.random_worlds import Shape, random_problem, random_world
from journeyman.testing.solver_conformance import check_solver
from journeyman.testing.world_conformance import check_world

__all__ = ["Shape", "check_solver", "check_world", "random_problem", "random_world"]
