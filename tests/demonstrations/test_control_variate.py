"""Shaped totals: unbiased by enumeration of every trajectory, exact where they should be."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.demonstrations.expectation import Shaping
from journeyman.policy.policy_evaluation import value_functions
from journeyman.testing.strategies import policies, seeds, worlds
from naive import expectation as naive

HORIZON = 3
RESTLESS = jm.World([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5], [0.9, 0.1]], [0.4, 0.6], 0.8)
"""Two states, two actions; every record is truncated."""
RESTING = jm.World([[0.7, 0.3], [0.2, 0.8], [0, 1], [0, 1]], [0.9, 0.1], 0.8)
"""State 1 absorbs; records end there or are truncated."""
COSTS = {
    "restless": (RESTLESS, np.array([[1.0, -0.3], [-1.0, 0.2], [0.4, 0.9], [0.1, -0.8]])),
    "resting": (RESTING, np.array([[1.0, -0.3], [-1.0, 0.2], [0.5, 0.9], [0.5, 0.9]])),
}


def stubborn(actions):
    """Law of the next action: the last one is repeated with probability 3/4; time breaks ties."""
    if not actions:
        return (0.35, 0.65)
    again = 0.75 if len(actions) % 2 else 0.6
    return tuple(again if action == actions[-1] else 1 - again for action in (0, 1))


def every_trajectory(world):
    """(states, actions, probability) of all records of at most HORIZON steps."""
    rows, found = world.transition.toarray(), []

    def follow(states, actions, probability):
        rested = actions and world.absorbing[states[-1]]
        if probability == 0:
            return
        if len(actions) == HORIZON or rested:
            found.append((states, actions, probability))
            return
        for action, after in product((0, 1), (0, 1)):
            step = stubborn(actions)[action] * rows[2 * states[-1] + action, after]
            follow([*states, after], [*actions, action], probability * step)

    for start in (0, 1):
        follow([start], [], world.initial[start])
    return found


def demonstrations_of(world, trajectories):
    return jm.Demonstrations.from_arrays(
        [states for states, _, _ in trajectories],
        [actions for _, actions, _ in trajectories],
        [world.absorbing[states[-1]] for states, _, _ in trajectories],
    )


def value_with_tail(world, costs, trajectory, V):
    """sum_t discount^t psi(x_t, a_t) + discount^T (tail if known, otherwise V(x_T))."""
    states, actions, _ = trajectory
    total = np.zeros(costs.shape[1])
    for t, action in enumerate(actions):
        total += world.discount**t * costs[2 * states[t] + action]
    last, left = states[-1], world.discount ** len(actions)
    rests = world.absorbing[last]
    return total + left * (costs[2 * last] / (1 - world.discount) if rests else V[last])


@pytest.mark.parametrize("name", COSTS)
def test_every_trajectory_is_enumerated_with_its_probability(name):
    world, _ = COSTS[name]
    trajectories = every_trajectory(world)
    assert sum(probability for _, _, probability in trajectories) == pytest.approx(1, abs=1e-15)
    assert len(trajectories) == (2 * 4**HORIZON if name == "restless" else 2 + 2 + 4 + 8 + 8)


@pytest.mark.parametrize("name", COSTS)
def test_two_shaped_trajectories_are_unbiased_by_enumeration(name):
    """sum over both trajectories of probability x estimate, for an expert with a memory."""
    world, costs = COSTS[name]
    trajectories = every_trajectory(world)
    records = demonstrations_of(world, trajectories)
    law = np.array([probability for _, _, probability in trajectories])
    estimate, expected = np.zeros(2), np.zeros(2)
    for j in range(len(trajectories)):
        other = records.subset(np.array([j]))
        shaping = Shaping.learned(other, costs, world, 0.1)
        estimate += law[j] * (law @ shaping.totals(records, costs, world))
        V = value_functions(world, jm.clone(other, world, smoothing=0.1), costs)
        values = [value_with_tail(world, costs, one, V) for one in trajectories]
        expected += law[j] * (law @ np.array(values))
    assert estimate == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("pair", [(0, 5), (7, 7), (11, 2)])
def test_the_control_variate_shapes_each_trajectory_by_the_other(name, pair):
    world, costs = COSTS[name]
    records = demonstrations_of(world, every_trajectory(world)).subset(np.array(pair))
    first, second = (records.subset(np.array([j])) for j in (0, 1))
    found = jm.demonstrations.ControlVariate().totals(records, costs, world)
    for j, (mine, other) in enumerate([(first, second), (second, first)]):
        twin = Shaping.learned(other, costs, world, 0.1).totals(mine, costs, world)
        assert found[j] == pytest.approx(twin[0], abs=1e-13)


@given(st.data(), seeds, st.booleans())
def test_shaped_totals_are_those_of_a_loop(data, seed, thin):
    world = data.draw(worlds())
    demos = jm.record(world, data.draw(policies(world)), trajectories=4, horizon=6, seed=seed)
    costs = np.random.default_rng(seed).normal(size=(world.num_pairs, 2))
    costs[:, 1] = np.arange(world.num_states)[world.pairs.states] if thin else costs[:, 1]
    shaping = Shaping.learned(demos, costs, world, 0.1)
    V, rows = np.asarray(shaping.potential), world.transition.toarray()
    plain, missing = naive.totals(demos, costs, world)
    found = shaping.totals(demos, costs, world)
    size = 1e-11 * (1 + np.abs(V).max()) * world.effective_horizon
    for j in range(len(demos)):
        states, actions = demos.episode(j)
        noise = world.initial @ V - V[states[0]]
        for t, action in enumerate(actions):
            row = rows[world.pairs.offsets[states[t]] + action]
            noise = noise + world.discount ** (t + 1) * (row @ V - V[states[t + 1]])
        tail = 0 if missing[j] == 0 else world.discount ** len(actions) * V[states[-1]]
        assert found[j] == pytest.approx(plain[j] + noise + tail, rel=1e-9, abs=size)


@given(st.data(), seeds)
def test_plain_totals_are_those_of_a_loop(data, seed):
    world = data.draw(worlds())
    demos = jm.record(world, data.draw(policies(world)), trajectories=3, horizon=5, seed=seed)
    costs = np.random.default_rng(seed).normal(size=(world.num_pairs, 3))
    totals, _ = naive.totals(demos, costs, world)
    found = jm.demonstrations.MonteCarlo().totals(demos, costs, world)
    np.testing.assert_allclose(found, totals, rtol=1e-12, atol=1e-12 * world.effective_horizon)


def estimate(world, basis, demos, method):
    return jm.ExpertExpectation.from_demonstrations(demos, basis, world, method=method)


def test_a_deterministic_expert_shaped_by_its_own_value_is_known_without_error():
    world, basis, _ = jm.gallery.garnet(12, 3, 4, num_costs=3, seed=3)
    expert = jm.plan(world, basis.on(world)[:, 0]).policy
    demos = jm.record(world, expert, trajectories=60, horizon=80, seed=0)
    shaped = estimate(world, basis, demos, jm.demonstrations.ControlVariate(smoothing=0.0))
    truth = jm.occupancy(world, expert).expectations(basis)
    assert shaped.values == pytest.approx(truth, abs=1e-11)
    assert (shaped.spread < 1e-11).all()
    assert (estimate(world, basis, demos, jm.demonstrations.MonteCarlo()).spread > 0.1).all()


def test_a_random_expert_keeps_the_randomness_of_its_actions_only():
    world, basis, expert = jm.gallery.grid(5, macro_cells=2)
    demos = jm.record(world, expert, trajectories=400, horizon=150, seed=0)
    plain, shaped = (
        estimate(world, basis, demos, method)
        for method in (jm.demonstrations.MonteCarlo(), jm.demonstrations.ControlVariate())
    )
    assert (shaped.spread < 0.5 * plain.spread).all()
    truth = jm.occupancy(world, expert).expectations(basis)
    assert (np.abs(shaped.values - truth) < 5 * shaped.spread / np.sqrt(400)).all()


def test_known_tails_replace_the_potential_exactly():
    """A record that ends in an absorbing state, and the same record gone on with for long."""
    world, costs = COSTS["resting"]
    short = jm.Demonstrations([0, 0, 1], [0, 1], [0, 2], [True])
    long = jm.Demonstrations([0, 0, *[1] * 400], [0, 1, *[0] * 399], [0, 401], [True])
    shaping = Shaping.learned(short, costs, world, 0.1)
    ended, gone_on = (shaping.totals(demos, costs, world) for demos in (short, long))
    assert ended == pytest.approx(gone_on, abs=1e-12)


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("seed", range(3))
def test_any_potential_fixed_beforehand_is_unbiased_by_enumeration(name, seed):
    world, costs = COSTS[name]
    V = np.random.default_rng(seed).normal(size=(2, 2)) * 10
    trajectories = every_trajectory(world)
    law = np.array([probability for _, _, probability in trajectories])
    records = demonstrations_of(world, trajectories)
    found = law @ Shaping.by(V, world).totals(records, costs, world)
    expected = law @ np.array([value_with_tail(world, costs, one, V) for one in trajectories])
    assert found == pytest.approx(expected, abs=1e-12)


@given(st.data(), seeds)
def test_a_subset_has_the_chosen_episodes_in_their_order(data, seed):
    world = data.draw(worlds())
    demos = jm.record(world, data.draw(policies(world)), trajectories=5, horizon=4, seed=seed)
    chosen = data.draw(st.lists(st.integers(-5, 4), min_size=1, max_size=8))
    part = demos.subset(np.array(chosen))
    assert len(part) == len(chosen)
    assert part.pairs == demos.pairs
    for place, j in enumerate(chosen):
        for found, expected in zip(part.episode(place), demos.episode(j % 5), strict=True):
            assert found.tolist() == expected.tolist()
        assert part.terminated[place] == demos.terminated[j]


def test_an_empty_or_absent_subset_is_refused():
    demos = jm.Demonstrations([0, 1], [0], [0, 1])
    with pytest.raises(jm.errors.InvalidDemonstrations):
        demos.subset(np.array([], dtype=np.int64))
    with pytest.raises(jm.errors.InvalidDemonstrations, match="among 1 episodes"):
        demos.subset(np.array([1]))


@pytest.mark.parametrize("num_folds", [1, 0, -2, 2.5, "two"])
def test_folds_are_at_least_two(num_folds):
    with pytest.raises(jm.errors.InvalidDemonstrations, match="num_folds"):
        jm.demonstrations.ControlVariate(num_folds)
    with pytest.raises(jm.errors.InvalidDemonstrations, match="num_folds"):
        jm.demonstrations.Blend(num_folds)


def test_wrong_settings_say_what_is_wrong():
    world, costs = COSTS["restless"]
    demos = jm.record(world, jm.Policy.uniform(world), trajectories=2, horizon=3, seed=0)
    basis = jm.CostBasis(costs)
    with pytest.raises(
        jm.errors.InvalidDemonstrations, match="2 trajectories cannot be cut into 3"
    ):
        estimate(world, basis, demos, jm.demonstrations.ControlVariate(3))
    with pytest.raises(jm.errors.InvalidDemonstrations, match="method is 'mean'"):
        estimate(world, basis, demos, "mean")
    with pytest.raises(jm.errors.InvalidDemonstrations, match="smoothing = -1"):
        estimate(world, basis, demos, jm.demonstrations.ControlVariate(smoothing=-1.0))
