"""Make `imitation_lake/` with the real imitation package, in an environment of its own.

    python -m venv env && env/bin/pip install imitation==1.0.1 "gymnasium[toy-text]==0.29.1"
    env/bin/python tests/data/demonstrations/make_imitation_lake.py

Prints the trajectories, which `test_real_demonstrations.py` repeats.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent


def main():
    """Record random episodes of FrozenLake, some of which run into a time limit."""
    import gymnasium
    import numpy as np
    from imitation.data import rollout, serialize
    from imitation.data.wrappers import RolloutInfoWrapper
    from stable_baselines3.common.vec_env import DummyVecEnv

    lake = DummyVecEnv(
        [lambda: RolloutInfoWrapper(gymnasium.make("FrozenLake-v1", max_episode_steps=3))]
    )
    lake.seed(0)
    lake.action_space.seed(0)
    episodes = rollout.rollout(
        None, lake, rollout.make_sample_until(min_episodes=4), rng=np.random.default_rng(0)
    )
    serialize.save(HERE / "imitation_lake", episodes)
    for one in episodes:
        sys.stdout.write(f"{one.obs.tolist()} {one.acts.tolist()} {one.terminal}\n")


if __name__ == "__main__":
    main()
