"""The exact program end to end: the engines of `LinearProgram` beside CVXPY's defaults.

Time is CPU seconds of one thread for building and solving (journeyman's includes the evaluation of
the policy and the lower bound), the value the gap of the extracted policy by exact evaluation. Each
run has a time limit; what does not finish is shown as such. Loaded packages and compiled code are
warm.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import journeyman as jm
from benchmarks.instances import GRAMMAR, example_of

INSTANCES = ("grid:32:8:0.95", "grid:64:8:0.99", "garnet:1000:8:0.95")
TIME_LIMIT = 30.0


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "instances", nargs="*", default=INSTANCES,
        help=GRAMMAR,
    )  # fmt: skip
    options = parser.parse_args(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    print(f"Solving the exact program (100 demonstrations, seed 0; limit {TIME_LIMIT:.0f} s)")
    for instance in options.instances:
        example = example_of(instance)
        for cost_class in (jm.InfinityBall(), jm.EuclideanBall(), jm.Simplex()):
            _report(instance, example, cost_class)


def _report(instance: str, example: jm.gallery.Example, cost_class: jm.costs.CostClass) -> None:
    world, basis, expert = example
    demos = jm.record(world, expert, trajectories=100, horizon=200, seed=0)
    problem = jm.Apprenticeship(world, basis, demos, cost_class)
    print(f"\n{instance}, {type(cost_class).__name__}")
    print(f"{'':24}{'CPU s':>9}  {'value':>12}  {'lower bound':>12}  outcome")
    engines: list[jm.solvers.Engine | None] = [None]
    if not isinstance(cost_class, jm.EuclideanBall):
        engines += list(jm.solvers.Engine)
    for engine in engines:
        name = "journeyman" if engine is None else f"  engine {engine.name}"
        solver = jm.LinearProgram(engine=engine, time_limit=TIME_LIMIT)
        answer, seconds = _timed(lambda solver=solver: jm.solve(problem, solver))  # type: ignore[misc]
        _row(
            name,
            seconds,
            answer.value,
            answer.lower_bound,
            f"{answer.status.name}, {answer.engine}",
        )
    for solver_name in ("CLARABEL", "HIGHS"):
        if solver_name == "HIGHS" and isinstance(cost_class, jm.EuclideanBall):
            continue
        (value, outcome), seconds = _timed(lambda name=solver_name: _cvxpy(problem, name))  # type: ignore[misc]
        _row(f"CVXPY, {solver_name}", seconds, value, None, outcome)


def _cvxpy(problem: jm.Apprenticeship, solver: str) -> tuple[float | None, str]:
    """CVXPY with a solver's defaults, the extracted policy evaluated exactly."""
    import cvxpy as cp

    world = problem.world
    mu = cp.Variable(world.num_pairs, nonneg=True)
    difference = problem.cost_matrix.T @ mu - problem.target
    objective = {
        "InfinityBall": cp.norm1, "EuclideanBall": cp.norm2, "Simplex": cp.max,
    }[type(problem.cost_class).__name__](difference)  # fmt: skip
    program = cp.Problem(
        cp.Minimize(objective), [world.flow.matrix().T.tocsr() @ mu == world.initial]
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it warns of shows in the status and the value
            program.solve(solver=solver, time_limit=TIME_LIMIT)
    except cp.SolverError as fault:
        return None, str(fault).split(".")[0]
    if mu.value is None:
        return None, str(program.status)
    return problem.gap(jm.policy.extract(world, mu.value)), str(program.status)


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def _row(name: str, seconds: float, value: float | None, bound: float | None, outcome: str) -> None:
    shown = ["-" if number is None else f"{number:.7f}" for number in (value, bound)]
    print(f"{name:24}{seconds:>9.2f}  {shown[0]:>12}  {shown[1]:>12}  {outcome}")


if __name__ == "__main__":
    main(sys.argv[1:])
