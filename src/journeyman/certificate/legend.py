"""What the symbols in the formulas of a certificate stand for, as far as they occur."""

import re
from collections.abc import Iterable, Mapping
from textwrap import wrap

from journeyman.certificate.terms import Term

WIDTH = 100
SYMBOL = re.compile(r"[A-Za-z][A-Za-z_]*\d*\+?")
SYMBOLS: Mapping[str, str] = {
    "gap_W": "largest total of its argument under a cost of the class",
    "N": "largest cost of the class in any pair",
    "N2": "the same in the 2-norm",
    "h": "1/(1 - discount)",
    "B": "pairs to their states",
    "P": "transition law",
    "Psi": "costs per pair",
    "c": "a cost that is taken off everywhere",
    "mu": "expected discounted visits of the policy",
    "u": "the vector over pairs, mu or near it, that defines the policy",
    "u+": "the positive part of u",
    "a": "a factor",
    "r": "initial - (B - discount P)' u+",
    "r+": "the positive part of r, in samples the norm of r",
    "V1": "sum of the negative part of u",
    "V2": "|initial - (B - discount P)' u|_1",
    "d": "the cost of the budget",
    "eps": "2^-52, the rounding of double precision",
    "m": "demonstrations or rollouts",
    "n": "costs",
    "R": "range of a total",
    "R_i": "range of the total of cost i",
    "Var": "sample variance of a total",
    "L": "log of 2 over a part of the failure probability",
    "delta": "a part of the failure probability",
    "T": "recorded length",
    "f": "gap_W per unit of the norm that the spread suggests",
    "S2": "bound on the mean square of shaped totals, in that norm",
    "b": "size at which shaped totals are stopped",
    "p": "share that may have been stopped or cut short",
    "H": "length that counts as recorded",
    "err": "how far, in the 1-norm, counts leave laws open",
    "err0": "the same for the initial law",
    "theta": "coefficients of the features",
    "theta_k": "share of candidate k",
    "s_k": "the smaller radius of candidate k",
}
"""In the order in which they are explained."""
MEASURED = "demonstrations that are measured"
"""What n is where totals are shaped."""
KINDS: Mapping[str, str] = {
    "A": "Lemma 2",
    "B": "the positive part of u",
    "B'": "the same times a factor",
    "C": "the same with centred costs",
    "D": "exact visits",
    "E": "rollouts",
}
"""Ways to evaluate a policy, by the letter before their first comma or blank."""


def symbols(terms: Iterable[Term]) -> dict[str, str]:
    """Symbols in the formulas of `terms`, and what they stand for.

    >>> symbols([Term("truncation", 0.1, "N h mean discount^T", "recorded lengths")])["T"]
    'recorded length'
    """
    found = {word for term in terms for word in SYMBOL.findall(term.formula)}
    told = {**SYMBOLS, "n": MEASURED} if "S2" in found else SYMBOLS
    return {symbol: words for symbol, words in told.items() if symbol in found}


def kinds(names: Iterable[str]) -> dict[str, str]:
    """Letters of the ways to evaluate a policy, and what they stand for."""
    letters = {re.split("[, ]", name)[0] for name in names}
    return {letter: words for letter, words in KINDS.items() if letter in letters}


def legend(terms: Iterable[Term], ways: Iterable[str]) -> list[str]:
    """Lines below a table: its symbols in words."""
    words = legend_in_words(terms, ways)
    wrapped = wrap(
        words, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    return ["", "symbols", *wrapped] if words else []


def legend_in_words(terms: Iterable[Term], ways: Iterable[str]) -> str:
    """The symbols of formulas and ways in one sentence; empty where there are none."""
    told = symbols(terms) | kinds(ways)
    return "; ".join(f"{symbol}: {meaning}" for symbol, meaning in told.items())
