"""Links of README.md and docs/ lead somewhere, and every page has one place in the navigation."""

import re

import pytest

import pages

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
NAVIGATION = (pages.ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
NAMED = re.findall(r": ([\w/-]+\.md)$", NAVIGATION, re.MULTILINE)
GENERATED = {name for name in NAMED if name.startswith("reference/")}


def without_code(path):
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(path):
    """Of the headings of a page, as GitHub and MkDocs make them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", without_code(path), re.MULTILINE):
        words = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        found.add(re.sub(r"\s+", "-", words.strip()))
    return found


@pytest.mark.parametrize("path", pages.FILES, ids=[path.name for path in pages.FILES])
def test_every_link_of_a_page_resolves(path):
    text = without_code(path)
    for link in [*LINK.findall(text), *IMAGE.findall(text)]:
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        file, _, anchor = link.partition("#")
        target = path if not file else (path.parent / file).resolve()
        if file in GENERATED:
            continue
        if file.startswith("source/"):  # a page that is made of a source file
            target = pages.ROOT / "src" / "journeyman" / file[len("source/") : -len(".md")]
            target = target.with_suffix(".py")
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


def test_every_page_is_in_the_navigation_once():
    own = {path.name for path in (pages.ROOT / "docs").glob("*.md")}
    assert sorted(set(NAMED) - GENERATED) == sorted(own)
    assert len(NAMED) == len(set(NAMED))


def test_the_index_lists_no_page_twice():
    text = (pages.ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    table = "\n".join(line for line in text.splitlines() if line.startswith("| "))
    listed = LINK.findall(table)
    assert len(listed) > 10
    assert len(listed) == len({link.partition("#")[0] for link in listed})
