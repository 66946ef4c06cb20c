"""Sections of a page: a heading that can be linked to, and what stands below it."""

from dataclasses import dataclass

from journeyman.report.markup import Content, Element, tag


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
