import numpy as np
import pytest

from journeyman.errors import InvalidSolver
from journeyman.solvers.running import (
    require_count,
    require_not_negative,
    require_positive,
    require_time_limit,
)


@pytest.mark.parametrize("good", [None, 1, 0.5, np.float64(3)])
def test_time_limits(good):
    require_time_limit(good)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1"])
def test_time_limits_that_are_none(bad):
    with pytest.raises(InvalidSolver, match="time_limit"):
        require_time_limit(bad)


@pytest.mark.parametrize("good", [1, 7, np.int64(2)])
def test_counts(good):
    require_count("steps", good)


@pytest.mark.parametrize("bad", [0, -1, 1.0, float("nan"), True, "3", None])
def test_counts_that_are_none(bad):
    with pytest.raises(InvalidSolver, match=r"steps = .*whole number from 1"):
        require_count("steps", bad)


@pytest.mark.parametrize("bad", [0, -1, 1, float("nan"), float("inf"), "x", None])
def test_positive_numbers_below_a_limit(bad):
    require_positive("rate", 0.5, below=1)
    with pytest.raises(InvalidSolver, match="rate"):
        require_positive("rate", bad, below=1)


@pytest.mark.parametrize("bad", [-1e-9, 1.1, float("nan"), float("inf"), "x", None])
def test_numbers_from_zero(bad):
    for good in (0, 0.5, 1):
        require_not_negative("share", good, at_most=1)
    with pytest.raises(InvalidSolver, match=r"share.*from 0 to 1"):
        require_not_negative("share", bad, at_most=1)
