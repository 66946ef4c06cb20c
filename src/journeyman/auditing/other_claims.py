"""Claims beside gap and premises: budgets, intervals, expectations, and the sum of it all."""

import math
from typing import Any

import numpy as np

from journeyman.auditing.attainable import within_range
from journeyman.auditing.chain import column
from journeyman.auditing.evaluations import budget_figure, distance_of
from journeyman.auditing.expert import intervals, target_of
from journeyman.auditing.gap_claims import check_terms, check_total
from journeyman.auditing.ledger import AGREEMENT, Ledger, least_total
from journeyman.auditing.outer_bounds import limits_of, strength
from journeyman.auditing.premise_claims import DECLARED, FAILED, TESTED
from journeyman.auditing.reading import Refused, number
from journeyman.auditing.run import Run
from journeyman.auditing.tables import Floats

STOPPED = "stopped shaping"
MOVED = ("blend", "completed mean", STOPPED)
"""Kinds of targets that are moved into the attainable ranges."""
RESIDUAL = 1e-6
"""Of the size of an expectation: more than an exact evaluation leaves."""
ROUGH = 1e-5
"""Of the largest gap: a solver on its way evaluates only as exactly as it has to."""


def check_target(ledger: Ledger, run: Run) -> None:
    kind = run.question.expectation.get("kind")
    derived = _target(run)
    sizes = run.question.costs.norms * run.world.horizon
    if run.estimated != (run.records is not None):
        raise Refused("demonstrations and the kind of target do not go together")
    for k, (name, stored) in enumerate(zip(run.question.names, run.question.target, strict=True)):
        low = high = float(derived[k])
        if kind in MOVED and abs(float(stored) - low) > AGREEMENT * float(sizes[k]):
            low, high = within_range(run.world, column(run.question.matrix, k), low)
        ledger.within(f"the target of {name!r}", float(stored), low, high, float(sizes[k]))


def _target(run: Run) -> Floats:
    if run.question.expectation.get("kind") != STOPPED:
        return target_of(run.world, run.question, run.records)
    if run.shaped is None:
        raise Refused("the target is a shaped estimate, and there is none")
    return run.shaped.values


def check_apprentice(ledger: Ledger, facts: dict[str, Any], run: Run) -> None:
    """Expectations, gap on the data, and the intervals of the apprentice."""
    sizes = run.question.costs.norms * run.world.horizon
    own = run.apprentice.expectations
    stored = [number(value) for value in facts["expectations"]]
    if ledger.equal("the number of expectations", len(stored), own.size):
        for name, value, derived, size in zip(run.question.names, stored, own, sizes, strict=True):
            ledger.close(f"the expectation of {name!r}", value, float(derived), float(size))
    gap = run.apprentice.gap(run.question.target)
    ledger.close("the gap on the data", number(facts["gap_on_data"]), gap, run.floor)
    size = run.question.costs.plain
    share = run.question.costs.norms / size if size > 0 else np.zeros(own.size)
    hidden = np.zeros(own.size)
    if run.distances is not None:
        hidden = run.question.costs.ranges / 2 * distance_of(run, run.distances)
    least, most = (end * run.world.horizon for end in run.question.costs.ends)
    low_guard, high_guard = _evaluation_guard(facts, run)
    found = _stored_intervals(ledger, "apprentice", facts["apprentice_intervals"], run)
    for k, (low, high) in enumerate(found):
        what, floor = f"the apprentice's interval of {run.question.names[k]!r}", float(sizes[k])
        less, more = (float(share[k] * guard + hidden[k]) for guard in (low_guard, high_guard))
        for end, value, side in (("lower", low, -1), ("upper", high, 1)):
            ends = sorted(float(own[k]) + side * half for half in (less, more))
            cut = np.clip(ends, least[k], most[k]).tolist()
            ledger.within(f"the {end} end of {what}", value, cut[0], cut[1], floor)


def _evaluation_guard(facts: dict[str, Any], run: Run) -> tuple[float, float]:
    """Residual and rounding of the certificate's own evaluation: as told with kind D, otherwise
    within what an exact evaluation leaves."""
    exact = [one["terms"] for one in facts["combinations"] if one["kind"] == "D"]
    if exact:
        guards = [term for term in exact[0] if term["name"] in ("evaluation", "rounding")]
        told = math.fsum(number(term["value"]) for term in guards)
        return told, told
    least = run.apprentice.rounding(run.apprentice.visits).low
    return least, least + RESIDUAL * run.question.costs.plain * run.world.horizon


