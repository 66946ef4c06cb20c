"""A study as one page, in the style of the reports: pictures, tables, and why rows are empty."""

import math
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from journeyman.report.drawing import (
    Content,
    Element,
    label,
    name_of,
    percent,
    picture,
    shortened,
    tag,
    written,
)
from journeyman.report.elements import Place, above, legend, table
from journeyman.report.line_chart import linear_ticks, log_ticks, tick_label
from journeyman.report.numbers import exactly, figure, seconds
from journeyman.report.page import CELL, document, sheet
from journeyman.storage import digest
from journeyman.studies.comparison import Spread, Summary, compared_figure
from journeyman.studies.trial import COUNTS

if TYPE_CHECKING:
    from journeyman.studies.comparison import Comparison


NOTHING = "–"
"""In place of a figure that there is none of."""


def page(comparison: "Comparison", title: str) -> str:
    """A whole HTML document."""
    found = sections(comparison, Place())
    links = [
        tag("li", tag("a", _title_of(section), href=f"#{section.get('id')}")) for section in found
    ]
    contents = tag("nav", tag("ul", *links), aria_label="Sections")
    header = tag(
        "header", tag("p", "journeyman study", cls="kicker"), tag("h1", title),
        tag("p", _size(comparison), cls="note"),
    )  # fmt: skip
    return document(title, header, contents, found, metadata.version("journeyman"))


def fragment(comparison: "Comparison") -> str:
    """The same as an element that a notebook can show among others."""
    word = digest([str(trial.facts()) for trial in comparison.trials])[:8]
    found = sections(comparison, Place(f"jm-{word}-", 3))
    return written(tag("div", tag("style", sheet(".jm") + CELL), *found, cls="jm jm-cell"))


def sections(comparison: "Comparison", place: Place) -> list[Element]:
    """One for every problem, and one for what was not answered."""
    rows = comparison.summaries
    problems = list(dict.fromkeys(row.problem for row in rows))
    found = []
    for number, problem in enumerate(problems):
        own = [row for row in rows if row.problem == problem]
        heading = "Methods" if len(problems) == 1 else problem
        inner = Place(f"{place.prefix}p{number}-", place.rank)
        found.append(_problem(comparison, own, heading, inner))
    reasons = _reasons(rows, place)
    return found if reasons is None else [*found, reasons]


def _problem(
    comparison: "Comparison", rows: Sequence[Summary], heading: str, place: Place
) -> Element:
    gap, words = compared_figure([trial for row in rows for trial in row.trials])
    drawn: list[Content] = []
    if any(row.values(gap) for row in rows):
        drawn = [
            legend(("apprentice", words), ("limit", "certified bound")),
            gap_picture(rows, gap, words, place),
            place.heading(f"{words.capitalize()} against time"),
            tag(
                "p",
                f"Seconds across, {words} upwards; every mark is a trial, the number of a method "
                "stands at its medians.",
                cls="note",
            ),
            time_picture(rows, gap, words, place),
            place.heading("In figures"),
        ]
    return place.section(
        "methods", heading, tag("p", _lead(rows, gap, words), cls="lead"),
        tag("p", _explained(comparison, gap), cls="note"), *_setting(comparison, rows), *drawn,
        _gaps(rows), _spending(rows),
    )  # fmt: skip


def _lead(rows: Sequence[Summary], gap: str, words: str) -> str:
    known = [(spread.median, row) for row in rows if (spread := row.spread(gap)) is not None]
    if not known:
        return "No method has an answer."
    least = figure(min(value for value, _ in known))
    best = [row for value, row in known if figure(value) == least]
    told = ""
    judged = [trial for trial in best[0].trials if trial.has_policy]
    telling = all(trial.valid and not trial.weak for trial in judged)
    if len(best) == 1 and telling and (bounds := best[0].values("certified_bound")):
        told = f", certified to be at most {figure(max(bounds))} in every trial"
    *others, last = [row.solver for row in best]
    names = f"{', '.join(others)} and {last} have" if others else f"{last} has"
    return f"{names} the least {words}: {least} in the median{told}."


def _setting(comparison: "Comparison", rows: Sequence[Summary]) -> list[Content]:
    """What the problem is, where that is known."""
    words = comparison.settings.get(rows[0].problem)
    return [] if words is None else [tag("p", f"{words}.", cls="note")]


def _explained(comparison: "Comparison", gap: str) -> str:
    known = (
        "The true gap is that to the exact expectations of the expert, who is known here. "
        if gap == "true_gap"
        else "The expert is known from data only, so the gap is that to its estimate. "
    )
    return (
        f"{known}A certified bound holds with probability "
        f"{1 - comparison.failure_probability:g} over the demonstrations, each by itself, unless a "
        "premise of it failed. Costs: lower is better. "
        "Seconds are those of solving, one thread each. CONVERGED is by a method's own goal, which "
        "need not be this gap."
    )


