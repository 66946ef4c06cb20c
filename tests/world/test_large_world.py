import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.testing import Shape, random_world
from journeyman.testing.strategies import worlds
from journeyman.world import world as enumeration
from journeyman.world.large_world import (
    effective_horizon_of,
    require_sampled_world,
    sampled_step,
)
from journeyman.world.laws import draw_columns, draw_outcomes, running_sums
from journeyman.world.levels import Level, require_level

WORLD = random_world(0, Shape.SPARSE, num_states=6)
MEMBERS = (
    "num_states", "num_actions", "discount", "draw_initial", "initial_probability", "successors",
    "predecessors",
)  # fmt: skip


class Partial:
    """A world with some of the members of another."""

    def __init__(self, world=WORLD, names=MEMBERS, **more):
        for name in names:
            setattr(self, name, getattr(world, name))
        for name, value in more.items():
            setattr(self, name, value)


class Coin(Partial):
    """A world that can only be sampled: the next state is 0 or 1."""

    def __init__(self):
        super().__init__(names=MEMBERS[:5])

    def step(self, rng, states, actions):
        return rng.integers(2, size=states.size)


@given(worlds(), st.integers(0, 2**32 - 1))
def test_successors_of_an_explicit_world_are_its_rows(world, seed):
    pairs = np.random.default_rng(seed).integers(world.num_pairs, size=10)
    states, actions = world.pairs.states[pairs], world.pairs.actions[pairs]
    reached, law = world.successors(states, actions)
    assert (reached.dtype, law.dtype) == (np.int64, np.float64)
    assert reached.shape[1] == np.diff(world.transition.indptr)[pairs].max()
    found = np.zeros((10, world.num_states))
    np.add.at(found, (np.arange(10)[:, np.newaxis], reached), law)
    np.testing.assert_array_equal(found, world.transition.toarray()[pairs])


@given(worlds(), st.integers(0, 2**32 - 1))
def test_predecessors_of_an_explicit_world_are_its_columns(world, seed):
    asked = np.random.default_rng(seed).integers(world.num_states, size=10)
    matrix = world.transition.toarray()
    answer = world.predecessors(asked)
    assert [part.dtype for part in answer] == [np.int64] * 3 + [np.float64]
    assert answer.offsets.shape == (11,)
    for k, state in enumerate(asked):
        part = slice(answer.offsets[k], answer.offsets[k + 1])
        pairs = world.pairs.index(answer.states[part], answer.actions[part])
        np.testing.assert_array_equal(pairs, np.flatnonzero(matrix[:, state]))
        np.testing.assert_array_equal(answer.probabilities[part], matrix[pairs, state])


def test_nothing_asked_is_nothing_answered():
    nothing = np.empty(0, dtype=np.int64)
    assert WORLD.successors(nothing, nothing).states.shape == (0, 1)
    assert [part.tolist() for part in WORLD.predecessors(nothing)] == [[0], [], [], []]
    assert WORLD.initial_probability(nothing).shape == (0,)
    assert WORLD.draw_initial(np.random.default_rng(0), 0).shape == (0,)
    assert sampled_step(WORLD, np.random.default_rng(0), nothing, nothing).shape == (0,)


@given(worlds(), st.integers(0, 2**32 - 1))
def test_first_states_are_drawn_like_numpy_draws_them(world, seed):
    drawn = world.draw_initial(np.random.default_rng(seed), 50)
    known = np.random.default_rng(seed).choice(world.num_states, size=50, p=world.initial)
    assert drawn.dtype == np.int64
    np.testing.assert_array_equal(drawn, known)
    np.testing.assert_array_equal(world.initial_probability(drawn), world.initial[drawn])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: WORLD.successors([6], [0]), r"states\[0\] = 6"),
        (lambda: WORLD.successors([0, 0], [0, 3]), r"actions\[1\] = 3"),
        (lambda: WORLD.successors([0], [0, 1]), "actions has 2 entries"),
        (lambda: WORLD.predecessors([-1]), r"states\[0\] = -1"),
        (lambda: WORLD.initial_probability([6]), r"states\[0\] = 6"),
    ],
)
def test_pairs_that_do_not_exist_are_refused(wrong, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        wrong()


def test_the_number_of_actions_of_a_ragged_world_is_refused():
    assert WORLD.num_actions == 3
    ragged = random_world(3, Shape.RAGGED)
    with pytest.raises(jm.errors.InvalidWorld, match="have 1 to 3 actions, not one number"):
        _ = ragged.num_actions
    with pytest.raises(jm.errors.InvalidWorld, match="have 1 to 3 actions, not one number"):
        require_sampled_world(ragged)


def test_an_explicit_world_is_a_large_world():
    assert require_sampled_world(WORLD) is WORLD
    assert effective_horizon_of(WORLD) == WORLD.effective_horizon


@pytest.mark.parametrize("missing", MEMBERS)
def test_what_a_large_world_lacks_is_named(missing):
    lacking = Partial(names=[name for name in MEMBERS if name != missing])
    with pytest.raises(
        jm.errors.InvalidWorld, match=f"Partial has no {missing}, so it is no LargeWorld"
    ):
        require_sampled_world(lacking)


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("num_states", 0, "num_states of Partial is 0"),
        ("num_states", 2**63, "num_states of Partial is 9223372036854775808"),
        ("num_states", 6.0, "num_states of Partial is 6.0"),
        ("num_actions", True, "num_actions of Partial is True"),
        ("discount", 1.0, "discount = 1.0"),
        ("discount", "0.9", "discount = '0.9' is not a number"),
        ("successors", {}, "successors of Partial cannot be called"),
    ],
)
def test_members_that_cannot_be_are_refused(member, value, message):
    with pytest.raises(jm.errors.InvalidWorld, match=message):
        require_sampled_world(Partial(**{member: value}))


