"""Pages made from the code whenever the documentation is built, so that they cannot go stale.

`reference/commands.md` comes from the command line itself, and one page per package has its public
names. A name whose package has no page stops the build. A source file that a page links to, as
`source/solvers/solve.md`, has a page too.
"""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel
from pygments.formatters import HtmlFormatter

import journeyman

SOURCES = Path(__file__).parents[2] / "src" / "journeyman"
STUB = SOURCES / "__init__.pyi"
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
    "plot": "Pictures",
    "execution": "Execution",
    "adapters": "Files and other packages",
    "gallery": "Gallery",
    "testing": "Testing",
    "errors": "Errors",
}
SHARED_PAGES = {
    "apprentice": "learning", "checker": "learning", "studies": "learning",
}  # fmt: skip
"""Packages that share a page; every other one has its own."""


def on_files(files: Files, config: Any) -> Files:
    """MkDocs asks for the pages once it has found those in `docs/`."""
    texts = {"commands": commands(), "index": index()}
    texts |= {page: reference(page) for page in PAGES}
    for page, text in texts.items():
        files.append(File.generated(config, f"reference/{page}.md", content=text))
    for linked in linked_sources():
        files.append(
            File.generated(
                config, f"source/{linked}.md", content=source(linked),
                inclusion=InclusionLevel.NOT_IN_NAV,
            )
        )  # fmt: skip
    colours = HtmlFormatter(style="default").get_style_defs(".highlight")
    files.append(File.generated(config, "pygments.css", content=colours))
    return files


def linked_sources() -> list[str]:
    """Files that pages link to, without their ending."""
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].glob("*.md")]
    return sorted({name for text in texts for name in re.findall(r"\(source/(.+?)\.md\)", text)})


def source(name: str) -> str:
    """The text of a source file."""
    text = (SOURCES / f"{name}.py").read_text(encoding="utf-8")
    return f"# {name}.py\n\n````python\n{text}````\n"


def commands() -> str:
    """The reference of the command line, by the tool that prints its help."""
    program = [sys.executable, "-m", "typer", "journeyman.cli.main", "utils", "docs"]
    options = ["--name", "journeyman", "--title", "Commands"]
    shown = subprocess.run([*program, *options], capture_output=True, text=True, check=True)
    return shown.stdout


def public_names() -> dict[str, str]:
    """Every public name, `solvers.Projection` for those one level down, and the page it is on."""
    packages, names = {}, {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if node.module == "journeyman":
                    packages[alias.name] = page_of(alias.name, alias.name)
                else:
                    names[alias.name] = page_of(str(node.module).split(".")[1], alias.name)
    for package, page in packages.items():
        within = getattr(import_module(f"journeyman.{package}"), "__all__", [])
        names |= {f"{package}.{name}": page for name in within if name not in names}
    return packages | names


def index() -> str:
    """All public names with their pages."""
    lines = [f"- [`jm.{name}`]({page}.md{anchor(name)})" for name, page in public_names().items()]
    heading = f"# All names\n\nOf version {journeyman.__version__}, which is `jm.__version__`.\n\n"
    return heading + "\n".join(sorted(lines, key=str.lower))


def anchor(name: str) -> str:
    """Where a name stands on its page; packages are whole pages."""
    return "" if name in {*PAGES, *SHARED_PAGES} else f"#journeyman.{name}"


def page_of(package: str, name: str) -> str:
    """The page of a name in a package."""
    page = SHARED_PAGES.get(package, package)
    if page not in PAGES:
        raise LookupError(f"journeyman.{name} has no page: place it in {Path(__file__).name}")
    return page


def reference(page: str) -> str:
    """One page: what its package is about, and its public names."""
    text = [f"# {PAGES[page]}", ""]
    if page in journeyman.__all__:
        module = import_module(f"journeyman.{page}")
        text += [f"`jm.{page}`: {(module.__doc__ or '').strip()}", ""]
    for name, home in public_names().items():
        if home == page and anchor(name):
            text += [f"::: journeyman.{name}\n"]
    return "\n".join(text)
