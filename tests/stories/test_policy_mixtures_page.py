"""The page about mixtures of policies: its code runs, and the example shows what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import journeyman as jm

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "policy_mixture.py"
PAGE = (ROOT / "docs" / "policy-mixtures.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
FOREIGN = [snippet for snippet in SNIPPETS if "stable_baselines3" in snippet]


def shown_by(number, capsys):
    exec(compile(SNIPPETS[number], "policy-mixtures.md", "exec"), {})
    return capsys.readouterr().out.splitlines()


def test_one_snippet_needs_another_package_and_says_so():
    assert len(SNIPPETS) == 5
    assert len(FOREIGN) == 1
    assert FOREIGN[0] == SNIPPETS[4]
    assert FOREIGN[0].startswith("# needs: pip install stable-baselines3")
    compile(FOREIGN[0], "policy-mixtures.md", "exec")


def test_the_first_snippet_certifies_a_mixture_in_gymnasium(capsys):
    policy, summary = shown_by(0, capsys)
    assert policy.startswith("MixturePolicy(2 candidates")
    assert summary.startswith("With probability 0.95")
    assert "vacuous" not in summary


def test_the_second_snippet_passes_the_state_on(capsys):
    (line,) = shown_by(1, capsys)
    assert re.fullmatch(r"drawn: \[[01 ]+\] actions of the last step: \[[01 ]+\]", line)


def test_the_third_snippet_shows_that_the_experts_term_is_the_largest(capsys):
    *terms, share = shown_by(2, capsys)
    values = {line[:24].strip(): float(line[25:37]) for line in terms}
    assert max(values, key=values.get) == "sampling"
    assert int(share.split("%")[0]) < 30


def test_the_fourth_snippet_lowers_the_value_round_by_round(capsys):
    values = [float(line.split("value ")[1]) for line in shown_by(3, capsys)]
    assert len(values) == 6
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0] / 3


@pytest.fixture(scope="module")
def shown():
    command = [sys.executable, EXAMPLE, "--demonstrations", "60", "--rollouts", "150"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_example_has_candidates_mixture_and_certificate(shown):
    rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines()[1:7]}
    assert list(rows) == ["LONGER", "LBFS", "uniform", "cloned", "mixture", "expert"]
    figures = [[float(x) for x in rows[name]] for name in rows]
    mixed = [sum(row[5] * row[i] for row in figures[:4]) for i in range(5)]
    assert mixed == pytest.approx(figures[4][:5], abs=0.01)
    assert "E (mixture), plain mean, one-sided" in shown
    assert re.search(r"certified to \d+\.\d% of the trivial bound$", shown.strip())


def test_the_page_names_what_exists():
    names = set(re.findall(r"`jm\.(\w+)", PAGE))
    assert {"PolicyMixture", "MixtureRollouts", "LargeApprenticeship"} <= names
    assert all(hasattr(jm, name) for name in names)
    targets = re.findall(r"\]\(([^)#]+)", PAGE)
    assert all((ROOT / "docs" / target).exists() for target in targets)
    assert all((ROOT / script).exists() for script in re.findall(r"python (\S+\.py)", PAGE))
    modules = re.findall(r"`(\w+/\w+\.py)`", PAGE)
    assert all((ROOT / "src" / "journeyman" / module).exists() for module in modules)
