"""A line chart as one self-contained SVG: panels side by side, a shared legend, light and dark.

    Series (x, y)  +  HorizontalLine   ->   Panel with two Axes   ->   line_chart(...)

A name has the same colour, marker and dash in every panel, and no line is distinguished by colour
alone. The text is written from an XML tree, so whatever a name contains is escaped; the chart has a
background of its own and follows `prefers-color-scheme`; title and description are for screen
readers. No script, no font, no link. Equal values give equal text.

>>> loss = Series("loss", [1, 10, 100], [8.0, 4.0, 2.0])
>>> best = HorizontalLine("best", 1.5)
>>> panel = Panel("Training", Axis("steps", log=True), Axis("loss"), [loss], [best])
>>> line_chart("Loss against steps", "It falls.", [panel])[:4]
'<svg'
"""

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import ArrayLike

from journeyman.arrays import FloatArray, assign, real_array
from journeyman.errors import InvalidInput
from journeyman.report.numbers import linear_ticks, log_ticks, tick_label

LIGHT = (
    "#fcfcfb", "#1c1c1a", "#5c5b57", "#e3e2dd",
    "#0072b2", "#c85200", "#00875f", "#a23b8f", "#8a6d00", "#5b5b5b",
)  # fmt: skip
DARK = (
    "#1b1b1a", "#f2f1ec", "#b4b3ad", "#3a3a37",
    "#56b4e9", "#f0883e", "#2bc49a", "#e288c6", "#e0b83b", "#bdbdbd",
)  # fmt: skip
"""Background, text, quiet text and grid, then one colour per series."""
SHAPES = (
    "text{font:12px system-ui,sans-serif}", ".title{font-size:15px;font-weight:600}",
    ".heading{font-weight:600}", ".middle{text-anchor:middle}", ".end{text-anchor:end}",
    "path{fill:none}", ".line{stroke-width:2}", ".level{stroke-width:1.5}",
)  # fmt: skip
MARKERS = (
    "M-3.2,0a3.2,3.2 0 1,0 6.4,0a3.2,3.2 0 1,0 -6.4,0z",
    "M-3,-3h6v6h-6z",
    "M0,-4l3.8,6.8h-7.6z",
    "M0,-4.2l4.2,4.2l-4.2,4.2l-4.2,-4.2z",
    "M0,4l3.8,-6.8h-7.6z",
    "M-1.3,-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
)
DASHES = ("7 4", "2 3", "10 3 2 3")
PANEL_WIDTH, PANEL_HEIGHT, LEFT, RIGHT = 420, 344, 62, 402
BOTTOM, TOP, LEGEND_TOP, LEGEND_ROW = 334, 84, 394, 22
FREE = 0.04
"""Share of an axis that is left free at both ends."""
UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""


@dataclass(frozen=True, eq=False, init=False)
class Series:
    """Points (x, y) joined by a line."""

    name: str
    x: FloatArray
    y: FloatArray

    def __init__(self, name: str, x: ArrayLike, y: ArrayLike) -> None:
        places = real_array(f"x of {name!r}", x, ndim=1, refusal=InvalidInput)
        if places.size == 0:
            raise InvalidInput(f"the series {name!r} has no points", "Give at least one")
        size = places.size
        heights = real_array(f"y of {name!r}", y, ndim=1, size=size, refusal=InvalidInput)
        assign(self, name=name, x=places, y=heights)


@dataclass(frozen=True)
class HorizontalLine:
    """A horizontal line to compare with."""

    name: str
    y: float

    def __post_init__(self) -> None:
        real_array(f"y of {self.name!r}", [self.y], ndim=1, refusal=InvalidInput)


@dataclass(frozen=True)
class Axis:
    """What is measured, in words, and whether equal ratios have equal distances."""

    label: str
    log: bool = False


@dataclass(frozen=True)
class Panel:
    """A title, two axes, and what is drawn between them."""

    title: str
    x_axis: Axis
    y_axis: Axis
    series: Sequence[Series]
    levels: Sequence[HorizontalLine] = field(default=())

    def __post_init__(self) -> None:
        assign(self, series=tuple(self.series), levels=tuple(self.levels))
        if not self.series:
            raise InvalidInput(f"the panel {self.title!r} has no series", "Give at least one")
        names = [one.name for one in self.series] + [one.name for one in self.levels]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise InvalidInput(
                f"two lines of the panel {self.title!r} are called {twice[0]!r}", "Rename one"
            )


