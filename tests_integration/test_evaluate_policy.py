"""Stable-Baselines3 evaluates our policies, and finds what exact evaluation says."""

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import journeyman as jm

EPISODES = 1200


class Discounted(gymnasium.RewardWrapper):
    """Rewards at their worth when the episode starts."""

    def __init__(self, environment, discount):
        super().__init__(environment)
        self.discount, self.worth = discount, 1.0

    def reset(self, **options):
        self.worth = 1.0
        return super().reset(**options)

    def reward(self, reward):
        worth, self.worth = self.worth, self.worth * self.discount
        return worth * reward


def lakes(count, seed=0, discount=1.0, **options):
    """As many monitored lakes side by side, in the vector form of Stable-Baselines3."""

    def make():
        return Monitor(Discounted(gymnasium.make("FrozenLake-v1", **options), discount))

    environments = DummyVecEnv([make] * count)
    environments.seed(seed)
    return environments


def returns(policy, environments, deterministic=False, episodes=EPISODES):
    rewards, lengths = evaluate_policy(
        policy, environments, episodes, deterministic=deterministic, return_episode_rewards=True
    )
    assert len(rewards) == len(lengths) == episodes
    return np.asarray(rewards)


def standard_errors(found, value):
    """By how many of them the mean of what was found is off."""
    return (found.mean() - value) / (found.std(ddof=1) / np.sqrt(len(found)))


@pytest.mark.parametrize(("count", "episodes"), [(1, 400), (8, EPISODES)])
def test_the_mean_return_is_the_exact_one(lake, exact, count, episodes):
    found = returns(lake.skilled.seeded(1), lakes(count), episodes=episodes)
    assert abs(standard_errors(found, exact(lake.skilled))) < 4
    assert abs(standard_errors(found, exact(lake.lost))) > 12


def test_the_mean_discounted_return_is_minus_the_expected_cost(lake):
    long = lakes(8, discount=lake.world.discount, max_episode_steps=500)
    found = returns(lake.skilled.seeded(2), long)
    value = -jm.expected_cost(lake.world, lake.skilled, -lake.reward)
    assert abs(standard_errors(found, value)) < 4
    assert 0.05 < value < 0.3


def test_a_plain_environment_is_evaluated_too(lake, exact):
    """Not vectorised by the caller: Stable-Baselines3 wraps it."""
    environment = Monitor(gymnasium.make("FrozenLake-v1"))
    environment.reset(seed=3)
    found = returns(lake.skilled.seeded(3), environment, episodes=400)
    assert abs(standard_errors(found, exact(lake.skilled))) < 4


def test_a_seed_repeats_the_evaluation(lake):
    runs = [returns(lake.skilled.seeded(5), lakes(4, seed=6), episodes=60) for _ in range(2)]
    assert (runs[0] == runs[1]).all()


def test_an_apprentice_is_evaluated_as_it_comes(lake, exact):
    expert = lake.skilled
    running = 1.0 * (lake.world.pairs.states != lake.world.sink)
    basis = jm.CostBasis.from_rewards(np.column_stack([lake.reward, -running]))
    demos = jm.record(lake.world, expert, trajectories=300, horizon=100, seed=0)
    apprentice = jm.learn(lake.world, basis, demos)
    found = returns(apprentice.policy.seeded(7), lakes(8))
    assert abs(standard_errors(found, exact(apprentice.policy))) < 4


def test_a_mixture_follows_whom_it_drew_to_the_end(lake, exact):
    """Its value is the mixture of the values; drawing anew in each step would have another."""
    candidates, weights = [lake.skilled, lake.lost], [0.5, 0.5]
    found = returns(jm.policy.MixturePolicy(candidates, weights).seeded(8), lakes(8))
    mixed = (exact(lake.skilled) + exact(lake.lost)) / 2
    blended = exact(lake.skilled.mixed_with(lake.lost, 0.5))
    assert abs(standard_errors(found, mixed)) < 4
    assert abs(standard_errors(found, blended)) > 8


def test_the_default_of_evaluate_policy_is_another_policy_than_the_certified_one(lake, exact):
    """The heaviest candidate alone, and its likeliest actions: we warn."""
    mixture = jm.policy.MixturePolicy([lake.skilled, lake.lost], [0.3, 0.7]).seeded(9)
    with pytest.warns(UserWarning, match="the certificate is for the stochastic mixture"):
        found = returns(mixture, lakes(8), deterministic=True, episodes=80)
    assert found.mean() < 0.2 * (0.3 * exact(lake.skilled) + 0.7 * exact(lake.lost))


def test_likeliest_actions_are_those_of_the_greedy_policy(lake, exact):
    choice = np.argmax(lake.skilled.probabilities(np.arange(lake.world.num_states)), axis=1)
    greedy = jm.Policy(np.eye(4)[choice])
    with pytest.warns(UserWarning, match="the certificate is for the stochastic policy"):
        found = returns(lake.skilled, lakes(8), deterministic=True)
    assert abs(standard_errors(found, exact(greedy))) < 4
    assert abs(standard_errors(found, exact(lake.skilled))) > 4
