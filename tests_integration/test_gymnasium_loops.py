"""Our policies in plain loops of Gymnasium, one environment at a time or several side by side."""

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

import journeyman as jm


def test_one_environment_at_a_time(lake, exact):
    environment, policy = gymnasium.make("FrozenLake-v1"), lake.skilled.seeded(0)
    observation, _ = environment.reset(seed=0)
    totals, total = [], 0.0
    while len(totals) < 500:
        action, _ = policy.predict(observation)
        observation, reward, terminated, truncated, _ = environment.step(action)
        total += reward
        if terminated or truncated:
            totals.append(total)
            total = 0.0
            observation, _ = environment.reset()
    error = np.std(totals, ddof=1) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - exact(lake.skilled)) < 4 * error


def test_what_predict_returns_is_an_action_of_the_space(lake):
    space = gymnasium.make("FrozenLake-v1").action_space
    mixture = jm.policy.MixturePolicy([lake.skilled, lake.lost], [0.5, 0.5]).seeded(0)
    for policy in (lake.skilled, mixture):
        action, _ = policy.predict(0, episode_start=True)
        assert np.ndim(action) == 0
        assert action in space


def side_by_side(policy, steps, count=8):
    """(candidates drawn, actions, whether an episode starts) of each step, one column a lake."""
    lakes = gymnasium.make_vec(
        "FrozenLake-v1", num_envs=count, vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
    )  # fmt: skip
    observations, _ = lakes.reset(seed=1)
    carried, starting = None, np.ones(count, dtype=bool)
    seen = []
    for _ in range(steps):
        actions, carried = policy.predict(observations, carried, episode_start=starting)
        assert lakes.action_space.contains(actions)
        seen.append((carried[0].copy(), actions, starting))
        observations, _, terminated, truncated, _ = lakes.step(actions)
        starting = terminated | truncated
    return [np.array(column) for column in zip(*seen, strict=True)]


def test_a_mixture_keeps_its_candidate_until_the_episode_ends(lake):
    left, right = (jm.Policy(np.eye(4)[[a] * lake.world.num_states]) for a in (0, 2))
    drawn, actions, starting = side_by_side(
        jm.policy.MixturePolicy([left, right], [0.25, 0.75]).seeded(2), steps=3000
    )
    changes = drawn[1:] != drawn[:-1]
    assert changes.any()
    assert not (changes & ~starting[1:]).any()
    assert (actions == np.where(drawn == 0, 0, 2)).all()
    first = drawn[starting]
    assert abs((first == 1).mean() - 0.75) < 4 * np.sqrt(0.1875 / first.size)


def test_a_stationary_policy_returns_the_state_it_was_given(lake):
    actions, state = lake.skilled.predict(np.zeros(5, dtype=int), state=("kept",))
    assert actions.shape == (5,)
    assert state == ("kept",)