def _gaps(rows: Sequence[Summary]) -> Element:
    columns = {
        "true_gap": "true gap", "gap_on_data": "gap on the data", "lower_bound": "no policy below",
        "certified_bound": "certified bound", "trivial_bound": "trivial bound",
    }  # fmt: skip
    shown = {
        name: words for name, words in columns.items() if any(row.values(name) for row in rows)
    }
    return table(
        "Medians over the trials, with the least and the largest below",
        ["no.", "method", "trials", *shown.values(), "outcome"],
        [
            [
                str(number), name_of(row.solver), str(len(row.trials)),
                *(_cell(row.spread(name)) for name in shown),
                "; ".join([row.outcome, *row.shortcomings]),
            ]
            for number, row in enumerate(rows, 1)
        ],
        words=2,
    )  # fmt: skip


def _spending(rows: Sequence[Summary]) -> Element:
    counted = [name for name in COUNTS if any(any(row.values(name)) for row in rows)]
    return table(
        "What it took: medians over the trials, with the least and the largest below",
        ["no.", "method", "seconds", *(name.replace("_", " ") for name in counted)],
        [
            [
                str(number), name_of(row.solver), _cell(row.spread("seconds"), of_time=True),
                *(_cell(row.spread(name)) for name in counted),
            ]
            for number, row in enumerate(rows, 1)
        ],
        words=2,
    )  # fmt: skip


def _cell(spread: Spread | None, *, of_time: bool = False) -> Content:
    if spread is None:
        return NOTHING
    show = seconds if of_time else figure
    middle = exactly(spread.median, show(spread.median))
    if spread.low == spread.high:
        return middle
    return above(middle, f"{show(spread.low)} … {show(spread.high)}")


def _reasons(rows: Sequence[Summary], place: Place) -> Element | None:
    told = dict.fromkeys(
        (row.problem, row.solver, trial.message)
        for row in rows
        for trial in row.trials
        if trial.message
    )
    if not told:
        return None
    listed: list[list[Content]] = [
        [name_of(solver), name_of(problem), words] for problem, solver, words in told
    ]
    return place.section(
        "unanswered", "Without an answer",
        table("Methods and why they gave none", ["method", "problem", "reason"], listed, words=3),
    )  # fmt: skip


def _title_of(section: Element) -> str:
    return "".join(section[0].itertext())


def _size(comparison: "Comparison") -> str:
    trials = comparison.trials
    seeds = {trial.seed for trial in trials if trial.seed is not None}
    parts = [
        (len({trial.problem for trial in trials}), "problem"),
        (len({trial.solver for trial in trials}), "method"), (len(seeds), "seed"),
        (len(trials), "trial"),
    ]  # fmt: skip
    return ", ".join(f"{count:,} {word}{'' if count == 1 else 's'}" for count, word in parts)


# From figures to places on an axis, by ratios where they differ by much.

STEEP = 10.0
"""From this ratio on equal ratios have equal distances."""
LEAST = 1e-6
"""Positive figures below this share of the largest are drawn there: they are rounding."""
ROOM = 0.04
"""Share of the axis that is left free at both ends."""
MOST_TICKS = 6


class Scale:
    """Shares of an axis; `log` says whether it is logarithmic.

    >>> scale = Scale([1.0, 10.0, 100.0])
    >>> scale.log, round(scale.share(10.0), 3), scale.ticks
    (True, 0.5, (1.0, 10.0, 100.0))
    >>> Scale([0.0, 5.0]).log
    False
    """

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min(values), max(values)
        self.log = low > 0 and high / low >= STEEP
        self.floor = LEAST * high if self.log else -math.inf
        low, high = self._place(low), self._place(high)
        room = ROOM * (high - low) or abs(low) / 10 or 1.0
        self.low, self.high = low - room, high + room
        ticks = (log_ticks if self.log else linear_ticks)(self.low, self.high)
        self.ticks = ticks if len(ticks) <= MOST_TICKS else ticks[::2]

    def _place(self, value: float) -> float:
        return math.log10(max(value, self.floor)) if self.log else value

    def share(self, value: float) -> float:
        """The place of a value between 0 and 1."""
        return (self._place(value) - self.low) / (self.high - self.low)

    @property
    def words(self) -> str:
        """To be said beside the axis."""
        return " (logarithmic scale)" if self.log else ""


# Methods as pictures: gap and certified bound of every trial, and gap against seconds.
#
# A method has the same number in both pictures and in the tables, so that names of any length find
# room and nothing is told by colour alone. Trials are marks, the median is what figures speak of.

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
