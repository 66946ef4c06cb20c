"""Public helpers for testing worlds and solvers, ours and yours.

`random_world`, `random_problem` and `check_solver` need nothing beyond journeyman; the Hypothesis
strategies live in `journeyman.testing.strategies` (`pip install 'journeyman[testing]'`).
"""

from journeyman.testing.conformance import check_solver
from journeyman.testing.random_worlds import Shape, random_problem, random_world

__all__ = ["Shape", "check_solver", "random_problem", "random_world"]
