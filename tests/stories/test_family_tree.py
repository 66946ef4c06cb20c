"""The picture of methods is the one that its example draws, and the table beside it names files."""

import re

from examples.family_tree import METHODS, tree

import journeyman as jm
import pages

PAGE = (pages.ROOT / "docs" / "primal-dual-methods.md").read_text(encoding="utf-8")
STEPS = {"solvers/classics/policy_family"}
"""Steps of several methods, which are no method."""


def test_the_picture_in_the_documentation_is_this_one():
    shown = pages.ROOT / "docs" / "images" / "family-tree.svg"
    assert shown.read_text(encoding="utf-8") == tree()


def test_every_class_in_the_picture_exists():
    for method in METHODS:
        name = method.here.split(" ")[0]
        assert hasattr(jm.solvers, name) or hasattr(jm, name), method


def test_every_file_in_the_table_exists_and_holds_its_class():
    linked = re.findall(r"\[`(.+?)`\]\(source/(.+?)\.md\)", PAGE)
    assert len(linked) >= 22
    for shown, path in linked:
        assert shown == f"{path}.py"
    names = {path for _, path in linked}
    for path in names:
        assert (pages.ROOT / "src" / "journeyman" / f"{path}.py").is_file(), path
    drawn = {
        getattr(jm.solvers, method.here.split(" ")[0])
        .__module__.removeprefix("journeyman.")
        .replace(".", "/")
        for method in METHODS
    }
    assert drawn <= names
    assert drawn >= {path for path in names if "solvers/classics" in path} - STEPS
