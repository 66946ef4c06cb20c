"""Networks of Stable-Baselines3 are certified exactly in a world of arrays, as what they do.

Policies of `imitation` are policies of Stable-Baselines3 (`BasePolicy`); the package itself asks
for an old Gymnasium, so policies are given here without their algorithm."""

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import set_random_seed

import journeyman as jm


@pytest.fixture(scope="module")
def problem(lake):
    costs = jm.CostBasis.from_rewards(lake.reward[:, np.newaxis])
    demos = jm.record(lake.world, lake.skilled, trajectories=100, horizon=100, seed=0)
    return jm.Apprenticeship(lake.world, costs, demos)


@pytest.mark.parametrize("kind", [PPO, A2C])
@pytest.mark.parametrize("part", [lambda model: model, lambda model: model.policy])
def test_the_law_of_an_actor_is_tabulated(problem, kind, part):
    model = kind("MlpPolicy", gymnasium.make("FrozenLake-v1"), device="cpu", seed=0)
    certificate = jm.certify(problem, part(model))
    table = certificate.policy.probabilities(np.arange(16))
    set_random_seed(0)
    drawn = [model.predict(np.arange(16), deterministic=False)[0] for _ in range(3000)]
    shares = np.stack([(np.array(drawn) == a).mean(axis=0) for a in range(4)], axis=1)
    assert table == pytest.approx(shares, abs=0.05)
    assert certificate.expectations[0] == pytest.approx(
        jm.expected_cost(problem.world, certificate.policy, problem.cost_matrix[:, 0])
    )


def test_dqn_is_its_greedy_policy_and_does_not_explore(problem):
    model = DQN("MlpPolicy", gymnasium.make("FrozenLake-v1"), device="cpu", seed=0)
    model.exploration_rate = 1.0
    chosen = model.predict(np.arange(16), deterministic=True)[0]
    for one in (model, model.policy):
        found = jm.certify(problem, one).policy.probabilities(np.arange(16))
        assert np.array_equal(found, np.eye(4)[chosen])


def test_rollouts_of_a_network_repeat_themselves(lake):
    """In a simulator the probabilities are drawn from with the numbers of the rollouts."""
    expert = jm.record(lake.world, lake.skilled, trajectories=2, horizon=5, seed=0)
    matrix = lake.reward[:, np.newaxis]
    costs = jm.CostFunctions(lambda x, a: -matrix[x * 4 + a], ["reward"], lowest=-1, highest=0)
    problem = jm.Apprenticeship(lake.world, costs, expert)
    rollouts = jm.Rollouts(trajectories=50, horizon=40)
    for kind in (PPO, DQN):
        model = kind("MlpPolicy", gymnasium.make("FrozenLake-v1"), device="cpu", seed=0)
        seeing = jm.policy.ObservationPolicy(model, observations=lambda x: np.minimum(x, 15))
        bounds = [jm.certify(problem, seeing, evaluation=rollouts).bound for _ in range(2)]
        assert bounds[0] == bounds[1]


class Dropping(BasePolicy):
    """A policy as `imitation` has them, which draws its actions whatever it is asked."""

    def _predict(self, observation, deterministic=False):
        return torch.as_tensor([self.action_space.sample() for _ in observation])


def test_a_policy_that_draws_and_does_not_say_how_is_refused(problem):
    env = gymnasium.make("FrozenLake-v1")
    with pytest.raises(jm.errors.InvalidPolicy, match="asked again"):
        jm.certify(problem, Dropping(env.observation_space, env.action_space))


def test_a_network_of_another_world_is_refused(problem):
    model = PPO("MlpPolicy", gymnasium.make("CartPole-v1"), device="cpu", seed=0)
    with pytest.raises(jm.errors.InvalidPolicy, match="fails when it is asked"):
        jm.certify(problem, model)
    continuous = PPO("MlpPolicy", gymnasium.make("Pendulum-v1"), device="cpu", seed=0)
    seeing = jm.policy.ObservationPolicy(continuous, observations=np.zeros((16, 3)))
    with pytest.raises(jm.errors.InvalidPolicy, match="Discrete"):
        jm.certify(problem, seeing)
