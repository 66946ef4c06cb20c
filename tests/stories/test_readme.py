"""The commands and pages that the documentation names exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIVE_LINES = re.findall(r"## Five lines\n\n```python\n(.*?)```", README, re.DOTALL)


def test_the_five_lines_are_five():
    (snippet,) = FIVE_LINES
    lines = [line for line in snippet.splitlines() if line and "import" not in line]
    assert len(lines) == 5


def test_the_commands_of_the_documentation_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    pages = [README, (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")]
    named = {target for page in pages for target in re.findall(r"\bmake ([a-z]+)\b", page)}
    assert {"demo", "test"} <= named
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in named)


def test_linked_pages_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
