"""Worlds too large to enumerate: state ids and vectorised callables instead of arrays over states.

    num_states up to 2**63 - 1,   successors(x, a) = { (y, P(y | x, a)) },
    predecessors(y) = { (x, a, P(y | x, a)) },   x_0 ~ initial, drawn and evaluated state by state

Nothing has the length of the state space. The explicit `World` is one of them, so what is written
for large worlds can be checked against it. `jm.testing.check_world` probes a world of your own.
"""

from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from journeyman.arrays import FloatArray, IntArray
from journeyman.errors import InvalidWorld
from journeyman.world.laws import ROW_SUM_TOLERANCE, draw_columns
from journeyman.world.laws import discount as checked_discount

MOST_STATES = 2**63 - 1
"""State ids are int64."""
NUMBERS = ("num_states", "num_actions", "discount")
START = ("draw_initial", "initial_probability")
STEPS = ("successors", "predecessors")


class Successors(NamedTuple):
    """Where n pairs lead: both (n x branches).

    `probabilities` has rows that sum to one; a branch that is not used has probability 0 and any
    state id. A state that is named twice in a row has the sum of its probabilities.
    """

    states: IntArray
    probabilities: FloatArray


class Predecessors(NamedTuple):
    """Which pairs lead to n states: those of the k-th are `offsets[k]:offsets[k + 1]`.

    Every pair is listed once, with its probability P(y | x, a) > 0 of leading there.
    """

    offsets: IntArray
    states: IntArray
    actions: IntArray
    probabilities: FloatArray


class _Start(Protocol):
    """What every world has, however it is stepped through."""

    @property
    def num_states(self) -> int: ...

    @property
    def num_actions(self) -> int: ...

    @property
    def discount(self) -> float: ...

    def draw_initial(self, rng: np.random.Generator, count: int) -> IntArray: ...

    def initial_probability(self, states: IntArray) -> FloatArray: ...


class LargeWorld(_Start, Protocol):
    """A world as callables. All take and return whole arrays, and change none they are given.

    - `num_states` up to 2**63 - 1; `num_actions`, the same in every state; `discount` in (0, 1).
    - `draw_initial(rng, count)`: first states, with no randomness but that of `rng`.
    - `initial_probability(states)`: the initial law at given states.
    - `successors(states, actions)`: a `Successors`, with one row for each pair.
    - `predecessors(states)`: the `Predecessors` of all given states.

    Derive from nothing: a class with these members is a `LargeWorld`.
    """

    def successors(self, states: IntArray, actions: IntArray) -> Successors: ...

    def predecessors(self, states: IntArray) -> Predecessors: ...


class SampledWorld(_Start, Protocol):
    """A world that can only be sampled: `step` in place of `successors` and `predecessors`."""

    def step(self, rng: np.random.Generator, states: IntArray, actions: IntArray) -> IntArray: ...


AnyWorld: TypeAlias = LargeWorld | SampledWorld


def require_sampled_world(value: Any) -> AnyWorld:
    """`value` itself when walks can be drawn in it; otherwise the first member that it lacks.

    What the members return is not examined here: `jm.testing.check_world` does that.
    """
    methods = (*START, "step") if hasattr(value, "step") else START + STEPS
    for name in (*NUMBERS, *methods):
        if not hasattr(value, name):
            raise InvalidWorld(
                f"{type(value).__name__} has no {name}, so it is no LargeWorld",
                f"Give it {', '.join(NUMBERS)} and the methods {', '.join(START + STEPS)}",
            )
        if name in methods and not callable(getattr(value, name)):
            raise InvalidWorld(
                f"{name} of {type(value).__name__} cannot be called", "Make it a method"
            )
    for name in ("num_states", "num_actions"):
        count = getattr(value, name)
        whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
        if not (whole and 1 <= count <= MOST_STATES):
            raise InvalidWorld(
                f"{name} of {type(value).__name__} is {count!r}",
                "Give a whole number between 1 and 2**63 - 1",
            )
    checked_discount(value.discount)
    return cast(AnyWorld, value)


