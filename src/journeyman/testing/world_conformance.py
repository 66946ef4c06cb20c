"""The promises every large world makes, as one call: `check_world(MyWorld())`.

Answers are examined for form before they are used, and every question is asked with copies of its
arrays, so that a world which changes what it is given is found out, and does no harm. Whether draws
follow their law is decided by exact tests that refuse a sound world with probability `LEVEL` each
at most: binomial tails for outcomes that were chosen before the draws that are counted, Markov's
inequality for laws that are too thin to show an outcome twice.
"""

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import special

from journeyman.arrays import BoolArray, FloatArray, IntArray, first_true
from journeyman.errors import InvalidInput, InvalidWorld
from journeyman.world import LargeWorld, Predecessors, SampledWorld, Successors
from journeyman.world.large_world import STEPS, AnyWorld, require_sampled_world
from journeyman.world.laws import ROW_SUM_TOLERANCE, draw_columns

WALK = 32
"""Steps of the walks on which states are probed."""
STEPS_PER_PROBE = 10
"""So many steps per probe are followed there and back, drawn from all that were seen."""
RELATIVE, ABSOLUTE = 1e-9, 1e-12
"""By how much the probabilities of a step forwards and backwards may differ."""
REPEATED_PAIRS = 5
"""Pairs from which `step` is drawn often enough to count."""
FOLLOW = "Draw next states from the law that successors give"
LEVEL = 1e-6
"""Probability that one of the tests refuses a sound law."""
MOST_OUTCOMES = 20
"""How many of the most frequent outcomes are counted."""
MASS_TOLERANCE = 1e-9
ONE_LAW = "Let draw_initial and initial_probability describe one law, which sums to 1"


@dataclass(frozen=True, eq=False)
class StepTable:
    """Possible steps with their probabilities, to be compared; `keys` is (steps x 3): state,
    action, next state."""

    keys: IntArray
    probabilities: FloatArray

    @classmethod
    def forwards(cls, states: IntArray, actions: IntArray, answer: Successors) -> "StepTable":
        """What `successors` returns for given pairs; steps named several times are added up."""
        used = answer.probabilities > 0
        counts = used.sum(axis=1)
        named = np.column_stack(
            [np.repeat(states, counts), np.repeat(actions, counts), answer.states[used]]
        )
        which, first = numbered(named)
        sums = np.bincount(which, answer.probabilities[used], minlength=first.size)
        return cls(named[first], sums.astype(np.float64))

    @classmethod
    def backwards(cls, states: IntArray, answer: Predecessors) -> "StepTable":
        """What `predecessors` returns for given states, in its order."""
        reached = np.repeat(states, np.diff(answer.offsets))
        return cls(np.column_stack([answer.states, answer.actions, reached]), answer.probabilities)

    def __len__(self) -> int:
        return len(self.keys)

    def only(self, chosen: IntArray) -> "StepTable":
        return StepTable(self.keys[chosen], self.probabilities[chosen])

    def leaving(self, states: IntArray) -> "StepTable":
        """The steps that begin in one of the given states."""
        return self.only(np.flatnonzero(np.isin(self.keys[:, 0], states)))

    def probabilities_of(self, other: "StepTable") -> FloatArray:
        """What this table gives to the steps of another one; 0 to steps that it does not have."""
        which, first = numbered(np.vstack([self.keys, other.keys]))
        known = np.zeros(first.size)
        known[which[: len(self)]] = self.probabilities
        return np.asarray(known[which[len(self) :]])

    def sorted(self) -> "StepTable":
        return self.only(np.lexsort(self.keys.T[::-1]))

    def words(self, row: int) -> str:
        state, action, reached = self.keys[row].tolist()
        return f"from state {state}, action {action} to state {reached}"


def numbered(rows: IntArray) -> tuple[IntArray, IntArray]:
    """A number for each row, the same for equal ones, in their order; and where each is first."""
    order = np.lexsort(rows.T[::-1])
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (np.diff(rows[order], axis=0) != 0).any(axis=1)
    numbers = np.empty(len(rows), dtype=np.int64)
    numbers[order] = np.cumsum(new) - 1
    return numbers, np.asarray(order[new])


