"""What a new user does first: the README's commands, the help, and the page of a run."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from journeyman.cli.main import app

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## From your own files")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"^journeyman .*$", SECTION, re.MULTILINE)
WIDEST = 60
"""Characters of a line in the list of commands, in a terminal of 80 columns."""


@pytest.fixture
def here(files, tmp_path, monkeypatch):
    """Files with the columns that the README names, and no others."""
    monkeypatch.chdir(tmp_path)
    for name in ("transitions.csv", "demos.csv"):
        text = (files / name).read_text()
        row = re.search(rf"`{name}`[^`]+`([a-z_,]+)`", SECTION)
        assert row is not None
        assert text.splitlines()[0] == row[1]
        (tmp_path / name).write_text(text)
    (tmp_path / "costs.csv").write_bytes((files / "costs.csv").read_bytes())
    return tmp_path


def test_the_commands_of_the_readme_work_on_the_files_it_describes(here, call):
    assert len(COMMANDS) == 4
    for line in COMMANDS:
        shown = call(*shlex.split(line, comments=True)[1:])
        assert shown.code == 0, f"{line}\n{shown.err}"
    assert (here / "run" / "report.html").exists()


@pytest.mark.parametrize(("initial", "starts"), [("3", 1), ("uniform", 16)])
def test_rows_without_episodes_need_a_first_state(here, call, initial, starts):
    rows = (here / "transitions.csv").read_text().splitlines()
    (here / "steps.csv").write_text("\n".join(row.split(",", 2)[2] for row in rows))
    command = ("world", "import", "steps.csv", "world.npz", "--discount", 0.9)
    assert call(*command).code == 3
    shown = call(*command, "--initial", initial)
    assert (shown.code, f"starts {starts}" in " ".join(shown.out.split())) == (0, True)


def test_no_command_is_cut_off_in_the_list():
    group = get_command(app)
    for command in [*group.commands.values(), *group.commands["world"].commands.values()]:
        assert not command.get_short_help_str(WIDEST).endswith("..."), command.name


def test_the_version_is_shown_and_explained(call):
    assert "Show the version" in call("--help").out
    assert call("--version").out.startswith("journeyman ")
