"""The promises every large world makes, as one call: `check_world(MyWorld())`."""

from typing import Any, cast

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.errors import InvalidInput, InvalidWorld
from journeyman.testing import world_questions as ask
from journeyman.testing.law_tests import check_initial_law, surprise
from journeyman.testing.step_tables import StepTable, distinct
from journeyman.world import LargeWorld, SampledWorld, Successors
from journeyman.world.large_world import STEPS, AnyWorld, require_sampled_world
from journeyman.world.laws import draw_columns

WALK = 32
"""Steps of the walks on which states are probed."""
STEPS_PER_PROBE = 10
"""So many steps per probe are followed there and back, drawn from all that were seen."""
RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""By how much the probabilities of a step forwards and backwards may differ."""
REPEATED_PAIRS = 5
"""Pairs from which `step` is drawn often enough to count."""
FOLLOW = "Draw next states from the law that successors give"


def check_world(world: AnyWorld, *, probes: int = 1000, seed: int = 0) -> None:
    """Probe a world of callables and raise `InvalidWorld` at the first broken promise.

    - Answers have the shapes and types of `LargeWorld`, also for no state and for one; they do not
      depend on what else is asked, and no argument is changed.
    - Probabilities are at least 0 and sum to one, ids are in range.
    - Every successor lists the pair among its predecessors with the same probability, and every
      predecessor leads to the state it is listed for.
    - `draw_initial` follows `initial_probability`; the same seed gives the same draws.
    - `step`, if there is one, follows `successors`; without them it is checked by itself.

    States are probed at the start, on walks under uniform actions, and anywhere. That is a test and
    no proof: what is wrong elsewhere stays unseen, and of an initial law so thin that no state is
    drawn twice only gross errors are found. A sound world is refused with a probability of some
    1e-6.

    >>> from journeyman import gallery
    >>> check_world(gallery.queues(8).world, probes=100)
    """
    if not isinstance(probes, int | np.integer) or probes < 1:
        raise InvalidInput(f"probes = {probes!r}", "Give a whole number from 1")
    require_sampled_world(world)
    seeds = np.random.SeedSequence(seed).generate_state(8).tolist()
    check_initial_law(world, probes, seeds[:3])
    rng = np.random.default_rng(seeds[3])
    states = _probed(world, probes, rng)
    actions = rng.integers(world.num_actions, size=states.size)
    complete = all(hasattr(world, name) for name in STEPS)
    if complete:
        _check_alone(cast(LargeWorld, world), states, actions)
        _check_there_and_back(cast(LargeWorld, world), states, actions, rng)
        _check_back_and_there(cast(LargeWorld, world), states, rng)
    if hasattr(world, "step"):
        _check_draws(cast(SampledWorld, world), states, actions, seeds[4])
        if complete:
            _check_law_of_draws(world, states, actions, seeds[5])


def _probed(world: AnyWorld, probes: int, rng: np.random.Generator) -> IntArray:
    """States from the start, from walks and from anywhere, without order and some of them twice."""
    third = -(-probes // 3)
    start = ask.draw_initial(world, int(rng.integers(2**32)), third)
    here, visited = start[: -(-third // WALK)], []
    for _ in range(WALK):
        here = _following(world, here, rng)
        visited.append(here)
    anywhere = rng.integers(world.num_states, size=third)
    ends = [0, world.num_states - 1]
    return rng.permutation(np.concatenate([start, *visited, anywhere, ends]))


def _following(world: AnyWorld, states: IntArray, rng: np.random.Generator) -> IntArray:
    actions = rng.integers(world.num_actions, size=states.size)
    if hasattr(world, "step"):
        return ask.step(cast(SampledWorld, world), int(rng.integers(2**32)), states, actions)
    following = ask.successors(world, states, actions)
    chosen = draw_columns(following.probabilities, rng.random(states.size))
    return np.asarray(following.states[np.arange(states.size), chosen])


def _check_alone(world: LargeWorld, states: IntArray, actions: IntArray) -> None:
    """Asked about nothing, they answer nothing; asked about one, the same as among others."""
    nothing = states[:0]
    ask.successors(world, nothing, nothing)
    ask.predecessors(world, nothing)
    leaving, entering = ask.successors(world, states, actions), ask.predecessors(world, states)
    for k in (0, states.size - 1):
        x, a = states[[k]], actions[[k]]
        row = Successors(leaving.states[[k]], leaving.probabilities[[k]])
        alone = StepTable.forwards(x, a, ask.successors(world, x, a))
        _require_same("successors", x, alone, StepTable.forwards(x, a, row))
        listed = StepTable.backwards(states, entering).only(
            np.arange(entering.offsets[k], entering.offsets[k + 1])
        )
        alone = StepTable.backwards(x, ask.predecessors(world, x))
        _require_same("predecessors", x, alone, listed)


def _require_same(name: str, x: IntArray, alone: StepTable, among: StepTable) -> None:
    one, other = alone.sorted(), among.sorted()
    same = np.array_equal(one.keys, other.keys)
    if not (same and _close(one.probabilities, other.probabilities).all()):
        raise InvalidWorld(
            f"{name} of state {x[0]} differ when it is asked alone and among others",
            "Let the answer depend on states and actions only, one by one",
        )


def _check_there_and_back(
    world: LargeWorld, states: IntArray, actions: IntArray, rng: np.random.Generator
) -> None:
    """Every successor lists the pair among its predecessors."""
    x, a = distinct(np.column_stack([states, actions])).T
    steps = _some(StepTable.forwards(x, a, ask.successors(world, x, a)), states.size, rng)
    reached = rng.permutation(np.unique(steps.keys[:, 2]))
    listed = StepTable.backwards(reached, ask.predecessors(world, reached)).leaving(x)
    _require_agreement("successors", "predecessors of that state", steps, listed)


def _check_back_and_there(world: LargeWorld, states: IntArray, rng: np.random.Generator) -> None:
    """Every predecessor leads to the state."""
    steps = _some(StepTable.backwards(states, ask.predecessors(world, states)), states.size, rng)
    x, a = distinct(steps.keys[:, :2]).T
    following = StepTable.forwards(x, a, ask.successors(world, x, a))
    _require_agreement("predecessors", "successors of that pair", steps, following)


def _require_agreement(one: str, other: str, steps: StepTable, table: StepTable) -> None:
    said = table.probabilities_of(steps)
    wrong = ~_close(said, steps.probabilities)
    if wrong.any():
        row = int(np.argmax(wrong))
        contrary = f"say {said[row]}" if said[row] > 0 else "do not know of it"
        raise InvalidWorld(
            f"{one} lead {steps.words(row)} with probability {steps.probabilities[row]}, {other} "
            f"{contrary}",
            "Let predecessors list every pair that leads to a state, with the probability that "
            "successors give it, and no other pair",
        )


def _close(one: FloatArray, other: FloatArray) -> BoolArray:
    return np.asarray(np.abs(one - other) <= ABSOLUTE + RELATIVE * other)


def _some(steps: StepTable, probes: int, rng: np.random.Generator) -> StepTable:
    most = STEPS_PER_PROBE * probes
    return steps if len(steps) <= most else steps.only(rng.permutation(len(steps))[:most])


def _check_draws(world: SampledWorld, states: IntArray, actions: IntArray, seed: int) -> None:
    """`step` answers nothing and one, and has no randomness but that of its generator."""
    for count in (0, 1):
        ask.step(world, seed, states[:count], actions[:count])
    drawn, again = (ask.step(world, seed, states, actions) for _ in range(2))
    if not np.array_equal(drawn, again):
        raise InvalidWorld(
            "step gives other states for the same seed",
            "Draw from the generator it is given, and from nothing else",
        )


def _check_law_of_draws(world: Any, states: IntArray, actions: IntArray, seed: int) -> None:
    """`step` leads where `successors` does, as often."""
    for x, a in zip(states[:REPEATED_PAIRS], actions[:REPEATED_PAIRS], strict=True):
        pair = np.array([x]), np.array([a])
        steps = StepTable.forwards(*pair, ask.successors(world, *pair))
        drawn = ask.step(world, seed, *(np.repeat(part, states.size) for part in pair))
        reached = steps.keys[:, 2]
        hits = np.array([(drawn == state).sum() for state in reached])
        strange = drawn[~np.isin(drawn, reached)]
        if strange.size:
            raise InvalidWorld(
                f"step leads from state {x}, action {a} to state {strange[0]}, where successors do "
                "not lead",
                FOLLOW,
            )
        found = surprise(hits, steps.probabilities / steps.probabilities.sum(), drawn.size)
        if found is not None:
            raise InvalidWorld(
                f"step leads {steps.words(found)} {hits[found]} times of {drawn.size}, successors "
                f"say with probability {steps.probabilities[found]:.6g}",
                FOLLOW,
            )
