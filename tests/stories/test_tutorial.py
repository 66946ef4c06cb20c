"""The tutorial: its commands come to the certificate that its Python comes to."""

import json
import re
import shlex
import subprocess
import sys

import pytest

import journeyman as jm
import pages

PAGE = (pages.ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
(COMMANDS,) = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory in which the first block of Python and all commands were run."""
    place = tmp_path_factory.mktemp("tutorial")
    run = [sys.executable, "-c", pages.blocks("tutorial.md")[0]]
    subprocess.run(run, cwd=place, capture_output=True, check=True)
    for line in COMMANDS.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "journeyman"
        command = [sys.executable, "-m", "journeyman", *arguments]
        subprocess.run(command, cwd=place, capture_output=True, check=True)
    return place


def test_commands_and_python_agree_with_the_page(folder):
    bound = float(re.search(r"upper bound on the gap +([\d.]+)", PAGE)[1])
    stored = json.loads((folder / "machine" / "result.json").read_text(encoding="utf-8"))
    assert stored["bound"] == pytest.approx(bound, rel=1e-3)
    assert jm.audit(folder / "machine" / "certified").passed


def test_the_files_look_as_the_page_shows_them(folder):
    shown = re.findall(r"^`(\w+\.csv)`.*?^```csv\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in shown] == ["transitions.csv", "costs.csv", "demos.csv"]
    for name, beginning in shown:
        assert (folder / name).read_text(encoding="utf-8").startswith(beginning)


def test_the_page_names_what_the_commands_write(folder):
    named = re.findall(r"`(machine/[\w/.]+)`", PAGE)
    assert len(named) == 2
    assert all((folder / name).is_file() for name in named)
    law = jm.Policy.load(folder / named[1]).probabilities([2])
    assert law[0, 1] > 0.5
