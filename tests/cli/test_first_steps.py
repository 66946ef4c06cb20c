"""What a new user does first: the README's commands, the help, and the page of a run."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from journeyman.cli.main import app

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Laws that are known")[2].partition("\n## ")[0]
OWN = README.partition("## Your own files")[2].partition("\n## ")[0]
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


def test_the_first_commands_of_the_readme_show_the_policy_that_it_prints(
    call, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^journeyman (.*)$", OWN, re.MULTILINE)
    assert len(commands) == 5
    for line in commands:
        words = shlex.split(line, comments=True)
        if "&&" in words:
            words = words[: words.index("&&")]
        shown = call(*words)
        assert shown.code == 0, f"{line}\n{shown.err}"
        if words[0] == "new":
            monkeypatch.chdir(tmp_path / "pump")
        if words[0] == "policy":
            assert re.findall(r"```text\n(.*?)```", OWN, re.DOTALL)[0] in shown.out
    tables = re.findall(r"```csv\n(.*?)```", OWN, re.DOTALL)
    for name, table in zip(("laws", "costs", "demos"), tables, strict=True):
        rows = (tmp_path / "pump" / f"{name}.csv").read_text().splitlines()
        assert set(table.splitlines()) <= set(rows)
    found = json.loads((tmp_path / "pump" / "run" / "result.json").read_text())
    assert f"{found['share']:.0%}, {found['regret_share']:.0%}" == "21%, 3%"
    assert "21 % of the largest gap and 3 % of the largest regret" in " ".join(OWN.split())


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
