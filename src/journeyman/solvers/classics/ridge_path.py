"""From a large ridge to a small one, until the expert is matched or provably cannot be.

    minimise over u   f(u) + ridge/2 |u|^2        (f of `entropy_dual`)

The minimiser's mismatch is z = ridge u, so z falls with the ridge: to zero where a policy matches
the expert, to the least possible |z| where none does. The latter is proven by weak duality: for
every policy

    |z|_2 >= <z, u>/|u|_2 >= ( min over policies of their cost under u  -  the expert's )/|u|_2

where costs are in the units of `entropy_dual` and a plan bounds the minimum (`least_cost_bound`).
"""

import math

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.policy import plan
from journeyman.problem import least_cost_bound
from journeyman.solvers.classics.entropy_dual import DualPoint, EntropyDual
from journeyman.solvers.classics.truncated_newton import (
    newton_step,
    ridged_gradient,
    ridged_value,
)
from journeyman.solvers.status import Status
from journeyman.solvers.watch import Watch

FIRST_RIDGE, LOWERED = 1e-2, 0.1
CENTRED = 0.1
"""A ridge is left when the gradient is this share of the mismatch."""
NEAR = 1.25
"""A mismatch this many times the least possible one is close enough to it."""
FIRST_STEPS = 100
"""Of L-BFGS; what is left then is left to Newton's method."""
LAST_DIGIT = 5e-4
"""What rounding to four digits can add to a figure."""


class Stopped(Exception):
    """The search ended before it was done."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class RidgePath:
    """Holds the point reached; `follow` goes on until it is done or raises `Stopped`.

    The mismatch rises for a while whenever the ridge is lowered: who was stopped calls `turn_back`.
    """

    def __init__(
        self, dual: EntropyDual, tolerance: float, watch: Watch, max_iterations: int
    ) -> None:
        self.dual, self.tolerance = dual, tolerance
        self.watch, self.max_iterations = watch, max_iterations
        self.iterations = 0
        self.least = 0.0
        """No policy's mismatch is below this."""
        self.ridge = FIRST_RIDGE
        self.point = dual.at(np.zeros(dual.target.size))
        self._closest = self.ridge, self.point

    @property
    def mismatch(self) -> float:
        return float(np.linalg.norm(self.point.mismatch))

    @property
    def words(self) -> str:
        """What was reached, for the log."""
        reached = (
            f"mismatch {self.mismatch:.3g} (in units of {self.dual.size:.4g}) with ridge "
            f"{self.ridge:.3g}"
        )
        if self.mismatch <= self.tolerance:
            return f"matched: {reached}"
        if self.least > self.tolerance:
            proven = f"{self.least * (1 - LAST_DIGIT):.4g}"
            return f"out of reach: {reached}, no policy is below {proven}"
        return f"not matched: {reached}"

    def follow(self, last: float | None) -> None:
        """Lower the ridge to `last`, or until the policy matches or nearly the best one does."""
        self.ridge = FIRST_RIDGE if last is None else max(FIRST_RIDGE, last)
        self._first()
        while True:
            self._descend(CENTRED * self.mismatch)
            if last is None and self.mismatch <= self.tolerance:
                return
            if self.ridge == last or (last is None and self._is_near_the_least()):
                self._descend(self.tolerance)
                if self.ridge == last or self._is_near_the_least():
                    return
            self.ridge = max(LOWERED * self.ridge, last or 0.0)

    def turn_back(self) -> None:
        """Go back to the point of least mismatch so far."""
        self.ridge, self.point = self._closest

    def _is_near_the_least(self) -> bool:
        """Whether matching is proven impossible, and no policy is much closer."""
        self.least = max(self.least, self._least_mismatch())
        return self.least > self.tolerance and self.mismatch <= NEAR * self.least

    def _least_mismatch(self) -> float:
        size = float(np.linalg.norm(self.point.u))
        if size == 0.0:
            return 0.0
        direction = self.point.u / size
        world = self.dual.world
        cost = self.dual.problem.cost_of(self.dual.weights(direction))
        cheapest = least_cost_bound(world, cost, plan(world, cost).values)
        return self.dual.rate * cheapest - float(direction @ self.dual.target)

    def _first(self) -> None:
        """L-BFGS from wherever the point is."""
        from scipy.optimize import minimize

        trial = self.point

        def evaluate(u: FloatArray) -> tuple[float, FloatArray]:
            nonlocal trial
            trial = self.dual.at(u, near=trial)
            return ridged_value(trial, self.ridge), ridged_gradient(trial, self.ridge)

        def accept(u: FloatArray) -> None:
            self._reach(trial if np.array_equal(u, trial.u) else self.dual.at(u, near=trial))

        minimize(
            evaluate, self.point.u, jac=True, method="L-BFGS-B", callback=accept,
            options={"maxiter": FIRST_STEPS, "gtol": CENTRED * FIRST_RIDGE, "ftol": 0.0},
        )  # fmt: skip

    def _descend(self, wanted: float) -> None:
        """Newton's method at this ridge until the gradient is below `wanted`."""
        while np.linalg.norm(ridged_gradient(self.point, self.ridge)) > max(
            wanted, self.tolerance / 4
        ):
            there = newton_step(self.point, self.ridge, lambda: self.watch.must_stop)
            if there is None:
                raise Stopped(Status.INACCURATE)
            self._reach(there)

    def _reach(self, point: DualPoint) -> None:
        """Move there; stop when it is time to."""
        value = ridged_value(point, self.ridge)
        self.iterations += 1
        if not math.isfinite(value):
            raise Stopped(Status.NOT_FINITE)
        self.point = point
        if self.mismatch < np.linalg.norm(self._closest[1].mismatch):
            self._closest = self.ridge, point
        if self.watch.report(self.iterations, value):
            raise Stopped(self.watch.verdict)
        if self.iterations >= self.max_iterations:
            raise Stopped(Status.STEP_LIMIT)
