"""The promises every solver makes, as one call: `check_solver(MySolver())`."""

import numpy as np

from journeyman.costs import EuclideanBall, InfinityBall, Simplex
from journeyman.problem import Program, lower_bound
from journeyman.solvers import Solver, Status, solve
from journeyman.testing.random_worlds import Shape, random_problem


def check_solver(solver: Solver, *, classes: tuple[type, ...] = (), seeds: int = 3) -> None:
    """Run `solver` on small problems of every shape and check what any answer must fulfil.

    - The policy is a law over the actions of the problem's own world.
    - `value` is the gap of that policy, recomputed; `lower_bound` follows from the witness,
      recomputed; and they are in order.
    - OPTIMAL means that they agree to 1e-6 of the trivial bound.
    - The same call gives the same answer.

    `classes` restricts the cost classes for solvers that serve only some of them.
    """
    for cost_class in classes or (InfinityBall, EuclideanBall, Simplex):
        for shape in Shape:
            for seed in range(seeds):
                where = f"{cost_class.__name__}, {shape.name}, seed {seed}"
                _check(solver, where, random_problem(seed, cost_class(), shape=shape))


def _check(solver: Solver, where: str, problem: Program) -> None:
    answer, again = solve(problem, solver), solve(problem, solver)
    unit = problem.trivial_bound
    _require(isinstance(answer.status, Status), where, "status is not a Status")
    _require(answer.policy.pairs == problem.world.pairs, where, "policy of another world")
    value = problem.gap(answer.policy)
    _require(abs(answer.value - value) <= 1e-9 * unit, where, f"value {answer.value} != {value}")
    bound = lower_bound(problem, answer.witness)
    _require(abs(answer.lower_bound - bound) <= 1e-9 * unit, where, "lower bound is not its own")
    _require(bound <= value + 1e-9 * unit, where, f"lower bound {bound} above value {value}")
    if answer.status is Status.OPTIMAL:
        _require(value - bound <= 1e-6 * unit, where, f"OPTIMAL with a gap of {value - bound}")
    same = np.array_equal(answer.policy.per_pair, again.policy.per_pair)
    _require(same, where, "two runs gave different policies")


def _require(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise AssertionError(f"{where}: {what}")
