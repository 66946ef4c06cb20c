"""Shells complete commands: Typer's own script, which is printed here and installed by users."""

import subprocess
import sys
from pathlib import Path


def test_the_script_of_a_shell_can_be_printed_and_installed():
    command = Path(sys.executable).with_name("journeyman")
    shown = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    assert "--install-completion" in shown.stdout
    environment = {"_JOURNEYMAN_COMPLETE": "complete_bash", "COMP_WORDS": "journeyman requ"}
    found = subprocess.run(
        [command],
        capture_output=True,
        text=True,
        check=True,
        env={**environment, "COMP_CWORD": "1"},
    )
    assert found.stdout.split() == ["requirements"]
