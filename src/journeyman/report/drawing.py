"""Pictures that fit every width: places across in per cent, heights in pixels, text as it is.

An SVG without a view box gives its text and lines the size they have on the page, while per cents
follow the width. Every picture has a title and a description for those who cannot see it; a table
with the same figures stands beside it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.etree import ElementTree as ET

from journeyman.report.line_chart import linear_ticks, tick_label

# HTML as a tree: whatever a name contains is escaped when the tree is written.
#
#     tag("p", "at most ", strong("3.1"), cls="lead")    ->    <p class="lead">at most ...
#
# Text reaches a page through `tag` only. Characters that XML cannot hold are replaced. Names given
# by users stand in elements of their own, so that neither markup nor writing from right to left
# reaches its neighbours.
#
# >>> written(tag("p", "1 < 2", tag("br"), "& more", id="x"))
# '<p id="x">1 &lt; 2<br>&amp; more</p>'

Element: TypeAlias = ET.Element
Content: TypeAlias = "str | Element | None"

UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped, or that browsers complain about."""
STRONG_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of everything behind them."""
ELLIPSIS = "…"


def tag(name: str, /, *content: Content, cls: str = "", **attributes: str) -> Element:
    """An element; underscores in attribute names stand for hyphens, None is left out."""
    element = ET.Element(name, {"class": cls} if cls else {})
    for key, value in attributes.items():
        element.set(key.replace("_", "-"), printable(value))
    for part in content:
        add(element, part)
    return element


def add(element: Element, part: Content) -> None:
    """Append text or an element behind what is there."""
    if part is None:
        return
    if isinstance(part, str):
        text = printable(part)
        if len(element):
            element[-1].tail = (element[-1].tail or "") + text
        else:
            element.text = (element.text or "") + text
    else:
        element.append(part)


def printable(text: str) -> str:
    """The text with a mark in place of every character that no page can hold, and without those
    that turn its direction."""
    return UNPRINTABLE.sub("\ufffd", STRONG_TURNS.sub("", text))


def name_of(name: str) -> Element:
    """A name given by a user: set apart from the direction of the text around it."""
    return tag("bdi", name)


def shortened(name: str, longest: int) -> str:
    """A name for a place where it cannot be broken into lines.

    >>> shortened("a very long name", 8)
    'a very …'
    """
    plain = " ".join(name.split())
    return plain if len(plain) <= longest else plain[: longest - 1] + ELLIPSIS


def written(element: Element) -> str:
    """The text of an element, as HTML."""
    return ET.tostring(element, encoding="unicode", method="html")


ROOM = 0.02
"""Share of an axis that is left free at an end where there is no zero."""
FEWEST = 1e-12


@dataclass(frozen=True)
class Across:
    """From values to per cents of the width."""

    low: float
    high: float

    @classmethod
    def covering(cls, values: Sequence[float], *, zero: bool = False) -> "Across":
        """The range of the values, from or to zero where that is asked for."""
        low, high = min(values), max(values)
        low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
        span = high - low
        if span <= FEWEST * max(abs(low), abs(high), 1e-280):
            return cls(low - (abs(low) / 10 or 1.0), high + (abs(high) / 10 or 1.0))
        below = 0.0 if zero and low == 0 else ROOM * span
        above = 0.0 if zero and high == 0 else ROOM * span
        return cls(low - below, high + above)

    def at(self, value: float) -> str:
        """The place of a value."""
        return percent(100 * self._share(value))

    def width(self, low: float, high: float) -> str:
        return percent(100 * (self._share(high) - self._share(low)))

    def ticks(self) -> tuple[float, ...]:
        """Round figures, few enough for a narrow screen."""
        found = linear_ticks(self.low, self.high)
        return found if len(found) <= 5 else found[::2]

    def _share(self, value: float) -> float:
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


def percent(value: float) -> str:
    return f"{round(value, 2) + 0.0:g}%"


def picture(name: str, title: str, description: str, height: float, *content: Content) -> Element:
    """An SVG as wide as its place; `name` has to be unique on the page."""
    return tag(
        "svg", *_labels(name, title, description), *content, role="img", width="100%",
        height=f"{height:g}", aria_labelledby=f"{name}-title {name}-desc",
    )  # fmt: skip


def scaled_picture(
    name: str, title: str, description: str, size: tuple[float, float], *content: Content
) -> Element:
    """An SVG without text that keeps its proportions."""
    return tag(
        "svg", *_labels(name, title, description), *content, role="img",
        viewBox=f"0 0 {size[0]:g} {size[1]:g}", aria_labelledby=f"{name}-title {name}-desc",
    )  # fmt: skip


def axis(scale: Across, rows: int, row: float, free: float) -> list[Element]:
    """Upright lines at round figures, and the figures below; `free` pixels at the top of every row
    belong to its text."""
    parts: list[Element] = []
    bottom, dashes = rows * row, f"{row - free:g} {free:g}"
    for tick in scale.ticks():
        x = scale.at(tick)
        kind = "zero" if tick == 0 else "grid"
        parts.append(tag("line", x1=x, x2=x, y1=f"{free:g}", y2=f"{bottom:g}", cls=kind,
                         stroke_dasharray=dashes))  # fmt: skip
        parts.append(label(tick_label(tick).replace("-", "−"), x, bottom + 16, cls=_side(x)))
    return parts


def label(text: str, x: str, y: float, *, cls: str = "") -> Element:
    return tag("text", text, x=x, y=f"{y:g}", cls=cls)


def _side(x: str) -> str:
    """Labels near an end of the axis grow inwards."""
    place = float(x[:-1])
    return "quiet start" if place < 6 else "quiet end" if place > 94 else "quiet middle"


def _labels(name: str, title: str, description: str) -> list[Element]:
    return [tag("title", title, id=f"{name}-title"), tag("desc", description, id=f"{name}-desc")]