def line_chart(
    title: str, description: str, panels: Sequence[Panel], *, columns: int | None = None
) -> str:
    """The chart as the text of an SVG file, or of an element inside an HTML page; all panels side
    by side, or so many."""
    if not panels:
        raise InvalidInput(f"the chart {title!r} has no panel", "Give at least one")
    across = len(panels) if columns is None else min(columns, len(panels))
    legend, width = _Legend(panels), PANEL_WIDTH * across
    rows = legend.rows(width - LEFT)
    legend_top = LEGEND_TOP + PANEL_HEIGHT * ((len(panels) - 1) // across)
    height = legend_top + LEGEND_ROW * len(rows)
    words = f"{title}\n{description}".encode("utf-8", "replace")
    name = f"chart-{hashlib.sha256(words).hexdigest()[:8]}"
    root = ET.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", id=name, role="img",
        viewBox=f"0 0 {width} {height}", width=str(width), height=str(height),
    )  # fmt: skip
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    _add(root, "title", title, id=f"{name}-title")
    _add(root, "desc", description, id=f"{name}-desc")
    _add(root, "style", _style(f"#{name}"))
    _add(root, "rect", cls="page", width=str(width), height=str(height), rx="6")
    _add(root, "text", title, cls="title", x=str(LEFT), y="28")
    for index, panel in enumerate(panels):
        place = f"translate({PANEL_WIDTH * (index % across)},{PANEL_HEIGHT * (index // across)})"
        _draw(_add(root, "g", transform=place), panel, legend)
    legend.draw(root, rows, legend_top)
    ET.indent(root, " ")
    return ET.tostring(root, encoding="unicode") + "\n"


