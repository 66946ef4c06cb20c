"""docs/command-line.md: its commands run in their order, its tables are complete."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from journeyman.cli.main import app

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line
]


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """A directory with the files that the page starts from."""
    for name in ("transitions.csv", "costs.csv", "demos.csv"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    (tmp_path / "asked.toml").write_text(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_of_the_page_succeeds(here, call):
    assert len(COMMANDS) > 10
    for line in COMMANDS:
        program, *arguments = shlex.split(line)
        assert program == "journeyman"
        shown = call(*arguments)
        assert shown.code == 0, f"{line}\n{shown.err}"
        assert shown.out
    names = {path.name for run in ("run", "asked-run") for path in (here / run).iterdir()}
    for row in re.findall(r"^\| `([\w.]+?)/?` \|", PAGE.partition("## The run")[2], re.MULTILINE):
        assert row in names


def test_every_command_is_on_the_page():
    groups = get_command(app).commands
    table = PAGE.partition("## Commands")[2].partition("```")[0]
    nested = {"world", "policy"}
    inner = [f"{group} {sub}" for group in nested for sub in groups[group].commands]
    for name in [*set(groups) - nested, *inner]:
        assert f"`{name}`" in table


def test_every_exit_code_is_on_the_page():
    from journeyman.cli import exit_codes

    codes = re.findall(r"^ +(\d+) ", exit_codes.__doc__, re.MULTILINE)
    assert len(codes) == 9
    table = PAGE.partition("## Exit codes")[2]
    assert set(
        re.findall(r"\d+", " ".join(re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE)))
    ) == (set(codes))
