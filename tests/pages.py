"""The code in the documentation: every block of Python on every page, in the order it is read.

A block that imports journeyman stands alone; one that does not goes on where the block before it
ended, so the two form a *chain* and run in one namespace. A block that starts with `# needs: NAME`
needs a package that is not among ours, and is run where that package is: by `make test-integration`
or `make test-ray`.
"""

import re
from operator import attrgetter
from pathlib import Path

import journeyman as jm

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
"""Output is fenced as text, commands as sh: whatever is fenced as Python is run."""
NEEDS = re.compile(r"# needs: (?:pip install )?(\S+)")
RUN_ELSEWHERE = {"stable-baselines3": "tests_integration", "'journeyman[ray]'": "tests_ray"}
"""Packages that blocks may need, and who runs these blocks."""
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page):
    """The blocks of one page, by its file name."""
    (path,) = [one for one in FILES if one.name == page]
    return BLOCK.findall(path.read_text(encoding="utf-8"))


def needed_by(block):
    """The package a block asks for in its first line, if any."""
    asked = NEEDS.match(block)
    return asked[1] if asked else None


def chains():
    """(page, numbers of its blocks that run together) for all blocks that need nothing more."""
    found = []
    for path in FILES:
        for number, block in enumerate(blocks(path.name)):
            if needed_by(block):
                continue
            if "import journeyman" in block or not found or found[-1][0] != path.name:
                found.append((path.name, [number]))
            else:
                found[-1][1].append(number)
    return found


def public_names(text):
    """The names `jm....` in code of a page; every one of them exists."""
    names = set(re.findall(r"`jm\.(\w+(?:\.\w+)*)", text))
    for name in names:
        attrgetter(name)(jm)
    return names
