"""Claims about the gap in a large world: terms and sums of combinations, and the outer bounds."""

import math
from typing import Any

from journeyman.auditing.apprentice import Way
from journeyman.auditing.costs import EUCLIDEAN, INFINITY
from journeyman.auditing.expert import Estimate
from journeyman.auditing.gap_claims import check_terms, check_total
from journeyman.auditing.large_run import LargeRun
from journeyman.auditing.large_ways import check_statistics, large_way
from journeyman.auditing.ledger import Figure, Ledger
from journeyman.auditing.reading import number
from journeyman.auditing.stored import Stored
from journeyman.auditing.tables import Floats

DATA = "gap to the estimate"


def check_large_gap(
    ledger: Ledger, facts: dict[str, Any], run: LargeRun, exact: Floats | None
) -> None:
    """Everything about the gap, by the reading of the rules that agrees best with the claims."""
    check_statistics(ledger, run)
    attempts = []
    for centred in run.question.readings():
        attempt = Ledger()
        way = large_way(run, exact, centred=centred)
        _check_combinations(attempt, run, way, run.estimates(centred=centred))
        attempts.append(attempt)
    ledger.adopt(min(attempts, key=lambda attempt: len(attempt.findings)))
    _check_limits(ledger, facts, run)


def _check_combinations(ledger: Ledger, run: LargeRun, way: Way, estimates: list[Estimate]) -> None:
    by_name = {one.name: one for one in estimates}
    filled = []
    for stored in run.claimed:
        estimate = by_name.get(stored.estimate)
        if not ledger.check(estimate is not None, f"{stored.title} rests on an unknown estimate"):
            continue
        assert estimate is not None
        filled.append(estimate.role)
        ledger.equal(f"the kind of {stored.title}", stored.kind, way.kind)
        _check_combination(ledger, run, stored, way, estimate)
    needed = sorted({one.role for one in estimates})
    ledger.equal("the list of estimates", sorted(filled), needed)
    sizes = [one.bound for one in run.claimed]
    ledger.check(sizes == sorted(sizes), "the combinations are not in the order of their bounds")


def _check_combination(
    ledger: Ledger, run: LargeRun, stored: Stored, way: Way, estimate: Estimate
) -> None:
    question, formula = run.question, "gap_W(expectations - values)"
    gap = question.costs.gap(way.expectations - estimate.values)
    data = Figure.exactly(DATA, formula, gap, estimate.name)
    if way.uncertain is not None:
        zero = question.costs.kind in (INFINITY, EUCLIDEAN)
        data = Figure(DATA, formula, 0.0 if zero else -math.inf, math.inf, estimate.name)
    figures = (data, *way.figures, *estimate.figures)
    values = check_terms(ledger, stored.title, stored.terms, figures, question.floor + way.floor)
    check_total(ledger, stored.title, stored.bound, values)
    for value, figure in zip(values, figures, strict=False):
        if figure.name == "rounding":
            ledger.close(f"the rounding in {stored.title}", value, figure.low, 0.0)


def _check_limits(ledger: Ledger, facts: dict[str, Any], run: LargeRun) -> None:
    """Trivial bound and lower bound."""
    question = run.question
    ledger.close(
        "the trivial bound", number(facts["trivial_bound"]), question.trivial(), question.floor
    )
    ledger.equal("the least possible", facts["least_possible"], 0.0)
    zero = question.costs.kind in (INFINITY, EUCLIDEAN)
    lower = 0.0 if zero else -question.trivial(-1.0)
    ledger.close("the lower bound", number(facts["lower_bound"]), lower, question.floor)
