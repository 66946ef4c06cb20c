import numpy as np
import pytest

import journeyman as jm
from journeyman.testing import random_world

LAWS = np.array([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
RAGGED = jm.Policy([0.25, 0.75, 1.0, 0.0, 0.5, 0.5], [0, 2, 3, 6])
DRAWS = 20_000


def within_five_sigma(actions, law):
    frequencies = np.bincount(actions, minlength=len(law)) / len(actions)
    return (np.abs(frequencies - law) <= 5 * np.sqrt(law * (1 - law) / len(actions))).all()


def test_laws_are_given_row_by_row():
    assert jm.Policy(LAWS).probabilities([2, 0, 2]).tolist() == LAWS[[2, 0, 2]].tolist()


def test_actions_a_state_lacks_have_probability_zero():
    assert RAGGED.probabilities([0, 1, 2]).tolist() == [[0.25, 0.75, 0], [1, 0, 0], [0, 0.5, 0.5]]


@pytest.mark.parametrize("state", range(3))
def test_samples_follow_the_law(state):
    actions = jm.Policy(LAWS).sample(np.full(DRAWS, state), seed=1)
    assert within_five_sigma(actions, LAWS[state])


@pytest.mark.parametrize("state", range(3))
def test_predictions_follow_the_law(state):
    actions, _ = jm.Policy(LAWS).seeded(2).predict(np.full(DRAWS, state))
    assert within_five_sigma(actions, LAWS[state])


def test_a_ragged_policy_draws_only_actions_the_state_has():
    states = np.tile([0, 1, 2], 2000)
    actions = RAGGED.sample(states, seed=3)
    assert (RAGGED.probabilities(states)[np.arange(6000), actions] > 0).all()


@pytest.mark.parametrize("draw", [0.0, 0.5, np.nextafter(1.0, 0.0)])
def test_rounding_never_draws_an_action_of_probability_zero(draw):
    class Fixed(np.random.Generator):
        def random(self, size):
            return np.full(size, draw)

    law = np.array([0.0, *[0.1] * 10, 0.0])
    action = jm.Policy([law]).sample([0], Fixed(np.random.PCG64(0)))[0]
    assert law[action] > 0


def test_a_scalar_observation_gives_a_scalar_action():
    action, state = jm.Policy(LAWS).predict(1)
    assert action == 0
    assert np.ndim(action) == 0
    assert isinstance(action, np.integer)
    assert state is None


@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3)])
def test_a_batch_of_observations_gives_actions_of_its_shape(shape):
    actions, state = jm.Policy(LAWS).predict(np.ones(shape, dtype=int), state=("memory",))
    assert actions.shape == shape
    assert (actions == 0).all()
    assert state == ("memory",)


def test_deterministic_predictions_are_the_likeliest_actions():
    with pytest.warns(UserWarning, match="certificate is for the stochastic policy"):
        actions, _ = jm.Policy(LAWS).predict([0, 1, 2], deterministic=True)
    assert actions.tolist() == [1, 0, 1]


def test_predictions_are_random_unless_asked_otherwise():
    actions, _ = jm.Policy(LAWS).predict(np.zeros(200, dtype=int))
    assert set(actions.tolist()) == {0, 1}


def test_a_seeded_policy_predicts_reproducibly_and_moves_on():
    states = np.zeros(50, dtype=int)
    one, two = (jm.Policy(LAWS).seeded(4) for _ in range(2))
    first, second = one.predict(states)[0], one.predict(states)[0]
    assert two.predict(states)[0].tolist() == first.tolist()
    assert two.predict(states)[0].tolist() == second.tolist()
    assert first.tolist() != second.tolist()


def test_seeding_leaves_the_laws_as_they_are():
    policy = jm.Policy(np.random.default_rng(0).dirichlet(np.ones(7), 50))
    np.testing.assert_array_equal(policy.seeded(0).per_pair, policy.per_pair)


def test_the_uniform_policy_takes_each_action_equally():
    world = random_world(0)
    for state, count in enumerate(world.pairs.actions_per_state):
        law = jm.Policy.uniform(world).probabilities([state])[0]
        np.testing.assert_allclose(law[:count], 1 / count)
        assert not law[count:].any()


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_a_mixture_follows_the_other_policy_for_its_share(share):
    other = jm.Policy(LAWS[::-1])
    mixed = jm.Policy(LAWS).mixed_with(other, share).probabilities([0, 1, 2])
    np.testing.assert_allclose(mixed, (1 - share) * LAWS + share * LAWS[::-1], atol=1e-15)


@pytest.mark.parametrize("share", [-0.1, 1.1, np.nan])
def test_a_share_lies_between_zero_and_one(share):
    with pytest.raises(jm.errors.InvalidPolicy, match="share"):
        jm.Policy(LAWS).mixed_with(jm.Policy(LAWS), share)


def test_policies_with_other_actions_do_not_mix():
    with pytest.raises(jm.errors.InvalidPolicy, match="different actions"):
        jm.Policy(LAWS).mixed_with(RAGGED, 0.5)


def test_a_policy_of_another_world_is_refused():
    with pytest.raises(jm.errors.InvalidPolicy, match="made for this world"):
        RAGGED.on(random_world(0))


def test_a_saved_policy_comes_back_whole(tmp_path):
    offsets = np.concatenate([[0], np.cumsum(np.arange(50) % 7 + 1)])
    world = jm.World(np.ones((offsets[-1], 50)) / 50, np.ones(50) / 50, 0.9, choice_offsets=offsets)
    policy = jm.policy.extract(world, np.random.default_rng(1).random(offsets[-1]))
    policy.save(tmp_path / "policy.npz")
    again = jm.Policy.load(tmp_path / "policy.npz")
    assert again.pairs == policy.pairs
    np.testing.assert_array_equal(again.per_pair, policy.per_pair)


def test_sums_that_are_nearly_one_are_normalised():
    policy = jm.Policy([[0.5, 0.5 + 5e-9]])
    assert policy.per_pair.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    ("probabilities", "offsets", "message"),
    [
        ([[0.5, 0.5], [1.5, -0.5]], None, "-0.5 in state 1, action 1 is negative"),
        ([[1.0, 0.0], [0.5, 0.5 + 2e-8]], None, "probabilities of state 1 sum to"),
        ([[1.0], [np.nan]], None, "not finite"),
        ([1.0, 0.0], None, "1 axes"),
        (np.zeros((0, 2)), None, "empty"),
        ([1.0, 0.5], [0, 1, 3], "2 entries, expected 3"),
    ],
)
def test_what_is_no_law_is_refused(probabilities, offsets, message):
    with pytest.raises(jm.errors.InvalidPolicy, match=message):
        jm.Policy(probabilities, offsets)


@pytest.mark.parametrize("state", [3, -1, 0.5])
def test_unknown_states_are_refused(state):
    with pytest.raises(jm.errors.InvalidPolicy, match=r"states\[0\]"):
        jm.Policy(LAWS).probabilities([state])
    with pytest.raises(jm.errors.InvalidPolicy, match=r"states\[0\]"):
        jm.Policy(LAWS).predict(state)