def distinct(rows: IntArray) -> IntArray:
    return np.asarray(rows[numbered(rows)[1]])


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
    start = draw_initial(world, int(rng.integers(2**32)), third)
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
        return step(cast(SampledWorld, world), int(rng.integers(2**32)), states, actions)
    following = successors(world, states, actions)
    chosen = draw_columns(following.probabilities, rng.random(states.size))
    return np.asarray(following.states[np.arange(states.size), chosen])


def _check_alone(world: LargeWorld, states: IntArray, actions: IntArray) -> None:
    """Asked about nothing, they answer nothing; asked about one, the same as among others."""
    nothing = states[:0]
    successors(world, nothing, nothing)
    predecessors(world, nothing)
    leaving, entering = successors(world, states, actions), predecessors(world, states)
    for k in (0, states.size - 1):
        x, a = states[[k]], actions[[k]]
        row = Successors(leaving.states[[k]], leaving.probabilities[[k]])
        alone = StepTable.forwards(x, a, successors(world, x, a))
        _require_same("successors", x, alone, StepTable.forwards(x, a, row))
        listed = StepTable.backwards(states, entering).only(
            np.arange(entering.offsets[k], entering.offsets[k + 1])
        )
        alone = StepTable.backwards(x, predecessors(world, x))
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
    steps = _some(StepTable.forwards(x, a, successors(world, x, a)), states.size, rng)
    reached = rng.permutation(np.unique(steps.keys[:, 2]))
    listed = StepTable.backwards(reached, predecessors(world, reached)).leaving(x)
    _require_agreement("successors", "predecessors of that state", steps, listed)


def _check_back_and_there(world: LargeWorld, states: IntArray, rng: np.random.Generator) -> None:
    """Every predecessor leads to the state."""
    steps = _some(StepTable.backwards(states, predecessors(world, states)), states.size, rng)
    x, a = distinct(steps.keys[:, :2]).T
    following = StepTable.forwards(x, a, successors(world, x, a))
    _require_agreement("predecessors", "successors of that pair", steps, following)


def _require_agreement(one: str, other: str, steps: StepTable, table: StepTable) -> None:
    given = table.probabilities_of(steps)
    if (row := first_true(~_close(given, steps.probabilities))) is not None:
        contrary = f"give {given[row]}" if given[row] > 0 else "do not know of it"
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
        step(world, seed, states[:count], actions[:count])
    drawn, again = (step(world, seed, states, actions) for _ in range(2))
    if not np.array_equal(drawn, again):
        raise InvalidWorld(
            "step gives other states for the same seed",
            "Draw from the generator it is given, and from nothing else",
        )


def _check_law_of_draws(world: Any, states: IntArray, actions: IntArray, seed: int) -> None:
    """`step` leads where `successors` does, as often."""
    for x, a in zip(states[:REPEATED_PAIRS], actions[:REPEATED_PAIRS], strict=True):
        pair = np.array([x]), np.array([a])
        steps = StepTable.forwards(*pair, successors(world, *pair))
        drawn = step(world, seed, *(np.repeat(part, states.size) for part in pair))
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
                f"lead there with probability {steps.probabilities[found]:.6g}",
                FOLLOW,
            )


def draw_initial(world: AnyWorld, seed: int, count: int) -> IntArray:
    """First states from a generator with the given seed."""
    drawn = world.draw_initial(np.random.default_rng(seed), count)
    _require_array("draw_initial", drawn, np.int64, (count,))
    _require_states("draw_initial", drawn, world)
    return drawn


def initial_probability(world: AnyWorld, states: IntArray) -> FloatArray:
    law: FloatArray = _ask(world.initial_probability, "initial_probability", states)
    _require_array("initial_probability", law, np.float64, states.shape)
    _require_all((law >= 0) & (law <= 1 + ROW_SUM_TOLERANCE), lambda k: InvalidWorld(
        f"initial_probability of state {states[k]} is {law[k]}",
        "Return a probability between 0 and 1 for every state",
    ))  # fmt: skip
    return law


