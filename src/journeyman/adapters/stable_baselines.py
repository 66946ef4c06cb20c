"""Algorithms of Stable-Baselines3 as planners of a growing mixture.

    cost weights w  ->  reward -<w, psi> (`GymnasiumSimulator.training`)  ->  learn  ->  policy

The reward of a terminated step also holds what all later steps cost, and the learner has the
simulator's discount, so that it minimises the expected discounted cost itself. What is returned is
asked for its probabilities (PPO, A2C) or for its best action (DQN): rollouts draw from these with
numbers of their own and can be repeated.

*Guarantee*: none for the learner; the mixture's certificate rolls its policies out. The same seed
gives the same policy on the same machine and version of torch. The generators that
Stable-Baselines3 seeds for the whole process are put back to where they were.

*Cost*: `budget` steps of the environment, or what the algorithm makes of it: PPO does whole rounds
of `n_steps`.
"""

import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from journeyman.errors import InvalidSolver
from journeyman.policy.observation_policy import ObservationPolicy


@dataclass(frozen=True, eq=False)
class StableBaselinesPlanner:
    """A planner for `PolicyMixture(..., planner=...)`.

    Args:
        algorithm: the class itself, such as `stable_baselines3.PPO` or `DQN`.
        network: which kind of policy it trains.
        settings: of the algorithm, such as `{"learning_rate": 1e-3}`; discount, seed and
            environment are given by the planner, and `device` is "cpu" unless you say otherwise.
    """

    algorithm: Any
    network: str = "MlpPolicy"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (isinstance(self.algorithm, type) and hasattr(self.algorithm, "learn")):
            raise InvalidSolver(
                f"algorithm = {self.algorithm!r}",
                "Give a class of Stable-Baselines3 itself, for example stable_baselines3.PPO",
            )
        taken = sorted({"gamma", "seed", "env", "policy"} & set(self.settings))
        if taken:
            raise InvalidSolver(
                f"settings holds {taken[0]!r}",
                "Leave it out: discount, seed and environment come from the mixture, the kind of "
                "policy from network=",
            )

    def __call__(
        self, cost_weights: ArrayLike, simulator: Any, budget: int, seed: int
    ) -> ObservationPolicy:
        """A policy trained for the cost <w, psi> with `budget` steps."""
        if not hasattr(simulator, "training"):
            raise InvalidSolver(
                f"a {type(simulator).__name__} has no environment to train in",
                "Give a problem in a GymnasiumSimulator, or use jm.solvers.LeastSquaresPlanner",
            )
        environment = simulator.training(cost_weights)
        settings = {"device": "cpu", "verbose": 0, **self.settings}
        try:
            with _global_generators_kept():
                model = self.algorithm(
                    self.network, environment, gamma=simulator.discount, seed=seed, **settings
                )
                model.learn(total_timesteps=budget)
        finally:
            environment.close()
        return ObservationPolicy(model, simulator.observation_axes)


@contextmanager
def _global_generators_kept() -> Iterator[None]:
    """Those of Python, numpy and torch are afterwards as they were."""
    torch: Any = sys.modules.get("torch")
    of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    of_torch = None if torch is None else torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002
        if of_torch is not None:
            torch.set_rng_state(of_torch)
