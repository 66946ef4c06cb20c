"""HTML from the templates beside this module: one layout for every page, one style sheet.

Whatever is given to a template is escaped, unless it is `Markup` (a drawing), and characters that
no page can hold are replaced; names given by users stand in elements of their own (`ui.name`), so
that neither markup nor writing from right to left reaches its neighbours. A page is one file
without script, link or font from elsewhere; a notebook shows the same sections as one element.
"""

import datetime
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from journeyman.report.drawing import printable

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = "templates"
STYLE = "style.css"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SPACE = re.compile(r"\s*([{};])\s*|\s+")


class Section(NamedTuple):
    """A section of a page: a heading that can be linked to, above what a template makes of the
    content."""

    name: str
    """Unique on the page; the target of links."""
    title: str
    content: dict[str, Any]
    template: str = ""
    """The name by default."""
    link: str = ""
    """Words for the link at the top; the title by default."""

    @property
    def file(self) -> str:
        return f"sections/{self.template or self.name}.html"


def document(
    title: str, sections: Sequence[Section], *, kind: str, size: str, note: str, version: str,
    question: str = "", date: datetime.date | None = None,
) -> str:  # fmt: skip
    """A whole page: `kind` and `date` stand above the title, what was asked, `size` and the warning
    `note` below it."""
    page = _environment().get_template("page.html")
    return page.render(
        title=title, sections=sections, kind=kind, size=size, note=note, version=version,
        question=question, date=date, style=style_sheet(":root"), prefix="", rank=2,
    )  # fmt: skip


def cell(sections: Sequence[Section], prefix: str) -> str:
    """The sections as an element that a notebook can show among others."""
    element = _environment().get_template("notebook.html")
    return element.render(sections=sections, style=style_sheet(".jm"), prefix=prefix, rank=3)


def rendered(template: str, **content: Any) -> str:
    """One template, filled."""
    return _environment().get_template(template).render(**content)


def render(section: Section) -> str:
    """One section alone."""
    return _environment().get_template("sections.html").render(
        sections=[section], prefix="", rank=2
    )  # fmt: skip


@cache
def style_sheet(scope: str) -> Markup:
    """All rules, without needless space; variables belong to `scope`."""
    place = resources.files("journeyman.report") / TEMPLATES / STYLE
    text = COMMENT.sub("", place.read_text(encoding="utf-8"))
    compact = SPACE.sub(lambda found: found[1] or " ", text).strip()
    return Markup(compact.replace(":root", scope))


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("journeyman.report", TEMPLATES), autoescape=True,
        undefined=StrictUndefined, finalize=_shown, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def _shown(value: Any) -> Any:
    return value if hasattr(value, "__html__") else printable(str(value))
