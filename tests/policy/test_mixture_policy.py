"""A mixture draws once per episode, follows to the end, and refuses to be taken for stationary."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman as jm
from journeyman.policy.acting import Actor


def always(action):
    """A rule that does one thing only."""
    return lambda observations, rng: np.full(len(observations), action)


class Counting:
    """A candidate with a state of its own: does k in the k-th step of an episode."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        steps = np.zeros(len(observation), int) if state is None else state[0] + 1
        steps = np.where(episode_start, 0, steps)
        return steps, (steps,)


def follow(mixture, starts):
    """Actions, step by step, when episodes start as the rows of `starts` say."""
    carried, actions = None, []
    for row in starts:
        chosen, carried = mixture.predict(np.zeros(len(row), int), carried, episode_start=row)
        actions.append(chosen)
    return np.array(actions)


def test_who_was_drawn_is_followed_until_the_next_episode_starts():
    starts = np.zeros((12, 50), dtype=bool)
    starts[0] = True
    starts[5, ::2] = True
    actions = follow(jm.policy.MixturePolicy([always(0), always(1)], [0.5, 0.5]).seeded(3), starts)
    assert set(actions[0]) == {0, 1}
    assert (actions[:5] == actions[0]).all()
    assert (actions[:, 1::2] == actions[0, 1::2]).all()
    assert (actions[5:, ::2] == actions[5, ::2]).all()
    assert (actions[5, ::2] != actions[0, ::2]).any()


def test_candidates_are_drawn_with_their_weights():
    mixture = jm.policy.MixturePolicy([always(a) for a in range(4)], [0.1, 0.0, 0.6, 0.3])
    counts = np.bincount(mixture.draw(20_000, seed=0), minlength=4)
    assert counts[1] == 0
    spread = np.sqrt(20_000 * mixture.weights * (1 - mixture.weights))
    assert (np.abs(counts - 20_000 * mixture.weights) <= 4 * spread).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.integers(0, 2**32))
def test_no_candidate_without_weight_is_drawn(given_weights, seed):
    total = sum(given_weights)
    weights = [weight / total for weight in given_weights] if total > 1e-300 else [1.0]
    mixture = jm.policy.MixturePolicy([always(k) for k in range(len(weights))], weights)
    assert (mixture.weights[mixture.draw(50, seed)] > 0).all()
    assert abs(mixture.weights.sum() - 1) < 1e-12


def test_a_candidate_keeps_a_state_of_its_own():
    starts = np.zeros((9, 40), dtype=bool)
    starts[0] = True
    starts[4, 10:30] = True
    actions = follow(
        jm.policy.MixturePolicy([Counting(), always(-1)], [0.4, 0.6]).seeded(0), starts
    )
    age = np.repeat(np.arange(9)[:, np.newaxis], 40, axis=1)
    age[4:, 10:30] -= 4
    counting = actions >= 0
    assert 0 < counting.mean() < 1
    assert (actions[counting] == age[counting]).all()


def test_mixtures_of_mixtures_are_followed_too():
    inner = jm.policy.MixturePolicy([always(0), always(1)], [0.5, 0.5])
    starts = np.zeros((6, 30), dtype=bool)
    starts[0] = True
    starts[3, :15] = True
    actions = follow(jm.policy.MixturePolicy([always(2), inner], [0.5, 0.5]).seeded(1), starts)
    assert set(actions[0]) == {0, 1, 2}
    assert (actions[1:3] == actions[0]).all()
    assert (actions[3:] == actions[3]).all()
    assert (actions[3, 15:] == actions[0, 15:]).all()


@pytest.mark.parametrize(("axes", "one"), [(0, 3), (1, [0.5, -1.0])])
def test_a_single_observation_gives_a_single_action(axes, one):
    mixture = jm.policy.MixturePolicy([always(7)], [1.0], observation_axes=axes)
    action, carried = mixture.predict(one)
    assert action == 7
    assert np.ndim(action) == 0
    again, _ = mixture.predict([one, one], episode_start=[True, True])
    assert again.tolist() == [7, 7]
    assert mixture.predict(one, carried)[0] == 7


def test_tables_and_functions_of_states_serve_as_candidates():
    table = jm.Policy(np.eye(3)[[0, 1, 2]])
    function = jm.FunctionPolicy(lambda x: np.eye(3)[(x + 1) % 3], 3)
    mixture = jm.policy.MixturePolicy([table, function], [0.5, 0.5]).seeded(0)
    actions, (drawn, _) = mixture.predict(np.arange(60) % 3)
    assert set(drawn) == {0, 1}
    assert (actions == (np.arange(60) + drawn) % 3).all()


def test_actions_of_different_kinds_are_not_rounded():
    half = jm.policy.MixturePolicy([always(0), always(0.5)], [0.5, 0.5]).seeded(0)
    assert set(half.predict(np.zeros(30))[0]) == {0.0, 0.5}


