"""Claims about the gap: every combination with every term, the bounds, and the alarm."""

import math
from dataclasses import replace
from typing import Any

from journeyman.auditing.apprentice import Way
from journeyman.auditing.costs import KNOWN
from journeyman.auditing.duality import Bounds, bounds
from journeyman.auditing.evaluations import (
    check_samples,
    model_figure,
    ways_in_the_model,
    with_model,
    worst_figure,
    worst_way,
)
from journeyman.auditing.expert import Estimate
from journeyman.auditing.ledger import AGREEMENT, Figure, Ledger, least_total, lies_within
from journeyman.auditing.reading import number
from journeyman.auditing.run import Run
from journeyman.auditing.stored import KINDS, Stored

ULPS = 4
TERM_KEYS = {"name", "value", "formula", "source"}


def check_gap(ledger: Ledger, facts: dict[str, Any], run: Run) -> None:
    """Everything about the gap, by the reading of the rules that agrees best with the claims."""
    check_samples(ledger, run)
    more: list[Way] = []
    if run.distances is not None:
        figure, more = model_figure(run, run.distances), [worst_way(run, run.distances)]
    attempts = []
    for centred in run.readings():
        found = ways_in_the_model(run, centred=centred)
        if run.distances is not None:
            found = [with_model(way, figure) for way in found]
        ways = {way.kind: way for way in (*found, *more)}
        attempt = Ledger()
        used = _check_combinations(attempt, run, ways, run.estimates(centred=centred))
        _check_lower_bounds(attempt, facts, run, used)
        attempts.append(attempt)
    ledger.adopt(min(attempts, key=lambda attempt: len(attempt.findings)))


def _check_combinations(
    ledger: Ledger, run: Run, ways: dict[str, Way], estimates: list[Estimate]
) -> list[Estimate]:
    """Every term; returned are the estimates that the certificate used."""
    claimed = run.claimed
    by_name = {one.name: one for one in estimates}
    used: dict[str, Estimate] = {}
    filled = []
    for stored in claimed:
        estimate = by_name.get(stored.estimate)
        if not ledger.check(estimate is not None, f"{stored.title} rests on an unknown estimate"):
            continue
        known = stored.kind in ways
        if not ledger.check(known, f"{stored.title} does not follow from the inputs"):
            continue
        assert estimate is not None
        filled.append((stored.kind, estimate.role))
        used[estimate.role] = _check_combination(ledger, stored, run, ways[stored.kind], estimate)
    needed = {(kind, one.role) for kind in ways for one in estimates if one.needed}
    for kind, role in sorted(needed - set(filled)):
        ledger.check(False, f"there is no combination of kind {kind} with the estimate ({role})")
    ledger.check(len(set(filled)) == len(filled), "a combination is given twice")
    sizes = [one.bound for one in claimed]
    ledger.check(sizes == sorted(sizes), "the combinations are not in the order of their bounds")
    return list(used.values()) or estimates


def _check_combination(
    ledger: Ledger, stored: Stored, run: Run, way: Way, estimate: Estimate
) -> Estimate:
    """Term by term, then the sum; the estimate is returned as this combination reads it."""
    gap = run.question.costs.gap(way.expectations - estimate.values)
    formula = "gap_W(expectations - values)"
    name = "expected cost" if run.question.costs.kind == KNOWN else "gap to the estimate"
    data = Figure.exactly(name, formula, gap, estimate.name)
    guards = tuple(_guard(stored, figure, gap, run) for figure in way.figures)
    if way.worst is not None:
        guards = (worst_figure(run, way.worst, estimate.values, gap),)
    floor = run.floor + way.floor
    values = check_terms(
        ledger, stored.title, stored.terms, (data, *guards, *estimate.figures), floor
    )
    check_total(ledger, stored.title, stored.bound, values)
    read = _as_read(estimate, values[len(values) - len(estimate.figures) :], run)
    slack = AGREEMENT * (floor + abs(stored.bound))
    claims = [("the recomputed bound", gap + least_total(guards) + least_total(read.figures))]
    if stored.kind not in KINDS:
        exact = run.apprentice.gap(estimate.values) - run.apprentice.own_error
        errors = exact + least_total(read.figures)
        claims.append(("the exact gap and the errors of the estimate", errors))
    for what, least in claims:
        holds = stored.bound >= least - slack if math.isfinite(least) else stored.bound == least
        ledger.check(holds, f"{stored.title} is {stored.bound!r}, below {what}, {least!r}")
    return read


def _guard(stored: Stored, figure: Figure, gap: float, run: Run) -> Figure:
    """An evaluation guards what its own gap may be short of."""
    if figure.high < math.inf or not stored.terms:
        return figure
    short = gap - number(stored.terms[0]["value"]) - run.apprentice.own_error
    return replace(figure, low=max(figure.low, short))


def _as_read(estimate: Estimate, values: list[float], run: Run) -> Estimate:
    """Where rounding left a choice, the one that was made."""
    chosen = tuple(
        replace(figure, low=value, high=value)
        if figure.low < figure.high and lies_within(value, figure.low, figure.high, run.floor)
        else figure
        for figure, value in zip(estimate.figures, values, strict=False)
    )
    return replace(estimate, figures=chosen or estimate.figures)


def check_terms(
    ledger: Ledger,
    title: str,
    stored: list[dict[str, Any]],
    figures: tuple[Figure, ...],
    floor: float,
) -> list[float]:
    """Names, formulas and values of terms; returned are the stored values."""
    names, derived = [one.get("name") for one in stored], [figure.name for figure in figures]
    ledger.check(names == derived, f"{title} has the terms {names}, the rules give {derived}")
    values = [number(one["value"]) for one in stored]
    for one, value, figure in zip(stored, values, figures, strict=False):
        ledger.check(set(one) == TERM_KEYS, f"a term of {title} has the parts {sorted(one)}")
        ledger.equal(f"the formula of {figure.name!r} in {title}", one["formula"], figure.formula)
        told = one["source"] if figure.source is None else figure.source
        ledger.equal(f"the source of {figure.name!r} in {title}", one["source"], told)
        ledger.within(f"{figure.name!r} in {title}", value, figure.low, figure.high, floor)
    return values


def check_total(ledger: Ledger, title: str, stored: float, values: list[float]) -> None:
    """A bound is the sum of its terms, rounded up."""
    exact = math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
    top = exact
    for _ in range(ULPS):
        top = math.nextafter(top, math.inf)
    ledger.check(
        exact <= stored <= top, f"{title} is {stored!r}, the sum of its terms is {exact!r}"
    )


def _check_lower_bounds(
    ledger: Ledger, facts: dict[str, Any], run: Run, estimates: list[Estimate]
) -> None:
    derived: Bounds = bounds(
        run.world, run.question, run.points, estimates, run.floor, run.distances
    )
    stored = {name: number(value) for name, value in facts["lower_bounds"].items()}
    names = ("on_data", "without_budgets", "true", "expert_radius")
    if not ledger.equal("the list of lower bounds", sorted(stored), sorted(names)):
        return
    for name in names:
        low, high = getattr(derived, name)
        ledger.within(f"the figure {name!r}", stored[name], low, high, run.floor)
    is_alarm = stored["without_budgets"] > stored["expert_radius"]
    ledger.equal("the alarm", facts["alarm"], is_alarm)
