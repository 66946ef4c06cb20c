"""What a bound is made of: named terms, each with its formula and what it rests on."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from journeyman.arrays import FloatArray
from journeyman.world import World


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
    """What the value rests on."""

    def __str__(self) -> str:
        return f"{self.name:<24} {self.value:>12.4g}   {self.formula}   [{self.source}]"


def above(value: float) -> float:
    """The next number up: an upper bound stays one when it is rounded."""
    return math.nextafter(value, math.inf)


def total(terms: tuple[Term, ...]) -> float:
    """The sum of the terms, rounded up."""
    return above(math.fsum(term.value for term in terms)) if terms else 0.0


class PremiseStatus(Enum):
    """What is known about a premise."""

    TESTED = "tested, not refuted"
    DECLARED = "declared"
    FAILED = "failed"


@dataclass(frozen=True)
class Premise:
    """Something a guarantee rests on."""

    name: str
    status: PremiseStatus
    detail: str
    level: float | None
    """Probability, at most, with which the test refutes a true premise; None without a test."""


def declared(name: str, detail: str) -> Premise:
    """A premise that nobody can test."""
    return Premise(name, PremiseStatus.DECLARED, detail, None)


def failed(name: str, detail: str, level: float | None = None) -> Premise:
    """A premise that is not true, or that a test at `level` refuted."""
    return Premise(name, PremiseStatus.FAILED, detail, level)


def refuted(premises: Iterable[Premise]) -> tuple[Premise, ...]:
    """The premises that failed."""
    return tuple(premise for premise in premises if premise.status is PremiseStatus.FAILED)


@dataclass(frozen=True)
class Statistics:
    """What the means of one sample rest on: enough to compute their radii again."""

    name: str
    seed: int
    count: int
    means: tuple[float, ...]
    variances: tuple[float, ...]
    """Divided by count - 1; with rollouts, at least those of the complete totals."""
    ranges: tuple[float, ...]
    """Widths of the ranges in which the samples lie."""
    failure_probability: float
    horizon: int | None = None
    """Longest rollout."""
    unrecorded: float = 0.0
    """Mean discounted time behind the ends of the rollouts."""


@dataclass(frozen=True, eq=False)
class PolicyEvaluation:
    """Expectations of the apprentice and the terms of their error."""

    kind: str
    expectations: FloatArray
    terms: tuple[Term, ...]
    failure_probability: float = 0.0
    statistics: tuple[Statistics, ...] = ()
    premises: tuple[Premise, ...] = ()
    ranges: tuple[FloatArray, FloatArray] | None = None
    """Least and greatest expectations under all laws within the model's error, where the error of
    the model is counted through them; the expectations are those in the model."""


@dataclass(frozen=True, eq=False)
class ExpertEstimate:
    """Expectations of the expert and the terms of their error.

    Bounds and lower bounds, which need the error the other way, are separate statements: each holds
    with the probability of the estimate.
    """

    name: str
    values: FloatArray
    terms: tuple[Term, ...]
    failure_probability: float
    reverse: float | None = None
    """Bounds gap_W(e - values), where the terms bound gap_W(values - e) only."""
    totals: FloatArray | None = None
    """Of a shaped estimate: the stopped totals whose mean the values are."""


@dataclass(frozen=True)
class Combination:
    """One way to bound the gap: an evaluation of the policy with an estimate of the expert."""

    kind: str
    estimate: str
    terms: tuple[Term, ...]
    bound: float
    statistics: tuple[Statistics, ...] = ()
    """What was sampled for the evaluation; nothing when it is exact."""


EPSILON = float(np.finfo(float).eps)


def rounding_term(
    world: World, mass: float, size: float, formula: str, num_features: int = 0,
    horizon: float | None = None,
) -> Term:  # fmt: skip
    """The term for a measure of the given mass |u|_1 and costs of the given size.

    A sum of n products is off by at most n eps/2 times the sum of their sizes, in whatever order it
    is made. Expectations, flow residuals and what follows from them are sums over at most
    `num_pairs` pairs, the branches of a pair and the features behind a measure, with costs of at
    most a size:

        2 eps (pairs + branches + features + 8) (1 + |u|_1) size h

    where h is the world's, or the `horizon` of the policy that is evaluated.
    """
    branches = int(np.diff(world.transition.indptr).max())
    terms = world.num_pairs + branches + num_features + 8
    value = 2 * EPSILON * terms * (1.0 + mass) * size * (
        world.effective_horizon if horizon is None else horizon
    )  # fmt: skip
    return Term("rounding", value, formula, "double precision")
