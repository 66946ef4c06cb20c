"""What the result rests on, and what would make it better: premises and advice."""

from journeyman.certificate.premises import Premise, Verdict
from journeyman.report.markup import Element, tag
from journeyman.report.sections import Place, badge
from journeyman.report.subject import Subject
from journeyman.report.tables import table

KINDS = {Verdict.TESTED: "good", Verdict.DECLARED: "plain", Verdict.FAILED: "bad"}


def premises(subject: Subject, place: Place) -> Element | None:
    """None where nothing was supposed."""
    found = subject.certificate.premises
    if not found:
        return None
    return place.section(
        "premises", "Premises",
        tag("p", "The bound holds if these do. A test that does not refute a premise is no proof "
            "of it; what was declared, nobody has tested."),
        table("What the guarantee rests on", ["premise and verdict", "detail"],
              [_row(one) for one in found], words=2),
    )  # fmt: skip


def _row(premise: Premise) -> tuple[Element, str]:
    level = f"; level {premise.level:g}" if premise.level else ""
    verdict = badge(KINDS[premise.verdict], premise.verdict.value)
    return tag("span", premise.name, tag("br"), verdict), f"{premise.detail}{level}"


def remedies(subject: Subject, place: Place) -> Element:
    """The sentences of `certificate.advice()`."""
    sentences = [line for line in subject.certificate.advice().split("\n") if line]
    return place.section(
        "remedies", "What would help", tag("ul", *(tag("li", _sentence(one)) for one in sentences))
    )


def _sentence(text: str) -> str:
    """Begins with a capital letter and ends with a full stop."""
    first = text[:1].upper() + text[1:]
    return first if first.endswith((".", "!", "?")) else f"{first}."
