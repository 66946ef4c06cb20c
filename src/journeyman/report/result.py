"""The result: one sentence, the bound in large figures, and what to compare it with."""

import re

from journeyman.certificate.gap_bound import percent
from journeyman.certificate.presentation import figures_beside
from journeyman.report.figures import MINUS, exactly, figure
from journeyman.report.line_chart import SUPERSCRIPTS
from journeyman.report.markup import Content, Element, tag
from journeyman.report.sections import Place, badge
from journeyman.report.subject import Subject

PREMISES = " Premises: "
"""Where the sentence on the bound ends and that on its grounds begins."""
ROUNDING = 1e-10
"""Of 2 N/(1 - discount), as in the sentence."""
WORDS = {
    "vacuous": "vacuous: no more than holds for every policy",
    "weak": "weak: above half of what is possible at all",
}
SHORT = 7
"""Characters of a figure that is set as large as can be."""
POWER = re.compile(r"(?<=\d)e([+-]\d+)\b")
HYPHEN = re.compile(r"(?<=\s)-(?=\d)")
"""Powers of ten and signs as they stand in the sentence."""


def result(subject: Subject, place: Place) -> Element:
    """The first section of every report."""
    words = HYPHEN.sub(MINUS, POWER.sub(_raised, subject.certificate.summary()))
    claim, _, grounds = words.partition(PREMISES)
    return place.section(
        "result", "Result",
        tag("p", claim, cls="lead"),
        tag("p", f"Premises: {grounds}", cls="note") if grounds else None,
        tag("div", _headline(subject), _figures(subject), cls="headline"),
    )  # fmt: skip


def _headline(subject: Subject) -> Element:
    """The bound, its verdict, and how much of the trivial bound it is."""
    certificate = subject.certificate
    part = certificate.share
    told = f"{percent(part)} of {_scale(subject)}"
    long = len(figure(certificate.bound)) > SHORT
    than = "more than the expert, at most" if subject.has_expert else "expected cost, at most"
    if subject.has_expert and certificate.bound < 0:
        than += ": it surpasses the expert"
    return tag(
        "div",
        tag("p", exactly(certificate.bound), cls="big long" if long else "big"),
        tag("p", f"cost units {than}"),
        tag("p", *_verdict(subject)),
        tag("div", tag("div", style=f"width:{100 * min(max(part, 0.0), 1.0):.4g}%"), cls="meter",
            aria_hidden="true"),
        tag("p", told, cls="note"),
        cls="bound",
    )  # fmt: skip


def _scale(subject: Subject) -> str:
    """What the meter measures."""
    certificate = subject.certificate
    most = figure(certificate.trivial_bound)
    if certificate.known_cost:
        least = figure(certificate.least_possible)
        return f"the way from the least possible cost {least} to the largest {most}"
    return f"the trivial bound {most}, the largest possible gap"


def _verdict(subject: Subject) -> list[Content]:
    certificate = subject.certificate
    if not certificate.valid:
        return [badge("bad", "not valid: a premise failed")]
    found: list[Content] = [
        badge("warn", WORDS[certificate.strength])
        if certificate.strength
        else badge("good", "certified")
    ]
    explicit = subject.explicit
    if explicit is not None and explicit.alarm:
        found += [" ", badge("bad", "alarm: the data refute the model")]
    if explicit is not None and not all(budget.is_kept for budget in explicit.budgets):
        found += [" ", badge("bad", "a budget is not shown to be kept")]
    return found


def _figures(subject: Subject) -> Element:
    """What else is known, each figure with its meaning."""
    certificate, explicit = subject.certificate, subject.explicit
    discount = 1 - 1 / subject.horizon
    entries: list[tuple[str, float, str]] = [
        ("per step", certificate.normalised_bound, f"the bound times 1 − {discount:.6g}"),
        ("failure probability", certificate.failure_probability, "of the bound, at most"),
    ]
    if explicit is not None:
        entries += figures_beside(explicit)
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name),
                tag("dd", exactly(value, _shown(value, certificate.problem.gap_scale)),
                    tag("span", words, cls="note")))
            for name, value, words in entries
        ),
        cls="figures",
    )  # fmt: skip


def _raised(found: re.Match[str]) -> str:
    """A power of ten as it is written by hand."""
    return f"·10{str(int(found[1])).translate(SUPERSCRIPTS)}"


def _shown(value: float, unit: float) -> str:
    """A figure, shown as zero when it is no more than rounding."""
    return "≈ 0" if 0 < abs(value) < ROUNDING * unit else figure(value)
