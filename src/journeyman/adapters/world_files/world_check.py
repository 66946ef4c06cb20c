"""Whether a world is what an environment does: predicted against observed transitions.

The first step that the world holds to be impossible settles it. Otherwise

    exact laws       are bet against, pair by pair and all together (`certificate.betting`); the
                     world is refuted when the e-value reaches 1/failure_probability
    estimated laws   are refuted when the frequencies of a pair are further from them, in the
                     1-norm, than both errors allow: l1(observed, world) > err(counts of the
                     world) + err(counts observed), with failure_probability/2 for either side

*Guarantee*: a world that is right is refuted with probability `failure_probability` at most, for
every number of steps, whatever made the actions be chosen as they were.

*Not shown*: that a world which passes is right. Pairs that were not seen may be anything, and small
errors need many steps.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from journeyman.adapters.world_files.observed_steps import (
    END,
    ObservedSteps,
    WorldSimulator,
    observe,
)
from journeyman.arrays import BoolArray, IntArray, require_between
from journeyman.certificate.betting import start_evidence, step_evidence
from journeyman.certificate.model_error import l1_radius, transition_radii
from journeyman.demonstrations import Demonstrations
from journeyman.errors import InvalidWorld
from journeyman.world import World


@dataclass(frozen=True)
class TransitionCheck:
    """What comparing a world with observed steps has shown."""

    refuted: bool
    num_steps: int
    num_starts: int
    pairs_seen: int
    num_pairs: int
    finding: str
    """The first impossible step, or the evidence and what is most out of line."""
    failure_probability: float

    @property
    def agrees(self) -> bool:
        return not self.refuted

    def __str__(self) -> str:
        verdict = "the world is WRONG" if self.refuted else "no contradiction found"
        return (
            f"{verdict}: {self.num_steps} steps in {self.pairs_seen} of {self.num_pairs} pairs, "
            f"{self.num_starts} starts; {self.finding} (a right world is refuted with probability "
            f"{self.failure_probability:g} at most)"
        )


def check_transitions(
    world: World,
    environment: Any,
    *,
    steps: int = 20_000,
    seed: int = 0,
    failure_probability: float = 0.05,
) -> TransitionCheck:
    """Compare `world` with what `environment` does.

    Args:
        environment: a Gymnasium environment whose observations are states, another `World` to
            simulate, or steps that were observed already (`Demonstrations`, `ObservedSteps`).
        steps: how many to simulate; observed ones are all used.

    >>> from journeyman.world import World
    >>> fair = World([[0.5, 0.5], [0.5, 0.5]], [1, 0], 0.9)
    >>> check_transitions(fair, fair, steps=1000).refuted
    False
    >>> unfair = World([[0.7, 0.3], [0.5, 0.5]], [1, 0], 0.9)
    >>> check_transitions(unfair, fair, steps=1000).refuted
    True
    """
    level = require_between(
        "failure_probability", failure_probability, 0, 1, InvalidWorld, "Give for example 0.05"
    )
    if isinstance(environment, Demonstrations):
        seen = _of_demonstrations(environment)
    elif isinstance(environment, ObservedSteps):
        seen = environment
    else:
        if not isinstance(steps, int) or steps < 1:
            raise InvalidWorld(f"steps = {steps!r}", "Give a whole number from 1")
        real = WorldSimulator(environment) if isinstance(environment, World) else environment
        seen = observe(world, real, steps, seed)
    return judge(world, seen, level)


def judge(world: World, seen: ObservedSteps, level: float) -> TransitionCheck:
    """What observed steps say about `world`."""
    if not seen.states.size:
        raise InvalidWorld("no step was observed", "Give at least one")
    offered = _offered(world, seen)
    pairs = _pairs(world, seen, offered)
    finding = _impossible(world, seen)
    refuted = finding is not None
    if finding is None:
        test = _against_estimates if world.is_estimated else _against_exact_laws
        refuted, finding = test(world, seen, pairs, level)
    return TransitionCheck(
        refuted=refuted,
        num_steps=seen.states.size,
        num_starts=seen.first_states.size,
        pairs_seen=np.unique(pairs).size,
        num_pairs=world.num_pairs,
        finding=finding,
        failure_probability=level,
    )


def _of_demonstrations(demos: Demonstrations) -> ObservedSteps:
    return ObservedSteps(demos.step_states, demos.actions, demos.next_states, demos.first_states)


def _impossible(world: World, seen: ObservedSteps) -> str | None:
    """The first step, or else the first start, that the world does not have, in words."""
    offered = _offered(world, seen)
    inside = (seen.next_states >= 0) & (seen.next_states < world.num_states)
    possible = offered & inside
    if possible.any() and (not world.is_estimated or world.support is not None):
        laws = world.transition if world.support is None else world.support
        held = laws[_pairs(world, seen, possible), seen.next_states[possible]]
        possible[possible] = np.asarray(held).ravel() > 0
    if not possible.all():
        step = int(np.argmin(possible))
        where = f"state {seen.states[step]}, action {seen.actions[step]}"
        if not offered[step]:
            return f"step {step} is impossible: the world has no {where}"
        return f"step {step} is impossible: {where} led to {_target(world, seen, step)}"
    starts = seen.first_states
    if starts.size and world.initial_count is None and world.initial_error is None:
        never = world.initial[starts] <= 0
        if never.any():
            episode = int(np.argmax(never))
            return f"episode {episode} starts in state {starts[episode]}, of initial probability 0"
    return None


def _target(world: World, seen: ObservedSteps, step: int) -> str:
    target = int(seen.next_states[step])
    if target < 0:
        return END
    return f"state {target}" + (f", {END}" if target == world.sink else "")


def _offered(world: World, seen: ObservedSteps) -> BoolArray:
    """Whether each step's state exists, and has the step's action."""
    return world.pairs.offers(seen.states, seen.actions)


def _pairs(world: World, seen: ObservedSteps, some: BoolArray) -> IntArray:
    """The pairs of those steps that are marked."""
    return world.pairs.index(seen.states[some], seen.actions[some], InvalidWorld)


def _against_exact_laws(
    world: World, seen: ObservedSteps, pairs: IntArray, level: float
) -> tuple[bool, str]:
    """Bets on steps and on starts, with half of the stake each."""
    strongest, log_value = step_evidence(world, _one_by_one(world, pairs, seen.next_states))
    pair, outcome, frequencies = strongest.most_out_of_line()
    worst = f"most out of line is {world.describe_pair(pair)} to state {outcome}: {frequencies}"
    if seen.first_states.size:
        starts = seen.first_states
        pairs_of_starts = world.pairs.offsets[starts]
        bet, log_start = start_evidence(world, _one_by_one(world, pairs_of_starts, starts))
        if log_start > max(log_value, 0.0):
            _, state, frequencies = bet.most_out_of_line()
            worst = f"most out of line are starts from state {state} on: {frequencies}"
        log_value = float(np.logaddexp(log_value, log_start) - math.log(2))
    shown = f"10^{log_value / math.log(10):.1f}"
    return log_value >= -math.log(level), f"e-value {shown}, wrong from {1 / level:g} on; {worst}"


def _one_by_one(world: World, pairs: IntArray, following: IntArray) -> Demonstrations:
    """Steps as episodes of their own."""
    states = np.column_stack([world.pairs.states[pairs], following]).ravel()
    return Demonstrations(
        states,
        world.pairs.actions[pairs],
        np.arange(pairs.size + 1),
        choice_offsets=world.pairs,
    )


def _against_estimates(
    world: World, seen: ObservedSteps, pairs: IntArray, level: float
) -> tuple[bool, str]:
    """Distances of observed frequencies from the model's, beside what counts allow."""
    counts = np.bincount(pairs, minlength=world.num_pairs)
    shape = world.transition.shape
    tally = sparse.coo_array((np.ones(pairs.size), (pairs, seen.next_states)), shape=shape).tocsr()
    frequencies = tally.multiply(1.0 / np.maximum(counts, 1)[:, np.newaxis]).tocsr()
    distance = np.asarray(abs(frequencies - world.transition).sum(axis=1)).ravel()
    possible = np.diff(world.support.indptr) if world.support is not None else shape[1]
    allowed = transition_radii(world, level / 2).transition
    allowed = allowed + l1_radius(counts, possible, world.num_pairs, level / 2)
    excess = np.where(counts > 0, distance - allowed, -np.inf)
    pair = int(np.argmax(excess))
    return bool(excess[pair] > 0), (
        f"the world is an estimate; closest to the limit is {world.describe_pair(pair)}: "
        f"{counts[pair]} draws at distance {distance[pair]:.3g}, {allowed[pair]:.3g} is allowed"
    )
