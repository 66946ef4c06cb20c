"""Draws from seeds of a test's choice: certificates themselves allow none."""

from contextlib import contextmanager
from unittest import mock

SEEDS = "journeyman.problem.draw_seeds"


@contextmanager
def drawn_from(seed):
    """Evaluations draw from `seed`, whatever is certified."""
    with (
        mock.patch(f"{SEEDS}.explicit_seed", return_value=seed),
        mock.patch(f"{SEEDS}.large_seed", return_value=seed),
    ):
        yield
