"""The one loop of iterative methods: limits, Ctrl-C, non-finite figures, progress."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch


@dataclass(frozen=True)
class Advance:
    """What one iteration tells the loop."""

    objective: float
    """What the method minimises, at its present iterate."""
    lower_bound: float | None = None
    """Proven for that objective, if anything is."""
    converged: bool = False


def iterate(
    advance: Callable[[], Advance], watch: Watch, max_iterations: int
) -> tuple[Status, int]:
    """Call `advance` until it has converged or something else ends the run; count the calls.

    There is always a first call, so that every run ends with an iterate. A method keeps the best
    iterate it has seen; the loop only says when to stop.
    """
    for iteration in range(1, max_iterations + 1):
        step = advance()
        if not math.isfinite(step.objective):
            return Status.NOT_FINITE, iteration
        must_stop = watch.report(iteration, step.objective, step.lower_bound)
        if step.converged:
            return Status.CONVERGED, iteration
        if must_stop:
            return watch.verdict, iteration
    return Status.STEP_LIMIT, max_iterations
