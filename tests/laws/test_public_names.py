"""What users call: complete, sorted, documented, typed, and quick to import."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import journeyman as jm

STUB = Path(jm.__file__).with_suffix(".pyi")
HOUSE_NAMES = {
    "Apprenticeship", "Budget", "CostBasis", "Demonstrations", "EuclideanBall", "ExpertExpectation",
    "Forward", "InfinityBall", "LinearProgram", "Policy", "Simplex", "Status", "World",
    "clone", "gallery", "record", "solve",
}  # fmt: skip


def test_names_are_sorted_and_unique():
    assert list(jm.__all__) == sorted(set(jm.__all__))
    assert dir(jm) == list(jm.__all__)


def test_the_promised_names_are_there():
    assert set(jm.__all__) >= HOUSE_NAMES


@pytest.mark.parametrize("name", [name for name in jm.__all__ if name != "__version__"])
def test_every_name_resolves_and_is_documented(name):
    thing = getattr(jm, name)
    assert inspect.getdoc(thing), f"jm.{name} has no docstring"


def test_every_import_of_the_stub_is_a_re_export():
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            assert [alias.asname for alias in node.names] == [alias.name for alias in node.names]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'apprentise'"):
        _ = jm.apprentise


def test_importing_journeyman_loads_no_heavy_package():
    probe = (
        "import sys, journeyman; print({'numpy', 'scipy', 'numba', 'highspy'} & set(sys.modules))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "set()"


def test_the_package_is_marked_as_typed():
    assert STUB.with_name("py.typed").exists()


def test_a_name_that_has_moved_is_found_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"journeyman\.solvers\.MaximumEntropy now"):
        assert getattr(jm, "MaximumEntropy") is jm.solvers.MaximumEntropy  # noqa: B009


def test_a_name_that_has_become_another_says_what_to_write():
    with pytest.raises(AttributeError, match=r"jm\.Apprenticeship\(simulator, None, expert\)"):
        _ = jm.SimulatedApprenticeship


def test_there_are_few_names_at_the_top():
    assert len(jm.__all__) <= 72, "one level down is the place for what few users need"
