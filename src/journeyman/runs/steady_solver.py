"""A solver that can be stopped and continued: what a run gives to `learn`.

Around a solver that draws nothing and is quick there is little to do: it starts again. SGD-AL goes
on from its last state. `learn` may solve more than once, with lowered budgets: every solve has its
own checkpoints.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from journeyman.errors import InvalidSolver
from journeyman.problem import Program
from journeyman.runs.checkpoints import Checkpoints
from journeyman.runs.interruption import Stop
from journeyman.solvers import Answer, Solver
from journeyman.solvers.reduced.stochastic_subgradient import StochasticSubgradient
from journeyman.solvers.watch import Watch


class SteadySolver:
    """Runs a solver, keeps its states, and raises `Stop` when it was interrupted."""

    def __init__(
        self,
        solver: Solver,
        directory: Path,
        tell: Callable[[str], None],
        checkpoint_every: float | None = None,
    ) -> None:
        self.solver, self.directory, self.tell = solver, directory, tell
        self.checkpoint_every = checkpoint_every
        if checkpoint_every is not None and not isinstance(solver, StochasticSubgradient):
            raise InvalidSolver(
                f"checkpoint_every = {checkpoint_every}, but {type(solver).__name__} keeps no "
                "states: when it is interrupted it starts again",
                "Leave it out, or choose the solver sgd-al",
            )
        self.solves = 0
        self._checkpoints: Checkpoints | None = None

    @property
    def time_limit(self) -> float | None:
        return self.solver.time_limit

    def keep(self) -> None:
        """Look for a new state; to be called now and then while the solver runs."""
        if self._checkpoints is not None:
            self._checkpoints.keep()

    def forget_later_solves(self) -> None:
        """Drop the states of all solves but the first: they follow from an answer that may change
        when the first one stops elsewhere."""
        for place in self.directory.glob("solve-*"):
            if place.name != "solve-1":
                shutil.rmtree(place)

    def run(self, problem: Program, watch: Watch, /) -> Answer:
        """Solve `problem` under `watch`; called by `jm.solve`."""
        self.solves += 1
        watch.task = type(self.solver).__name__
        if isinstance(self.solver, StochasticSubgradient):
            answer = self._continued(self.solver, problem, watch)
        else:
            answer = self.solver.run(problem, watch)
        if watch.interrupted:
            raise Stop
        return answer

    def _continued(self, solver: StochasticSubgradient, problem: Program, watch: Watch) -> Answer:
        self._checkpoints = Checkpoints(self.directory / f"solve-{self.solves}")
        step = self._checkpoints.mend()
        steady = replace(
            solver, checkpoint=self._checkpoints.latest, checkpoint_every=self.checkpoint_every
        )
        if step is not None:
            self.tell(f"going on from step {step}")
        answer = steady.run(problem, watch)
        self._checkpoints.keep()
        return answer
