"""Methods as pictures: gap and certified bound of every trial, and gap against seconds.

A method has the same number in both pictures and in the tables, so that names of any length find
room and nothing is told by colour alone. Trials are marks, the median is what figures speak of.
"""

from collections.abc import Sequence

from journeyman.report.drawing import label, percent, picture
from journeyman.report.figures import figure
from journeyman.report.line_chart import tick_label
from journeyman.report.markup import Element, shortened, tag
from journeyman.report.sections import Place
from journeyman.studies.scale import Scale
from journeyman.studies.summary import Summary

ROW, TEXT, LONGEST = 44, 14, 44
"""Pixels of a row and of the text above its marks; characters of a name."""
HEIGHT, TOP, BOTTOM, LEFT = 320, 14, 284, 12
"""Of the second picture, in pixels, and per cents of its width for the upright axis."""
NEAR, LINE = 3.5, 13
"""Numbers closer than this, in per cents across and in pixels, would cover each other."""


def gap_picture(rows: Sequence[Summary], gap: str, words: str, place: Place) -> Element:
    """A row of marks for every method: its gaps, and the bounds that are certified."""
    known = [row for row in rows if row.values(gap)]
    scale = Scale([v for row in known for v in (*row.values(gap), *row.values("certified_bound"))])
    bottom = ROW * len(rows)
    parts = _upright_lines(scale, bottom)
    for index, row in enumerate(rows):
        parts += _row(row, index, gap, scale)
    best = min(known, key=lambda row: _median(row, gap))
    return picture(
        place.name("gaps"), f"{words.capitalize()} and certified bound of every trial{scale.words}",
        f"For each of {len(rows)} methods a mark for the {words} of every trial and an upright "
        f"line for its certified bound; the least median {words} is {figure(_median(best, gap))}, "
        f"of {shortened(best.solver, LONGEST)}.",
        bottom + 24, *parts,
    )  # fmt: skip


def _median(row: Summary, figure_name: str) -> float:
    spread = row.spread(figure_name)
    return float("inf") if spread is None else spread.median


def _upright_lines(scale: Scale, bottom: float) -> list[Element]:
    parts = []
    for tick in scale.ticks:
        x = percent(100 * scale.share(tick))
        kind = "zero" if tick == 0 else "grid"
        parts.append(tag("line", x1=x, x2=x, y1="18", y2=f"{bottom:g}", cls=kind,
                         stroke_dasharray=f"{ROW - 18} 18"))  # fmt: skip
        parts.append(label(_shown(tick), x, bottom + 16, cls=f"quiet {_side(scale.share(tick))}"))
    return parts


def _row(row: Summary, index: int, gap: str, scale: Scale) -> list[Element]:
    """The name above, the marks below; words instead of marks where there is no policy."""
    top = ROW * index
    y = top + TEXT + 15
    spread = row.spread(gap)
    told = row.outcome if spread is None else figure(spread.median)
    parts = [
        label(f"{index + 1}  {shortened(row.solver, LONGEST)}", "0%", top + TEXT, cls="start over"),
        label(told, "100%", top + TEXT, cls="end over quiet"),
    ]
    for bound in row.values("certified_bound"):
        x = percent(100 * scale.share(bound))
        parts.append(tag("line", x1=x, x2=x, y1=f"{y - 8}", y2=f"{y + 8}", cls="tip limit"))
    return [*parts, *(_mark(100 * scale.share(value), y) for value in row.values(gap))]


def time_picture(rows: Sequence[Summary], gap: str, words: str, place: Place) -> Element:
    """Every trial by its seconds and its gap; the number of the method stands at the median."""
    known = [row for row in rows if row.values(gap)]
    across = Scale([max(value, 1e-6) for row in known for value in row.values("seconds")])
    upward = Scale([value for row in known for value in row.values(gap)])
    parts = _both_axes(across, upward)
    taken: list[tuple[float, float]] = []
    for row in known:
        points = [
            (max(trial.seconds, 1e-6), float(getattr(trial, gap)))
            for trial in row.trials
            if getattr(trial, gap) is not None
        ]
        parts += [_mark(_x(across, s), _y(upward, g)) for s, g in points]
        x, y = _x(across, _median(row, "seconds")), _y(upward, _median(row, gap))
        taken.append(_free(x, y - 9, taken))
        parts.append(_number(rows.index(row) + 1, *taken[-1]))
    quick = min(known, key=lambda row: _median(row, "seconds"))
    return picture(
        place.name("times"), f"{words.capitalize()} against seconds",
        f"Each trial by its seconds{across.words} and its {words}{upward.words}; methods by their "
        f"number in the table. The quickest is {shortened(quick.solver, LONGEST)} with a median of "
        f"{figure(_median(quick, 'seconds'))} s.",
        HEIGHT, *parts,
    )  # fmt: skip


def _free(x: float, y: float, taken: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The place, or the next one above at which no other number stands."""
    while any(abs(x - other) < NEAR and abs(y - height) < LINE for other, height in taken):
        y -= LINE
    return x, y


def _number(number: int, x: float, y: float) -> Element:
    side, away = ("end", -1.2) if x > 90 else ("start", 1.2)
    return label(str(number), percent(x + away), y, cls=f"{side} over strong")


def _both_axes(across: Scale, upward: Scale) -> list[Element]:
    parts = []
    for tick in upward.ticks:
        y = f"{_y(upward, tick):g}"
        parts.append(tag("line", x1=f"{LEFT}%", x2="100%", y1=y, y2=y, cls="grid"))
        parts.append(label(_shown(tick), f"{LEFT - 2}%", float(y) + 4, cls="end quiet"))
    for tick in across.ticks:
        x = _x(across, tick)
        line = {"x1": percent(x), "x2": percent(x), "y1": f"{TOP}", "y2": f"{BOTTOM}"}
        parts.append(tag("line", cls="grid", **line))
        side = _side(across.share(tick))
        parts.append(label(_shown(tick), percent(x), BOTTOM + 20, cls=f"quiet {side}"))
    return parts


def _x(scale: Scale, value: float) -> float:
    return LEFT + (100 - LEFT) * scale.share(value)


def _y(scale: Scale, value: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * scale.share(value), 2)


def _mark(x: float, y: float) -> Element:
    """A diamond, whose size does not depend on the width of the picture."""
    shape = tag("path", d="M0-5.2L5.2 0L0 5.2L-5.2 0z", cls="mark apprentice")
    return tag(
        "svg", shape, x=percent(x), y=f"{y:g}", overflow="visible", aria_hidden="true"
    )  # fmt: skip


def _side(share: float) -> str:
    """Labels near an end of the axis grow inwards."""
    return "start" if share < 0.06 else "end" if share > 0.94 else "middle"


def _shown(tick: float) -> str:
    return tick_label(tick).replace("-", "−")
