"""Pages made from the code whenever the documentation is built, so that they cannot go stale.

`reference/commands.md` comes from the command line itself, and one page per room has every public
name of that room. A name whose room has no page stops the build.
"""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from pygments.formatters import HtmlFormatter

import journeyman

STUB = Path(__file__).parents[2] / "src" / "journeyman" / "__init__.pyi"
"""Says where every public name lives."""
PAGES = {
    "world": "World",
    "costs": "Costs",
    "demonstrations": "Demonstrations",
    "problem": "Problem",
    "features": "Features",
    "solvers": "Solvers",
    "policy": "Policy",
    "certificate": "Certificate",
    "learning": "Learning and auditing",
    "report": "Report",
    "execution": "Execution",
    "adapters": "Files and other packages",
    "gallery": "Gallery",
    "testing": "Testing",
    "errors": "Errors",
}
ROOM_PAGES = {"apprentice": "learning", "auditing": "learning", "studies": "learning"}
"""Rooms that share a page; every other one has its own."""


def on_files(files: Files, config: Any) -> Files:
    """MkDocs asks for the pages once it has found those in `docs/`."""
    texts = {"commands": commands(), "index": index()}
    texts |= {page: reference(page) for page in PAGES}
    for page, text in texts.items():
        files.append(File.generated(config, f"reference/{page}.md", content=text))
    colours = HtmlFormatter(style="default").get_style_defs(".highlight")
    files.append(File.generated(config, "pygments.css", content=colours))
    return files


def commands() -> str:
    """The reference of the command line, by the tool that prints its help."""
    program = [sys.executable, "-m", "typer", "journeyman.cli.main", "utils", "docs"]
    options = ["--name", "journeyman", "--title", "Commands"]
    shown = subprocess.run([*program, *options], capture_output=True, text=True, check=True)
    return shown.stdout


def public_names() -> dict[str, str]:
    """Every public name and the page it is on."""
    imports = [
        node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ImportFrom)
    ]
    return {
        alias.name: page_of(str(node.module), alias.name)
        for node in imports
        for alias in node.names
    }


def index() -> str:
    """All public names with their pages."""
    lines = [f"- [`jm.{name}`]({page}.md{anchor(name)})" for name, page in public_names().items()]
    heading = f"# All names\n\nOf version {journeyman.__version__}, which is `jm.__version__`.\n\n"
    return heading + "\n".join(sorted(lines, key=str.lower))


def anchor(name: str) -> str:
    """Where a name stands on its page; modules are whole pages."""
    return "" if name in PAGES else f"#journeyman.{name}"


def page_of(module: str, name: str) -> str:
    """Whole modules that are public names have a page of their own."""
    if name in PAGES:
        return name
    parts = module.split(".")
    room = "features" if "features" in parts else parts[1]
    page = ROOM_PAGES.get(room, room)
    if page not in PAGES:
        raise LookupError(f"journeyman.{name} has no page: place it in {Path(__file__).name}")
    return page


def reference(page: str) -> str:
    """One page: public names of its room, or of the module it is about."""
    names = [f"journeyman.{name}" for name, home in public_names().items() if home == page]
    text = [f"# {PAGES[page]}", ""]
    for name in names:
        if name == f"journeyman.{page}":
            module = getattr(journeyman, page)
            text += [f"`jm.{page}`: {(module.__doc__ or '').strip()}", ""]
            names_within = [f"{module.__name__}.{one}" for one in module.__all__]
            text += [f"::: {one}\n" for one in names_within if one not in names]
        else:
            text += [f"::: {name}\n"]
    return "\n".join(text)
