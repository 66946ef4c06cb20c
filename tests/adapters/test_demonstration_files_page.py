"""The page about files of demonstrations: its code runs and shows what the text says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "demonstration-files.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def shown_by(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", "")

    def run(number):
        exec(compile(SNIPPETS[number], "demonstration-files.md", "exec"), {})
        return capsys.readouterr().out

    return run


def test_a_log_is_read(shown_by):
    assert shown_by(0).splitlines() == [
        "Demonstrations(2 episodes, 4 steps, 1 terminated)",
        "[2 2] [ True False]",
    ]


def test_visited_states_are_written(shown_by):
    assert shown_by(1).splitlines()[:4] == [
        "episode,t,state,action,terminated", "0,0,0,0,", "0,1,1,0,", "0,2,2,,1",
    ]  # fmt: skip


def test_what_is_wrong_is_named(shown_by):
    typo, jump = shown_by(2).splitlines()
    assert "action may be 'actoin'" in typo
    assert "line 3: state is 2, but the step before led to 1" in jump


def test_the_first_impossible_step_is_named(shown_by):
    assert "walk.csv, line 4: episode 1, step 0: the step from state 0" in shown_by(3)


def test_minari_is_written_and_read(shown_by):
    assert shown_by(4).splitlines() == [
        "Demonstrations(2 episodes, 4 steps, 1 terminated)",
        "[False  True]",
    ]


def test_memory_is_limited(shown_by):
    refused, read = shown_by(5).splitlines()
    assert "would take about 6 MB" in refused
    assert read == "Demonstrations(1 episodes, 50000 steps, 0 terminated)"
    assert len(SNIPPETS) == 6


def test_the_page_names_what_exists():
    targets = re.findall(r"\]\(([^)#]+)", PAGE)
    assert all((ROOT / "docs" / target).exists() for target in targets)
    assert all((ROOT / file).exists() for file in re.findall(r"`(tests/\S+\.py)`", PAGE))