def sampled_step(
    world: AnyWorld, rng: np.random.Generator, states: IntArray, actions: IntArray
) -> IntArray:
    """The next state of each walk: from the world's own `step`, or from its successors.

    Without a `step` one uniform number is spent on each walk, and which state it leads to does not
    depend on the order in which the world names its branches.
    """
    step = getattr(world, "step", None)
    if step is not None:
        return _require_ids(world, "step", step(rng, states, actions), len(states))
    following = successor_laws(cast(LargeWorld, world), states, actions)
    order = np.argsort(following.states, axis=1, kind="stable")
    laws = np.take_along_axis(following.probabilities, order, axis=1)
    chosen = draw_columns(laws, rng.random(len(states)))[:, np.newaxis]
    branch = np.take_along_axis(order, chosen, axis=1)
    return np.asarray(np.take_along_axis(following.states, branch, axis=1)[:, 0])


def successor_laws(world: LargeWorld, states: IntArray, actions: IntArray) -> Successors:
    """`world.successors`, refused at the first pair whose law is none."""
    answer = world.successors(states, actions)
    reached, laws = np.asarray(answer[0]), np.asarray(answer[1], dtype=np.float64)
    if reached.ndim != 2 or reached.shape != laws.shape or len(reached) != len(states):
        raise InvalidWorld(
            f"successors of {len(states)} pairs have states of shape {reached.shape} and "
            f"probabilities of shape {laws.shape}",
            "Return both with a row for each pair and a column for each branch",
        )
    sums = laws.sum(axis=1)
    sound = np.abs(sums - 1.0) <= ROW_SUM_TOLERANCE  # false where the sum is NaN
    if sound.all() and laws.min(initial=0.0) >= 0:
        impossible = ((reached < 0) | (reached >= world.num_states)) & (laws > 0)
        if not impossible.any():
            return Successors(reached, laws)
        row, column = (int(part[0]) for part in np.nonzero(impossible))
        raise InvalidWorld(
            f"state {states[row]}, action {actions[row]} leads to state {reached[row, column]}, "
            f"outside 0..{world.num_states - 1}",
            "Number states from 0",
        )
    row = int(np.argmin(sound & (laws >= 0).all(axis=1)))
    law = laws[row].tolist()
    what = f"which sum to {sums[row]}"
    if np.isnan(law).any() or min(law) < 0:
        what = "one of them NaN or negative"
    raise InvalidWorld(
        f"successors of state {states[row]}, action {actions[row]} have probabilities {law}, "
        f"{what}",
        "Give probabilities of at least 0 that sum to 1; jm.testing.check_world probes a world",
    )


def first_states(world: AnyWorld, rng: np.random.Generator, count: int) -> IntArray:
    """`world.draw_initial`, refused where the initial law contradicts what was drawn."""
    drawn = _require_ids(world, "draw_initial", world.draw_initial(rng, count), count)
    states = np.unique(drawn)
    law = np.asarray(world.initial_probability(states), dtype=np.float64)
    if law.shape != states.shape:
        raise InvalidWorld(
            f"initial_probability of {states.size} states has shape {law.shape}",
            "Return one probability for each state",
        )
    sound = (law > 0) & (law <= 1 + ROW_SUM_TOLERANCE)
    if not sound.all():
        at = int(np.argmin(sound))
        raise InvalidWorld(
            f"draw_initial draws state {states[at]}, whose initial_probability is {law[at]}",
            "Let both be of one law: probabilities above 0 that sum to 1 over all states",
        )
    if law.sum() > 1 + ROW_SUM_TOLERANCE:
        raise InvalidWorld(
            f"initial_probability sums to {law.sum()} over {states.size} states that were drawn",
            "Give a law that sums to 1 over all states",
        )
    return drawn


def _require_ids(world: AnyWorld, name: str, drawn: Any, count: int) -> IntArray:
    ids = np.asarray(drawn)
    if ids.shape != (count,) or ids.dtype.kind not in "iu":
        raise InvalidWorld(
            f"{name} returns shape {ids.shape} and type {ids.dtype} for {count} walks",
            "Return one whole number for each",
        )
    outside = (ids < 0) | (ids >= world.num_states)
    if outside.any():
        at = int(np.argmax(outside))
        raise InvalidWorld(
            f"{name} returns state {ids[at]}, outside 0..{world.num_states - 1}",
            "Number states from 0",
        )
    return ids.astype(np.int64, copy=False)


def effective_horizon_of(world: _Start) -> float:
    """1/(1 - discount): the mass of every occupancy measure."""
    return 1.0 / (1.0 - world.discount)
