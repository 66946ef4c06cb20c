"""Numbers as people read them: few digits, one decimal point below the other.

Beside the rounded number stands the exact one, in the `value` of a `data` element, so that a page
can be checked against the certificate it shows.

>>> number(0.0123456), number(40.0), number(-1.5e-9), number(float("inf"))
('0.01235', '40', '−1.5·10⁻⁹', '∞')
>>> column([12.5, 0.25, 1e-9, 0.0])
['12.50', '0.25', '≈ 0', '0']
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from journeyman.report.line_chart import SUPERSCRIPTS

DATA = Markup('<data value="{}">{}</data>')
DIGITS = 4
"""Significant digits of the largest number of a column."""
MINUS = "−"
MOST_DECIMALS = 6


class Number(NamedTuple):
    """A number as it is shown; in HTML it carries its exact value."""

    value: float
    text: str

    def __html__(self) -> Markup:
        return DATA.format(repr(float(self.value)), self.text)


def number(value: float) -> str:
    """One number to four digits."""
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else f"{MINUS if value < 0 else ''}∞"
    if value == 0:
        return "0"
    size = abs(value)
    if not 1e-3 <= size < 1e6:
        digits, power = f"{size:.3e}".split("e")
        head = digits.rstrip("0").rstrip(".")
        text = f"{head}·10{str(int(power)).translate(SUPERSCRIPTS)}"
    else:
        decimals = max(0, DIGITS - 1 - math.floor(math.log10(size)))
        text = f"{size:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{MINUS if value < 0 else ''}{text}"


def exact(value: float, text: str | None = None) -> Number:
    """A number with its text, by default to four digits."""
    return Number(value, number(value) if text is None else text)


def column(values: Sequence[float], like: Sequence[float] = ()) -> list[str]:
    """Numbers with as many decimals as the largest needs; what vanishes among them is marked.

    With `like` those numbers count too, so that a difference is as fine as what it is one of.
    """
    finite = [abs(value) for value in (*values, *like) if math.isfinite(value)]
    largest = max(finite, default=0.0)
    if largest >= 1e6 or 0 < largest < 1e-3:
        return [number(value) for value in values]
    decimals = DIGITS - 1 - math.floor(math.log10(largest)) if largest else 0
    return [_with(min(max(decimals, 0), MOST_DECIMALS), value) for value in values]


def _with(decimals: int, value: float) -> str:
    if not math.isfinite(value) or value == 0:
        return number(value)
    text = f"{abs(value):,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        return "≈ 0"
    return f"{MINUS if value < 0 else ''}{text}"


def exact_column(values: Iterable[float], like: Sequence[float] = ()) -> list[Number]:
    """A column whose numbers carry their exact values."""
    found = [float(value) for value in values]
    return [Number(*cell) for cell in zip(found, column(found, like), strict=True)]


def signed_column(values: Iterable[float], like: Sequence[float] = ()) -> list[Number]:
    """The same, with a sign also where it is positive."""
    return [Number(value, signed(value, text)) for value, text in exact_column(values, like)]


def signed(value: float, text: str) -> str:
    """With its sign also where it is positive."""
    return f"+{text}" if value > 0 and not text.startswith("≈") else text


def share(value: float) -> str:
    """A part of a whole.

    >>> share(0.1234), share(0.0), share(1e-5), share(1.0)
    ('12.3 %', '0 %', '< 0.1 %', '100 %')
    """
    if value == 0:
        return "0 %"
    if 0 < value < 5e-4:
        return "< 0.1 %"
    return f"{100 * value:.3g} %".replace("-", MINUS)


def seconds(value: float) -> str:
    """A duration.

    >>> seconds(0.0123), seconds(3.14159), seconds(250)
    ('0.012 s', '3.1 s', '250 s')
    """
    return f"{value:.2g} s" if value < 100 else f"{value:,.0f} s"
