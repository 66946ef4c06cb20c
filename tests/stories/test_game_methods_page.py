"""The page about games against a planner: its examples show what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "game-methods.md").read_text(encoding="utf-8")
CONVERGENCE = ROOT / "examples" / "convergence_of_classics.py"
DRIVING = ROOT / "examples" / "driving_table.py"


def shown_by(example, *options):
    command = [sys.executable, example, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def counts():
    return shown_by(CONVERGENCE, "--size", "8", "--limit", "60", "--accuracies", "0.2", "0.02")


@pytest.fixture(scope="module")
def table():
    return shown_by(DRIVING, "--accuracy", "0.02")


def driving_rows(text):
    """Name -> speed, no collision, on road, behind, ahead."""
    lines = [
        re.match(r"(\S.*?)\s{2,}((?:\s*-?\d+\.\d{3}){5})$", line) for line in text.splitlines()
    ]
    return {line[1]: [float(value) for value in line[2].split()] for line in lines if line}


def count_rows(text):
    """Accuracy -> counts, with a limit that was passed as that limit."""
    lines = [re.match(r"\s+(0\.\d+)((?:\s+(?:> )?[\d,]+){6})$", line) for line in text.splitlines()]
    found = {
        float(line[1]): line[2].replace("> ", "").replace(",", "").split() for line in lines if line
    }
    return {accuracy: [int(value) for value in values] for accuracy, values in found.items()}


def test_counts_grow_as_the_accuracy_falls_and_keep_within_the_theorem(counts):
    rows = count_rows(counts)
    assert list(rows) == [0.2, 0.02]
    for projection, margin, columns, mwal, theorem, more_columns in rows.values():
        assert mwal <= theorem
        assert 1 <= margin <= projection + 3
        assert columns + more_columns <= 40
    assert all(fine >= rough for rough, fine in zip(rows[0.2], rows[0.02], strict=True))
    assert rows[0.02][4] == pytest.approx(100 * rows[0.2][4], rel=0.1)


def test_the_matching_methods_copy_the_driver_and_the_others_do_better(table):
    rows = driving_rows(table)
    assert rows["expert (published)"][:3] == [5.25, 4.15, 5.0]
    for name in ("Projection", "MaxMargin"):
        assert rows[name][:3] == pytest.approx([5.25, 4.15, 5.0], abs=0.005)
    for name in ("MWAL", "LPAL, two stages"):
        speed, safe, _, behind, ahead = rows[name]
        assert behind <= 0.02 * 20
        assert speed > 6
        assert safe > 4.15
        assert ahead > 2
    assert rows["LPAL, two stages"][4] == max(row[4] for row in rows.values())


def test_the_page_shows_both_tables(counts, table):
    assert counts.splitlines()[1] in PAGE
    assert table.splitlines()[0] in PAGE
    shown, made = driving_rows(PAGE), driving_rows(table)
    assert list(shown) == list(made)
    assert shown["LPAL, two stages"] == pytest.approx(made["LPAL, two stages"], abs=0.002)
    rows = count_rows(PAGE)
    assert list(rows) == [0.3, 0.1, 0.03, 0.01, 0.003]
    assert all(row[3] <= row[4] for row in rows.values())


def test_the_page_points_at_what_exists():
    targets = re.findall(r"\]\(([^)#]+)", PAGE)
    assert all((ROOT / "docs" / target).exists() for target in targets)
    scripts = re.findall(r"python (examples/\S+\.py)", PAGE)
    assert {ROOT / script for script in scripts} == {CONVERGENCE, DRIVING}
    modules = re.findall(r"`(\w+\.py)`", PAGE)
    folder = ROOT / "src" / "journeyman" / "solvers" / "classics"
    assert modules
    assert all((folder / module).exists() for module in modules)
    assert all((ROOT / path).exists() for path in re.findall(r"`(tests/\S+\.py)`", PAGE))
