"""Make `imitation_vectors/` with HuggingFace's `datasets`, in which imitation saves trajectories.

    python -m venv env && env/bin/pip install datasets==5.2.0
    env/bin/python tests/data/demonstrations/make_imitation_vectors.py

The columns are those of `imitation.data.huggingface_utils.trajectories_to_dict`.
"""

from pathlib import Path

HERE = Path(__file__).parent
LENGTHS = (3, 5)


def main():
    """Two trajectories with observations of four numbers."""
    import datasets
    import numpy as np

    rng = np.random.default_rng(0)
    columns = {
        "obs": [rng.normal(size=(length + 1, 4)).astype(np.float32) for length in LENGTHS],
        "acts": [np.arange(length) % 2 for length in LENGTHS],
        "infos": [["{}"] * length for length in LENGTHS],
        "terminal": [True, False],
    }
    datasets.Dataset.from_dict(columns).save_to_disk(HERE / "imitation_vectors")


if __name__ == "__main__":
    main()
