"""The example about very few demonstrations measures what it says."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "few_demonstrations.py"


def test_gaps_are_relative_to_the_uniform_policy_and_differ_by_method():
    names = runpy.run_path(str(EXAMPLE))
    found = names["gaps"](4, 2, 30, 0)
    assert list(found) == list(names["METHODS"])
    assert all(0 < value < 1 for value in found.values())
    assert len(set(found.values())) == 3
