"""From what a method has found to an answer with bounds; what methods ask of a problem and of its
expert."""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, read_only
from journeyman.demonstrations import Demonstrations, clone
from journeyman.errors import InvalidProblem, InvalidSolver
from journeyman.policy import Policy, occupancy
from journeyman.policy.mixture_policy import MixturePolicy
from journeyman.problem import Apprenticeship, best_witness
from journeyman.solvers.answer import Answer, Details, LikelihoodEstimate, Solution, Work
from journeyman.solvers.nonlinear_cost import NonlinearCost
from journeyman.solvers.running import Status

AGREEMENT = 1e-7
"""Bounds that differ by at most this share of 2N/(1 - discount) are called OPTIMAL."""


def require_suitable(problem: Apprenticeship, method: str) -> None:
    """A problem with an expert and without budgets, which these methods cannot keep."""
    if problem.expert is None:
        raise InvalidProblem(
            f"{method} learns from an expert, and a {type(problem).__name__} has none",
            "Give an Apprenticeship; LinearProgram() and ColumnGeneration() minimise known costs",
        )
    if problem.constraints:
        raise InvalidProblem(
            f"{method} cannot keep budgets, and the problem has {len(problem.constraints)}",
            "Use LinearProgram() or ColumnGeneration(), or leave the budgets out",
        )


def require_demonstrations(problem: Apprenticeship, method: str) -> Demonstrations:
    """What the expert did step by step."""
    if problem.demonstrations is None:
        raise InvalidProblem(
            f"{method} needs demonstrations, and this expert is given by expectations only",
            "Give Apprenticeship(world, basis, demos); jm.record makes demonstrations of a policy",
        )
    return problem.demonstrations


def answer_of(
    problem: Apprenticeship,
    policy: Policy,
    status: Status,
    *,
    engine: str,
    work: Work,
    weights: FloatArray | None = None,
    prices: FloatArray | None = None,
    recovered: FloatArray | None = None,
    likelihood: LikelihoodEstimate | None = None,
    nonlinear: NonlinearCost | None = None,
    mixture: MixturePolicy | None = None,
    seconds: float = 0.0,
    log: str = "",
) -> Answer:
    """The answer with a policy; its bounds decide whether it is OPTIMAL.

    `weights`, and `prices` of budgets, are a dual point for the lower bound, by default the
    policy's own worst case; `recovered` the cost that the method has inferred, where it infers one,
    and `nonlinear` one that is no combination of the basis.
    """
    point = weights
    if point is None:
        difference = problem.difference(occupancy(problem.world, policy).measure)
        point = problem.cost_class.worst_case(difference)
    paid = np.zeros(len(problem.constraints)) if prices is None else prices
    witness = best_witness(problem, np.asarray(point, dtype=float), paid)
    solution = Solution.of(problem, policy, witness)
    close = solution.value - solution.lower_bound <= AGREEMENT * problem.gap_scale
    close &= bool((solution.overspending <= 0).all())
    return Answer(
        problem,
        Status.OPTIMAL if close and status is Status.CONVERGED else status,
        engine,
        solution,
        Details(
            work=work,
            recovered=None if recovered is None else read_only(np.array(recovered, dtype=float)),
            likelihood=likelihood,
            nonlinear=nonlinear,
            mixture=mixture,
        ),
        solve_seconds=seconds,
        log=log,
    )


@dataclass(frozen=True, eq=False)
class ExpertPolicy:
    """A law per state, which states it is known in, and how often they are visited.

    A given policy is known in every state, and its states count as often as its occupancy visits
    them. Otherwise the expert is cloned without smoothing: an action that was never seen has
    probability 0. States that no demonstration visits are *unseen*: their law is uniform, which
    says nothing about the expert, and a method must not learn from it. Visits then are those of the
    records,

        visits(x) = mean over episodes of sum_t discount^t 1{x_t = x}
    """

    policy: Policy
    seen: BoolArray
    visits: FloatArray
    source: str
    """Where the law comes from, in words for the log."""


def require_expert_policy(expert: object) -> None:
    """A policy, or None."""
    if not isinstance(expert, Policy | None):
        raise InvalidSolver(
            f"expert is a {type(expert).__name__}",
            "Give a jm.Policy, or None to clone the expert from its demonstrations",
        )


def expert_policy(problem: Apprenticeship, given: Policy | None, method: str) -> ExpertPolicy:
    """The expert of a problem: `given`, or cloned from the problem's demonstrations."""
    world = problem.world
    if given is not None:
        given.on(world)
        everywhere = np.ones(world.num_states, dtype=bool)
        visited = occupancy(world, given).of_states
        return ExpertPolicy(
            given, read_only(everywhere), read_only(visited), "the expert's policy is given"
        )
    demos = require_demonstrations(problem, method)
    states = demos.step_states
    weights = world.discount ** demos.step_times.astype(float) / len(demos)
    visits = np.bincount(states, weights, minlength=world.num_states)
    seen = np.bincount(states, minlength=world.num_states) > 0
    source = (
        f"the expert's policy is cloned from {len(demos)} demonstrations, which visit "
        f"{int(seen.sum())} of {world.num_states} states"
    )
    policy = clone(demos, world, smoothing=0.0)
    return ExpertPolicy(policy, read_only(seen), read_only(visits), source)