def successors(world: LargeWorld, states: IntArray, actions: IntArray) -> Successors:
    answer: Successors = _ask(world.successors, "successors", states, actions)
    _require_parts("successors", answer, Successors)
    reached, law = answer.states, answer.probabilities
    branches = np.shape(reached)[1] if np.ndim(reached) == 2 else 1
    _require_array("successors(...).states", reached, np.int64, (states.size, branches))
    _require_array("successors(...).probabilities", law, np.float64, (states.size, branches))
    _require_states("successors", reached, world)

    def wrong(what: str, remedy: str) -> Any:
        return lambda k: InvalidWorld(
            f"successors of state {states[k]}, action {actions[k]} have probabilities "
            f"{law[k].tolist()}, {what}",
            remedy,
        )

    sound = np.asarray((law >= 0).all(axis=1))
    _require_all(sound, wrong("one of them negative or NaN", "Give at least 0"))
    off = np.abs(law.sum(axis=1) - 1.0)
    _require_all(
        off <= ROW_SUM_TOLERANCE,
        wrong("which do not sum to 1", "Give what does not move to the state itself"),
    )
    return answer


def predecessors(world: LargeWorld, states: IntArray) -> Predecessors:
    answer: Predecessors = _ask(world.predecessors, "predecessors", states)
    _require_parts("predecessors", answer, Predecessors)
    offsets = answer.offsets
    _require_array("predecessors(...).offsets", offsets, np.int64, (states.size + 1,))
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise InvalidWorld(
            f"offsets of predecessors are {offsets[:5].tolist()} ..., not increasing from 0",
            "Let the predecessors of the k-th state be offsets[k]:offsets[k + 1]",
        )
    total = (int(offsets[-1]),)
    _require_array("predecessors(...).states", answer.states, np.int64, total)
    _require_array("predecessors(...).actions", answer.actions, np.int64, total)
    _require_array("predecessors(...).probabilities", answer.probabilities, np.float64, total)
    _require_states("predecessors", answer.states, world)
    of = np.repeat(states, np.diff(offsets))
    _require_all(
        (answer.actions >= 0) & (answer.actions < world.num_actions),
        lambda k: InvalidWorld(
            f"predecessors of state {of[k]} name action {answer.actions[k]} of {world.num_actions}",
            "Number the actions from 0",
        ),
    )
    _require_all(
        (answer.probabilities > 0) & (answer.probabilities <= 1 + ROW_SUM_TOLERANCE),
        lambda k: InvalidWorld(
            f"predecessors of state {of[k]} name state {answer.states[k]}, action "
            f"{answer.actions[k]} with probability {answer.probabilities[k]}",
            "List the pairs that lead there, with their probability P(y | x, a) > 0, and no others",
        ),
    )
    _require_listed_once(answer, states)
    return answer


def _require_listed_once(answer: Predecessors, states: IntArray) -> None:
    asked = np.repeat(np.arange(states.size), np.diff(answer.offsets))
    columns = (asked, answer.states, answer.actions)
    order = np.lexsort(columns[::-1])
    twice = np.logical_and.reduce([np.diff(column[order]) == 0 for column in columns])
    if twice.any():
        which = order[int(np.argmax(twice))]
        raise InvalidWorld(
            f"predecessors of state {states[asked[which]]} list state {answer.states[which]}, "
            f"action {answer.actions[which]} twice",
            "List every pair once, with the whole probability of leading there",
        )


def step(world: SampledWorld, seed: int, states: IntArray, actions: IntArray) -> IntArray:
    """Next states from a generator with the given seed."""
    rng = np.random.default_rng(seed)
    reached = _ask(lambda x, a: world.step(rng, x, a), "step", states, actions)
    _require_array("step", reached, np.int64, states.shape)
    _require_states("step", reached, world)
    return np.asarray(reached)


def _ask(question: Any, name: str, *arrays: IntArray) -> Any:
    given = [array.copy() for array in arrays]
    answer = question(*given)
    for word, before, after in zip(("states", "actions"), arrays, given, strict=False):
        if not np.array_equal(before, after):
            raise InvalidWorld(
                f"{name} changes the {word} it is given", "Work on a copy, or with new arrays"
            )
    return answer


def _require_parts(name: str, answer: Any, kind: Any) -> None:
    missing = [part for part in kind._fields if not hasattr(answer, part)]
    if missing:
        raise InvalidWorld(
            f"{name} returns a {type(answer).__name__} without {missing[0]}",
            f"Return journeyman.{kind.__name__}({', '.join(kind._fields)})",
        )


