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

from journeyman.certificate.presentation import percent

DATA = Markup('<data value="{}">{}</data>')
DIGITS = 4
"""Significant digits of the largest number of a column."""
MINUS = "−"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
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
    """A part of a whole, as certificates write it."""
    return percent(value).replace("-", MINUS)


def seconds(value: float) -> str:
    """A duration.

    >>> seconds(0.0123), seconds(3.14159), seconds(250)
    ('0.012 s', '3.1 s', '250 s')
    """
    return f"{value:.2g} s" if value < 100 else f"{value:,.0f} s"


def linear_ticks(low: float, high: float) -> tuple[float, ...]:
    """Multiples of 1, 2 or 5 times a power of ten, about five of them.

    >>> linear_ticks(0.0, 1.1)
    (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    """
    rough = (high - low) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough)
    counts = range(math.ceil(low / step), math.floor(high / step) + 1)
    return tuple(float(f"{count * step:.12g}") for count in counts)


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Decades between 10^low and 10^high; 2 and 5 times a decade where decades are few.

    >>> log_ticks(1.9, 4.1), log_ticks(-0.1, 1.1)
    ((100.0, 1000.0, 10000.0), (1.0, 2.0, 5.0, 10.0))
    """
    decades = range(math.ceil(low), math.floor(high) + 1)
    if len(decades) >= 3:
        return tuple(float(f"1e{power}") for power in decades[:: math.ceil(len(decades) / 7)])
    powers = range(math.floor(low), math.floor(high) + 1)
    numbers = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    ticks = tuple(tick for tick in numbers if low <= math.log10(tick) <= high)
    return ticks if len(ticks) > 1 else linear_ticks(10.0**low, 10.0**high)


def tick_label(value: float) -> str:
    """A short number; a power of ten where it is very large or small.

    >>> [tick_label(value) for value in (0.0, 0.25, 5000.0, 1e5, -2e-7)]
    ['0', '0.25', '5000', '10⁵', '-2·10⁻⁷']
    """
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.10g}"
    digits, power = f"{value:.9e}".split("e")
    head = digits.rstrip("0").rstrip(".")
    tail = "10" + str(int(power)).translate(SUPERSCRIPTS)
    return {"1": tail, "-1": f"-{tail}"}.get(head, f"{head}·{tail}")
