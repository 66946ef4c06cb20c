"""`journeyman new`: a small complete example to edit, in the files that lie in `example/`."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from journeyman.cli.options import AsJson
from journeyman.cli.output import show
from journeyman.errors import InvalidFile

NAMES = ("laws.csv", "costs.csv", "demos.csv", "learn.toml")


def new(
    directory: Annotated[Path, typer.Argument(help="A new directory, or an empty one.")],
    as_json: AsJson = False,
) -> None:
    """Write a small complete example, to be edited.

    Three tables (laws of a world, costs, demonstrations) and a TOML file that explains them: a pump
    that wears out, and a mechanic to learn from.
    """
    from journeyman.storage import write_text

    if directory.exists() and not directory.is_dir():
        raise InvalidFile(f"{directory} is a file", "Give a new directory")
    if directory.is_dir() and any(directory.iterdir()):
        raise InvalidFile(f"{directory} is not empty", "Give a new directory, or an empty one")
    directory.mkdir(parents=True, exist_ok=True)
    source = files("journeyman.cli") / "example"
    for name in NAMES:
        write_text(directory / name, (source / name).read_text(encoding="utf-8"))
    lines = [
        f"{directory}: {', '.join(NAMES)}. Next:",
        f"  cd {directory}",
        "  journeyman learn run --config learn.toml",
        "  journeyman audit run",
        "  journeyman policy show run",
        "  journeyman report run",
    ]
    show({"directory": str(directory), "files": list(NAMES)}, "\n".join(lines), as_json=as_json)
