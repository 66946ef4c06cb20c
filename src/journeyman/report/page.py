"""The document: everything in one file, without script, link or font from elsewhere."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from journeyman.report.budgets import budgets
from journeyman.report.convergence import convergence
from journeyman.report.figures import figure
from journeyman.report.grid_maps import maps
from journeyman.report.grounds import premises, remedies
from journeyman.report.intervals import costs
from journeyman.report.markup import Element, tag, written
from journeyman.report.recovered import recovered
from journeyman.report.reproduction import reproduction
from journeyman.report.result import result
from journeyman.report.sections import Place
from journeyman.report.style import PAGE, sheet
from journeyman.report.subject import Subject
from journeyman.report.waterfall import terms
from journeyman.storage import digest

Section: TypeAlias = Callable[[Subject, Place], Element | None]

WHOLE: tuple[Section, ...] = (
    result, terms, costs, recovered, maps, budgets, convergence, remedies, premises, reproduction,
)  # fmt: skip
BRIEF: tuple[Section, ...] = (result, terms, costs, recovered, maps, budgets)
"""Sections of a page, and of a cell in a notebook."""
SHORT = {
    "result": "Result", "terms": "Terms", "costs": "Costs", "recovered": "Weights", "maps": "Maps",
    "budgets": "Budgets", "convergence": "Solver", "remedies": "Advice", "premises": "Premises",
    "reproduction": "Reproduction",
}  # fmt: skip
"""Words for the links at the top."""
TITLE = "What is certified about this policy"
CELL = (
    ".jm-cell{padding:1.2rem 1.2rem 1.5rem;border-radius:8px}.jm-cell section{padding-top:1.6rem}"
    ".jm-cell section:first-of-type{padding-top:0}.jm-cell section>h3{margin-top:0}"
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""A browser may load nothing and run nothing, whatever a name might have smuggled in."""


def page(subject: Subject, title: str = TITLE, note: str = "") -> str:
    """A whole HTML document."""
    found = sections(subject, WHOLE, Place())
    version = str(subject.software["journeyman"])
    return document(title, _header(subject, title, note), _contents(found), found, version)


def document(
    title: str, header: Element, contents: Element, main: Iterable[Element], version: str
) -> str:
    """A page about anything, in the style of the reports."""
    head = tag(
        "head", tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · journeyman"),
        tag("style", sheet(":root") + PAGE),
    )  # fmt: skip
    body = tag(
        "body", header, contents, tag("main", *main),
        tag("footer", tag("p", f"Written by journeyman {version}.")),
        cls="jm",
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{written(tag('html', head, body, lang='en'))}\n"


def fragment(subject: Subject) -> str:
    """The main sections as an element that a notebook can show among others."""
    certificate = subject.certificate
    word = digest(certificate.bound, certificate.summary(), *certificate.best.terms[0].name)[:8]
    found = sections(subject, BRIEF, Place(f"jm-{word}-", 3))
    style = tag("style", sheet(".jm") + CELL)
    return written(tag("div", style, *found, cls="jm jm-cell"))


def sections(subject: Subject, wanted: Iterable[Section], place: Place) -> list[Element]:
    """Those for which there are data."""
    found = (section(subject, place) for section in wanted)
    return [section for section in found if section is not None]


def _header(subject: Subject, title: str, note: str) -> Element:
    problem = subject.certificate.problem
    world = subject.world or getattr(problem, "world", None)
    size = "" if world is None else f"{int(world.num_states):,} states, "
    if subject.world is not None:
        size += f"{subject.world.num_pairs:,} state-action pairs, "
    kind = "rewards" if problem.basis.rewards else "costs"
    demos = subject.demonstrations
    seen = f", {len(demos):,} demonstrations" if demos is not None else ""
    return tag(
        "header", tag("p", "journeyman report", cls="kicker"), tag("h1", title),
        tag("p", f"{size}discount {figure(1 - 1 / subject.horizon)}, "
            f"{problem.basis.num_costs:,} {kind}{seen}", cls="note"),
        tag("p", note, cls="warning") if note else None,
    )  # fmt: skip


def _contents(found: list[Element]) -> Element:
    """Links to all sections."""
    links = [
        tag("li", tag("a", SHORT[section.get("id", "")], href=f"#{section.get('id')}"))
        for section in found
    ]
    return tag("nav", tag("ul", *links), aria_label="Sections")
