"""Demonstrations as comma-separated text, read within an allowance."""

from pathlib import Path

from journeyman.adapters.demonstration_files.demonstration_reading import Allowance, Reading
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.files import line_of, read_csv, write_csv


def read(path: Path, allowance: Allowance) -> Reading:
    """The demonstrations in a CSV file of either layout."""
    demos = Demonstrations(*read_csv(path, allowance.require))
    return Reading(demos, lambda episode, step: f"line {line_of(path, episode, step)}")


def write(demonstrations: Demonstrations, path: Path) -> None:
    """Write one row per visited state."""
    demos = demonstrations
    write_csv(path, demos.states, demos.actions, demos.offsets, demos.terminated)
