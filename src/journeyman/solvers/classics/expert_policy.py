"""What is known of the expert as a policy: given, or read off the demonstrations step by step.

A given policy is known in every state, and its states count as often as its occupancy visits them.
Otherwise the expert is cloned without smoothing: an action that was never seen has probability 0.
States that no demonstration visits are *unseen*: their law is uniform, which says nothing about the
expert, and a method must not learn from it. Visits then are those of the records,

    visits(x) = mean over episodes of sum_t discount^t 1{x_t = x}
"""

from dataclasses import dataclass

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, read_only
from journeyman.demonstrations import clone
from journeyman.errors import InvalidSolver
from journeyman.policy import Policy, occupancy
from journeyman.problem import Apprenticeship
from journeyman.solvers.classics.answering import require_demonstrations


@dataclass(frozen=True, eq=False)
class ExpertPolicy:
    """A law per state, which states it is known in, and how often they are visited."""

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
