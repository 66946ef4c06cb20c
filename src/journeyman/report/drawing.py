"""Pictures that fit every width: places across in per cent, heights in pixels, text as it is.

An SVG without a view box gives its text and lines the size they have on the page, while per cents
follow the width. Every picture has a title and a description for those who cannot see it; a table
with the same numbers stands beside it. A picture is a tree of elements, so whatever a name contains
is escaped when the tree is written.

>>> print(written(tag("p", "1 < 2", tag("br"), "& more", id="x")))
<p id="x">1 &lt; 2<br>&amp; more</p>
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.etree import ElementTree as ET

from markupsafe import Markup

from journeyman.report.numbers import MINUS, linear_ticks, log_ticks, tick_label

Element: TypeAlias = ET.Element

UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped, or that browsers complain about."""
STRONG_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of everything behind them."""
ELLIPSIS = "…"
FREE = 0.02
"""Share of an axis that is left free at an end where there is no zero."""
FEWEST = 1e-12
MOST_TICKS = 6
DIAMOND = "M0-5.2L5.2 0L0 5.2L-5.2 0z"


def tag(name: str, /, *content: str | Element, cls: str = "", **attributes: str) -> Element:
    """An element; underscores in attribute names stand for hyphens."""
    element = ET.Element(name, {"class": cls} if cls else {})
    for key, value in attributes.items():
        element.set(key.replace("_", "-"), printable(value))
    for part in content:
        if not isinstance(part, str):
            element.append(part)
        elif len(element):
            element[-1].tail = (element[-1].tail or "") + printable(part)
        else:
            element.text = (element.text or "") + printable(part)
    return element


def printable(text: str) -> str:
    """The text with a mark in place of every character that no page can hold, and without those
    that turn its direction."""
    return UNPRINTABLE.sub("\ufffd", STRONG_TURNS.sub("", text))


def shortened(name: str, longest: int) -> str:
    """A name for a place where it cannot be broken into lines.

    >>> shortened("a very long name", 8)
    'a very …'
    """
    plain = " ".join(name.split())
    return plain if len(plain) <= longest else plain[: longest - 1] + ELLIPSIS


def written(element: Element) -> Markup:
    """The text of an element, as HTML."""
    return Markup(ET.tostring(element, encoding="unicode", method="html"))


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
        below = 0.0 if zero and low == 0 else FREE * span
        above = 0.0 if zero and high == 0 else FREE * span
        return cls(low - below, high + above)

    def at(self, value: float) -> str:
        """The place of a value."""
        return percent(100 * self.share(value))

    def width(self, low: float, high: float) -> str:
        return percent(100 * (self.share(high) - self.share(low)))

    @property
    def ticks(self) -> tuple[float, ...]:
        """Round numbers, few enough for a narrow screen."""
        found = linear_ticks(self.low, self.high)
        return found if len(found) <= 5 else found[::2]

    def share(self, value: float) -> float:
        """The place of a value between 0 and 1."""
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


class Scale:
    """Shares of an axis, by ratios (`log`) where the largest value is `steep` times the least.

    On a logarithmic axis positive values below `least` times the largest are drawn there.

    >>> scale = Scale([1.0, 10.0, 100.0])
    >>> scale.log, round(scale.share(10.0), 3), scale.ticks
    (True, 0.5, (1.0, 10.0, 100.0))
    >>> Scale([0.0, 5.0]).log
    False
    """

    def __init__(
        self, values: Sequence[float], *, steep: float = 10.0, least: float = 1e-6
    ) -> None:
        low, high = min(values), max(values)
        self.log = low > 0 and high / low >= steep
        self.floor = least * high
        low, high = self._place(low), self._place(high)
        free = 2 * FREE * (high - low) or abs(low) / 10 or 1.0
        self.low, self.high = low - free, high + free
        ticks = (log_ticks if self.log else linear_ticks)(self.low, self.high)
        self.ticks = ticks if len(ticks) <= MOST_TICKS else ticks[::2]

    def _place(self, value: float) -> float:
        return math.log10(max(value, self.floor)) if self.log else value

    def share(self, value: float) -> float:
        """The place of a value between 0 and 1."""
        return (self._place(value) - self.low) / (self.high - self.low)

    @property
    def words(self) -> str:
        """To be written beside the axis."""
        return " (logarithmic scale)" if self.log else ""


def percent(value: float) -> str:
    return f"{round(value, 2) + 0.0:g}%"


def picture(name: str, title: str, description: str, height: float, *content: Element) -> Markup:
    """An SVG as wide as its place; `name` has to be unique on the page."""
    return _labelled(name, title, description, content, width="100%", height=f"{height:g}")


def scaled_picture(
    name: str, title: str, description: str, size: tuple[float, float], *content: Element
) -> Markup:
    """An SVG without text that keeps its proportions."""
    return _labelled(name, title, description, content, viewBox=f"0 0 {size[0]:g} {size[1]:g}")


def _labelled(
    name: str, title: str, description: str, content: Sequence[Element], **size: str
) -> Markup:
    labels = [tag("title", title, id=f"{name}-title"), tag("desc", description, id=f"{name}-desc")]
    labelled = f"{name}-title {name}-desc"
    return written(tag("svg", *labels, *content, role="img", **size, aria_labelledby=labelled))


def axis(scale: Across | Scale, rows: int, row: float, free: float) -> list[Element]:
    """Upright lines at round numbers, and the numbers below; `free` pixels at the top of every row
    belong to its text."""
    parts: list[Element] = []
    bottom, dashes = rows * row, f"{row - free:g} {free:g}"
    for tick in scale.ticks:
        share = scale.share(tick)
        x = percent(100 * share)
        kind = "zero" if tick == 0 else "grid"
        parts.append(tag("line", x1=x, x2=x, y1=f"{free:g}", y2=f"{bottom:g}", cls=kind,
                         stroke_dasharray=dashes))  # fmt: skip
        parts.append(label(tick_text(tick), x, bottom + 16, cls=f"quiet {anchor(share)}"))
    return parts


def tick_text(tick: float) -> str:
    """A number of an axis, with a minus sign instead of a hyphen."""
    return tick_label(tick).replace("-", MINUS)


def anchor(share: float) -> str:
    """Labels near an end of the axis grow inwards."""
    return "start" if share < 0.06 else "end" if share > 0.94 else "middle"


def label(text: str, x: str, y: float, *, cls: str = "") -> Element:
    return tag("text", text, x=x, y=f"{y:g}", cls=cls)


def mark(x: str, y: float, shape: Element) -> Element:
    """A shape around a place, whose size does not depend on the width of the picture."""
    return tag("svg", shape, x=x, y=f"{y:g}", overflow="visible", aria_hidden="true")


def diamond(kind: str = "apprentice") -> Element:
    return tag("path", d=DIAMOND, cls=f"mark {kind}")
