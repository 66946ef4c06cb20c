"""The promises every solver makes, as one call: `check_solver(MySolver())`."""

import numpy as np

from journeyman.costs import EuclideanBall, InfinityBall, Simplex
from journeyman.problem import Program, lower_bound
from journeyman.solvers import Solver, Status, solve
from journeyman.testing.random_worlds import Shape, random_problem
from journeyman.testing.solver_limits import check_hyperparameters, check_limits, require


def check_solver(
    solver: Solver, *, classes: tuple[type, ...] = (), seeds: int = 3, trajectories: int = 0
) -> None:
    """Run `solver` on small problems of every shape and check what any answer must fulfil.

    - The policy is a law over the actions of the problem's own world.
    - `value` is the gap of that policy, recomputed; `lower_bound` follows from the witness,
      recomputed; and they are in order.
    - OPTIMAL means that they agree to 1e-6 of 2N/(1 - discount).
    - The same call gives the same answer.
    - Limits of time and iterations and Ctrl-C end with a status and a policy.
    - Hyperparameters that are not finite are refused.

    `classes` restricts the cost classes for solvers that serve only some of them; `trajectories`
    is for solvers that need demonstrations.
    """
    check_hyperparameters(solver)
    for cost_class in classes or (InfinityBall, EuclideanBall, Simplex):
        for shape in Shape:
            for seed in range(seeds):
                where = f"{cost_class.__name__}, {shape.name}, seed {seed}"
                problem = random_problem(seed, cost_class(), shape=shape, trajectories=trajectories)
                _check(solver, where, problem)
        check_limits(solver, random_problem(0, cost_class(), trajectories=trajectories))


def _check(solver: Solver, where: str, problem: Program) -> None:
    answer, again = solve(problem, solver), solve(problem, solver)
    unit = problem.gap_scale
    require(isinstance(answer.status, Status), where, "status is not a Status")
    require(answer.policy.pairs == problem.world.pairs, where, "policy of another world")
    value = problem.gap(answer.policy)
    require(abs(answer.value - value) <= 1e-9 * unit, where, f"value {answer.value} != {value}")
    bound = lower_bound(problem, answer.witness)
    require(abs(answer.lower_bound - bound) <= 1e-9 * unit, where, "lower bound is not its own")
    require(bound <= value + 1e-9 * unit, where, f"lower bound {bound} above value {value}")
    if answer.status is Status.OPTIMAL:
        require(value - bound <= 1e-6 * unit, where, f"OPTIMAL with a gap of {value - bound}")
    same = np.array_equal(answer.policy.per_pair, again.policy.per_pair)
    require(same, where, "two runs gave different policies")
