"""What a bound is made of: named terms, each with its formula and what it rests on."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """One summand of a bound.

    >>> print(Term("truncation", 0.0123, "N h mean discount^T", "recorded lengths"))
    truncation                     0.0123   N h mean discount^T   [recorded lengths]
    """

    name: str
    value: float
    formula: str
    source: str
    """What the figure rests on."""

    def __str__(self) -> str:
        return f"{self.name:<24} {self.value:>12.4g}   {self.formula}   [{self.source}]"


def above(value: float) -> float:
    """The next number up: an upper bound stays one when it is rounded."""
    return math.nextafter(value, math.inf)


def total(terms: tuple[Term, ...]) -> float:
    """The sum of the terms, rounded up."""
    return above(math.fsum(term.value for term in terms)) if terms else 0.0
