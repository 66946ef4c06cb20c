"""Claims beside the gap: premises, budgets, intervals, expectations, and the sum of it all."""

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from journeyman.auditing import protocol
from journeyman.auditing.expert import intervals, target_of
from journeyman.auditing.gap_claims import check_terms, check_total
from journeyman.auditing.inputs import Records
from journeyman.auditing.ledger import AGREEMENT, Ledger
from journeyman.auditing.premises import log_evidence_of_starts, log_evidence_of_steps
from journeyman.auditing.reading import Refused, number
from journeyman.auditing.run import Run

Floats = NDArray[np.float64]
DECLARED, TESTED, FAILED = "declared", "tested, not refuted", "failed"
STARTS, STEPS = "start states follow the initial law", "steps follow the transition law"
ALARM = "a policy of this world can have made the demonstrations"
UNDECIDED = 1e-6
"""Of the logarithm of an e-value: so close to the threshold rounding decides."""
PRINTED = 0.01
"""Relative error of a figure in a text."""


def check_target(ledger: Ledger, run: Run) -> None:
    derived = target_of(run.world, run.question, run.records)
    sizes = run.question.costs.norms * run.world.horizon
    if run.estimated != (run.records is not None):
        raise Refused("demonstrations and the kind of target do not go together")
    for name, stored, value, size in zip(
        run.question.names, run.question.target, derived, sizes, strict=True
    ):
        ledger.close(f"the target of {name!r}", float(stored), float(value), float(size))


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
    ledger.within(
        "the trivial bound", number(facts["trivial_bound"]), min(run.trivial()),
        max(run.trivial()), run.floor,
    )  # fmt: skip
    size = run.question.costs.plain
    share = run.question.costs.norms / size if size > 0 else np.zeros(own.size)
    width = share * _evaluation_guard(facts)
    found = _stored_intervals(ledger, "apprentice", facts["apprentice_intervals"], run)
    for k, (low, high) in enumerate(found):
        what, floor = f"the apprentice's interval of {run.question.names[k]!r}", float(sizes[k])
        ledger.close(f"the middle of {what}", (low + high) / 2, float(own[k]), floor)
        ledger.close(f"half the width of {what}", (high - low) / 2, float(width[k]), floor)


def _evaluation_guard(facts: dict[str, Any]) -> float:
    """Residual and rounding of the certificate's own evaluation."""
    exact = [one["terms"] for one in facts["combinations"] if one["kind"] == "D"]
    guards = [term for term in exact[0] if term["name"] in ("evaluation", "rounding")]
    return math.fsum(number(term["value"]) for term in guards)


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
        values = check_terms(ledger, what, stored["terms"], figures, floor)
        check_total(ledger, what, spent, values)
        ledger.equal(f"the limit of {what}", stored["limit"], limit)
        ledger.equal(f"the verdict on {what}", stored["is_kept"], spent <= limit)
        least = figures[0].low - AGREEMENT * floor
        ledger.check(spent >= least, f"{what} is spent up to {spent!r}, below {least!r}")


def check_premises(ledger: Ledger, facts: dict[str, Any], run: Run) -> None:
    """Names, levels and verdicts; of the texts, the figures they rest on."""
    stored = facts["premises"]
    if not run.estimated:
        kind = run.question.expectation.get("kind")
        name = "the declared expectations are those of the expert"
        expected = [(name, DECLARED, None)] if kind == "declared" else []
        ledger.equal("the list of premises", _outline(stored), expected)
        return
    names = ["independent trajectories", STARTS, STEPS, ALARM]
    if run.records is None or not ledger.equal(
        "the list of premises", [one["name"] for one in stored], names
    ):
        return
    independence, starts, steps, alarm = stored
    declared = _outline([independence])
    ledger.equal("the premise of independence", declared, [(names[0], DECLARED, None)])
    said = f"the {len(run.records)} episodes" in independence["detail"]
    ledger.check(said, "the premise of independence speaks of another number of episodes")
    _check_test(ledger, starts, log_evidence_of_starts(run.world, run.records), len(run.records))
    _check_test(ledger, steps, log_evidence_of_steps(run.world, run.records), _steps(run.records))
    verdict = FAILED if facts["alarm"] else TESTED
    outline = [(ALARM, verdict, run.failure_probability)]
    ledger.equal("the premise about the alarm", _outline([alarm]), outline)
    radius = f"{number(facts['lower_bounds']['expert_radius']):.4g}"
    ledger.check(radius in alarm["detail"], "the premise about the alarm tells of another radius")


def _steps(records: Records) -> int:
    return records.pair.size


def _outline(stored: list[dict[str, Any]]) -> list[tuple[Any, Any, Any]]:
    return [(one["name"], one["verdict"], one["level"]) for one in stored]


def _check_test(ledger: Ledger, stored: dict[str, Any], log_value: float, count: int) -> None:
    """A test refutes its premise from an e-value of 1/level on."""
    name, threshold = stored["name"], -math.log(protocol.PREMISE_LEVEL)
    ledger.equal(f"the level of the test that {name}", stored["level"], protocol.PREMISE_LEVEL)
    if abs(log_value - threshold) > UNDECIDED:
        verdict = FAILED if log_value > threshold else TESTED
        ledger.equal(f"the verdict that {name}", stored["verdict"], verdict)
    if log_value == math.inf:
        impossible = "of initial probability 0" in stored["detail"]
        ledger.check(impossible, f"that {name} fails for another reason than is told")
        return
    told = re.match(r"e-value (10\^)?(\S+) from (\d+) ", stored["detail"])
    if not ledger.check(told is not None, f"the test that {name} tells of no e-value"):
        return
    assert told is not None
    figure = float(told[2])
    off = abs(figure - log_value / math.log(10)) if told[1] else None
    agrees = off <= 1 if off is not None else _printed(figure, math.exp(log_value))
    ledger.check(agrees, f"the test that {name} tells of another e-value than exp({log_value!r})")
    ledger.equal(f"the sample of the test that {name}", int(told[3]), count)


def _printed(figure: float, value: float) -> bool:
    return abs(figure - value) <= PRINTED * value


def check_conclusion(ledger: Ledger, facts: dict[str, Any]) -> None:
    """What the certificate concludes from its own figures."""
    verdicts = [one["verdict"] for one in facts["premises"]]
    bad = [word for word in verdicts if word not in (DECLARED, TESTED, FAILED)]
    ledger.check(not bad, f"the verdicts {bad} are unknown")
    valid, trivial = FAILED not in verdicts, number(facts["trivial_bound"])
    best = min(number(one["bound"]) for one in facts["combinations"])
    bound = min(best, trivial) if valid else trivial
    ledger.equal("the validity", facts["valid"], valid)
    ledger.equal("the bound", number(facts["bound"]), bound)
    ledger.equal("the word on vacuity", facts["vacuous"], number(facts["bound"]) >= trivial)
