"""A study as one page, in the style of the reports: pictures, tables, and why rows are empty."""

from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from journeyman.report.figures import exactly, figure, seconds
from journeyman.report.markup import Content, Element, name_of, tag, written
from journeyman.report.page import CELL, document
from journeyman.report.sections import Place, legend
from journeyman.report.style import sheet
from journeyman.report.tables import above, table
from journeyman.storage import digest
from journeyman.studies.pictures import gap_picture, time_picture
from journeyman.studies.summary import Spread, Summary, compared_figure
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
