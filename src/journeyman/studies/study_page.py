"""A study as one page, in the style of the reports: pictures, tables, and why rows are empty.

A method has the same number in both pictures and in the tables, so that names of any length fit
and nothing depends on colour alone. Trials are marks, the text is about medians.
"""

from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from journeyman.report.drawing import (
    Element,
    Scale,
    anchor,
    axis,
    diamond,
    label,
    mark,
    percent,
    picture,
    shortened,
    tag,
    tick_text,
)
from journeyman.report.numbers import Number, exact, number, seconds
from journeyman.report.rendering import Section, cell, document
from journeyman.storage import digest
from journeyman.studies.comparison import Spread, Summary, compared_gap
from journeyman.studies.trial import COUNTS

if TYPE_CHECKING:
    from journeyman.studies.comparison import Comparison


GAPS = {
    "true_gap": "true gap", "gap_on_data": "gap on the data", "lower_bound": "no policy below",
    "certified_bound": "certified bound", "trivial_bound": "trivial bound",
}  # fmt: skip
NOTHING = "–"
"""In place of a number that there is none of."""
ROW, TEXT, LONGEST = 44, 14, 44
"""Pixels of a row and of the text above its marks; characters of a name."""
HEIGHT, TOP, BOTTOM, LEFT = 320, 14, 284, 12
"""Of the second picture, in pixels, and per cents of its width for the upright axis."""
NEAR, LINE = 3.5, 13
"""Numbers closer than this, in per cents across and in pixels, would cover each other."""


def page(comparison: "Comparison", title: str) -> str:
    """A whole HTML document."""
    version = metadata.version("journeyman")
    return document(
        title, sections(comparison), kind="study", size=_size(comparison), note="", version=version
    )


def as_html(comparison: "Comparison") -> str:
    """The same as an element that a notebook can show among others."""
    prefix = f"jm-{digest([str(trial.facts()) for trial in comparison.trials])[:8]}-"
    return cell(sections(comparison, prefix), prefix)


def sections(comparison: "Comparison", prefix: str = "") -> list[Section]:
    """One for every problem, and one for what was not answered."""
    rows = comparison.summaries
    problems = list(dict.fromkeys(row.problem for row in rows))
    found = []
    for index, problem in enumerate(problems):
        own = [row for row in rows if row.problem == problem]
        content = _methods(comparison, own, f"{prefix}p{index}-")
        title = "Methods" if len(problems) == 1 else problem
        found.append(Section(f"p{index}-methods", title, content, "methods"))
    reasons = dict.fromkeys(
        (row.problem, row.solver, trial.message)
        for row in rows
        for trial in row.trials
        if trial.message
    )
    if reasons:
        found.append(Section("unanswered", "Without an answer", {"rows": list(reasons)}))
    return found


def _methods(comparison: "Comparison", rows: Sequence[Summary], prefix: str) -> dict[str, Any]:
    """The section of one problem."""
    gap, words = compared_gap([trial for row in rows for trial in row.trials])
    pictures = {}
    if any(row.values(gap) for row in rows):
        pictures = {
            "gaps": gap_picture(rows, gap, words, prefix),
            "times": time_picture(rows, gap, words, prefix),
        }
    return {
        "lead": _lead(rows, gap, words), "explanation": _explained(comparison, gap),
        "problem": comparison.descriptions.get(rows[0].problem, ""),
        "words": words, "pictures": pictures, "tables": [_gaps(rows), _work(rows)],
    }  # fmt: skip


def _lead(rows: Sequence[Summary], gap: str, words: str) -> str:
    known = [(spread.median, row) for row in rows if (spread := row.spread(gap)) is not None]
    if not known:
        return "No method has an answer."
    least = number(min(value for value, _ in known))
    best = [row for value, row in known if number(value) == least]
    certified = ""
    judged = [trial for trial in best[0].trials if trial.has_policy]
    proven = all(trial.valid and not trial.weak for trial in judged)
    if len(best) == 1 and proven and (bounds := best[0].values("certified_bound")):
        certified = f", certified to be at most {number(max(bounds))} in every trial"
    *others, last = [row.solver for row in best]
    names = f"{', '.join(others)} and {last} have" if others else f"{last} has"
    return f"{names} the least {words}: {least} in the median{certified}."


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


def _gaps(rows: Sequence[Summary]) -> dict[str, Any]:
    shown = {name: words for name, words in GAPS.items() if any(row.values(name) for row in rows)}
    cells = [
        [
            (str(len(row.trials)), ""), *(_cell(row.spread(name)) for name in shown),
            ("; ".join([row.outcome, *row.shortcomings]), ""),
        ]
        for row in rows
    ]  # fmt: skip
    return _table("Medians", ["trials", *shown.values(), "outcome"], rows, cells)


def _work(rows: Sequence[Summary]) -> dict[str, Any]:
    counted = [name for name in COUNTS if any(any(row.values(name)) for row in rows)]
    cells = [
        [_cell(row.spread("seconds"), of_time=True), *(_cell(row.spread(name)) for name in counted)]
        for row in rows
    ]
    headings = ["seconds", *(name.replace("_", " ") for name in counted)]
    return _table("What it took: medians", headings, rows, cells)


