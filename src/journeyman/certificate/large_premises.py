"""The premises of the expert's side in a world too large to enumerate.

Starts and steps are first asked whether they are possible, then bet against as in `premises`, and
so is that no episode was copied: a sound record is refused with probability 3 `LEVEL` at most. What
a world cannot say is declared.
"""

from typing import cast

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.certificate.copies import repetitions
from journeyman.certificate.large_betting import MOST_STEPS, start_evidence, step_evidence
from journeyman.certificate.premises import (
    LITTLE_CHANCE,
    Premise,
    Verdict,
    declared,
    failed,
    judged,
    log_or_zero,
    no_copies,
)
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.simulation import EpisodeTotals
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
        return costs, *_simulator_premises(problem, problem.records)
    if problem.expectation.is_declared or demos is None:
        name = "the declared expectations are those of the expert"
        given = declared(name, "they were given as numbers, and are taken as exact")
        return costs, given, _world(problem)
    assert isinstance(problem, LargeApprenticeship)
    independence = declared(
        "independent trajectories",
        f"the {len(demos)} episodes are taken to be independent records of one expert, none "
        "ended with foresight, none left out for what it shows",
    )
    chances = _step_chances(problem, demos)
    starts, steps = _possible_starts(problem, demos), _possible_steps(demos, chances)
    bets = []
    if starts.verdict is Verdict.TESTED:
        bets.append(_likely_starts(problem, demos))
    if steps.verdict is Verdict.TESTED and demos.num_steps:
        bets.append(_likely_steps(problem, demos))
    copied = _no_copies(problem, demos, chances)
    return costs, independence, copied, starts, steps, *bets


def _world(problem: LargeApprenticeship | SimulatedApprenticeship) -> Premise:
    """What is taken for the truth where no record tests it."""
    if isinstance(problem, LargeApprenticeship):
        detail = "they were given, and nothing here tests them"
        return declared("the laws of the world are exact", detail)
    return declared(
        "the simulator is the world the expert acted in",
        "its episodes are taken to be independent, and to cost after their end what was declared",
    )


def _no_copies(
    problem: LargeApprenticeship, demos: Demonstrations, chances: FloatArray | None
) -> Premise:
    starts = np.asarray(problem.world.initial_probability(demos.first_states), dtype=float)
    found = log_or_zero(starts)
    if chances is not None:
        found = found + np.add.reduceat(log_or_zero(chances), demos.offsets[:-1])
    cause = "the world can only be sampled" if chances is None else LITTLE_CHANCE
    return no_copies(repetitions(demos, found), LEVEL, cause)


def _simulator_premises(
    problem: SimulatedApprenticeship, records: EpisodeTotals
) -> tuple[Premise, ...]:
    """What can only be declared where there is nothing but a simulator."""
    independence = declared(
        "independent trajectories",
        f"the {len(records)} episodes are taken to be independent records of one expert, none left "
        "out for what it shows",
    )
    repeats = len(records) - len(np.unique(records.totals, axis=0))
    copied = declared(
        "no episode was copied",
        f"not tested, for totals do not show it: {repeats} of {len(records)} episodes have the "
        "totals of another",
    )
    return independence, copied, _world(problem)


def _possible_starts(problem: LargeApprenticeship, demos: Demonstrations) -> Premise:
    name = "start states are possible"
    starts = demos.first_states
    impossible = ~(np.asarray(problem.world.initial_probability(starts)) > 0)
    if impossible.any():
        episode = int(np.argmax(impossible))
        detail = f"episode {episode} starts in state {starts[episode]}, of initial probability 0"
        return failed(name, detail, 0.0)
    return Premise(name, Verdict.TESTED, f"{starts.size} starts have positive probability", 0.0)


def _step_chances(problem: LargeApprenticeship, demos: Demonstrations) -> FloatArray | None:
    """The probability of every recorded step; None where the world does not say."""
    if not hasattr(problem.world, "successors"):
        return None
    world = cast(LargeWorld, problem.world)
    before, after, actions = demos.step_states, demos.next_states, demos.actions
    found = np.zeros(before.size)
    for first in range(0, before.size, BLOCK):
        part = slice(first, first + BLOCK)
        following = successor_laws(world, before[part], actions[part])
        hit = following.states == after[part, np.newaxis]
        found[part] = np.where(hit, following.probabilities, 0.0).sum(axis=1)
    return found


def _possible_steps(demos: Demonstrations, chances: FloatArray | None) -> Premise:
    name = "steps are possible"
    if chances is None:
        return declared(name, "the world can only be sampled")
    impossible = ~(chances > 0)
    if impossible.any():
        at = int(np.argmax(impossible))
        step = (
            f"state {demos.step_states[at]}, action {demos.actions[at]} to {demos.next_states[at]}"
        )
        return failed(name, f"step {at}: {step} has probability 0", 0.0)
    return Premise(name, Verdict.TESTED, f"{chances.size} steps have positive probability", 0.0)


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
