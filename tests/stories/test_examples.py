"""The example draws and prints what it says, and the page about SGD-AL agrees with it."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import journeyman as jm

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "sgd_al.py"
PAGE = (ROOT / "docs" / "sgd-al.md").read_text(encoding="utf-8")
RULES = [
    "constant (paper)", "1/sqrt(t)", "AdaGrad, norm", "AdaGrad, coordinates (default)",
    "dual averaging",
]  # fmt: skip


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """The printed table and the drawing of a tiny run."""
    path = tmp_path_factory.mktemp("example") / "new" / "chart.svg"
    command = [sys.executable, EXAMPLE, "--size", "6", "--steps", "300", "--output", path]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return shown.stdout, path.read_text(encoding="utf-8")


def rows_of(table):
    """Name -> values, for the lines of the table that have them."""
    lines = [re.match(r"(\S.*?)\s{2,}([\d. ]+)$", line) for line in table.splitlines()]
    return {line[1]: [float(value) for value in line[2].split()] for line in lines if line}


def test_the_table_has_every_rule_and_the_optimum(outcome):
    rows = rows_of(outcome[0])
    assert list(rows) == [*RULES, "ReducedProgram"]
    least = rows["ReducedProgram"][0]
    for rule in RULES:
        steps, loss, error, _, gap, _ = rows[rule]
        assert steps == 300
        assert loss >= least
        assert loss >= gap
        assert error >= loss - least - 1e-3


def test_the_page_shows_a_table_of_the_example(outcome):
    assert list(rows_of(PAGE)) == list(rows_of(outcome[0]))
    headings = [line for line in outcome[0].splitlines() if "true gap" in line]
    assert headings[-1] in PAGE


def test_the_drawing_has_two_panels_with_every_rule(outcome):
    root = ET.fromstring(outcome[1])
    lines = [one for one in root.iter() if one.get("class", "").startswith("line ")]
    words = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert len(lines) == 3 * len(RULES)  # twice drawn, once in the legend
    assert {*RULES, "ReducedProgram", "cloning"} <= set(words)


def test_the_page_names_what_exists():
    names = set(re.findall(r"`jm\.([\w.]+)", PAGE))
    assert len(names) > 10
    for name in names:
        thing = jm
        for part in name.split("."):
            thing = getattr(thing, part)
    targets = re.findall(r"\]\(([^)#]+)\)", PAGE)
    modules = re.findall(r"python -m (benchmarks\.\w+)", PAGE)
    scripts = re.findall(r"python (examples/\S+\.py)", PAGE)
    files = [f"{module.replace('.', '/')}.py" for module in modules] + scripts
    assert all((ROOT / "docs" / target).exists() for target in targets)
    assert all((ROOT / file).exists() for file in files)


def test_the_picture_of_the_page_is_the_one_the_example_draws(outcome):
    kept = ET.fromstring((ROOT / "docs" / "images" / "sgd_al.svg").read_text(encoding="utf-8"))
    drawn = ET.fromstring(outcome[1])
    labels = [
        [one.text for one in root.iter() if one.tag.endswith("text")] for root in (kept, drawn)
    ]
    assert labels[0][0] == labels[1][0]
    assert set(RULES) <= set(labels[0])
