"""Questions to a world, whose answers are examined for form before anyone uses them.

Every question is asked with copies of its arrays, so that a world which changes what it is given is
found out, and does no harm.
"""

from typing import Any

import numpy as np

from journeyman.arrays import BoolArray, FloatArray, IntArray
from journeyman.errors import InvalidWorld
from journeyman.world import Predecessors, Successors
from journeyman.world.large_world import AnyWorld, LargeWorld, SampledWorld
from journeyman.world.laws import ROW_SUM_TOLERANCE


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
