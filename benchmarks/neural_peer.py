"""BC, GAIL and AIRL of the package `imitation` on one instance, in that package's own environment.

    python -m benchmarks.neural_peer INSTANCE.npz RESULT.npz --method GAIL --seconds 20

`INSTANCE.npz` holds the id of a Gymnasium environment, its time limit, and demonstrations:
observations, actions, offsets of the episodes and which of them terminated. `RESULT.npz` holds the
weights of the policy, what it answers at some observations, and the CPU seconds of training.

BC makes 20 passes over the demonstrations, or as many as its CPU seconds allow. GAIL and AIRL have
the settings of the package's tutorials, except that a round is 2048 steps of the simulator and the
discount is that of the instance; they train round after round until their CPU seconds are used. All
policies are two layers of tanh behind the package's running normalisation of observations.
Episodes may end early (`allow_variable_horizon`), as they do in these environments. This file
imports nothing of journeyman.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

METHODS = ("BC", "GAIL", "AIRL")
PASSES = 20
ENVIRONMENTS, ROUND = 8, 2048
PLAYERS: dict[str, dict[str, Any]] = {
    "GAIL": {"learning_rate": 4e-4},
    "AIRL": {"learning_rate": 5e-4, "clip_range": 0.1, "vf_coef": 0.1},
}
TRAINERS: dict[str, dict[str, Any]] = {
    "GAIL": {"demo_batch_size": 1024, "n_disc_updates_per_round": 8},
    "AIRL": {"demo_batch_size": 2048, "n_disc_updates_per_round": 16},
}
REPLAY = 512
TRIED = 100
"""Observations at which the policy's answers are saved."""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instance")
    parser.add_argument("result")
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="CPU seconds of training")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with np.load(options.instance) as given:
        instance = dict(given)
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    setattr(np, "float_", np.float64)  # noqa: B010  # for Acrobot of Gymnasium 0.29
    quiet()
    make = cloning if options.method == "BC" else adversarial
    policy, train, most = make(instance, options.method, options.seed)
    rounds, seconds, started = 0, 0.0, time.process_time()
    while rounds < most and (not rounds or seconds < options.seconds):
        train()
        rounds, seconds = rounds + 1, time.process_time() - started
    seen = np.asarray(instance["observations"][:TRIED], np.float32)
    np.savez(
        options.result, **weights_of(policy), seen=seen, answers=answers(policy, seen),
        seconds=seconds, rounds=rounds, version=version("imitation"),
    )  # fmt: skip


def quiet() -> None:
    """No progress bars, and no table of every step."""
    tqdm: Any = import_module("tqdm")
    plain = tqdm.tqdm
    tqdm.tqdm = lambda *given, **options: plain(*given, **{**options, "disable": True})


def silent() -> Any:
    return import_module("imitation.util.logger").configure("", format_strs=[])


def demonstrations(instance: dict[str, Any]) -> list[Any]:
    types: Any = import_module("imitation.data.types")
    found = []
    pairs = zip(instance["offsets"][:-1], instance["offsets"][1:], strict=True)
    for number, (first, last) in enumerate(pairs):
        seen = instance["observations"][first + number : last + number + 1]
        found.append(
            types.Trajectory(
                obs=np.asarray(seen, np.float32), acts=instance["actions"][first:last], infos=None,
                terminal=True,
            )
        )  # fmt: skip
    return found


def environments(instance: dict[str, Any], seed: int) -> Any:
    gymnasium: Any = import_module("gymnasium")
    vectors: Any = import_module("stable_baselines3.common.vec_env")
    wrappers: Any = import_module("imitation.data.wrappers")

    def made() -> Any:
        env = gymnasium.make(
            str(instance["environment"]), max_episode_steps=int(instance["horizon"])
        )
        return wrappers.RolloutInfoWrapper(env)

    found = vectors.DummyVecEnv([made] * ENVIRONMENTS)
    found.seed(seed)
    return found


