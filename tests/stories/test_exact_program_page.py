"""The page about the exact program: its picture is the one the example draws."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import pages

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "exact_program.py"
PAGE = (ROOT / "docs" / "exact-program.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """The printed table and the drawing of a tiny run."""
    path = tmp_path_factory.mktemp("example") / "new" / "chart.svg"
    command = [sys.executable, EXAMPLE, "--size", "9", "--accuracy", "1e-4", "--output", path]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return shown.stdout, ET.fromstring(path.read_text(encoding="utf-8"))


def words(root):
    return [one.text for one in root.iter() if one.tag.endswith("text")]


def test_the_table_is_the_trace_down_to_the_accuracy(outcome):
    rows = re.findall(r"^ +(\d+) +[\d.]+ +([\d.]+) +([\d.]+) +(\S+)$", outcome[0], re.MULTILINE)
    assert [int(row[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert all(float(low) <= float(high) + 1e-7 for _, low, high, _ in rows)
    left = [float(row[3]) for row in rows]
    assert left[-1] <= 1e-4 < left[-2]
    assert re.search(r"^OPTIMAL, certified to (\S+);", outcome[0], re.MULTILINE)


def test_the_drawing_has_both_bounds_and_their_difference(outcome):
    lines = [one for one in outcome[1].iter() if one.get("class", "").startswith("line ")]
    assert len(lines) == 6  # each once in its panel and once in the legend
    assert {"upper bound", "lower bound", "difference", "asked for"} <= set(words(outcome[1]))


def test_the_picture_of_the_page_is_the_one_the_example_draws(outcome):
    kept = ET.parse(ROOT / "docs" / "images" / "bounds.svg").getroot()
    values = re.compile(r"[\d.⁰¹²³⁴-⁹⁻·]+")
    shown_words = [
        {word for word in words(root) if not values.fullmatch(word)} for root in (kept, outcome[1])
    ]
    assert shown_words[0] == shown_words[1]


def test_the_page_names_what_exists():
    assert {"LinearProgram", "ColumnGeneration", "solve", "audit"} <= pages.public_names(PAGE)
    targets = re.findall(r"\]\(([^)#]+)", PAGE)
    assert "images/bounds.svg" in targets
    assert all((ROOT / "docs" / target).exists() for target in targets)
    assert all((ROOT / script).exists() for script in re.findall(r"python (\S+\.py)", PAGE))
    source = ROOT / "src" / "journeyman"
    assert all((source / module).exists() for module in re.findall(r"`(solvers/\w+\.py)`", PAGE))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"`make ([a-z-]+)`", PAGE)
    assert "bench-exact" in commands
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_the_page_is_linked(page):
    assert "](docs/exact-program.md)" in (ROOT / page).read_text(encoding="utf-8")
