"""MCE IRL of the package `imitation` on one instance, in that package's own environment.

    python -m benchmarks.imitation_peer INSTANCE.npz RESULT.npz --seconds 30 --rate 0.01

`INSTANCE.npz` holds transition (states x actions x states), features (states x costs), initial,
occupancy (the expert's, over times 0..horizon), horizon and discount. The reward is linear in the
features, and the package gets everything its documentation asks for. It is trained in portions of
10 iterations until it stops by itself, has made 1000 of them (its default) or has used its CPU
seconds. This file imports nothing of journeyman.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

PORTION, MOST = 10, 1000


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instance")
    parser.add_argument("result")
    parser.add_argument("--seconds", type=float, default=30.0, help="CPU seconds")
    parser.add_argument("--rate", type=float, default=0.01, help="learning rate of Adam")
    options = parser.parse_args(arguments)
    with np.load(options.instance) as given:
        instance = dict(given)
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    learner = learner_of(instance, options.rate)
    iterations, started, stopped = 0, time.process_time(), False
    while iterations < MOST and not stopped and time.process_time() - started < options.seconds:
        visits = learner.train(max_iter=PORTION)
        iterations += PORTION
        stopped = has_stopped(learner)
    seconds = time.process_time() - started
    reward, laws = reward_and_laws(learner, torch.as_tensor(instance["features"]).float())
    np.savez(
        options.result, reward=reward, laws=laws, policy=learner.policy.pi, believed=visits,
        seconds=seconds,
        iterations=iterations, stopped=stopped, version=version("imitation"),
    )  # fmt: skip


def learner_of(instance: dict[str, Any], rate: float) -> Any:
    """The package's learner, quiet, with a linear reward."""
    envs: Any = import_module("seals.base_envs")
    algorithm: Any = import_module("imitation.algorithms.mce_irl")
    nets: Any = import_module("imitation.rewards.reward_nets")
    env = envs.TabularModelPOMDP(
        transition_matrix=instance["transition"],
        observation_matrix=instance["features"],
        reward_matrix=np.zeros(len(instance["features"])),
        horizon=int(instance["horizon"]),
        initial_state_dist=instance["initial"],
    )
    reward = nets.BasicRewardNet(
        env.observation_space, env.action_space, hid_sizes=[],
        use_state=True, use_action=False, use_done=False, use_next_state=False,
    )  # fmt: skip
    return algorithm.MCEIRL(
        instance["occupancy"], env, reward, rng=np.random.default_rng(0),
        optimizer_kwargs={"lr": rate}, discount=float(instance["discount"]), log_interval=None,
    )  # fmt: skip


def reward_and_laws(learner: Any, features: Any) -> tuple[Any, Any]:
    """The reward of every state as it is now, and the package's laws for it, time by time."""
    algorithm: Any = import_module("imitation.algorithms.mce_irl")
    reward = algorithm.squeeze_r(learner.reward_net(features, None, None, None))
    found = reward.detach().numpy().astype(float)
    return found, algorithm.mce_partition_fh(learner.env, reward=found)[2]


def has_stopped(learner: Any) -> bool:
    """Whether its own rule on the gradient has ended the training."""
    squares = [float((p.grad**2).sum()) for p in learner.reward_net.parameters()]
    return bool(sum(squares) ** 0.5 <= learner.grad_l2_eps)


if __name__ == "__main__":
    main(sys.argv[1:])
