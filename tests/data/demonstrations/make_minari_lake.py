"""Make `minari_lake/` with Minari's own recorder, in an environment of its own (it needs JAX).

    python -m venv env && env/bin/pip install "minari[create,hdf5,arrow]==0.5.4" \
        "gymnasium[toy-text]==1.4.0" pillow
    env/bin/python tests/data/demonstrations/make_minari_lake.py

Prints the episodes, which `test_real_demonstrations.py` repeats.
"""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent


def main():
    """Record the same random episodes of FrozenLake in each of Minari's three formats."""
    import gymnasium
    import minari

    warnings.simplefilter("ignore")
    os.environ["MINARI_DATASETS_PATH"] = str(HERE)
    for form in ("hdf5", "arrow", "parquet"):
        lake = gymnasium.make("FrozenLake-v1", max_episode_steps=3)
        recorder = minari.DataCollector(lake, data_format=form)
        recorder.action_space.seed(0)
        for seed in range(3):
            recorder.reset(seed=seed)
            done = False
            while not done:
                _, _, terminated, truncated, _ = recorder.step(recorder.action_space.sample())
                done = terminated or truncated
        made = recorder.create_dataset(f"minari_lake/{form}-v0")
        for one in made:
            ends = bool(one.terminations[-1]), bool(one.truncations[-1])
            sys.stdout.write(f"{form} {one.observations.tolist()} {one.actions.tolist()} {ends}\n")


if __name__ == "__main__":
    main()
