"""The premises of the expert's side in a world too large to enumerate.

Starts and steps are first asked whether they are possible, then bet against as in `premises`: a
sound record is refused with probability 2 `LEVEL` at most. What a world cannot say is declared.
"""

from typing import cast

import numpy as np

from journeyman.certificate.large_betting import MOST_STEPS, start_evidence, step_evidence
from journeyman.certificate.premises import Premise, Verdict, declared, failed, judged
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.episode_totals import EpisodeTotals
from journeyman.problem.large_apprenticeship import LargeApprenticeship
from journeyman.problem.simulated_apprenticeship import SimulatedApprenticeship
from journeyman.world.large_world import LargeWorld, successor_laws

BLOCK = 1 << 16
"""Steps whose possibility is checked at a time."""
LEVEL = 1e-3
"""With which probability, at most, a test refutes a true premise."""


def expert_premises(
    problem: LargeApprenticeship | SimulatedApprenticeship,
) -> tuple[Premise, ...]:
    """What the expert's side rests on."""
    demos = problem.demonstrations if isinstance(problem, LargeApprenticeship) else None
    costs = declared(
        "costs lie in their declared range", "checked in every pair that was ever evaluated"
    )
    if isinstance(problem, SimulatedApprenticeship) and problem.records is not None:
        return costs, *_simulator_premises(problem.records)
    if problem.expectation.is_declared or demos is None:
        name = "the declared expectations are those of the expert"
        return (declared(name, "they were given as numbers, and are taken as exact"),)
    assert isinstance(problem, LargeApprenticeship)
    independence = declared(
        "independent trajectories",
        f"the {len(demos)} episodes are taken to be independent records of one expert, none "
        "ended with foresight, none left out for what it shows",
    )
    starts, steps = _possible_starts(problem, demos), _possible_steps(problem, demos)
    bets = []
    if starts.verdict is Verdict.TESTED:
        bets.append(_likely_starts(problem, demos))
    if steps.verdict is Verdict.TESTED and demos.num_steps:
        bets.append(_likely_steps(problem, demos))
    return costs, independence, starts, steps, *bets


def _simulator_premises(records: EpisodeTotals) -> tuple[Premise, ...]:
    """What can only be declared where there is nothing but a simulator."""
    independence = declared(
        "independent trajectories",
        f"the {len(records)} episodes are taken to be independent records of one expert, none left "
        "out for what it shows",
    )
    simulator = declared(
        "the simulator is the world the expert acted in",
        "its episodes are taken to be independent, and to cost after their end what was declared",
    )
    return independence, simulator


def _possible_starts(problem: LargeApprenticeship, demos: Demonstrations) -> Premise:
    name = "start states are possible"
    starts = demos.first_states
    impossible = ~(np.asarray(problem.world.initial_probability(starts)) > 0)
    if impossible.any():
        episode = int(np.argmax(impossible))
        detail = f"episode {episode} starts in state {starts[episode]}, of initial probability 0"
        return failed(name, detail, 0.0)
    return Premise(name, Verdict.TESTED, f"{starts.size} starts have positive probability", 0.0)


def _possible_steps(problem: LargeApprenticeship, demos: Demonstrations) -> Premise:
    name, world = "steps are possible", problem.world
    if not hasattr(world, "successors"):
        return declared(name, "the world can only be sampled")
    before, after, actions = demos.step_states, demos.next_states, demos.actions
    for first in range(0, before.size, BLOCK):
        part = slice(first, first + BLOCK)
        wrong = _impossible(cast(LargeWorld, world), before[part], actions[part], after[part])
        if wrong is not None:
            at = first + wrong
            detail = f"step {at}: state {before[at]}, action {actions[at]} to {after[at]}"
            return failed(name, f"{detail} has probability 0", 0.0)
    return Premise(name, Verdict.TESTED, f"{before.size} steps have positive probability", 0.0)


def _impossible(
    world: LargeWorld, states: np.ndarray, actions: np.ndarray, after: np.ndarray
) -> int | None:
    """The first step that cannot happen."""
    following = successor_laws(world, states, actions)
    hit = (following.states == after[:, np.newaxis]) & (following.probabilities > 0)
    missed = ~hit.any(axis=1)
    return int(np.argmax(missed)) if missed.any() else None


def _likely_starts(problem: LargeApprenticeship, demos: Demonstrations) -> Premise:
    words, log_value = start_evidence(problem.world, demos.first_states)
    sample = f"{len(demos)} starts"
    return judged("start states follow the initial law", sample, log_value, words, LEVEL)


def _likely_steps(problem: LargeApprenticeship, demos: Demonstrations) -> Premise:
    first = slice(0, MOST_STEPS)
    words, log_value = step_evidence(
        cast(LargeWorld, problem.world), demos.step_states[first], demos.actions[first],
        demos.next_states[first],
    )  # fmt: skip
    sample = f"{min(demos.num_steps, MOST_STEPS)} steps"
    return judged("steps follow the transition law", sample, log_value, words, LEVEL)
