"""Pictures that fit every width: places across in per cent, heights in pixels, text as it is.

An SVG without a view box gives its text and lines the size they have on the page, while per cents
follow the width. Every picture has a title and a description for those who cannot see it; a table
with the same figures stands beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from journeyman.report.line_chart import linear_ticks, tick_label
from journeyman.report.markup import Content, Element, tag

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
