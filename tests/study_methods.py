"""Methods and problems for tests of studies; a module of their own, so that workers find them."""

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import journeyman as jm
from journeyman.solvers.running import Status


def grid():
    return jm.gallery.grid(4, macro_cells=2)


def drawn(seed, trajectories=30):
    """Every seed has demonstrations of its own."""
    world, basis, expert = grid()
    demos = jm.record(world, expert, trajectories=trajectories, horizon=40, seed=seed)
    return jm.Apprenticeship(world, basis, demos)


def declared():
    """A problem without demonstrations."""
    world, basis, expert = grid()
    target = jm.occupancy(world, expert).expectations(basis)
    return jm.Apprenticeship(world, basis, jm.ExpertExpectation(target))


@dataclass(frozen=True)
class Noted:
    """The exact program that leaves a line in a file whenever it is asked for more than a try."""

    file: Path
    seed: int = 0
    pause: float = 0.0
    tolerance: float = 1e-7
    time_limit: float | None = None

    def run(self, problem, watch):
        if watch.remaining > 1:
            with self.file.open("a") as stream:
                stream.write(f"{self.seed}\n")
            time.sleep(self.pause)
        return jm.LinearProgram(tolerance=self.tolerance).run(problem, watch)


@dataclass(frozen=True)
class Broken:
    """A method with a fault in it, until its file appears."""

    file: Path
    time_limit: float | None = None

    def run(self, problem, watch):
        if not self.file.exists():
            raise ZeroDivisionError("a fault of the method")
        return jm.LinearProgram().run(problem, watch)


def uniform(problem):
    """An answer without a search."""
    policy, witness = jm.Policy.uniform(problem.world), jm.solve(problem).witness
    return jm.Answer(
        problem, Status.STEP_LIMIT, "test", jm.solvers.Solution.of(problem, policy, witness)
    )


@dataclass(frozen=True)
class Interrupting:
    """Ctrl-C comes while it runs with its seed; it stops gently, or is through before it can."""

    at: int
    too_late: bool = False
    seed: int = 0
    time_limit: float | None = None

    def run(self, problem, watch):
        if self.seed == self.at and watch.remaining > 1:
            os.kill(os.getpid(), signal.SIGINT)
            if self.too_late:
                return replace(uniform(problem), status=Status.CONVERGED)
            while not watch.report(0):
                time.sleep(0.001)
            return jm.Answer(problem, Status.INTERRUPTED, "test", None)
        return jm.LinearProgram().run(problem, watch)
