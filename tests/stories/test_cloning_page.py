"""The page about cloning and DAgger: the example shows what it says."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pages

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cascading_errors.py"
PAGE = (ROOT / "docs" / "cloning.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shown():
    command = [sys.executable, EXAMPLE, "--longest", "16", "--decisions", "1920", "--seeds", "1"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def figures_of(text):
    rows = re.findall(r"^ +\d+(?: +\d+\.\d+){6}$", text, re.MULTILINE)
    return np.array([[float(value) for value in row.split()] for row in rows])


def powers_of(text):
    return [float(power) for power in re.findall(r"horizon\^(\d\.\d\d)", text)]


@pytest.mark.parametrize("source", ["example", "page"])
def test_errors_cascade_for_cloning_and_not_for_dagger(shown, source):
    text = shown if source == "example" else PAGE
    horizon, error, cloning, bound, own_error, dagger, own_bound = figures_of(text).T
    assert (np.diff(np.log2(horizon)) == 1).all()
    assert error.max() < 1.5 * error.min()
    assert own_error.max() < 3 * error.min()
    assert (cloning <= bound).all()
    assert (dagger <= own_bound).all()
    assert cloning[-1] > 4 * dagger[-1]
    quadratic, linear = powers_of(text)
    assert 1.8 < quadratic < 2.2
    assert 0.8 < linear < 1.5


def test_the_page_shows_the_table_of_the_example(shown):
    assert shown.splitlines()[1] in PAGE
    assert len(figures_of(PAGE)) == 5


def test_the_page_names_what_exists():
    assert {"solvers.BehaviourCloning", "solvers.DAgger", "clone"} <= pages.public_names(PAGE)
    targets = re.findall(r"\]\(([^)#]+)", PAGE)
    assert all((ROOT / "docs" / target).exists() for target in targets)
