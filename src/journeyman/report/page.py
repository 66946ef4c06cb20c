"""Reports: everything in one file, or the main sections as one element for notebooks.

A section is a function from the data of a report to the content of a template; one without data is
left out. To add one, write the function, its template in templates/sections, and list it here.
"""

import datetime
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from journeyman.certificate.presentation import averages_of, has_goal, layers_of
from journeyman.demonstrations import Demonstrations
from journeyman.policy import Policy
from journeyman.report.certificate_sections import (
    budgets,
    nonlinear,
    premises,
    recovered,
    regret,
    remedies,
    result,
    terms,
)
from journeyman.report.cost_comparison import costs
from journeyman.report.grid_maps import maps
from journeyman.report.numbers import number
from journeyman.report.policy_section import policy
from journeyman.report.rendering import Section, cell, document
from journeyman.report.report_data import Reportable, ReportData
from journeyman.report.run_sections import convergence, reproduction
from journeyman.report.saved_run import NOT_KEPT, read_run
from journeyman.report.summaries import summary_of
from journeyman.solvers import Answer
from journeyman.storage import PathLike, digest, write_text
from journeyman.world import World

Builder: TypeAlias = Callable[[ReportData, str], Section | None]
"""From the data and a prefix that makes names unique on the page."""

WHOLE: tuple[Builder, ...] = (
    result, maps, policy, costs, budgets, regret, terms, recovered, nonlinear, remedies, premises,
    convergence, reproduction,
)  # fmt: skip
BRIEF: tuple[Builder, ...] = (result, maps, costs, budgets, regret, terms, recovered, nonlinear)
"""Sections of a page, and of a cell in a notebook."""
TITLE = "What is certified about this policy"


def write_report(
    result: Reportable | PathLike,
    path: PathLike,
    *,
    answer: Answer | None = None,
    title: str = TITLE,
    note: str = "",
    found: Mapping[str, str] = NOT_KEPT,
    date: datetime.date | None = None,
) -> None:
    """Write one self-contained HTML file: no script, no network, light and dark, for screen, print
    and screen readers.

    Args:
        result: what `jm.learn` or `jm.certify` returned, or the directory of a saved run.
        path: of the file, which is replaced in one step.
        answer: with a certificate, what it certifies, so that the report can show how it was
            found; an apprentice brings its own.
        title: the heading of the page.
        note: a warning below it, for example for whom the result is not meant.
        found: with a directory, how the answer was found: what it does not keep, such as solver,
            status and time, as names and words.
        date: above the heading; by default today, with a directory the day on which its
            `certificate.json` was written, so that the same run has the same report.
    """
    if isinstance(result, str | os.PathLike):
        text = report_of_run(result, title=title, note=note, found=found, date=date)
    else:
        day = date or datetime.datetime.now(datetime.UTC).date()
        text = page(ReportData.of(result, answer), title, note, day)
    write_text(path, text)


def report_of_run(
    directory: PathLike,
    *,
    title: str = TITLE,
    note: str = "",
    found: Mapping[str, str] = NOT_KEPT,
    date: datetime.date | None = None,
) -> str:
    """The page about a run saved by `Apprentice.save` or `Certificate.save`.

    Its files are compared with the digests in `certificate.json`; whether the numbers follow from
    them, `jm.audit` checks.
    """
    return page(read_run(directory, found), title, note, date)


def as_html(result: Reportable | World | Policy | Demonstrations | Answer) -> str:
    """One element for notebooks: the main sections of a certificate, the facts of anything else."""
    if isinstance(result, Reportable):
        return fragment(ReportData.of(result))
    return summary_of(result)


def page(
    data: ReportData, title: str = TITLE, note: str = "", date: datetime.date | None = None
) -> str:
    """A whole HTML document; the date of a saved run is known, others have none by default."""
    day = date if date is not None or data.run is None else data.run.saved
    return document(
        title, sections(data, WHOLE), kind="report", question=question(data), size=_size(data),
        note=note, version=str(data.software["journeyman"]), date=day,
    )  # fmt: skip


def question(data: ReportData) -> str:
    """What was asked, in words."""
    certificate, demos = data.certificate, data.demonstrations
    problem = certificate.problem
    if certificate.known_cost:
        return "Asked: what does this policy cost at most, under a cost that is known?"
    seen = "an expert whose expected costs were given"
    if demos is not None:
        seen = f"an expert that was seen in {len(demos):,} demonstrations"
    elif certificate.agreement is None and not problem.expectation.is_declared:
        count = problem.expectation.num_trajectories
        seen = f"an expert whose costs were recorded in {count:,} episodes"
    if certificate.agreement is not None:
        return (
            f"Asked: how much more can this policy cost than {seen}, whatever a step costs "
            "within the declared range?"
        )
    kind = "reward" if problem.basis.rewards else "cost"
    count = problem.basis.num_costs
    whichever = f"the {count:,} {kind}s below" if count > 1 else f"the {kind} below"
    return (
        f"Asked: how much more can this policy cost than {seen}? Nobody says what the expert cares "
        f"about: the answer holds for every combination of {whichever} that was allowed for."
    )


def fragment(data: ReportData) -> str:
    """The main sections as an element that a notebook can show among others."""
    certificate = data.certificate
    word = digest(certificate.bound, certificate.summary(), *certificate.best.terms[0].name)[:8]
    prefix = f"jm-{word}-"
    return cell(sections(data, BRIEF, prefix), prefix)


def sections(data: ReportData, wanted: Iterable[Builder], prefix: str = "") -> list[Section]:
    """Those for which there are data."""
    found = (build(data, prefix) for build in wanted)
    return [section for section in found if section is not None]


def _size(data: ReportData) -> str:
    """World, discount, costs and demonstrations in one line."""
    problem, layers = data.certificate.problem, layers_of(data.certificate.problem)
    averages = averages_of(problem)
    made = averages if layers is None else layers
    there = problem.world if made is None else made.base
    size = f"{int(there.num_states):,} states, " if problem.has_states else ""
    if data.world is not None:
        size += f"{there.num_pairs:,} state-action pairs, "
    counted = f"discount {number(1 - 1 / data.horizon)}"
    if averages is not None:
        counted = "averages a step in the long run"
    if layers is not None:
        counted = f"episodes of {layers.horizon:,} steps, discount {number(layers.discount)}"
    kind = "rewards" if problem.basis.rewards else "costs"
    costs = f"{problem.basis.num_costs:,} {kind}"
    if data.certificate.agreement is not None:
        costs = "every cost in a range"
    demos = data.demonstrations
    seen = f", {len(demos):,} demonstrations" if demos is not None else ""
    if has_goal(problem):
        counted = f"discount 1, at most {number(data.horizon)} expected steps"
    return f"{size}{counted}, {costs}{seen}"