Training = tuple[Any, Callable[[], None], float]
"""The policy that is trained, what trains it for a while, and how often at most."""


def cloning(instance: dict[str, Any], method: str, seed: int) -> Training:
    """BC, pass after pass."""
    bc: Any = import_module("imitation.algorithms.bc")
    torch: Any = import_module("torch")
    base: Any = import_module("imitation.policies.base")
    env = environments(instance, seed)
    spaces = env.observation_space, env.action_space
    policy = base.FeedForward32Policy(
        *spaces, lambda _: torch.finfo(torch.float32).max,
        features_extractor_class=base.NormalizeFeaturesExtractor,
    )  # fmt: skip
    learner = bc.BC(
        observation_space=spaces[0], action_space=spaces[1], rng=np.random.default_rng(seed),
        demonstrations=demonstrations(instance), policy=policy, custom_logger=silent(),
    )  # fmt: skip
    return policy, lambda: learner.train(n_epochs=1, progress_bar=False), PASSES


def adversarial(instance: dict[str, Any], method: str, seed: int) -> Training:
    """GAIL or AIRL, round after round."""
    ppo: Any = import_module("stable_baselines3").PPO
    module: Any = import_module(f"imitation.algorithms.adversarial.{method.lower()}")
    base: Any = import_module("imitation.policies.base")
    rewards: Any = import_module("imitation.rewards.reward_nets")
    networks: Any = import_module("imitation.util.networks")
    env = environments(instance, seed)
    learner = ppo(
        "MlpPolicy", env, n_steps=ROUND // ENVIRONMENTS, batch_size=64, ent_coef=0.0, n_epochs=5,
        gamma=float(instance["discount"]), seed=seed, device="cpu",
        policy_kwargs={"features_extractor_class": base.NormalizeFeaturesExtractor},
        **PLAYERS[method],
    )  # fmt: skip
    kind = rewards.BasicRewardNet if method == "GAIL" else rewards.BasicShapedRewardNet
    reward = kind(
        env.observation_space, env.action_space, normalize_input_layer=networks.RunningNorm
    )
    settings = dict(TRAINERS[method])
    settings["demo_batch_size"] = min(settings["demo_batch_size"], len(instance["actions"]))
    trainer = getattr(module, method)(
        demonstrations=demonstrations(instance), venv=env, gen_algo=learner, reward_net=reward,
        gen_replay_buffer_capacity=REPLAY, allow_variable_horizon=True, custom_logger=silent(),
        **settings,
    )  # fmt: skip
    return learner.policy, lambda: trainer.train(trainer.gen_train_timesteps), math.inf


def weights_of(policy: Any) -> dict[str, Any]:
    """Normalisation and layers as arrays, (inputs x outputs); of a Gaussian also its spread."""
    norm = policy.features_extractor.normalize
    found = {
        "mean": norm.running_mean, "scale": (norm.running_var + norm.eps).sqrt(),
    }  # fmt: skip
    hidden = [layer for layer in policy.mlp_extractor.policy_net if hasattr(layer, "weight")]
    for number, layer in enumerate([*hidden, policy.action_net]):
        found[f"weights_{number}"], found[f"biases_{number}"] = layer.weight.T, layer.bias
    if hasattr(policy, "log_std"):
        found["spread"] = policy.log_std.exp()
    return {name: part.detach().numpy().astype(float) for name, part in found.items()}


def answers(policy: Any, seen: Any) -> Any:
    """Laws over discrete actions, or the means of continuous ones, as the network itself says."""
    torch: Any = import_module("torch")
    policy.set_training_mode(False)
    with torch.no_grad():
        law = policy.get_distribution(torch.as_tensor(seen)).distribution
    return (law.probs if hasattr(law, "probs") else law.mean).numpy().astype(float)


if __name__ == "__main__":
    main(sys.argv[1:])
