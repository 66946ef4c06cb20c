"""Checks of hyperparameters, with one wording for all solvers."""

from typing import Any

import numpy as np

from journeyman.arrays import require_between, require_whole
from journeyman.errors import InvalidSolver


def require_time_limit(time_limit: Any) -> None:
    """Seconds above 0, or None."""
    if time_limit is not None:
        require_between(
            "time_limit", time_limit, 0, np.inf, InvalidSolver, "Give seconds above 0, or None"
        )


def require_count(name: str, value: Any, *, least: int = 1) -> None:
    """A whole number of at least `least`."""
    require_whole(name, value, least, InvalidSolver)


def require_positive(name: str, value: Any, *, below: float = np.inf) -> None:
    """A number strictly between 0 and `below`."""
    remedy = "Give a positive number" + (f" below {below:g}" if np.isfinite(below) else "")
    require_between(name, value, 0, below, InvalidSolver, remedy)


def require_not_negative(name: str, value: Any, *, at_most: float = np.inf) -> None:
    """A finite number from 0 to `at_most`."""
    number = hasattr(value, "__float__") and not isinstance(value, str)
    if not number or not (np.isfinite(float(value)) and 0 <= float(value) <= at_most):
        limit = f" to {at_most:g}" if np.isfinite(at_most) else ""
        raise InvalidSolver(f"{name} = {value!r}", f"Give a finite number from 0{limit}")
