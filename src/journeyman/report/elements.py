"""Sections of a page: a heading that can be linked to, and what stands below it."""

from collections.abc import Sequence
from dataclasses import dataclass

from journeyman.report.drawing import Content, Element, tag
from journeyman.report.numbers import column, exactly


@dataclass(frozen=True)
class Place:
    """Where on which page: a prefix that makes names unique, and the rank of headings."""

    prefix: str = ""
    rank: int = 2

    def name(self, what: str) -> str:
        return f"{self.prefix}{what}"

    def section(self, name: str, title: str, *content: Content) -> Element:
        """A section that is announced by its heading."""
        anchor = self.name(name)
        heading = tag(f"h{self.rank}", title, id=f"{anchor}-heading")
        return tag("section", heading, *content, id=anchor, aria_labelledby=f"{anchor}-heading")

    def heading(self, title: str) -> Element:
        """One rank below the section's."""
        return tag(f"h{self.rank + 1}", title)


def beside(figure: Content, other: Content) -> Element:
    """Two things side by side where there is room, otherwise the second below."""
    return tag("div", tag("div", figure), tag("div", other), cls="beside")


def legend(*entries: tuple[str, str]) -> Element:
    """Marks (a CSS class each) with their meaning."""
    return tag(
        "ul", *(tag("li", tag("span", cls=f"key {mark}", aria_hidden="true"), words)
                for mark, words in entries),
        cls="legend",
    )  # fmt: skip


def badge(kind: str, words: str) -> Element:
    """A verdict: a sign and words, so that it is not told by colour alone."""
    sign = {"good": "✓", "plain": "○", "bad": "✕", "warn": "!"}[kind]
    return tag("span", tag("span", sign, aria_hidden="true"), f" {words}", cls=f"badge {kind}")


# Tables: a caption, headings with their scope, figures aligned on the decimal point.

Cell = Content


def table(
    caption: str, headings: Sequence[str], rows: Sequence[Sequence[Cell]], *, words: int = 1
) -> Element:
    """Rows whose first cell is their heading; columns behind the first `words` hold figures.

    The table stands in a region of its own that can be scrolled, should a screen be too narrow.
    """
    kinds = ["" if index < words else "figure" for index in range(len(headings))]
    head = tag("tr", *(
        tag("th", text, scope="col", cls=kind)
        for text, kind in zip(headings, kinds, strict=True)
    ))  # fmt: skip
    body = [
        tag("tr", tag("th", row[0], scope="row"), *(
            tag("td", cell, cls=kind) for cell, kind in zip(row[1:], kinds[1:], strict=True)
        ))
        for row in rows
    ]  # fmt: skip
    return tag(
        "div", tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body)),
        cls="table",
    )  # fmt: skip


def figures(values: Sequence[float], like: Sequence[float] = ()) -> list[Element]:
    """One cell for each value, aligned, each with its exact value; `like` as in `column`."""
    shown = column(values, like)
    return [exactly(value, text) for value, text in zip(values, shown, strict=True)]


def above(figure: Content, note: Content) -> Element:
    """A figure with another one, smaller, below it."""
    return tag("span", figure, None if note is None else tag("small", note), cls="told")


def facts(caption: str, pairs: Sequence[tuple[str, Cell]]) -> Element:
    """A table of two columns: what, and how much."""
    rows = [
        tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in pairs
    ]  # fmt: skip
    return tag(
        "div", tag("table", tag("caption", caption), tag("tbody", *rows), cls="facts"), cls="table"
    )
