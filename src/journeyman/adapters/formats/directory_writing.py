"""Directories that are there as a whole or not at all."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from journeyman.errors import InvalidFile


def write_directory(path: Path, fill: Callable[[Path], Path]) -> None:
    """Have a neighbour of `path` filled, then move what `fill` returns into place in one step."""
    if path.exists():
        raise InvalidFile(f"{path} exists already", "Remove it, or write elsewhere")
    if not path.parent.is_dir():
        raise InvalidFile(f"{path.parent} is not a directory", "Create it before saving there")
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        fill(temporary).replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
