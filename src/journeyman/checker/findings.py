"""What a check has compared, and what did not agree.

A stated number agrees with a derived one up to `AGREEMENT` of its size, or of the size of what it
was computed from. A derived number may be a range, where rounding or a search decides.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

AGREEMENT = 1e-9
LEAST_SIZE = 1e-300
"""Zero in one computation and the least positive number in another agree."""
ULPS = 4
TERM_PARTS = {"name", "value", "formula", "source"}
INFINITIES = {"inf": math.inf, "-inf": -math.inf}


class Refused(ValueError):
    """Something that a run cannot hold; its message becomes a finding."""


@dataclass(frozen=True)
class DerivedTerm:
    """A derived summand of a bound; with `most`, its value may lie anywhere up to there."""

    name: str
    formula: str
    value: float
    source: str
    most: float | None = None


class Findings:
    """Findings so far, what could not be derived, and how many comparisons were made."""

    def __init__(self) -> None:
        self.findings: list[str] = []
        self.open: list[str] = []
        self.checked = 0

    def check(self, holds: Any, finding: str) -> bool:
        """Count a comparison; note the finding unless it holds."""
        self.checked += 1
        if not bool(holds):
            self.findings.append(finding)
        return bool(holds)

    def equal(self, what: str, stated: Any, derived: Any) -> bool:
        """Texts, flags and whole numbers, of the same type."""
        same = type(stated) is type(derived) and stated == derived
        return self.check(same, f"{what} is {stated!r}, its inputs give {derived!r}")

    def close(self, what: str, stated: float, derived: float, size: float = 0.0) -> bool:
        return self.within(what, stated, derived, derived, size)

    def near(self, what: str, stated: float, derived: float, rounding: float) -> bool:
        """Up to rounding that is known."""
        return self.check(
            abs(stated - derived) <= rounding, f"{what} is {stated!r}, its inputs give {derived!r}"
        )

    def within(self, what: str, stated: float, low: float, high: float, size: float) -> bool:
        derived = f"{low!r}" if low == high else f"between {low!r} and {high!r}"
        return self.check(
            lies_within(stated, low, high, size),
            f"{what} is {stated!r}, its inputs give {derived}",
        )

    def attempt(self, what: str, stage: Callable[[], Any]) -> Any:
        """The outcome of a stage; whatever goes wrong in it is a finding."""
        try:
            return stage()
        except Exception as fault:
            self.check(False, f"{what}: {fault or type(fault).__name__}")
            return None

    def leave_open(self, what: str) -> None:
        if what not in self.open:
            self.open.append(what)

    def adopt(self, other: "Findings") -> None:
        self.findings += other.findings
        self.checked += other.checked
        for what in other.open:
            self.leave_open(what)

    def terms(
        self, title: str, stated: list[dict[str, Any]], derived: Sequence[DerivedTerm], size: float
    ) -> list[float]:
        """Names, formulas, sources and values of terms; the stated values are returned. Terms agree
        up to what their bound says that rounding hides."""
        names, wanted = [one.get("name") for one in stated], [term.name for term in derived]
        self.check(names == wanted, f"{title} has the terms {names}, the rules give {wanted}")
        values = [number(one["value"]) for one in stated]
        hidden = math.fsum(term.value for term in derived if term.name == "rounding")
        size = max(size, hidden / AGREEMENT)  # what is said to be hidden by rounding is
        for one, value, term in zip(stated, values, derived, strict=False):
            self.check(set(one) == TERM_PARTS, f"a term of {title} has the parts {sorted(one)}")
            self.equal(f"the formula of {term.name!r} in {title}", one["formula"], term.formula)
            self.equal(f"the source of {term.name!r} in {title}", one["source"], term.source)
            most = term.value if term.most is None else term.most
            self.within(f"{term.name!r} in {title}", value, term.value, most, size)
        self._sum_is_no_less(title, values, derived)
        return values

    def _sum_is_no_less(
        self, title: str, values: list[float], derived: Sequence[DerivedTerm]
    ) -> None:
        """Terms agree up to the size of the costs, which may dwarf the bound: their sum may fall
        short of the derived one by no more than what rounding is said to hide."""
        wanted = [term.value for term in derived]
        if not all(map(math.isfinite, [*values, *wanted])):
            return
        hidden = math.fsum(term.value for term in derived if term.name == "rounding")
        slack = hidden + AGREEMENT * max(math.fsum(map(abs, wanted)), LEAST_SIZE)
        stated, least = math.fsum(values), math.fsum(wanted)
        self.check(
            stated >= least - slack, f"the terms of {title} add up to {stated!r}, not to {least!r}"
        )

    def total(self, title: str, stated: float, values: list[float]) -> None:
        """A bound is the sum of its terms, rounded up."""
        exact = math.fsum(values) if all(map(math.isfinite, values)) else sum(values)
        top = exact
        for _ in range(ULPS):
            top = math.nextafter(top, math.inf)
        self.check(
            exact <= stated <= top, f"{title} is {stated!r}, the sum of its terms is {exact!r}"
        )


def lies_within(stated: float, low: float, high: float, size: float) -> bool:
    """low <= stated <= high up to rounding; never true of something that is not a number."""
    if stated in (low, high):
        return True
    slack = AGREEMENT * max(size, LEAST_SIZE)
    down = slack + (AGREEMENT * abs(low) if math.isfinite(low) else 0.0)
    up = slack + (AGREEMENT * abs(high) if math.isfinite(high) else 0.0)
    return low - down <= stated <= high + up


def number(value: Any) -> float:
    """A number of a JSON file, which has words for infinity."""
    if isinstance(value, str) and value in INFINITIES:
        return INFINITIES[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(f"{value!r} stands where a number belongs")
    return float(value)