def _draw(parent: ET.Element, panel: Panel, legend: "_Legend") -> None:
    """Grid, ticks and labels, then the levels, then the series on top."""
    across = _Scale(panel.x_axis, [line.x for line in panel.series], LEFT, RIGHT)
    levels = np.array([level.y for level in panel.levels], dtype=float)
    up = _Scale(panel.y_axis, [*(line.y for line in panel.series), levels], BOTTOM, TOP)
    _add(parent, "text", panel.title, cls="heading", x=str(LEFT), y="54")
    _add(parent, "text", panel.y_axis.label, cls="quiet", x=str(LEFT), y="74")
    middle = str((LEFT + RIGHT) // 2)
    _add(parent, "text", panel.x_axis.label, cls="quiet middle", x=middle, y=str(BOTTOM + 38))
    for tick in up.ticks:
        y = up.at(tick)
        _add(parent, "path", cls="grid", d=f"M{LEFT},{_n(y)}H{RIGHT}")
        _add(parent, "text", tick_label(tick), cls="end", x=str(LEFT - 8), y=_n(y + 4))
    for tick in across.ticks:
        x = _n(across.at(tick))
        _add(parent, "path", cls="grid", d=f"M{x},{TOP}V{BOTTOM}")
        _add(parent, "text", tick_label(tick), cls="middle", x=x, y=str(BOTTOM + 18))
    for level in panel.levels:
        legend.level(parent, level.name, f"M{LEFT},{_n(up.at(level.y))}H{RIGHT}")
    for line in panel.series:
        points = [(across.at(x), up.at(y)) for x, y in zip(line.x, line.y, strict=True)]
        legend.line(parent, line.name, points)


class _Scale:
    """From values to pixels: the range of the values with some space, and round numbers in it."""

    def __init__(self, axis: Axis, values: Iterable[FloatArray], start: float, end: float) -> None:
        together = np.concatenate(list(values))
        least, most = float(together.min()), float(together.max())
        if axis.log and least <= 0:
            raise InvalidInput(
                f"{least:g} has no place on the logarithmic axis {axis.label!r}",
                "Give positive values, or a linear axis",
            )
        if not np.isfinite(most - least):
            raise InvalidInput(f"the range of {axis.label!r} is too wide", "Scale the values")
        self.log, self.start, self.end = axis.log, start, end
        low, high = self._place(least), self._place(most)
        alike = high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-280)
        free = (abs(low) / 10 or 1.0) if alike else FREE * (high - low)
        self.low, self.high = low - free, high + free
        self.ticks = (log_ticks if axis.log else linear_ticks)(self.low, self.high)

    def _place(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def at(self, value: float) -> float:
        share = (self._place(float(value)) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share


class _Legend:
    """The style of every name, the same in all panels."""

    def __init__(self, panels: Sequence[Panel]) -> None:
        series = dict.fromkeys(line.name for panel in panels for line in panel.series)
        levels = dict.fromkeys(level.name for panel in panels for level in panel.levels)
        for names, styles in ((series, MARKERS), (levels, DASHES)):
            if len(names) > len(styles):
                remedy = f"Give at most {len(styles)} names to lines of this kind"
                raise InvalidInput(f"{', '.join(names)}: too many to distinguish", remedy)
        self.series = {name: index for index, name in enumerate(series)}
        self.levels = {name: index for index, name in enumerate(levels)}

    def rows(self, width: float) -> list[list[str]]:
        """The names in rows that fit the width."""
        rows: list[list[str]] = [[]]
        for name in (*self.series, *self.levels):
            if rows[-1] and sum(map(_entry_width, [*rows[-1], name])) > width:
                rows.append([])
            rows[-1].append(name)
        return rows

    def draw(self, root: ET.Element, rows: list[list[str]], top: int) -> None:
        for index, row in enumerate(rows):
            left = float(LEFT)
            for name in row:
                place = f"translate({_n(left)},{top + LEGEND_ROW * index})"
                entry = _add(root, "g", transform=place)
                if name in self.series:
                    self.line(entry, name, [(0, 0), (24, 0)])
                if name in self.levels:
                    self.level(entry, name, "M0,0H24")
                _add(entry, "text", name, x="30", y="4")
                left += _entry_width(name)

    def line(self, parent: ET.Element, name: str, points: list[tuple[float, float]]) -> None:
        index = self.series[name]
        path = "M" + "L".join(f"{_n(x)},{_n(y)}" for x, y in points)
        _add(parent, "path", cls=f"line c{index}", d=path)
        for x, y in points:
            place = f"translate({_n(x)},{_n(y)})"
            _add(parent, "path", cls=f"mark m{index}", d=MARKERS[index], transform=place)

    def level(self, parent: ET.Element, name: str, path: str) -> None:
        dash = {"stroke-dasharray": DASHES[self.levels[name]]}
        _add(parent, "path", cls="level", d=path, **dash)


def _style(scope: str) -> str:
    """Rules that reach this chart only."""
    shapes, dark = [*SHAPES, *_colours(*LIGHT)], _colours(*DARK)
    day, night = ("".join(f"{scope} {rule}" for rule in rules) for rules in (shapes, dark))
    return f"{day}@media (prefers-color-scheme:dark){{{night}}}"


def _colours(page: str, ink: str, quiet: str, grid: str, *series: str) -> list[str]:
    fixed = f".page{{fill:{page}}} text{{fill:{ink}}} .quiet{{fill:{quiet}}} .grid{{stroke:{grid}}}"
    lines = f".mark{{stroke:{page}}} .level{{stroke:{ink}}}"
    numbered = [f".c{i}{{stroke:{c}}} .m{i}{{fill:{c}}}" for i, c in enumerate(series)]
    return " ".join([fixed, lines, *numbered]).split()


def _add(
    parent: ET.Element, tag: str, text: str = "", cls: str = "", **attributes: str
) -> ET.Element:
    """A new child; its text and attributes are escaped when the tree is written."""
    child = ET.SubElement(parent, tag, attributes | ({"class": cls} if cls else {}))
    child.text = UNPRINTABLE.sub("\ufffd", text) or None
    return child


def _entry_width(name: str) -> float:
    return 52 + 7.0 * len(name)


def _n(value: float) -> str:
    """A coordinate to a hundredth of a pixel."""
    return f"{round(float(value), 2) + 0.0:g}"
