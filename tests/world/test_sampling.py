import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.policy import Policy
from journeyman.testing import Shape, random_world
from journeyman.testing.strategies import policies, seeds, worlds
from journeyman.world import sampling, walk_kernels
from naive import recording as naive

JUST_BELOW_ONE = np.nextafter(1.0, 0.0)


def walked(world, policy, trajectories, horizon, seed):
    """The flat arrays of `walk` as (states, actions) of each episode."""
    walks = sampling.walk(
        world, policy.on(world), trajectories, horizon, np.random.default_rng(seed)
    )
    ends = np.cumsum(walks.lengths)
    states = np.split(walks.states, (ends + np.arange(1, trajectories + 1))[:-1])
    actions = np.split(walks.actions, ends[:-1])
    return [(s.tolist(), a.tolist()) for s, a in zip(states, actions, strict=True)]


def drawn(weights, start, stop, uniform):
    """The same from both loops."""
    one = np.array([start]), np.array([stop]), np.array([uniform])
    compiled = walk_kernels.draw(weights, start, stop, uniform)
    assert sampling.draw(weights, *one).tolist() == [compiled]
    return compiled


class Fixed:
    """A choice of loops that never changes."""

    def __init__(self, advance):
        self.choose = lambda *_: advance


@given(data=st.data(), seed=seeds, walks=st.integers(1, 40), horizon=st.integers(1, 300))
def test_both_loops_give_the_same_bits(data, seed, walks, horizon):
    world = data.draw(worlds())
    policy = data.draw(policies(world))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "LOOPS", Fixed(sampling.advance))
        plain = walked(world, policy, walks, horizon, seed)
        patch.setattr(sampling, "LOOPS", Fixed(walk_kernels.advance))
        assert walked(world, policy, walks, horizon, seed) == plain


def test_many_walks_are_worth_the_compiler():
    world, loops = random_world(0), sampling.Loops()
    assert loops.choose(world, 10, 100) is sampling.advance
    assert loops.choose(world, 100_000, 128) is walk_kernels.advance
    assert loops.choose(world, 10, 100) is walk_kernels.advance


@given(st.data(), seeds, st.integers(1, 6), st.integers(1, 12))
def test_the_kernel_walks_like_its_naive_twin(data, seed, trajectories, horizon):
    world = data.draw(worlds())
    policy = data.draw(policies(world))
    expected = naive.walk(world, policy, trajectories, horizon, np.random.default_rng(seed))
    assert walked(world, policy, trajectories, horizon, seed) == expected


@pytest.mark.parametrize("chunk", [1, 3, 8, 1000])
def test_chunks_of_a_walk_join_without_a_seam(monkeypatch, chunk):
    monkeypatch.setattr(sampling, "CHUNK", chunk)
    around = random_world(1, Shape.PERIODIC, num_states=5)
    for states, actions in walked(around, Policy.uniform(around), 10, 20, seed=5):
        assert states == [(states[0] + t) % 5 for t in range(21)]
        assert len(actions) == 20


@pytest.mark.parametrize("chunk", [1, 3, 8, 1000])
def test_walks_stop_where_they_are_absorbed_and_nowhere_else(monkeypatch, chunk):
    monkeypatch.setattr(sampling, "CHUNK", chunk)
    world = random_world(1, Shape.ABSORBING, num_states=6)
    lengths = set()
    for states, actions in walked(world, Policy.uniform(world), 60, 20, seed=5):
        assert not world.absorbing[states[1:-1]].any()
        assert world.absorbing[states[-1]] or len(actions) == 20
        lengths.add(len(actions))
    assert len(lengths) > 5


def test_the_seed_decides_the_result():
    world = random_world(2, Shape.DENSE)
    policy = Policy.uniform(world)
    first, again, other = (walked(world, policy, 20, 10, seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_frequencies_are_those_of_the_laws():
    world = random_world(3, Shape.DENSE, num_states=3)
    policy = Policy(np.random.default_rng(0).dirichlet(np.full(3, 5.0), 3))
    episodes = walked(world, policy, 4000, 10, seed=6)
    starts, steps = np.zeros(3), np.zeros((3, 3, 3))
    for states, actions in episodes:
        starts[states[0]] += 1
        for state, action, target in zip(states[:-1], actions, states[1:], strict=True):
            steps[state, action, target] += 1
    require_five_sigma(starts, world.initial)
    for state in range(3):
        require_five_sigma(steps[state].sum(axis=1), policy.probabilities([state])[0])
        for action in range(3):
            require_five_sigma(steps[state, action], world.transition.toarray()[3 * state + action])


def require_five_sigma(counts, law):
    total = counts.sum()
    assert total > 100
    assert (np.abs(counts - total * law) <= 5 * np.sqrt(total * law * (1 - law))).all()


@given(st.data(), seeds)
def test_nothing_impossible_is_drawn(data, seed):
    world = data.draw(worlds())
    policy = data.draw(policies(world))
    for states, actions in walked(world, policy, 20, 20, seed):
        pairs = world.pairs.index(states[:-1], actions)
        assert world.initial[states[0]] > 0
        assert (policy.per_pair[pairs] > 0).all()
        assert (world.transition.toarray()[pairs, states[1:]] > 0).all()


@pytest.mark.parametrize("uniform", [0.0, 0.5, JUST_BELOW_ONE])
@pytest.mark.parametrize("weights", [[0.0, 1.0, 0.0], [0.0, *[0.1] * 10, 0.0], [0.5, 0.0, 0.5]])
def test_no_uniform_number_draws_an_outcome_of_weight_zero(weights, uniform):
    weights = np.array(weights)
    assert weights[drawn(weights, 0, weights.size, uniform)] > 0


@pytest.mark.parametrize(("uniform", "outcome"), [(0.0, 0), (0.25, 1), (0.5, 1), (0.75, 2)])
def test_an_outcome_owns_its_interval_without_the_upper_end(uniform, outcome):
    assert drawn(np.array([0.25, 0.5, 0.25]), 0, 3, uniform) == outcome


def test_rounding_cannot_push_a_draw_beyond_the_last_outcome():
    weights = np.array([7.0, *[0.1] * 9, 0.1 - 1e-12, 0.0, 7.0])
    assert drawn(weights, 1, 12, JUST_BELOW_ONE) == 10