def test_the_stream_is_fixed_by_a_seed():
    mixture = jm.policy.MixturePolicy([jm.Policy([[0.5, 0.5]]), always(5)], [0.5, 0.5])
    runs = [follow(mixture.seeded(seed), np.ones((4, 30), dtype=bool)) for seed in (0, 0, 1)]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


def test_there_are_no_probabilities_per_state():
    with pytest.raises(jm.errors.InvalidPolicy, match="depends on the candidate that was drawn"):
        jm.policy.MixturePolicy([always(0)], [1.0]).probabilities([0])


def test_deterministic_is_another_policy_and_says_so():
    mixture = jm.policy.MixturePolicy([always(0), jm.Policy([[0.1, 0.6, 0.3]])], [0.4, 0.6]).seeded(
        0
    )
    with pytest.warns(UserWarning, match="the certificate is for the stochastic mixture"):
        actions, _ = mixture.predict(np.zeros(20, int), deterministic=True)
    assert (actions == 1).all()


def test_a_lost_state_is_noticed():
    mixture = jm.policy.MixturePolicy([always(0), always(1)], [0.5, 0.5])
    with pytest.raises(jm.errors.InvalidPolicy, match="environment 1 is within an episode"):
        mixture.predict([0, 0], episode_start=[True, False])
    mixture.predict(0)
    with pytest.warns(UserWarning, match="pass on the state"):
        mixture.predict(0)


def test_a_state_that_is_passed_on_is_no_cause_for_warnings():
    mixture = jm.policy.MixturePolicy([always(0), always(1)], [0.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            _, carried = mixture.predict(0)
            mixture.predict(0, carried)


@pytest.mark.parametrize(
    ("candidates", "weights", "complaint"),
    [
        ([], [], "no candidate"),
        ([always(0)], [0.5], "sum to 1"),
        ([always(0), always(1)], [1.5, -0.5], "at least 0"),
        ([always(0)], [0.5, 0.5], "expected 1"),
        ([42], [1.0], "cannot choose actions"),
        ([jm.Policy], [1.0], "cannot choose actions"),
    ],
)
def test_what_is_no_mixture_is_refused(candidates, weights, complaint):
    with pytest.raises(jm.errors.InvalidPolicy, match=complaint):
        jm.policy.MixturePolicy(candidates, weights)


def test_environments_and_observations_must_agree():
    mixture = jm.policy.MixturePolicy([always(0)], [1.0])
    with pytest.raises(jm.errors.InvalidPolicy, match="3 observations, 2 episode starts"):
        mixture.predict([0, 0, 0], episode_start=[True, True])
    wrong = jm.policy.MixturePolicy([lambda observations, rng: [0]], [1.0])
    with pytest.raises(jm.errors.InvalidPolicy, match="one action for each"):
        wrong.predict([0, 0, 0])


def test_an_actor_passes_the_state_on():
    mixture = jm.policy.MixturePolicy([Counting(), always(-1)], [0.5, 0.5])
    actor = Actor(mixture, seed=0)
    actions = np.array([actor.sample(np.zeros(20)) for _ in range(5)])
    assert set(actions[0]) == {0, -1}
    assert (actions[:, actions[0] == 0] == np.arange(5)[:, np.newaxis]).all()
    assert (actions[:, actions[0] == -1] == -1).all()


def test_what_an_actor_does_depends_on_its_seed_only():
    policies = [jm.Policy([[0.5, 0.5]]), jm.policy.MixturePolicy([jm.Policy([[0.5, 0.5]])], [1.0])]
    for policy in policies:
        first, second, other = (
            Actor(policy, seed).sample(np.zeros(64, int)).tolist() for seed in (0, 0, 1)
        )
        assert first == second != other


def test_expectations_mix_with_the_weights_and_steps_do_not():
    """Who alternates between two habits within an episode is not who keeps one of them."""
    stay_or_go = np.array([[1, 0], [0, 1], [0, 1], [1, 0]], dtype=float)
    world = jm.World(stay_or_go, [1.0, 0.0], 0.8)
    costs = jm.CostFunctions(
        lambda x, a: np.column_stack([x, a]), ["place", "effort"], lowest=0, highest=1
    )
    basis = jm.CostBasis(costs.at(world.pairs.states, world.pairs.actions))
    members, weights = [jm.Policy([[1, 0], [1, 0]]), jm.Policy([[0, 1], [1, 0]])], [0.3, 0.7]
    each = np.array([jm.occupancy(world, one).expectations(basis) for one in members])
    stepwise = jm.occupancy(world, members[0].mixed_with(members[1], 0.7)).expectations(basis)
    problem = jm.Apprenticeship(world, costs, jm.ExpertExpectation([0.0, 0.0]))
    record = problem.simulator.totals(
        jm.policy.MixturePolicy(members, weights), 4000, 60, np.random.default_rng(0)
    )
    error = record.totals.std(axis=0) / np.sqrt(4000)
    assert (np.abs(record.mean - weights @ each) <= 4 * error + 1e-4).all()
    assert (np.abs(stepwise - weights @ each) > 10 * error).any()
