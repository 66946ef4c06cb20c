"""The page about large worlds: the example shows what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pages

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "large_world.py"
PAGE = (ROOT / "docs" / "large-worlds.md").read_text(encoding="utf-8")


def test_the_example_has_three_policies_and_a_table():
    command = [
        sys.executable, EXAMPLE, "--products", "3", "--room", "6", "--demonstrations", "40",
        "--steps", "200", "--rollouts", "300",
    ]  # fmt: skip
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = dict(re.findall(r"^(\w+) +gap <= ([\d.]+)", shown, re.MULTILINE))
    assert list(rows) == ["apprentice", "cloned", "expert"]
    assert list(dict(re.findall(r"^(\w+) +gap <= ([\d.]+)", PAGE, re.MULTILINE))) == list(rows)
    assert float(rows["apprentice"]) == pytest.approx(
        float(re.search(r"upper bound on the gap +([\d.]+)", shown)[1]), abs=1e-3
    )


def test_the_page_names_what_exists():
    assert len(pages.public_names(PAGE)) > 8
    targets = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert all((ROOT / "docs" / target).exists() for target in targets)
    assert (ROOT / "benchmarks" / "large_worlds.py").exists()
    assert "benchmarks.large_worlds" in PAGE
