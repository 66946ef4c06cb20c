"""The command line as a person meets it."""

import re
import subprocess
import sys

import journeyman


def run(*arguments):
    command = [sys.executable, "-m", "journeyman", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_demo_learns_and_shows():
    shown = run("demo", "--size", "8", "--trajectories", "30", "--horizon", "60")
    assert shown.returncode == 0
    assert shown.stderr == ""
    assert "OPTIMAL" in shown.stdout
    table = [line for line in shown.stdout.splitlines() if line.startswith("cell ")]
    assert len(table) == 16
    _, _, below = shown.stdout.partition("The apprentice's policy")
    arrows = below.splitlines()[2:10]
    assert all(len(line.split()) == 8 for line in arrows)
    assert shown.stdout.index("With probability 0.95") < shown.stdout.index("The certificate")
    assert "symbols" not in shown.stdout


def test_the_demo_says_why_cloning_may_come_closer():
    """Only where it does."""
    for trajectories, closer in (("2", False), ("300", True)):
        shown = run("demo", "--size", "6", "--trajectories", trajectories, "--seed", "3").stdout
        own, cloned = (
            float(re.search(rf"^ +([\d.]+)   {who}$", shown, re.MULTILINE)[1])
            for who in ("the apprentice", "behaviour cloning")
        )
        assert (cloned < own) is closer
        assert ("Cloning copies the expert state by state" in shown) is closer


def test_the_demo_is_reproducible():
    arguments = ("demo", "--size", "6", "--trajectories", "10", "--seed", "3")
    first, second = (
        [line for line in run(*arguments).stdout.splitlines() if "status" not in line]
        for _ in range(2)
    )
    assert first == second
    assert len(first) > 20


def test_help_and_version():
    assert "demo" in run("--help").stdout
    assert run("--version").stdout.strip() == f"journeyman {journeyman.__version__}"


def test_wrong_options_are_a_usage_error():
    wrong = run("demo", "--size", "two")
    assert wrong.returncode == 2
    assert "size" in wrong.stderr
