"""What an audit has compared, and what did not agree.

A derived figure is a range: a point where the figure follows from the inputs, everything from a
needed size on where it only guards against rounding, an interval where rounding decides. A stored
figure agrees when it lies in the range, give or take `AGREEMENT` of its size or of the size of what
it was computed from (`floor`).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

AGREEMENT = 1e-9
LEAST_FLOOR = 1e-300
"""Figures that are zero in one computation and the least number there is in another agree."""


@dataclass(frozen=True)
class Figure:
    """A derived summand of a bound: its name, its formula, the range its value lies in, and what
    it rests on (None where rounding decides what is told)."""

    name: str
    formula: str
    low: float
    high: float
    source: str | None

    @classmethod
    def exactly(cls, name: str, formula: str, value: float, source: str | None) -> "Figure":
        return cls(name, formula, value, value, source)

    @classmethod
    def at_least(cls, name: str, formula: str, needed: float, source: str) -> "Figure":
        """A guard against rounding: more of it does no harm."""
        return cls(name, formula, max(0.0, needed), math.inf, source)


def least_total(figures: Iterable[Figure]) -> float:
    """What the sum of the figures cannot be below."""
    return math.fsum(figure.low for figure in figures)


class Ledger:
    """Findings so far, and how many things were compared."""

    def __init__(self) -> None:
        self.findings: list[str] = []
        self.open: list[str] = []
        """What could not be derived again."""
        self.checked = 0

    def check(self, holds: Any, finding: str) -> bool:
        """Count a comparison; note the finding unless it holds."""
        self.checked += 1
        if not bool(holds):
            self.findings.append(finding)
        return bool(holds)

    def equal(self, what: str, stored: Any, derived: Any) -> bool:
        """Words, flags and whole numbers."""
        same = type(stored) is type(derived) and stored == derived
        return self.check(same, f"{what} is {stored!r}, its inputs give {derived!r}")

    def close(self, what: str, stored: float, derived: float, floor: float) -> bool:
        return self.within(what, stored, derived, derived, floor)

    def within(self, what: str, stored: float, low: float, high: float, floor: float) -> bool:
        """Whether a stored figure lies in a derived range."""
        derived = f"{low!r}" if low == high else f"between {low!r} and {high!r}"
        return self.check(
            lies_within(stored, low, high, floor),
            f"{what} is {stored!r}, its inputs give {derived}",
        )

    def attempt(self, what: str, stage: Callable[[], Any]) -> Any:
        """The outcome of a stage; whatever goes wrong in it is a finding."""
        try:
            return stage()
        except Exception as fault:
            self.check(False, f"{what}: {fault or type(fault).__name__}")
            return None

    def leave_open(self, what: str) -> None:
        """Note something that was not derived again, once."""
        if what not in self.open:
            self.open.append(what)

    def adopt(self, other: "Ledger") -> None:
        self.findings += other.findings
        self.open += [what for what in other.open if what not in self.open]
        self.checked += other.checked


def lies_within(stored: float, low: float, high: float, floor: float) -> bool:
    """low <= stored <= high, give or take; never true of something that is not a number."""
    if stored in (low, high):
        return True
    slack = AGREEMENT * max(floor, LEAST_FLOOR)
    down = slack + (AGREEMENT * abs(low) if math.isfinite(low) else 0.0)
    up = slack + (AGREEMENT * abs(high) if math.isfinite(high) else 0.0)
    return low - down <= stored <= high + up
