"""The cost that a method has inferred: names and weights."""

import numpy as np

from journeyman.report.figures import column, exactly
from journeyman.report.markup import Element, name_of, tag
from journeyman.report.sections import Place
from journeyman.report.subject import Subject
from journeyman.report.tables import table

MOST_LISTED = 64
"""Costs in the table; of more, those with the largest weights."""


def recovered(subject: Subject, place: Place) -> Element | None:
    """None where the method has no cost of its own."""
    weights = subject.recovered
    if weights is None or not np.isfinite(weights).all():
        return None
    basis = subject.certificate.problem.basis
    kind, sign = ("reward", "sought") if basis.rewards else ("cost", "avoided")
    order = np.argsort(-np.abs(weights), kind="stable")[:MOST_LISTED]
    listed = [float(weights[i]) for i in order]
    cells = [exactly(value, text) for value, text in zip(listed, column(listed), strict=True)]
    rows = [(name_of(basis.names[i]), cell) for i, cell in zip(order, cells, strict=True)]
    left = "" if len(rows) == weights.size else f" Listed are {len(rows)} of {weights.size:,}."
    return place.section(
        "recovered", f"The {kind} that the method has inferred",
        tag("p", f"Weights of the method's own {kind}, inferred from the expert or most different "
            f"between expert and apprentice. Where a weight is positive the {kind} is {sign}. The "
            "scale is the method's own: signs and ratios can be compared. Nothing is certified "
            f"about them.{left}"),
        table("Weights, the largest first", [kind, "weight"], rows),
    )  # fmt: skip
