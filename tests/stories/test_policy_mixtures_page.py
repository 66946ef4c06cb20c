"""The page about mixtures of policies: the example shows what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pages

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "policy_mixture.py"
PAGE = (ROOT / "docs" / "policy-mixtures.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shown():
    command = [sys.executable, EXAMPLE, "--demonstrations", "60", "--rollouts", "150"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_example_has_candidates_mixture_and_certificate(shown):
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines()[1:7]}
    assert list(rows) == ["LONGER", "LBFS", "uniform", "cloned", "mixture", "expert"]
    values = [[float(x) for x in rows[name]] for name in rows]
    mixed = [sum(row[5] * row[i] for row in values[:4]) for i in range(5)]
    assert mixed == pytest.approx(values[4][:5], abs=0.01)
    assert "E (mixture), plain mean, one-sided" in shown
    assert re.search(r"certified to \d+\.\d% of the trivial bound$", shown.strip())


def test_the_page_names_what_exists():
    wanted = {"PolicyMixture", "problem.MixtureRollouts", "Apprenticeship"}
    assert wanted <= pages.public_names(PAGE)
    targets = re.findall(r"\]\(([^)#]+)", PAGE)
    assert all((ROOT / "docs" / target).exists() for target in targets)
    assert all((ROOT / script).exists() for script in re.findall(r"python (\S+\.py)", PAGE))
    modules = re.findall(r"`(\w+/\w+\.py)`", PAGE)
    assert all((ROOT / "src" / "journeyman" / module).exists() for module in modules)
