"""Demonstrations as comma-separated text, read within an allowance."""

from pathlib import Path

from journeyman.adapters.demonstration_files.demonstration_reading import Allowance
from journeyman.demonstrations import Demonstrations
from journeyman.demonstrations.files import read_csv, source, write_csv


def read(path: Path, allowance: Allowance) -> Demonstrations:
    """The demonstrations in a CSV file of either layout."""
    return Demonstrations(*read_csv(path, allowance.require)).read_from(source(path))


def write(demonstrations: Demonstrations, path: Path) -> None:
    """Write one row per visited state."""
    demos = demonstrations
    write_csv(path, demos.states, demos.actions, demos.offsets, demos.terminated)
