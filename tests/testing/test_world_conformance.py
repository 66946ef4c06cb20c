"""`check_world` passes sound worlds and names what is wrong with broken ones."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import journeyman as jm
from journeyman.testing import Shape, check_world, random_world
from journeyman.testing.strategies import seeds
from journeyman.testing.world_conformance import LEVEL, surprise

MOVES = 0.7
DICE = np.random.default_rng(0)
"""A stream that goes on from call to call."""


class Ring:
    """Action 0 moves up a ring and action 1 down, with probability 0.7; the walk starts low."""

    num_actions = 2
    discount = 0.9

    def __init__(self, num_states=50, starts=10):
        self.num_states = num_states
        self.starts = starts

    def draw_initial(self, rng, count):
        return rng.integers(self.starts, size=count)

    def initial_probability(self, states):
        return np.where(states < self.starts, 1 / self.starts, 0.0)

    def successors(self, states, actions):
        moved = (states + 1 - 2 * actions) % self.num_states
        law = np.tile([MOVES, 1 - MOVES], (states.size, 1))
        return jm.world.Successors(np.column_stack([moved, states]), law)

    def predecessors(self, states):
        origins = [(states - 1) % self.num_states, states, states, (states + 1) % self.num_states]
        return jm.world.Predecessors(
            np.arange(states.size + 1) * 4,
            np.column_stack(origins).ravel(),
            np.tile([0, 0, 1, 1], states.size),
            np.tile([MOVES, 1 - MOVES, 1 - MOVES, MOVES], states.size),
        )


class Stepping(Ring):
    """A ring with a `step` of its own."""

    def step(self, rng, states, actions):
        moves = rng.random(states.size) < MOVES
        return np.where(moves, (states + 1 - 2 * actions) % self.num_states, states)


class Sampled:
    """A ring that can only be sampled."""

    num_states, num_actions, discount = 50, 2, 0.9
    draw_initial = Ring.draw_initial
    initial_probability = Ring.initial_probability
    step = Stepping.step
    starts = 10


ALONE = jm.World([[1.0]], [1.0], 0.5)


def broken(base=Ring, **members):
    """A world with members that are not as they should be."""
    return type("Broken", (base,), members)()


def altered_successors(alter):
    """A ring whose successors are tampered with."""

    def successors(self, states, actions):
        return alter(
            states, actions, *(part.copy() for part in Ring.successors(self, states, actions))
        )

    return broken(successors=successors)


def altered_predecessors(alter):
    """A ring whose predecessors are tampered with."""

    def predecessors(self, states):
        return alter(states, *(part.copy() for part in Ring.predecessors(self, states)))

    return broken(predecessors=predecessors)


def altered_start(probability=None, draw=None, **size):
    """A ring with another start."""
    members = {} if probability is None else {"initial_probability": lambda _, x: probability(x)}
    members |= {} if draw is None else {"draw_initial": lambda _, rng, count: draw(rng, count)}
    world = broken(**members)
    vars(world).update(size)
    return world


def in_place(name):
    """A world whose method `name` leaves other states behind than it was given."""

    def vandal(self, *arguments):
        answer = getattr(Stepping, name)(self, *arguments)
        states = arguments[1] if name == "step" else arguments[0]
        states += 1
        return answer

    return broken(Stepping, **{name: vandal})


def missing_member():
    world = Ring()
    world.predecessors = None
    return world


def without_pairs_of(state):
    """Predecessors that leave out what comes from one state."""

    def alter(states, offsets, origins, actions, law):
        kept = origins != state
        counts = np.add.reduceat(kept, offsets[:-1]) if states.size else kept
        return jm.world.Predecessors(
            np.concatenate([[0], np.cumsum(counts)]), origins[kept], actions[kept], law[kept]
        )

    return altered_predecessors(alter)


def for_sorted_states(states, offsets, origins, actions, law):
    """The right answer to the wrong question."""
    return Ring().predecessors(np.sort(states))


def listed_twice(states, offsets, origins, actions, law):
    """Every predecessor in two halves."""
    return jm.world.Predecessors(
        2 * offsets, np.repeat(origins, 2), np.repeat(actions, 2), np.repeat(law, 2) / 2
    )


def with_probability(law):
    return altered_successors(
        lambda x, a, reached, _: jm.world.Successors(reached, np.tile(law, (x.size, 1)))
    )


def step_by(move):
    return broken(Stepping, step=move)


BROKEN = {
    "no member": (missing_member, "predecessors of Ring cannot be called"),
    "no states": (lambda: broken(num_states=0, __init__=lambda _: None), "num_states .* is 0"),
    "narrow ids": (
        lambda: altered_start(draw=lambda rng, count: rng.integers(9, size=count).astype("i4")),
        r"draw_initial has shape \(0,\) and type int32, expected are \(0,\) and int64",
    ),
    "first state beyond": (
        lambda: altered_start(draw=lambda rng, count: rng.integers(50, 60, size=count)),
        "draw_initial returns state 5., outside 0..49",
    ),
    "dice of its own": (
        lambda: altered_start(draw=lambda rng, count: DICE.integers(10, size=count)),
        "draw_initial gives other states for the same seed",
    ),
    "loaded dice": (
        lambda: altered_start(draw=lambda rng, count: np.arange(count) % 10),
        "draw_initial gives the same states for different seeds",
    ),
    "impossible start": (
        lambda: altered_start(lambda x: np.where((x < 10) & (x != 3), 1 / 9, 0.0)),
        "state 3 was drawn as first state, its initial_probability is 0",
    ),
    "negative start": (
        lambda: altered_start(lambda x: np.where(x < 10, -0.1, 0.0)),
        "initial_probability of state . is -0.1",
    ),
    "start beyond one": (
        lambda: altered_start(lambda x: np.where(x < 10, 0.11, 0.0)),
        "initial_probability of 10 states sums to 1.1.*, more than 1",
    ),
    "other start": (
        lambda: altered_start(lambda x: np.where(x < 5, 0.17, 0.03)),
        r"state . was drawn \d+ times of 1000 as first state, its initial_prob.* is 0\.(03|17)",
    ),
    "start not normalised in a huge world": (
        lambda: altered_start(lambda x: np.full(x.size, 1e-4), starts=10**17, num_states=10**17,
                              draw=lambda rng, count: rng.integers(10**17, size=count)),
        "initial_probability is too large to sum to 1 over 1",
    ),
    "start that vanishes in a huge world": (
        lambda: altered_start(lambda x: np.full(x.size, 1e-30), starts=10**17, num_states=10**17,
                              draw=lambda rng, count: rng.integers(10**17, size=count)),
        "initial_probability is too small to sum to 1 over 1",
    ),
    "plain tuple": (
        lambda: altered_successors(lambda x, a, reached, law: (reached, law)),
        "successors returns a tuple without states",
    ),
    "lists": (
        lambda: altered_successors(
            lambda x, a, reached, law: jm.world.Successors(reached.tolist(), law.tolist())
        ),
        r"successors\(...\).states is a list",
    ),
    "branches first": (
        lambda: altered_successors(
            lambda x, a, reached, law: jm.world.Successors(reached.T, law.T)
        ),
        r"successors\(...\).states has shape",
    ),
    "nothing answered with something": (
        lambda: altered_successors(
            lambda x, a, reached, law: jm.world.Successors(reached, law) if x.size
            else jm.world.Successors(np.zeros((1, 2), dtype=np.int64), np.ones((1, 2)))
        ),
        r"states has shape \(1, 2\) and type int64, expected are \(0, 2\)",
    ),
    "successor beyond, in a branch that is not used": (
        lambda: altered_successors(
            lambda x, a, reached, law: jm.world.Successors(
                np.column_stack([reached, np.full(x.size, -1)]),
                np.column_stack([law, np.zeros(x.size)]),
            )
        ),
        "successors returns state -1, outside 0..49",
    ),
    "negative probability": (lambda: with_probability([1.2, -0.2]), "negative or NaN"),
    "NaN": (lambda: with_probability([np.nan, 0.3]), "negative or NaN"),
    "mass lost": (lambda: with_probability([0.7, 0.2]), r"\[0.7, 0.2\], which do not sum to 1"),
    "other probability backwards": (
        lambda: with_probability([0.6, 0.4]),
        "successors lead from state .* with probability 0.[46], predecessors of that state give",
    ),
    "missing predecessor": (
        lambda: without_pairs_of(4),
        "successors lead from state 4, .*, predecessors of that state do not know of it",
    ),
    "invented predecessor": (
        lambda: altered_predecessors(
            lambda x, offsets, origins, actions, law: jm.world.Predecessors(
                5 * np.arange(x.size + 1),
                np.column_stack([origins.reshape(-1, 4), (x + 7) % 50]).ravel(),
                np.column_stack([actions.reshape(-1, 4), 0 * x]).ravel(),
                np.column_stack([law.reshape(-1, 4), 0 * x + 0.1]).ravel(),
            )
        ),
        "predecessors lead from state .*, successors of that pair do not know of it",
    ),
    "predecessor of probability zero": (
        lambda: altered_predecessors(
            lambda x, offsets, origins, actions, law: jm.world.Predecessors(
                offsets, origins, actions, np.where(law > 0.5, law, 0.0)
            )
        ),
        "with probability 0.0",
    ),
    "listed twice": (lambda: altered_predecessors(listed_twice), "list state .*, action . twice"),
    "offsets": (
        lambda: altered_predecessors(
            lambda x, offsets, *rest: jm.world.Predecessors(offsets[::-1].copy(), *rest)
        ),
        "offsets of predecessors are .* not increasing from 0",
    ),
    "too few offsets": (
        lambda: altered_predecessors(
            lambda x, offsets, *rest: jm.world.Predecessors(offsets[1:], *rest)
        ),
        r"predecessors\(...\).offsets has shape",
    ),
    "actions from one": (
        lambda: altered_predecessors(
            lambda x, offsets, origins, actions, law: jm.world.Predecessors(
                offsets, origins, actions + 1, law
            )
        ),
        "predecessors of state .* name action 2 of 2",
    ),
    "answers in another order": (
        lambda: altered_predecessors(for_sorted_states),
        "differ when it is asked alone and among others",
    ),
    "changed by successors": (lambda: in_place("successors"), "successors changes the states"),
    "changed by predecessors": (lambda: in_place("predecessors"), "predecessors changes the st"),
    "changed by the start": (lambda: in_place("initial_probability"), "probability changes the st"),
    "changed by step": (lambda: in_place("step"), "step changes the states it is given"),
    "step elsewhere": (
        lambda: step_by(lambda self, rng, x, a: (x + rng.integers(3, size=x.size) - 1) % 50),
        "step leads from state .*, action . to state .*, where successors do not lead",
    ),
    "step of another law": (
        lambda: step_by(
            lambda self, rng, x, a: np.where(
                rng.random(x.size) < 0.5, (x + 1 - 2 * a) % 50, x
            )
        ),
        "step leads from state .* times of .*, successors lead there with probability 0.[37]",
    ),
    "step with dice of its own": (
        lambda: step_by(lambda self, rng, x, a: Stepping.step(self, DICE, x, a)),
        "step gives other states for the same seed",
    ),
    "step beyond": (
        lambda: step_by(lambda self, rng, x, a: x + 1 - 2 * a),
        r"step returns state (-1|50), outside 0..49",
    ),
    "step of another shape": (
        lambda: step_by(lambda self, rng, x, a: np.arange(3)),
        r"step has shape \(3,\)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_promise_is_named(kind):
    build, message = BROKEN[kind]
    with pytest.raises(jm.errors.InvalidWorld, match=message) as caught:
        check_world(build())
    assert len(caught.value.remedy) > 10


@pytest.mark.parametrize(
    "world",
    [Ring(), Stepping(), Sampled(), Ring(2, 1), Ring(2**62, 2**62), Stepping(2**63 - 1, 1), ALONE],
    ids=lambda world: f"{type(world).__name__} of {world.num_states}",
)
def test_sound_worlds_pass(world):
    check_world(world)
    check_world(world, probes=1, seed=5)


@given(seeds, st.sampled_from([shape for shape in Shape if shape is not Shape.RAGGED]))
@settings(max_examples=30)
def test_explicit_worlds_pass(seed, shape):
    check_world(random_world(seed, shape), probes=150, seed=seed)


def test_a_successor_may_be_named_in_several_branches():
    check_world(
        altered_successors(
            lambda x, a, reached, law: jm.world.Successors(
                np.column_stack([reached, reached]), np.column_stack([law, law]) / 2
            )
        )
    )


def test_a_ragged_world_is_refused_with_the_reason():
    with pytest.raises(jm.errors.InvalidWorld, match="not one number of them"):
        check_world(random_world(3, Shape.RAGGED))


@pytest.mark.parametrize("probes", [0, 2.5])
def test_the_number_of_probes_is_checked(probes):
    with pytest.raises(jm.errors.InvalidInput, match="probes = "):
        check_world(Ring(), probes=probes)


@pytest.mark.parametrize("law", [[1.0], [0.5, 0.5], [0.001, 0.999], [0.2, 0.3, 0.5]], ids=str)
def test_the_test_of_frequencies_keeps_its_level(law):
    """Over all counts an outcome can have, false alarms are rarer than the level."""
    for probability in law:
        rare = [
            comb(100, hits) * probability**hits * (1 - probability) ** (100 - hits)
            for hits in range(101)
            if surprise(np.array([hits]), np.array([probability]), 100) is not None
        ]
        assert rare
        assert sum(rare) <= LEVEL