def check_expert_intervals(ledger: Ledger, facts: dict[str, Any], run: Run) -> None:
    low, high = intervals(run.world, run.question, run.records, run.failure_probability)
    sizes = run.question.costs.norms * run.world.horizon
    found = _stored_intervals(ledger, "expert", facts["expert_intervals"], run)
    for k, ends in enumerate(found):
        what = f"the expert's interval of {run.question.names[k]!r}"
        ledger.close(f"the lower end of {what}", ends[0], float(low[k]), float(sizes[k]))
        ledger.close(f"the upper end of {what}", ends[1], float(high[k]), float(sizes[k]))


def _stored_intervals(
    ledger: Ledger, whose: str, stored: list[dict[str, Any]], run: Run
) -> list[tuple[float, float]]:
    names = [one["name"] for one in stored]
    if not ledger.equal(f"the names of the {whose}'s intervals", names, run.question.names):
        return []
    return [(number(one["low"]), number(one["high"])) for one in stored]


def check_budgets(ledger: Ledger, facts: dict[str, Any], run: Run) -> None:
    budgets = run.question.budgets
    names = [one["name"] for one in facts["budgets"]]
    if not ledger.equal("the names of the budgets", names, [one.name for one in budgets]):
        return
    for stored, budget in zip(facts["budgets"], budgets, strict=True):
        what, spent, limit = f"budget {budget.name!r}", number(stored["spent"]), budget.limit
        floor = float(np.abs(budget.given).max()) * run.world.horizon
        figures = run.apprentice.spending(budget)
        spent_on_laws = 0.0
        if run.distances is not None and len(figures) > 1:
            figures = (*figures, budget_figure(run, budget, run.distances))
            spent_on_laws = run.distances.spent
        ledger.equal(
            f"the failure probability of {what}", stored["failure_probability"], spent_on_laws
        )
        values = check_terms(ledger, what, stored["terms"], figures, floor)
        check_total(ledger, what, spent, values)
        ledger.equal(f"the limit of {what}", stored["limit"], limit)
        ledger.equal(f"the verdict on {what}", stored["is_kept"], spent <= limit)
        least = least_total(figures) - AGREEMENT * (floor + abs(spent))
        ledger.check(spent >= least, f"{what} is spent up to {spent!r}, below {least!r}")


def check_trace(ledger: Ledger, facts: dict[str, Any], run: Run) -> None:
    """When the solver had which bounds is not derived again, but the optimum lies between them.

    Budgets are an exception: a solver may work with lower limits, and break them by a little.
    """
    if run.trace is None or run.question.budgets:
        return
    gap, proven = run.apprentice.gap(run.question.target), number(facts["lower_bounds"]["on_data"])
    low = float(run.trace[:, 1].max(initial=-math.inf))
    high = float(run.trace[:, 2].min(initial=math.inf))
    ledger.check(
        low <= gap + ROUGH * run.floor,
        f"the trace says that no gap is below {low!r}, the policy has {gap!r}",
    )
    ledger.check(
        high >= proven - ROUGH * run.floor,
        f"the trace has a policy with the gap {high!r}, no gap is below {proven!r}",
    )


def check_limits(ledger: Ledger, facts: dict[str, Any], run: Run) -> None:
    """The largest gap that is possible at all, and what the share of a bound is measured from."""
    valid = FAILED not in [one["verdict"] for one in facts["premises"]]
    limits = limits_of(run, valid=valid)
    trivial, least = number(facts["trivial_bound"]), number(facts["least_possible"])
    ledger.within("the trivial bound", trivial, *limits.trivial, run.floor)
    ledger.within("the least possible", least, *limits.least, run.floor)
    used = run.points.ranged is not None
    ledger.check(valid or not used, "a failed premise and potentials do not go together")


def check_conclusion(
    ledger: Ledger, facts: dict[str, Any], rounding: float, *, known_cost: bool = False
) -> None:
    """What the certificate concludes from its own figures; a possible gap below `rounding` is
    none."""
    verdicts = [one["verdict"] for one in facts["premises"]]
    bad = [word for word in verdicts if word not in (DECLARED, TESTED, FAILED)]
    ledger.check(not bad, f"the verdicts {bad} are unknown")
    valid, trivial = FAILED not in verdicts, number(facts["trivial_bound"])
    best = min(number(one["bound"]) for one in facts["combinations"])
    bound = min(best, trivial) if valid else trivial
    ledger.equal("the validity", facts["valid"], valid)
    ledger.equal("the bound", number(facts["bound"]), bound)
    least = number(facts["least_possible"])
    bound = number(facts["bound"])
    vacuous, weak = strength(bound, trivial, least, rounding, known_cost=known_cost)
    ledger.equal("the word on vacuity", facts["vacuous"], vacuous)
    ledger.equal("the word on weakness", facts["weak"], weak)
