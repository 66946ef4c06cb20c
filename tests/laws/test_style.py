"""One idea a file, no printing, no pickles, names as in docs/notation.md, about itself alone."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FORBIDDEN_CALLS = {"print", "eval", "exec"}
VAGUE_MODULES = {"utils", "common", "helpers", "core", "misc"}

ids = [str(path.relative_to(ROOT)) for path in SOURCES]


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_a_file_holds_one_idea(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "no module docstring"
    assert path.stem not in VAGUE_MODULES


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_nothing_is_printed_evaluated_or_unpickled(path):
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in FORBIDDEN_CALLS, f"line {node.lineno}"
    assert "allow_pickle=True" not in text
    assert not re.search(r"^\s*(import|from) (pickle|marshal|shelve)", text, re.MULTILINE)


def test_every_name_of_the_notation_page_is_used_in_the_code():
    table = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")]
    names = {name for row in rows for name in re.findall(r"`([A-Za-z_.]+)`", row)}
    assert len(names) > 20
    unused = {
        name for name in names if not re.search(rf"\b{re.escape(name.split('.')[-1])}\b", code)
    }
    assert not unused
