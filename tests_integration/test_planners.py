"""Algorithms of Stable-Baselines3 as planners of a growing mixture."""

import random

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO

import journeyman as jm

KINDS = {
    "PPO": (PPO, {"n_steps": 256, "batch_size": 64}),
    "DQN": (DQN, {"learning_rate": 2e-3, "learning_starts": 100, "target_update_interval": 100}),
}


def lean(observations, actions, following, rewards, terminated):
    return np.minimum(np.abs(following[:, [2]]) / 0.21, 1)


def upright(seen, rng):
    return (seen[:, 2] + 0.35 * seen[:, 3] + 0.02 * seen[:, 0] + 0.06 * seen[:, 1] > 0).astype(int)


@pytest.fixture(scope="module")
def cart():
    costs = jm.costs.StepCosts(lean, ["lean"], lowest=0, highest=1, after_end=1)
    return jm.GymnasiumSimulator("CartPole-v1", costs, 0.95, num_envs=16)


def planner_of(kind):
    algorithm, settings = KINDS[kind]
    return jm.adapters.StableBaselinesPlanner(algorithm, settings=settings)


def rolled_out(simulator, policy):
    return simulator.totals(policy, 40, 60, np.random.default_rng(0)).totals


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_decides_what_is_learned(cart, kind):
    torch.manual_seed(5)
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    first, again, other = (planner_of(kind)([1.0], cart, 400, seed) for seed in (0, 0, 1))
    assert random.getstate() == before[0]
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])
    assert (rolled_out(cart, first) == rolled_out(cart, again)).all()
    assert (rolled_out(cart, first) != rolled_out(cart, other)).any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_sign_of_the_weights_is_what_is_learned(cart, kind):
    lower, higher = (planner_of(kind)([w], cart, 4_000, 0) for w in (1.0, -1.0))
    assert rolled_out(cart, lower).mean() < rolled_out(cart, higher).mean() - 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_mixture_grows_by_networks_and_is_certified(cart, kind):
    demos = cart.record(upright, trajectories=40, horizon=60, seed=0)
    problem = jm.Apprenticeship(cart, None, demos)
    at_random = lambda seen, rng: rng.integers(2, size=len(seen))  # noqa: E731
    solver = jm.PolicyMixture(
        [at_random], rollouts=60, horizon=60, seed=0, planner=planner_of(kind), budget=1_000,
        rounds=2,
    )  # fmt: skip
    answer = jm.solve(problem, solver)
    trace = answer.candidates.trace
    assert trace[:, 1].tolist() == [1, 2]
    assert trace[1, 2] <= trace[0, 2] + 1e-9
    bounds = [jm.certify(problem, answer).bound for _ in range(2)]
    assert bounds[0] == bounds[1]


def test_listed_actions_are_discrete_for_the_learner():
    costs = jm.costs.StepCosts(
        lambda o, a, after, r, end: np.column_stack([(1 - after[:, 0]) / 2, a[:, 0] ** 2 / 4]),
        ["hanging", "effort"], lowest=0, highest=1,
    )  # fmt: skip
    pendulum = jm.GymnasiumSimulator("Pendulum-v1", costs, 0.95, actions=[[-2.0], [0.0], [2.0]])
    policy = planner_of("DQN")([0.0, 1.0], pendulum, 2_000, 0)
    found = pendulum.totals(policy, 10, 50, np.random.default_rng(0)).mean
    assert found[1] < 0.5 * (1 - 0.95**50) / 0.05
    assert gymnasium.make("Pendulum-v1").action_space.shape == (1,)


def test_what_cannot_be_trained_is_refused(cart):
    with pytest.raises(jm.errors.InvalidSolver, match="class of Stable-Baselines3"):
        jm.adapters.StableBaselinesPlanner("PPO")
    with pytest.raises(jm.errors.InvalidSolver, match="settings holds 'gamma'"):
        jm.adapters.StableBaselinesPlanner(PPO, settings={"gamma": 0.9})
    with pytest.raises(jm.errors.InvalidSolver, match="no environment"):
        planner_of("PPO")([1.0], object(), 10, 0)
