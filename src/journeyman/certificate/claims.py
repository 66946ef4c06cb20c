"""What certificates claim, ready for JSON: the same words and figures for every kind of world."""

import math
from importlib import metadata
from typing import Any

import numpy as np
import scipy

from journeyman.certificate.certificate import Certificate
from journeyman.certificate.terms import Combination, Premise, Statistics, Term


def gap_claims(certificate: Certificate, failure_probability: float) -> dict[str, Any]:
    """The bound, its grounds, and the software that found them."""
    return {
        "software": {
            "journeyman": metadata.version("journeyman"),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "failure_probability": failure_probability,
        "bound": number(certificate.bound),
        "valid": certificate.valid,
        "vacuous": certificate.vacuous,
        "weak": certificate.weak,
        "least_possible": number(certificate.least_possible),
        "trivial_bound": number(certificate.trivial_bound),
        "combinations": [_combination(way) for way in certificate.combinations],
        "premises": [_premise(premise) for premise in certificate.premises],
    }


def number(value: float) -> float | str:
    """JSON has no infinity: it is written as a word."""
    return float(value) if math.isfinite(value) else str(float(value))


def term_claim(term: Term) -> dict[str, Any]:
    """One summand."""
    return {
        "name": term.name, "value": number(term.value), "formula": term.formula,
        "source": term.source,
    }  # fmt: skip


def _combination(way: Combination) -> dict[str, Any]:
    return {
        "kind": way.kind, "estimate": way.estimate, "bound": number(way.bound),
        "terms": [term_claim(term) for term in way.terms],
        "statistics": [_statistics(one) for one in way.statistics],
    }  # fmt: skip


def _statistics(statistics: Statistics) -> dict[str, Any]:
    """What was sampled, with every figure ready for JSON."""
    return {
        name: [number(one) for one in value] if isinstance(value, tuple) else value
        for name, value in vars(statistics).items()
    }


def _premise(premise: Premise) -> dict[str, Any]:
    return {
        "name": premise.name, "verdict": premise.status.value, "detail": premise.detail,
        "level": premise.level,
    }  # fmt: skip