def test_a_world_may_be_one_that_can_only_be_sampled():
    coin = Coin()
    assert require_sampled_world(coin) is coin
    with pytest.raises(jm.errors.InvalidProblem, match="Coin has the level SAMPLED"):
        require_level(coin, Level.STEPPED, "a test")
    with pytest.raises(jm.errors.InvalidWorld, match="Partial has no successors"):
        require_sampled_world(Partial(names=MEMBERS[:5]))


def test_the_step_of_the_world_comes_first():
    states, actions = np.arange(6), np.zeros(6, dtype=np.int64)
    drawn = sampled_step(Coin(), np.random.default_rng(0), states, actions)
    np.testing.assert_array_equal(drawn, np.random.default_rng(0).integers(2, size=6))


@given(worlds(), st.integers(0, 2**32 - 1))
def test_a_step_spends_one_uniform_number_on_each_walk(world, seed):
    pairs = np.random.default_rng(seed).integers(world.num_pairs, size=8)
    states, actions = world.pairs.states[pairs], world.pairs.actions[pairs]
    rng = np.random.default_rng(seed)
    drawn = sampled_step(world, rng, states, actions)
    known = np.random.default_rng(seed)
    rows = np.cumsum(world.transition.toarray()[pairs], axis=1)
    expected = [
        min(int((row <= uniform).sum()), int(np.flatnonzero(np.diff(row, prepend=0.0))[-1]))
        for row, uniform in zip(rows, known.random(8), strict=True)
    ]
    assert drawn.tolist() == expected
    assert rng.random() == known.random()


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(any))
def test_columns_are_drawn_as_often_as_their_law_says(weights):
    total = sum(weights)
    law = np.array(weights) / total
    uniforms = (np.arange(total) + 0.5) / total
    drawn = draw_columns(np.tile(law, (total, 1)), uniforms)
    assert np.bincount(drawn, minlength=len(weights)).tolist() == weights


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6).filter(any))
def test_outcomes_of_one_law_are_drawn_like_columns(weights):
    law = np.array(weights) / sum(weights)
    uniforms = np.concatenate([np.cumsum(law)[law > 0][:-1], [0.0, 1 - 2.0**-53]])
    drawn = draw_outcomes(running_sums(law), uniforms)
    assert drawn.dtype == np.int64
    np.testing.assert_array_equal(drawn, draw_columns(np.tile(law, (uniforms.size, 1)), uniforms))
    assert law[drawn].all()


def test_rounding_never_draws_a_column_of_probability_zero():
    law = np.array([[0.0, 0.1, 0.2 + 1e-9, 0.7 - 2e-9, 0.0]])
    assert draw_columns(law, np.array([1 - 2.0**-53])).tolist() == [3]
    assert draw_columns(law, np.array([0.0])).tolist() == [1]
    ends = np.array([0.0, 1 - 2.0**-53])
    assert draw_outcomes(running_sums(law[0]), ends).tolist() == [1, 3]


@given(worlds())
def test_a_world_written_out_is_itself(world):
    if not world.pairs.is_rectangular:
        return
    again = enumeration.enumerate_world(world)
    np.testing.assert_array_equal(again.transition.toarray(), world.transition.toarray())
    np.testing.assert_array_equal(again.initial, world.initial)
    assert again.discount == world.discount
    assert again.pairs == world.pairs


def test_blocks_of_states_are_joined(monkeypatch):
    monkeypatch.setattr(enumeration, "BLOCK", 4)
    again = enumeration.enumerate_world(WORLD, sink=None, state_names=list("abcdef"))
    np.testing.assert_array_equal(again.transition.toarray(), WORLD.transition.toarray())
    np.testing.assert_array_equal(again.initial, WORLD.initial)
    assert again.state_names == tuple("abcdef")


def test_a_world_with_too_many_pairs_is_not_written_out():
    with pytest.raises(
        jm.errors.InvalidWorld, match=r"6e\+18 state-action pairs, too many to list"
    ):
        enumeration.enumerate_world(Partial(num_states=2 * 10**18))
