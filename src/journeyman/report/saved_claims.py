"""Claims of a certificate as `certificate.json` holds them, read back as values."""

import math
from typing import Any

from journeyman.certificate.terms import Combination, Premise, PremiseStatus, Statistics, Term


def number(value: Any) -> float:
    """JSON has no infinity: it is written as a word."""
    found = float(value)
    if math.isnan(found):
        raise ValueError(f"{value!r} is no number")
    return found


def terms_of(facts: dict[str, Any]) -> tuple[Term, ...]:
    return tuple(
        Term(one["name"], number(one["value"]), one["formula"], one["source"])
        for one in facts["terms"]
    )


def combination(facts: dict[str, Any]) -> Combination:
    samples = tuple(Statistics(**_plain(one)) for one in facts["statistics"])
    return Combination(
        facts["kind"], facts["estimate"], terms_of(facts), number(facts["bound"]), samples
    )


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Lists as tuples, numbers as numbers."""
    return {
        name: tuple(map(number, value)) if isinstance(value, list) else value
        for name, value in facts.items()
    }


def premises_of(facts: dict[str, Any]) -> tuple[Premise, ...]:
    return tuple(
        Premise(one["name"], PremiseStatus(one["verdict"]), one["detail"], one["level"])
        for one in facts["premises"]
    )


def combinations_of(facts: dict[str, Any]) -> tuple[Combination, ...]:
    return tuple(combination(one) for one in facts["combinations"])
