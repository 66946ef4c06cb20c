"""Policies of Stable-Baselines3 beside recorded actions."""

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import A2C, DQN, PPO

import journeyman as jm


@pytest.fixture(scope="module")
def problem():
    env = gymnasium.make("CartPole-v1")
    states, actions, ended = [], [], []
    for episode in range(20):
        seen, _ = env.reset(seed=episode)
        visited, taken, over, cut = [seen], [], False, False
        while not (over or cut or len(taken) == 60):
            taken.append(int(seen[2] + 0.35 * seen[3] > 0))
            seen, _, over, cut, _ = env.step(taken[-1])
            visited.append(seen)
        states.append(np.array(visited))
        actions.append(taken)
        ended.append(over)
    demos = jm.Demonstrations.from_arrays(states, actions, ended)
    return jm.Apprenticeship(jm.world.Records(0.9, (0, 1)), None, demos)


@pytest.mark.parametrize("kind", [PPO, A2C])
def test_actors_are_asked_for_their_law(problem, kind):
    model = kind("MlpPolicy", gymnasium.make("CartPole-v1"), device="cpu", seed=0)
    demos = problem.demonstrations
    seen, ones = demos.step_states[:3], np.ones(3, dtype=int)
    drawn = [model.predict(seen, deterministic=False)[0] for _ in range(2000)]
    law = jm.policy.ObservationPolicy(model).of_actions(seen, ones)
    assert law == pytest.approx(np.mean(drawn, axis=0), abs=0.05)
    certificate = jm.certify(problem, model)
    assert certificate.agreement.per_step == pytest.approx(0.5, abs=0.1)
    assert jm.certify(problem, model.policy).bound == certificate.bound


def test_without_a_law_the_predicted_action_is_the_policy(problem):
    model = DQN("MlpPolicy", gymnasium.make("CartPole-v1"), device="cpu", seed=0)
    demos = problem.demonstrations
    chosen = model.predict(demos.step_states, deterministic=True)[0]
    found = jm.certify(problem, model).agreement
    assert np.array_equal(found.probabilities[0], chosen == demos.actions)