def _require_array(name: str, array: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray):
        raise InvalidWorld(f"{name} is a {type(array).__name__}", "Return a NumPy array")
    if array.shape != shape or array.dtype != dtype:
        raise InvalidWorld(
            f"{name} has shape {array.shape} and type {array.dtype}, expected are {shape} and "
            f"{np.dtype(dtype)}",
            "Return one entry for everything that was asked, also for nothing and for one",
        )


def _require_states(name: str, states: IntArray, world: AnyWorld) -> None:
    outside = (states < 0) | (states >= world.num_states)
    if outside.any():
        raise InvalidWorld(
            f"{name} returns state {states[outside][0]}, outside 0..{world.num_states - 1}",
            "Return ids of states, also in branches of probability 0",
        )


def _require_all(holds: BoolArray, refusal: Any) -> None:
    """The refusal of the first entry that does not hold."""
    if not holds.all():
        raise refusal(int(np.argmin(holds)))


def check_initial_law(world: AnyWorld, probes: int, seeds: list[int]) -> None:
    """Draws and probabilities of the first state describe one law."""
    for count in (0, 1):
        initial_probability(world, draw_initial(world, seeds[0], count))
    first, second = (draw_initial(world, seed, probes) for seed in seeds[:2])
    if not np.array_equal(first, draw_initial(world, seeds[0], probes)):
        raise InvalidWorld(
            "draw_initial gives other states for the same seed",
            "Draw from the generator it is given, and from nothing else",
        )
    states, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    law = initial_probability(world, states)
    if not law.all():
        state = states[int(np.argmin(law))]
        raise InvalidWorld(
            f"state {state} was drawn as first state, its initial_probability is 0", ONE_LAW
        )
    if law.sum() > 1 + MASS_TOLERANCE:
        raise InvalidWorld(
            f"initial_probability of {states.size} states sums to {law.sum()}, more than 1", ONE_LAW
        )
    if np.array_equal(first, second) and np.log(law[places[:probes]]).sum() < math.log(LEVEL):
        raise InvalidWorld(
            "draw_initial gives the same states for different seeds",
            "Draw from the generator it is given",
        )
    _check_thin_law(world, law[places], seeds[2])
    _check_frequencies(states, law, places[:probes], places[probes:])


def _check_frequencies(
    states: IntArray, law: FloatArray, first: IntArray, second: IntArray
) -> None:
    """States that were frequent among the first draws have their probability among the second."""
    counts = np.bincount(first, minlength=states.size)
    chosen = np.argsort(-counts, kind="stable")[: min(MOST_OUTCOMES, np.count_nonzero(counts))]
    hits = np.bincount(second, minlength=states.size)[chosen]
    found = surprise(hits, law[chosen], second.size)
    if found is not None:
        raise InvalidWorld(
            f"state {states[chosen[found]]} was drawn {hits[found]} times of {second.size} as "
            f"first state, its initial_probability is {law[chosen[found]]:.6g}",
            ONE_LAW,
        )


def surprise(hits: IntArray, law: FloatArray, draws: int) -> int | None:
    """The outcome whose number of hits is the least likely, if it is too unlikely to believe."""
    expected = np.minimum(law, 1.0)
    below = special.bdtr(hits, draws, expected)
    above = special.bdtrc(hits - 1.0, draws, expected)
    tails = 2 * np.minimum(below, above) * hits.size
    return int(np.argmin(tails)) if (tails < LEVEL).any() else None


def _check_thin_law(world: AnyWorld, of_draws: FloatArray, seed: int) -> None:
    """E[1/(N p(x))] <= 1 over draws x ~ p, and E[N p(x)] <= 1 over uniform states x of N."""
    size = float(world.num_states)
    anywhere = np.random.default_rng(seed).integers(world.num_states, size=of_draws.size)
    of_any = initial_probability(world, anywhere)
    too_small = (1 / (size * of_draws)).mean() * LEVEL > 1
    if too_small or (size * of_any).mean() * LEVEL > 1:
        raise InvalidWorld(
            f"initial_probability is too {'small' if too_small else 'large'} to sum to 1 over "
            f"{world.num_states} states",
            ONE_LAW,
        )
