"""Shells complete commands: Typer's script is installed in a home of its own and asked by bash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
source ~/.bashrc
COMP_WORDS=(journeyman $1); COMP_CWORD=$#
shift; for word; do COMP_WORDS+=("$word"); done
_journeyman_completion journeyman
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_names(tmp_path):
    here = Path(sys.executable).parent
    path = f"{here}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"HOME": str(tmp_path), "PATH": path}

    def bash(script, *words):
        return subprocess.run(
            ["bash", "-c", script, "bash", *words], env=environment, capture_output=True,
            text=True, check=True,
        ).stdout  # fmt: skip

    assert "completion installed" in bash("journeyman --install-completion; true")
    assert bash(ASK, "requ").split() == ["requirements"]
    assert bash(ASK, "learn", "run", "--time").split() == ["--time-limit"]
    assert bash(ASK, "learn", "run", "--solver", "sgd").split() == ["sgd-al"]
    assert bash(ASK, "learn", "run", "--cost-class", "s").split() == ["simplex"]
    assert "complete_bash" in bash("journeyman --show-completion; true")
