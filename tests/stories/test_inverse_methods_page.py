"""Inverse methods: the example of transferred costs, and the page that shows it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pages

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "transfer_of_costs.py"
PAGE = (ROOT / "docs" / "inverse-methods.md").read_text(encoding="utf-8")
WITHOUT_COST = ["behaviour cloning", "exact program"]
WITH_COST = [
    "inverse program", "sampled inverse program", "maximum margin planning", "policy matching",
    "maximum entropy",
]  # fmt: skip


@pytest.fixture(scope="module")
def shown():
    command = [sys.executable, EXAMPLE, "--size", "6", "--demonstrations", "60"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def rows_of(table):
    """Name -> values, for the lines of a table that have three of them."""
    lines = [
        re.fullmatch(r"(\S.*?)\s{2,}([\d.]+)\s+([\d.]+)\s+([\d.]+|-)", line)
        for line in table.splitlines()
    ]
    return {line[1]: line.groups()[1:] for line in lines if line}


def test_a_recovered_cost_travels_and_a_copied_policy_does_not(shown):
    rows = rows_of(shown)
    assert list(rows) == WITHOUT_COST + WITH_COST
    for name in WITHOUT_COST:
        assert rows[name][2] == "-"
        assert float(rows[name][0]) < 0.1
        assert float(rows[name][1]) > 0.3
    for name in WITH_COST:
        at_home, copied, planned = map(float, rows[name])
        assert at_home < 0.2
        assert planned < copied / 2


def test_the_page_shows_a_table_of_the_example(shown):
    assert list(rows_of(PAGE)) == list(rows_of(shown))
    assert shown.splitlines()[0] in PAGE
    for name in WITH_COST:
        _, copied, planned = map(float, rows_of(PAGE)[name])
        assert planned < 0.1 < copied


def test_the_page_names_what_exists():
    methods = {
        "InverseProgram", "SampledInverseProgram", "MaximumMarginPlanning", "PolicyMatching",
        "ConsistentCosts",
    }  # fmt: skip
    assert {f"solvers.{name}" for name in methods} <= pages.public_names(PAGE)
    targets = re.findall(r"\]\(([^)#]+)", PAGE)
    assert targets
    assert all((ROOT / "docs" / target).exists() for target in targets)
    assert all((ROOT / script).exists() for script in re.findall(r"python (\S+\.py)", PAGE))