def _table(
    caption: str, headings: list[str], rows: Sequence[Summary], cells: list[list[Any]]
) -> dict[str, Any]:
    """Cells are pairs: what is shown, and what stands below it in small type."""
    numbered = [
        {"number": index + 1, "solver": row.solver, "cells": cells[index]}
        for index, row in enumerate(rows)
    ]
    return {"caption": caption, "headings": headings, "rows": numbered}


def _cell(spread: Spread | None, *, of_time: bool = False) -> tuple[Number | str, str]:
    if spread is None:
        return NOTHING, ""
    show = seconds if of_time else number
    median = exact(spread.median, show(spread.median))
    if spread.low == spread.high:
        return median, ""
    return median, f"{show(spread.low)} … {show(spread.high)}"


def _size(comparison: "Comparison") -> str:
    trials = comparison.trials
    seeds = {trial.seed for trial in trials if trial.seed is not None}
    parts = [
        (len({trial.problem for trial in trials}), "problem"),
        (len({trial.solver for trial in trials}), "method"), (len(seeds), "seed"),
        (len(trials), "trial"),
    ]  # fmt: skip
    return ", ".join(f"{count:,} {word}{'' if count == 1 else 's'}" for count, word in parts)


def gap_picture(rows: Sequence[Summary], gap: str, words: str, prefix: str) -> Markup:
    """A row of marks for every method: its gaps, and the bounds that are certified."""
    known = [row for row in rows if row.values(gap)]
    scale = Scale([v for row in known for v in (*row.values(gap), *row.values("certified_bound"))])
    parts = axis(scale, len(rows), ROW, TEXT + 4)
    for index, row in enumerate(rows):
        parts += _row(row, index, gap, scale)
    best = min(known, key=lambda row: _median(row, gap))
    return picture(
        f"{prefix}gaps", f"{words.capitalize()} and certified bound of every trial{scale.words}",
        f"For each of {len(rows)} methods a mark for the {words} of every trial and an upright "
        f"line for its certified bound; the least median {words} is {number(_median(best, gap))}, "
        f"of {shortened(best.solver, LONGEST)}.",
        ROW * len(rows) + 24, *parts,
    )  # fmt: skip


def _median(row: Summary, name: str) -> float:
    spread = row.spread(name)
    return float("inf") if spread is None else spread.median


def _row(row: Summary, index: int, gap: str, scale: Scale) -> list[Element]:
    """The name above, the marks below; words instead of marks where there is no policy."""
    top = ROW * index
    y = top + TEXT + 15
    spread = row.spread(gap)
    words = row.outcome if spread is None else number(spread.median)
    parts = [
        label(f"{index + 1}  {shortened(row.solver, LONGEST)}", "0%", top + TEXT, cls="start over"),
        label(words, "100%", top + TEXT, cls="end over quiet"),
    ]
    for bound in row.values("certified_bound"):
        x = percent(100 * scale.share(bound))
        parts.append(tag("line", x1=x, x2=x, y1=f"{y - 8}", y2=f"{y + 8}", cls="tip limit"))
    return [
        *parts,
        *(mark(percent(100 * scale.share(value)), y, diamond()) for value in row.values(gap)),
    ]


def time_picture(rows: Sequence[Summary], gap: str, words: str, prefix: str) -> Markup:
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
        parts += [mark(percent(_x(across, s)), _y(upward, g), diamond()) for s, g in points]
        x, y = _x(across, _median(row, "seconds")), _y(upward, _median(row, gap))
        taken.append(_free(x, y - 9, taken))
        parts.append(_number(rows.index(row) + 1, *taken[-1]))
    quick = min(known, key=lambda row: _median(row, "seconds"))
    return picture(
        f"{prefix}times", f"{words.capitalize()} against seconds",
        f"Each trial by its seconds{across.words} and its {words}{upward.words}; methods by their "
        f"number in the table. The quickest is {shortened(quick.solver, LONGEST)} with a median of "
        f"{number(_median(quick, 'seconds'))} s.",
        HEIGHT, *parts,
    )  # fmt: skip


def _free(x: float, y: float, taken: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The place, or the next one above at which no other number stands."""
    while any(abs(x - other) < NEAR and abs(y - height) < LINE for other, height in taken):
        y -= LINE
    return x, y


def _number(shown: int, x: float, y: float) -> Element:
    side, away = ("end", -1.2) if x > 90 else ("start", 1.2)
    return label(str(shown), percent(x + away), y, cls=f"{side} over strong")


def _both_axes(across: Scale, upward: Scale) -> list[Element]:
    parts = []
    for tick in upward.ticks:
        y = f"{_y(upward, tick):g}"
        parts.append(tag("line", x1=f"{LEFT}%", x2="100%", y1=y, y2=y, cls="grid"))
        parts.append(label(tick_text(tick), f"{LEFT - 2}%", float(y) + 4, cls="end quiet"))
    for tick in across.ticks:
        x = _x(across, tick)
        line = {"x1": percent(x), "x2": percent(x), "y1": f"{TOP}", "y2": f"{BOTTOM}"}
        parts.append(tag("line", cls="grid", **line))
        side = anchor(across.share(tick))
        parts.append(label(tick_text(tick), percent(x), BOTTOM + 20, cls=f"quiet {side}"))
    return parts


def _x(scale: Scale, value: float) -> float:
    return LEFT + (100 - LEFT) * scale.share(value)


def _y(scale: Scale, value: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * scale.share(value), 2)
