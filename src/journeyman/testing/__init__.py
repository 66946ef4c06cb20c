"""Public helpers for testing worlds and solvers, ours and yours.

`random_world`, `random_problem`, `check_solver` and `check_world` need nothing beyond journeyman;
the Hypothesis strategies live in `journeyman.testing.strategies` (`pip install
'journeyman[testing]'`).
"""

from journeyman.lazy import public_names

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
